// Frames and messages between parent and worker.
#include <gtest/gtest.h>

#include <limits>

#include "harness/run/protocol.h"

namespace warmleg::run {
namespace {

// Encode, cut into frames, decode.
template <class Message>
Message Through(const Message& message) {
  FrameReader reader;
  reader.Feed(Encode(message));
  const std::optional<std::string> frame = reader.Next();
  EXPECT_TRUE(frame.has_value());
  EXPECT_EQ(reader.pending(), 0U);
  if constexpr (std::is_same_v<Message, Request>) {
    return DecodeRequest(*frame);
  } else {
    return DecodeReply(*frame);
  }
}

std::string TextOf(const std::string& frame) { return frame.substr(4); }

TEST(Protocol, RequestsComeBackAsTheyWere) {
  LegRequest leg;
  leg.process = 3, leg.index = 7, leg.arm = "dflash2", leg.prompt_ids = {1, -1, 248069};
  leg.max_new_tokens = 96, leg.block_size = 8, leg.ignore_eos = true, leg.precision = "bf16";
  leg.repeats = 5, leg.margins = true, leg.clock_interval_ms = 100;
  leg.sampling = {
      .temperature = 0.8, .top_k = 40, .top_p = 0.95, .seed = (uint64_t{1} << 53) + 1, .request = 6};
  const auto back = std::get<LegRequest>(Through(Request{leg}));
  EXPECT_EQ(back.process, 3);
  EXPECT_EQ(back.index, 7);
  EXPECT_EQ(back.arm, "dflash2");
  EXPECT_EQ(back.prompt_ids, leg.prompt_ids);
  EXPECT_EQ(back.block_size, 8);
  EXPECT_TRUE(back.ignore_eos);
  EXPECT_EQ(back.repeats, 5);
  EXPECT_EQ(back.sampling.temperature, 0.8);
  EXPECT_EQ(back.sampling.top_k, 40);
  EXPECT_EQ(back.sampling.top_p, 0.95);
  EXPECT_EQ(back.sampling.seed, (uint64_t{1} << 53) + 1);
  EXPECT_EQ(back.sampling.request, 6);
  EXPECT_TRUE(back.margins);
  EXPECT_EQ(back.clock_interval_ms, 100);
  WarmRequest warm;
  warm.prompts = {{1, 2}, {}, {3}};
  EXPECT_EQ(std::get<WarmRequest>(Through(Request{warm})).prompts, warm.prompts);
  EXPECT_TRUE(std::holds_alternative<QuitRequest>(Through(Request{QuitRequest{}})));
}

TEST(Protocol, LegRepliesKeepEveryNumber) {
  LegReply leg;
  leg.index = 2;
  leg.counters.committed = int64_t{1} << 53;
  leg.counters.accepted_at[14] = 9;
  leg.times.decode_s = 0.1;
  leg.times.unaccounted_s = -1e-300;
  leg.output_ids = {5, 6};
  leg.margins = {0.05F, 1e-30F};
  leg.spans = {{1.5, 2.5, 3.5}};
  leg.clock = {{1.75, 2899.5}};
  leg.first_use = {"plain width 1"};
  leg.providers = {
      {"MatMul", {vt::DeviceType::rocm, 1}, "vt-native", "vt-cpu-ref", 3, 1, "no kernel", 1U << 31}};
  const auto back = std::get<LegReply>(Through(Reply{leg}));
  EXPECT_EQ(back.counters.committed, leg.counters.committed);
  EXPECT_EQ(back.counters.accepted_at, leg.counters.accepted_at);
  EXPECT_EQ(back.times.decode_s, 0.1);
  EXPECT_EQ(back.times.unaccounted_s, -1e-300);
  EXPECT_EQ(back.margins, leg.margins);
  EXPECT_EQ(back.spans[0].prefill_end, 2.5);
  EXPECT_EQ(back.clock[0].mhz, 2899.5);
  EXPECT_EQ(back.first_use, leg.first_use);
  ASSERT_EQ(back.providers.size(), 1U);
  EXPECT_EQ(back.providers[0].device, (vt::Device{vt::DeviceType::rocm, 1}));
  EXPECT_EQ(back.providers[0].fallback_reason, "no kernel");
  EXPECT_EQ(back.providers[0].bytes, uint64_t{1} << 31);
}

TEST(Protocol, TextThatIsNotUtf8DoesNotBreakAFrame) {
  const auto back = std::get<FailedReply>(Through(Reply{FailedReply{.kind = "internal", .text = "a\xff"}}));
  EXPECT_EQ(back.text.substr(0, 1), "a");
}

TEST(Protocol, NumbersThatAreNotFiniteAreRefusedBeforeTheyAreSent) {
  DoneReply done;
  done.value = std::numeric_limits<double>::infinity();
  EXPECT_THROW(Encode(Reply{done}), ProtocolError);
}

TEST(Protocol, FramesAreCutAnywhere) {
  const std::string bytes = Encode(Request{QuitRequest{}}) + Encode(Request{RoofRequest{.bytes = 12}}) +
                            Encode(Request{QuitRequest{}});
  FrameReader reader;
  std::vector<std::string> frames;
  for (const char c : bytes) {
    reader.Feed(std::string_view(&c, 1));
    while (auto frame = reader.Next()) frames.push_back(*frame);
  }
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(std::get<RoofRequest>(DecodeRequest(frames[1])).bytes, 12U);
}

TEST(Protocol, ALengthThatCannotBeIsRefused) {
  for (const std::string& length : {std::string("\0\0\0\0", 4), std::string("\xff\xff\xff\xff", 4)}) {
    FrameReader reader;
    reader.Feed(length + "x");
    EXPECT_THROW(reader.Next(), ProtocolError);
  }
}

TEST(Protocol, ParsingIsStrict) {
  const std::string good = TextOf(Encode(Request{RoofRequest{.bytes = 1}}));
  EXPECT_NO_THROW(DecodeRequest(good));
  for (const char* bad : {
           "",
           "[]",
           "{",
           R"({"type":"roof"})",
           R"({"type":"roof","body":{"bytes":1},"more":1})",
           R"({"type":"loft","body":{"bytes":1}})",
           R"({"type":"roof","body":{}})",
           R"({"type":"roof","body":{"bytes":1,"other":2}})",
           R"({"type":"roof","body":{"bytes":-1}})",
           R"({"type":"roof","body":{"bytes":1.5}})",
           R"({"type":"roof","body":{"bytes":"1"}})",
           R"({"type":"roof","body":{"bytes":true}})",
           R"({"type":"roof","body":[1]})",
       }) {
    EXPECT_THROW(DecodeRequest(bad), ProtocolError) << bad;
  }
}

TEST(Protocol, TheMessageNamesTheField) {
  try {
    DecodeReply(R"({"type":"sentinel","body":{"seconds":1,"steps":"x","bytes":0}})");
    FAIL();
  } catch (const ProtocolError& e) {
    EXPECT_STREQ(e.what(), "sentinel.steps: not an integer");
  }
}

TEST(Protocol, ATableOfAnotherLengthIsRefused) {
  std::string text = TextOf(Encode(Reply{LegReply{}}));
  const size_t at = text.find("\"accepted_at\":[0,");
  ASSERT_NE(at, std::string::npos);
  text.erase(at + 15, 2);
  EXPECT_THROW(DecodeReply(text), ProtocolError);
}

}  // namespace
}  // namespace warmleg::run

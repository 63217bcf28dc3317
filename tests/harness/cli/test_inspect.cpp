#include <gmock/gmock.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "harness/cli/commands.h"
#include "tests/support/checkpoint_fixture.h"

namespace warmleg::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using warmleg::testing::CheckpointFixture;
using warmleg::testing::kFlatDraft;
using warmleg::testing::kFlatTarget;
using warmleg::testing::kTinyDraft;
using warmleg::testing::kTinyTarget;
using warmleg::testing::TempDir;

struct Outcome {
  int exit_code = -1;
  std::string out, err;
};

Outcome Inspected(const std::vector<std::string>& words) {
  CLI::App app("warmleg");
  Outcome outcome;
  AddInspect(app, outcome.exit_code);
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  reversed.emplace_back("inspect");
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  app.parse(reversed);
  outcome.out = ::testing::internal::GetCapturedStdout();
  outcome.err = ::testing::internal::GetCapturedStderr();
  return outcome;
}

TEST(Inspect, APairThatFits) {
  const Outcome o = Inspected({kTinyDraft, "--target", kTinyTarget});
  EXPECT_EQ(o.exit_code, 0);
  EXPECT_EQ(o.err, "");
  EXPECT_THAT(o.out,
              HasSubstr("sliding_attention, window 96, bidirectional in the block, rope theta 10000000"));
  EXPECT_THAT(o.out, HasSubstr("target taps   1, 4, 6 (output of the 0-based target block"));
  EXPECT_THAT(o.out, HasSubstr("block         8 rows"));
  EXPECT_THAT(o.out, HasSubstr("skipped       model.visual.* 1 tensors, 1536 bytes"));
  EXPECT_THAT(o.out, HasSubstr("stop ids      2044"));
  EXPECT_THAT(o.out, HasSubstr("accepted"));
}

TEST(Inspect, TheShapeThatShipsIsThatOfThePublishedPair) {
  const std::string dir = "scenarios/checkpoints/qwen3.8-27b-shape/";
  const Outcome o = Inspected({dir + "draft", "--target", dir + "target", "--config-only", "--context", "512",
                               "--roof", "4000", "--json"});
  ASSERT_EQ(o.exit_code, 0) << o.err;
  const json report = json::parse(o.out);
  EXPECT_EQ(report["target"]["parameters"], 26895998464);
  EXPECT_EQ(report["draft"]["parameters"], 1924404480);
  EXPECT_EQ(report["draft"]["config"]["target_layer_ids"], json({5, 19, 33, 47, 61}));
  const json& counts = report["counts"];
  EXPECT_EQ(counts["context"], 512);
  EXPECT_EQ(counts["rows"], 8);
  uint64_t step = 0;
  for (const json& op : counts["ops"]) {
    if (op["part"] == "step") step += op["bytes"].get<uint64_t>();
    EXPECT_NEAR(op["floor_us"].get<double>(), op["bytes"].get<double>() / 4e6, 1e-6);
    if (op["part"] == "step" && op["what"] == "gate|up") {
      EXPECT_EQ(op["calls"], 64);
      EXPECT_EQ(op["bytes"], 64ull * 2 * 17408 * 5120 * 2);
    }
  }
  EXPECT_EQ(counts["step_bytes"], step);
  EXPECT_GT(counts["round_bytes"].get<double>() / static_cast<double>(step), 1.1);
  EXPECT_LT(counts["round_bytes"].get<double>() / static_cast<double>(step), 1.2);
  const Outcome text = Inspected({dir + "target", "--config-only"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, HasSubstr("26.895998 G parameters, no weights"));
  EXPECT_THAT(text.out, HasSubstr("least bytes at context 512"));
  EXPECT_EQ(Inspected({dir + "target"}).exit_code, 2);  // it has no weights
}

TEST(Inspect, BytesFollowFromTheTensors) {
  const json report = json::parse(Inspected({kTinyDraft, "--target", kTinyTarget, "--json"}).out);
  uint64_t target = 0, draft = 0;
  for (const auto& t : CheckpointFixture::Read(kTinyTarget).tensors)
    if (!t.name.starts_with("model.visual.") && !t.name.starts_with("mtp.")) target += t.data.size();
  for (const auto& t : CheckpointFixture::Read(kTinyDraft).tensors) draft += t.data.size();
  EXPECT_EQ(report["target"]["stored_bytes"], json({{"BF16", target}}));
  EXPECT_EQ(report["draft"]["compute_bytes"], json({{"bf16", draft}}));
  const uint64_t embedding = 2048 * 192 * 2, row = 192 * 2, codebooks = 2 * 2048 * 32 * 2;
  EXPECT_EQ(report["plain_step_bytes"], target - embedding + row);
  // The draft whole but the codebooks (7 rows x 16 candidates of each), the head once more, 2 x 8 embedding
  // rows.
  const uint64_t candidates = 2ull * 7 * 16 * 32 * 2;
  EXPECT_EQ(report["draft_round_bytes"],
            draft - codebooks + candidates + target - embedding + embedding + 16 * row);
  EXPECT_EQ(report["draft"]["config"]["target_layer_ids"], json({1, 4, 6}));
  EXPECT_EQ(report["target"]["config"]["stop_ids"], json({2044}));
  EXPECT_EQ(report["ok"], true);
}

TEST(Inspect, ATiedTargetReadsTheEmbeddingAsItsHead) {
  const json report = json::parse(Inspected({kFlatTarget, "--json"}).out);
  uint64_t bytes = 0;
  for (const auto& t : CheckpointFixture::Read(kFlatTarget).tensors) bytes += t.data.size();
  EXPECT_EQ(report["plain_step_bytes"], bytes + 128 * 2);
  EXPECT_TRUE(report["draft_round_bytes"].is_null());
}

TEST(Inspect, ADraftAloneIsReportedWithAWarning) {
  const Outcome o = Inspected({kFlatDraft});
  EXPECT_EQ(o.exit_code, 0);
  EXPECT_THAT(o.out, HasSubstr("not checked against its target"));
}

TEST(Inspect, APairThatDoesNotFitIsRefusedOnStderrLineByLine) {
  const Outcome o = Inspected({kFlatDraft, "--target", kTinyTarget});
  EXPECT_EQ(o.exit_code, 2);
  EXPECT_THAT(o.err, HasSubstr("warmleg: draft: config.json: hidden_size is 128, the target's is 192\n"));
  EXPECT_THAT(o.err, HasSubstr("warmleg: draft: config.json: num_target_layers is 5, the target has 8\n"));
  EXPECT_THAT(o.out, HasSubstr("refused"));
}

TEST(Inspect, OneDefectIsOneLine) {
  const TempDir dir;
  CheckpointFixture f = CheckpointFixture::Read(kTinyDraft);
  f.config["dflash_config"]["target_layer_ids"] = {1, 4, 7};
  f.Write(dir.path());
  const Outcome o = Inspected({dir.path().string(), "--target", kTinyTarget});
  EXPECT_EQ(o.exit_code, 2);
  EXPECT_THAT(o.err, HasSubstr("target_layer_ids holds 7: a tap on the last block is refused"));
  EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1);
}

TEST(Inspect, ATokenizerThatIsThereMustWork) {
  const TempDir dir;
  CheckpointFixture::Read(kFlatTarget).Write(dir.path());
  EXPECT_THAT(Inspected({dir.path().string()}).out, HasSubstr("no tokenizer.json"));
  warmleg::testing::WriteFile(dir / "tokenizer.json", R"({"model":{"type":"Unigram"}})");
  const Outcome o = Inspected({dir.path().string()});
  EXPECT_EQ(o.exit_code, 2);
  EXPECT_THAT(o.err, HasSubstr("tokenizer.json: model.type is \"Unigram\""));
}

TEST(Inspect, SwappedDirectoriesAndMissingOnes) {
  EXPECT_THAT(Inspected({kTinyTarget, "--target", kTinyTarget}).err,
              HasSubstr("the first directory must be the draft"));
  EXPECT_THAT(Inspected({kTinyDraft, "--target", kTinyDraft}).err,
              HasSubstr("a draft where --target expects a target"));
  const Outcome o = Inspected({"no/such/folder"});
  EXPECT_EQ(o.exit_code, 2);
  EXPECT_THAT(o.err, HasSubstr("no/such/folder"));
}

}  // namespace
}  // namespace warmleg::cli

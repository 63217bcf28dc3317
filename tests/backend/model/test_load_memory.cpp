// Peak memory of a load, on a synthetic checkpoint of 307 MB (sparse on disk).
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "backend/model/loader.h"
#include "tests/support/checkpoint_fixture.h"
#include "tests/support/plain_backend.h"

namespace warmleg::model {
namespace {

// VmHWM of this process, bytes.
uint64_t PeakBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    unsigned long long kib = 0;
    if (std::sscanf(line.c_str(), "VmHWM: %llu kB", &kib) == 1) return kib * 1024;
  }
  return 0;
}

TEST(LoadMemory, PeakIsTheWeightsAndALittle) {
#if defined(WARMLEG_ASAN) || defined(WARMLEG_TSAN)
  GTEST_SKIP() << "a sanitizer's own memory would be measured";
#endif
  const warmleg::testing::TempDir dir;
  auto f = warmleg::testing::CheckpointFixture::Read(warmleg::testing::kFlatTarget);
  const int64_t vocab = 1200000;
  f.config["vocab_size"] = vocab;
  std::erase_if(f.tensors, [](const auto& t) { return t.name == "model.embed_tokens.weight"; });
  f.Write(dir.path());
  nlohmann::json header;
  size_t at = 0;
  for (const auto& t : f.tensors) {
    header[t.name] = {{"dtype", t.dtype}, {"shape", t.shape}, {"data_offsets", {at, at + t.data.size()}}};
    at += t.data.size();
  }
  const size_t table = static_cast<size_t>(vocab) * 128 * 2;
  header["model.embed_tokens.weight"] = {
      {"dtype", "BF16"}, {"shape", {vocab, 128}}, {"data_offsets", {at, at + table}}};
  std::string data;
  for (const auto& t : f.tensors) data += t.data;
  const std::string file = warmleg::testing::WithHeader(header.dump(), data);
  warmleg::testing::WriteFile(dir / "model.safetensors", file);
  std::filesystem::resize_file(dir / "model.safetensors", file.size() + table);

  std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts anew
  warmleg::testing::PlainBackend backend;
  LoadReport report;
  const TargetWeights w = LoadTarget(dir.path(), backend, &report);
  const uint64_t peak = PeakBytes();
  ASSERT_GT(report.bytes, 300000000u);
  EXPECT_GE(peak, report.bytes);
  EXPECT_LE(peak, report.bytes * 13 / 10 + 100000000) << "weights " << report.bytes;
  EXPECT_LE(peak, report.bytes + 100000000);
  std::printf("weights %.1f MB, peak %.1f MB, %.3f s\n", static_cast<double>(report.bytes) / 1e6,
              static_cast<double>(peak) / 1e6, report.seconds);
}

}  // namespace
}  // namespace warmleg::model

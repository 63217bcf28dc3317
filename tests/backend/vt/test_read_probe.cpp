#include "backend/vt/read_probe.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <vector>

#include "backend/backends.h"
#include "backend/vt/error.h"
#include "backend/vt/tile_probe.h"

namespace vt {
namespace {

Backend& TheBackend() {
  RegisterBackends();
  const char* text = std::getenv("WARMLEG_TEST_DEVICE");
  return GetBackend(text != nullptr ? ParseDevice(text) : Device{});
}

TEST(ReadProbe, SweepsGiveAPositiveRateAndCheckTheirSum) {
  Backend& backend = TheBackend();
  const auto queue = backend.CreateQueue();
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1} << 20, (uint64_t{3} << 20) + 117}) {
    ReadProbe probe(*queue, bytes);
    EXPECT_EQ(probe.bytes() % 16, 0U);
    EXPECT_GE(probe.bytes(), uint64_t{1} << 20);
    EXPECT_GT(probe.Sweep(), 0);
    EXPECT_GT(probe.Best(0), 0);
  }
}

int skipped_bytes = 0;

void SumAllButSome(Queue& queue, const void* data, size_t bytes, uint64_t* partials) {
  std::vector<uint64_t> host(kSumPartials);
  host[7] = (bytes - static_cast<size_t>(skipped_bytes)) / 8 * 0x5a5a5a5a5a5a5a5a;
  (void)data;
  queue.backend().CopyIn(queue, partials, host.data(), host.size() * sizeof(uint64_t));
}

TEST(ReadProbe, AKernelThatSkipsAPieceIsFound) {
  Backend& backend = TheBackend();
  const auto queue = backend.CreateQueue();
  RegisterSumWords(backend.device().type, SumAllButSome);
  ReadProbe probe(*queue, 0);
  skipped_bytes = 0;
  EXPECT_GT(probe.Sweep(), 0);
  skipped_bytes = 8;
  EXPECT_THROW(probe.Sweep(), EnvironmentError);
  RegisterSumWords(backend.device().type, nullptr);
  EXPECT_THROW(ReadProbe(*queue, 0), RefusedError);
}

uint64_t missing_adds = 0;

uint64_t AllButSome(Queue& queue, int turns, uint64_t* sums) {
  std::vector<uint64_t> host(kTileSums, static_cast<uint64_t>(turns));
  const uint64_t all = std::accumulate(host.begin(), host.end(), uint64_t{0});
  host.back() -= missing_adds;
  queue.backend().CopyIn(queue, sums, host.data(), host.size() * sizeof(uint64_t));
  return all;
}

TEST(TileProbe, TheLoopRunsAndItsSumsAreChecked) {
  Backend& backend = TheBackend();
  const auto queue = backend.CreateQueue();
  if (HasTileLoop(backend.device())) {
    const TileProbe::Run run = TileProbe(*queue).Measure(0);
    EXPECT_GT(run.multiply_adds, 0);
    EXPECT_GT(run.seconds, 0);
  } else {
    EXPECT_THROW(TileProbe{*queue}, RefusedError);
  }
  RegisterTileLoop(backend.device().type, AllButSome);
  missing_adds = 0;
  EXPECT_EQ(TileProbe(*queue).Measure(0).multiply_adds, kTileSums);
  missing_adds = 1;
  EXPECT_THROW(TileProbe(*queue).Measure(0), EnvironmentError);
  RegisterTileLoop(backend.device().type, nullptr);
}

}  // namespace
}  // namespace vt

// Threads of a block: barriers, exchanges of a wave, shared memory, and the faults of kernels.
#include <array>
#include <string>
#include <vector>

#include "backend/hip/vendor/sim.h"
#include "backend/sim/sanitizer.h"
#include "tests/backend/sim/sim_test.h"

namespace vt::hip::on_sim {
namespace {

class SimKernels : public vt::sim::SimTest {
 protected:
  void ExpectFault(const std::string& part) {
    EXPECT_EQ(hipStreamSynchronize(stream), hipErrorLaunchFailure);
    EXPECT_NE(vt::sim::LastFault().find(part), std::string::npos) << vt::sim::LastFault();
  }
};

TEST_F(SimKernels, EveryThreadOfEveryBlockRunsOnce) {
  std::vector<int> seen(2 * 3 * 4 * 5 * 6 * 2);
  ASSERT_HIP(LaunchKernel(stream, {dim3(2, 3, 4), dim3(5, 6, 2), 0, "", 0}, [&] {
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    ++seen[block * 60 + thread];
  }));
  ASSERT_HIP(hipStreamSynchronize(stream));
  for (const int count : seen) EXPECT_EQ(count, 1);
}

#if defined(WARMLEG_ASAN)
// With the bounds of a fiber's stack in its books the sanitizer checks nothing of this one, and the leak
// check reads memory that is gone.
TEST_F(SimKernels, TheSanitizerFindsThisThreadsStackAgain) {
  const auto expect_mine = [](const char* when) {
    void* fake = nullptr;
    const void* bottom = nullptr;
    size_t bytes = 0;
    vt::sim::LeaveStack(&fake, &fake, 1);
    vt::sim::ArriveOnStack(fake, &bottom, &bytes);
    vt::sim::LeaveStack(&fake, bottom, bytes);
    vt::sim::ArriveOnStack(fake, nullptr, nullptr);
    const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    EXPECT_GE(here, reinterpret_cast<uintptr_t>(bottom)) << when;
    EXPECT_LT(here, reinterpret_cast<uintptr_t>(bottom) + bytes) << when;
  };
  expect_mine("before");
  ASSERT_HIP(LaunchKernel(stream, {2, 64, 0, "", 0}, [] { BlockSync(); }));
  ASSERT_HIP(hipStreamSynchronize(stream));
  expect_mine("after a kernel");
  ASSERT_HIP(LaunchKernel(stream, {1, 64, 0, "", 0}, [] {
    if (threadIdx.x < 32) BlockSync();
  }));
  EXPECT_EQ(hipStreamSynchronize(stream), hipErrorLaunchFailure);
  expect_mine("after a kernel that was given up");
}
#endif

TEST_F(SimKernels, ABarrierSeparatesPhases) {
  for (const bool reverse : {false, true}) {
    vt::sim::SetReverseThreads(reverse);
    std::array<int, 256> out{};
    ASSERT_HIP(LaunchKernel(stream, {2, 256, 0, "", 0}, [&] {
      WARMLEG_SHARED(int, at, [256]);
      for (int round = 0; round < 3; ++round) {
        at[threadIdx.x] = static_cast<int>(threadIdx.x) + round;
        BlockSync();
        out[threadIdx.x] += at[255 - threadIdx.x];
        BlockSync();
      }
    }));
    ASSERT_HIP(hipStreamSynchronize(stream));
    for (int i = 0; i < 256; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], 2 * (3 * (255 - i) + 3));
  }
}

TEST_F(SimKernels, AMissingBarrierShows) {
  std::array<int, 64> out{};
  ASSERT_HIP(LaunchKernel(stream, {1, 64, 0, "", 0}, [&] {
    WARMLEG_SHARED(int, at, [64]);
    at[threadIdx.x] = 5;
    out[threadIdx.x] = at[63 - threadIdx.x];
  }));
  ASSERT_HIP(hipStreamSynchronize(stream));
  EXPECT_EQ(out[0], -1) << "poison of a value that is not written yet";
}

template <int kWave>
void ExchangeAll(hipStream_t stream, std::vector<float>* sums, std::vector<int>* got) {
  ASSERT_HIP(LaunchKernel(stream, {1, 128, 0, "", 0}, [=] {
    const auto i = static_cast<size_t>(threadIdx.x);
    const int lane = LaneId<kWave>();
    float chain = 1.0F / static_cast<float>(i + 1);
    (*sums)[i] = WaveSum<kWave>(chain);
    for (int width = kWave / 2; width > 0; width /= 2) chain += ShuffleXor<kWave>(chain, width);
    if ((*sums)[i] != chain) (*sums)[i] = -1;
    (*got)[4 * i] = Shuffle<kWave>(lane, 3);
    (*got)[4 * i + 1] = ShuffleDown<kWave>(lane, 2);
    (*got)[4 * i + 2] = WaveMax<kWave>(lane * 7 % kWave);
    (*got)[4 * i + 3] = Ballot<kWave>(lane >= kWave / 2) ==
                        (~uint64_t{0} << (kWave / 2) & (kWave == 64 ? ~uint64_t{0} : 0xffffffffU));
  }));
  ASSERT_HIP(hipStreamSynchronize(stream));
  for (int i = 0; i < 128; ++i) {
    const auto at = static_cast<size_t>(i);
    const int lane = i % kWave;
    EXPECT_GT((*sums)[at], 0) << "the one-step sum differs from the chain of exchanges";
    EXPECT_EQ((*got)[4 * at], 3);
    EXPECT_EQ((*got)[4 * at + 1], lane + 2 < kWave ? lane + 2 : lane);
    EXPECT_EQ((*got)[4 * at + 2], kWave - 1);
    EXPECT_EQ((*got)[4 * at + 3], 1);
  }
}

TEST_F(SimKernels, LanesExchangeInWavesOf32And64) {
  std::vector<float> sums(128);
  std::vector<int> got(512);
  ExchangeAll<32>(stream, &sums, &got);
  ASSERT_HIP(hipSetDevice(1));
  ExchangeAll<64>(NewStream(), &sums, &got);
}

TEST_F(SimKernels, SharedMemoryIsPoisonedForEachBlock) {
  std::array<uint32_t, 3> first{};
  ASSERT_HIP(LaunchKernel(stream, {3, 1, 16, "", 0}, [&] {
    WARMLEG_DYNAMIC_SHARED(uint32_t, dynamic);
    WARMLEG_SHARED(uint32_t, fixed, [2]);
    first[blockIdx.x] = dynamic[0] & fixed[1];
    dynamic[0] = fixed[1] = 0;
  }));
  ASSERT_HIP(hipStreamSynchronize(stream));
  for (const uint32_t word : first) EXPECT_EQ(word, 0xffffffffU);
}

TEST_F(SimKernels, WritingPastSharedMemoryIsAFault) {
  ASSERT_HIP(LaunchKernel(stream, {1, 1, 16, "", 0}, [] {
    WARMLEG_DYNAMIC_SHARED(float, dynamic);
    dynamic[4] = 1;
  }));
  ExpectFault("past an array of 16 bytes");
}

TEST_F(SimKernels, TooMuchSharedMemoryIsAFault) {
  ASSERT_HIP(LaunchKernel(stream, {1, 1, 65536, "", 0}, [] {
    WARMLEG_SHARED(float, more, [1]);
    more[0] = 1;
  }));
  ExpectFault("more than 65536");
}

TEST_F(SimKernels, ABarrierThatSomeThreadsNeverReachIsAFault) {
  ASSERT_HIP(LaunchKernel(stream, {1, 64, 0, "here.hip", 7}, [] {
    if (threadIdx.x != 5) BlockSync();
  }));
  ExpectFault("63 threads wait at a barrier");
  EXPECT_NE(vt::sim::LastFault().find("here.hip:7"), std::string::npos);
}

TEST_F(SimKernels, AnExchangeOfHalfAWaveIsAFault) {
  ASSERT_HIP(LaunchKernel(stream, {1, 64, 0, "", 0}, [] {
    if (threadIdx.x < 16) WaveSum<32>(1);
  }));
  ExpectFault("16 at an exchange");
}

TEST_F(SimKernels, AKernelForTheOtherWaveIsAFault) {
  ASSERT_HIP(LaunchKernel(stream, {1, 64, 0, "", 0}, [] { WaveSum<64>(1); }));
  ExpectFault("wave 64 runs on a device of wave 32");
}

TEST_F(SimKernels, AtomicsAdd) {
  float sum = 0;
  uint64_t most = 0;
  ASSERT_HIP(LaunchKernel(stream, {4, 64, 0, "", 0}, [&] {
    AtomicAdd(&sum, 0.5F);
    AtomicMax(&most, uint64_t{threadIdx.x});
  }));
  ASSERT_HIP(hipStreamSynchronize(stream));
  EXPECT_EQ(sum, 128.0F);
  EXPECT_EQ(most, 63U);
}

}  // namespace
}  // namespace vt::hip::on_sim

// Providers, the reference tier and its flush, on a device that queues: its work runs only when something
// waits for it.
#include "backend/vt/dispatch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "backend/vt/error.h"
#include "backend/vt/stats.h"

namespace {

class LazyQueue : public vt::Queue {
 public:
  using Queue::Queue;
  bool capturing() const override { return capture; }
  bool capture = false;
};

// rocm:0 with host-coherent memory, rocm:1 with device memory.
class LazyBackend : public vt::Backend {
 public:
  explicit LazyBackend(int index) : Backend({vt::DeviceType::rocm, index}) {}

  vt::DeviceInfo Info() const override {
    vt::DeviceInfo info;
    info.device = device();
    info.name = "lazy";
    return info;
  }
  vt::MemoryKind memory_kind() const override {
    return device().index == 0 ? vt::MemoryKind::host_coherent : vt::MemoryKind::device;
  }
  std::unique_ptr<vt::Queue> CreateQueue() override { return std::make_unique<LazyQueue>(*this); }
  void CopyIn(vt::Queue&, void* to, const void* from, size_t bytes) override {
    std::vector<std::byte> staged(bytes);
    std::memcpy(staged.data(), from, bytes);
    pending.emplace_back([to, staged] { std::memcpy(to, staged.data(), staged.size()); });
  }
  void CopyOut(vt::Queue& queue, void* to, const void* from, size_t bytes) override {
    Synchronize(queue);
    std::memcpy(to, from, bytes);
  }
  void Copy(vt::Queue&, void* to, const void* from, size_t bytes) override {
    pending.emplace_back([=] { std::memmove(to, from, bytes); });
  }
  void Fill(vt::Queue&, void* to, uint8_t value, size_t bytes) override {
    pending.emplace_back([=] { std::memset(to, value, bytes); });
  }
  void FlushPending(vt::Queue&) override {
    ++flushes;
    for (const auto& work : pending) work();
    pending.clear();
  }
  void Synchronize(vt::Queue& queue) override { FlushPending(queue); }
  void Stamp(vt::Queue&, int) override {}
  double StampSeconds(vt::Queue&, int, int) override { return 0; }

  std::vector<std::function<void()>> pending;
  int flushes = 0;

 protected:
  void* AllocBytes(size_t bytes) override { return std::malloc(bytes); }
  void FreeBytes(void* data) noexcept override { std::free(data); }
};

std::vector<vt::DeviceInfo> List(std::vector<std::string>*) {
  std::vector<vt::DeviceInfo> all(2);
  for (int i = 0; i < 2; ++i) all[static_cast<size_t>(i)].device = {vt::DeviceType::rocm, i};
  return all;
}

int native_calls = 0;

// The reference: on the host, at once.
void PositionsOnHost(vt::Queue&, const vt::PositionsArgs& a) {
  for (int64_t r = 0; r < a.out.dim(0); ++r) {
    a.out.as<int32_t>()[r] = a.start.as<int32_t>()[0] + static_cast<int32_t>(r);
  }
}
void ArgMaxOnHost(vt::Queue&, const vt::ArgMaxArgs& a) { a.out.as<int32_t>()[0] = 1; }
void CopyOnHost(vt::Queue&, const vt::CopyRowsArgs& a) {
  std::memcpy(a.dst.data, a.src.data, static_cast<size_t>(a.src.bytes()));
}
void CopyOnDevice(vt::Queue& queue, const vt::CopyRowsArgs& a) {
  ++native_calls;
  queue.backend().Copy(queue, a.dst.data, a.src.data, static_cast<size_t>(a.src.bytes()));
}
const char* DeclineLong(const vt::CopyRowsArgs& a) {
  return a.src.dim(0) > 4 ? "more than 4 elements" : nullptr;
}

class Dispatch : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    vt::RegisterBackend({vt::DeviceType::rocm, List, [](int i) -> std::unique_ptr<vt::Backend> {
                           return std::make_unique<LazyBackend>(i);
                         }});
    vt::RegisterReference<vt::PositionsArgs>(PositionsOnHost);
    vt::RegisterReference<vt::ArgMaxArgs>(ArgMaxOnHost);
    vt::RegisterReference<vt::CopyRowsArgs>(CopyOnHost);
    vt::RegisterNative<vt::CopyRowsArgs>(vt::DeviceType::rocm, CopyOnDevice, DeclineLong);
  }

  static LazyBackend& Lazy(int index) {
    return static_cast<LazyBackend&>(vt::GetBackend({vt::DeviceType::rocm, index}));
  }
  static vt::Tensor Ints(vt::TensorPool& pool, std::initializer_list<int64_t> shape) {
    return pool.New(vt::DType::i32, shape);
  }
  static void Put(vt::Queue& queue, const vt::Tensor& t, const std::vector<int32_t>& values) {
    queue.backend().CopyIn(queue, t.data, values.data(), values.size() * 4);
  }
  static vt::OpTotals Moved(const std::vector<vt::OpTotals>& before, const std::string& op,
                            const std::string& provider) {
    for (const vt::OpTotals& t : vt::Difference(vt::ProviderTotals(), before)) {
      if (t.op == op && t.provider == provider) return t;
    }
    return {};
  }

  LazyBackend& lazy_ = Lazy(0);
  std::unique_ptr<vt::Queue> queue_ = lazy_.CreateQueue();
  vt::TensorPool pool_{lazy_};
  std::vector<vt::OpTotals> before_ = vt::ProviderTotals();
};

TEST_F(Dispatch, TheReferenceTierFlushesOnEveryCallBeforeItReads) {
  const vt::Tensor start = Ints(pool_, {1});
  const vt::Tensor out = Ints(pool_, {3});
  const auto positions = vt::GetOp<vt::PositionsArgs>(lazy_.device());  // flushing here would be too early
  for (int32_t i = 1; i <= 3; ++i) {
    const int flushes = lazy_.flushes;
    Put(*queue_, start, {10 * i});
    ASSERT_EQ(lazy_.pending.size(), 1U);
    positions(*queue_, {.start = start, .out = out});
    EXPECT_EQ(lazy_.flushes, flushes + 1);
    EXPECT_EQ(out.as<int32_t>()[2], 10 * i + 2) << "the kernel read before the queued write was done";
  }
  const vt::OpTotals totals = Moved(before_, "Positions", "vt-cpu-ref");
  EXPECT_EQ(totals.calls, 3U);
  EXPECT_EQ(totals.fallbacks, 3U);
  EXPECT_EQ(totals.fallback_reason, "no native kernel");
  EXPECT_EQ(totals.asked, "vt-native");
  EXPECT_EQ(totals.bytes, 3U * 16);
}

TEST_F(Dispatch, TheFirstFallBackIsAnnouncedOnce) {
  const vt::ArgMaxArgs args = {.x = pool_.New(vt::DType::f32, {1, 4}), .out = Ints(pool_, {1})};
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) vt::Run(*queue_, args);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "[vt reference-tier] op=ArgMax device=rocm has NO native kernel\n");
}

TEST_F(Dispatch, ANativeKernelComesFirstAndDoesNotFlush) {
  const vt::Tensor src = Ints(pool_, {4});
  const vt::Tensor dst = Ints(pool_, {4});
  const int flushes = lazy_.flushes;
  const int calls = native_calls;
  Put(*queue_, src, {1, 2, 3, 4});
  vt::Run(*queue_, vt::CopyRowsArgs{.src = src, .dst = dst});
  EXPECT_EQ(native_calls, calls + 1);
  EXPECT_EQ(lazy_.flushes, flushes);
  EXPECT_EQ(lazy_.pending.size(), 2U);
  lazy_.Synchronize(*queue_);
  EXPECT_EQ(dst.as<int32_t>()[3], 4);
  const vt::OpTotals totals = Moved(before_, "CopyRows", "vt-native");
  EXPECT_EQ(totals.calls, 1U);
  EXPECT_EQ(totals.fallbacks, 0U);
  EXPECT_EQ(totals.bytes, 32U);
}

TEST_F(Dispatch, ADeclinedCallFallsBackWithTheReason) {
  const vt::Tensor src = Ints(pool_, {5});
  const vt::Tensor dst = Ints(pool_, {5});
  const int calls = native_calls;
  Put(*queue_, src, {1, 2, 3, 4, 5});
  vt::Run(*queue_, vt::CopyRowsArgs{.src = src, .dst = dst});
  EXPECT_EQ(native_calls, calls);
  EXPECT_EQ(dst.as<int32_t>()[4], 5);
  const vt::OpTotals totals = Moved(before_, "CopyRows", "vt-cpu-ref");
  EXPECT_EQ(totals.calls, 1U);
  EXPECT_EQ(totals.fallbacks, 1U);
  EXPECT_EQ(totals.fallback_reason, "more than 4 elements");
}

TEST_F(Dispatch, DeviceMemoryKeepsTheReferenceTierOff) {
  LazyBackend& far = Lazy(1);
  const auto queue = far.CreateQueue();
  vt::TensorPool pool(far);
  EXPECT_THROW(vt::GetOp<vt::PositionsArgs>(far.device()), vt::RefusedError);
  try {
    vt::Run(*queue, vt::PositionsArgs{.start = Ints(pool, {1}), .out = Ints(pool, {2})});
    FAIL() << "ran";
  } catch (const vt::RefusedError& e) {
    EXPECT_STREQ(
        e.what(),
        "op Positions has no native kernel on rocm:1, and its device memory keeps the reference tier off "
        "(VT_MEMORY=host-coherent turns it on)");
  }
  try {
    vt::Run(*queue, vt::CopyRowsArgs{.src = Ints(pool, {5}), .dst = Ints(pool, {5})});
    FAIL() << "ran";
  } catch (const vt::RefusedError& e) {
    EXPECT_STREQ(e.what(), "op CopyRows on rocm:1 was declined by its native kernel: more than 4 elements");
  }
  EXPECT_EQ(far.flushes, 0);
  EXPECT_TRUE(vt::Difference(vt::ProviderTotals(), before_).empty()) << "a refused call was counted";
}

TEST_F(Dispatch, NoProviderAtAllIsRefused) {
  EXPECT_THROW(vt::GetOp<vt::MatMulArgs>(lazy_.device()), vt::RefusedError);
  EXPECT_NO_THROW(vt::GetOp<vt::CopyRowsArgs>(Lazy(1).device()));
}

TEST_F(Dispatch, TheReferenceTierIsRefusedWhileCapturing) {
  static_cast<LazyQueue&>(*queue_).capture = true;
  const int flushes = lazy_.flushes;
  EXPECT_THROW(vt::Run(*queue_, vt::PositionsArgs{.start = Ints(pool_, {1}), .out = Ints(pool_, {2})}),
               vt::RefusedError);
  EXPECT_EQ(lazy_.flushes, flushes);
  EXPECT_TRUE(vt::Difference(vt::ProviderTotals(), before_).empty());
  vt::Run(*queue_, vt::CopyRowsArgs{.src = Ints(pool_, {2}), .dst = Ints(pool_, {2})});  // native: captured
  lazy_.pending.clear();
}

TEST_F(Dispatch, TensorsThatDoNotFitReachNoProvider) {
  EXPECT_THROW(vt::Run(*queue_, vt::CopyRowsArgs{.src = Ints(pool_, {2}), .dst = Ints(pool_, {3})}),
               std::logic_error);
  EXPECT_TRUE(vt::Difference(vt::ProviderTotals(), before_).empty());
}

TEST_F(Dispatch, TotalsEqualTheCallsMade) {
  const vt::Tensor start = Ints(pool_, {1});
  Put(*queue_, start, {0});
  int made = 0;
  for (int64_t n = 1; n <= 9; ++n, made += 2) {
    vt::Run(*queue_, vt::CopyRowsArgs{.src = Ints(pool_, {n}), .dst = Ints(pool_, {n})});
    vt::Run(*queue_, vt::PositionsArgs{.start = start, .out = Ints(pool_, {n})});
  }
  uint64_t calls = 0;
  uint64_t fallbacks = 0;
  for (const vt::OpTotals& t : vt::Difference(vt::ProviderTotals(), before_)) {
    EXPECT_EQ(vt::ToString(t.device), "rocm:0");
    calls += t.calls;
    fallbacks += t.fallbacks;
  }
  EXPECT_EQ(calls, static_cast<uint64_t>(made));
  EXPECT_EQ(fallbacks, 9U + 5U);  // every Positions, and CopyRows of 5..9
  lazy_.Synchronize(*queue_);
}

TEST_F(Dispatch, TheTableShowsEveryRow) {
  vt::Run(*queue_, vt::CopyRowsArgs{.src = Ints(pool_, {5}), .dst = Ints(pool_, {5})});
  const std::string table = vt::FormatTotals(vt::Difference(vt::ProviderTotals(), before_));
  EXPECT_NE(table.find("CopyRows           rocm:0   vt-native  vt-cpu-ref"), std::string::npos) << table;
  EXPECT_NE(table.find("more than 4 elements"), std::string::npos) << table;
}

}  // namespace

#include "backend/bench/cases.h"

#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "backend/bench/data.h"
#include "backend/vt/dispatch.h"
#include "backend/vt/read_probe.h"
#include "backend/vt/tile_probe.h"

namespace vt::bench {

namespace {

constexpr DType kF32 = DType::f32;
constexpr DType kBf16 = DType::bf16;
constexpr DType kI32 = DType::i32;

constexpr int64_t kLargeBytes = int64_t{32} << 20;
constexpr int64_t kColdBytes = int64_t{256} << 20;  // several times the caches
constexpr int kCalls = 16;                          // of one graph

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// GB/s of one read sweep. One buffer far larger than any cache serves every case; on a device that queues it
// is large enough to make little of the stamps around it.
double Roof(Backend& backend) {
  static const std::unique_ptr<Queue> queue = backend.CreateQueue();
  static ReadProbe probe(*queue, uint64_t{backend.can_capture() ? 2048U : 512U} << 20);
  return probe.Sweep();
}

// Seconds of one call, measured over the calls of one graph where there are graphs: a call then costs what it
// costs in a step. Its arguments take turns, so that weights come from memory.
template <class Args>
class Calls {
 public:
  Calls(Queue& queue, std::vector<Args> sets) : queue_(queue), sets_(std::move(sets)) {
    for (const Args& args : sets_) Run(queue_, args);  // warm: pages touched, scratch allocated
    Backend& backend = queue_.backend();
    backend.Synchronize(queue_);
    if (!backend.can_capture()) return;
    calls_ = std::max(kCalls, static_cast<int>(sets_.size()));
    backend.BeginCapture(queue_);
    for (int i = 0; i < calls_; ++i) Run(queue_, sets_[static_cast<size_t>(i) % sets_.size()]);
    graph_ = backend.EndCapture(queue_);
  }
  double Seconds() {
    Backend& backend = queue_.backend();
    backend.Stamp(queue_, 0);
    if (graph_) {
      graph_->Launch(queue_);
    } else {
      Run(queue_, sets_[0]);
    }
    backend.Stamp(queue_, 1);
    backend.Synchronize(queue_);
    return backend.StampSeconds(queue_, 0, 1) / calls_;
  }

 private:
  Queue& queue_;
  std::vector<Args> sets_;
  std::unique_ptr<Graph> graph_;
  int calls_ = 1;
};

template <class Args>
void Measure(benchmark::State& state, Data& data, std::vector<Args> sets, double multiply_adds) {
  Backend& backend = data.queue().backend();
  const auto bytes = static_cast<double>(sets[0].bytes());
  // Other programs take cores and bandwidth from both alike when sweeps and calls take turns.
  const bool take_turns = sets[0].bytes() >= kLargeBytes;
  Calls<Args> calls(data.queue(), std::move(sets));
  std::vector<double> roofs(3);
  std::generate(roofs.begin(), roofs.end(), [&] { return Roof(backend); });
  std::vector<double> rates;
  for (auto _ : state) {
    const double seconds = calls.Seconds();
    state.SetIterationTime(seconds);
    rates.push_back(bytes / seconds / 1e9);
    if (take_turns) roofs.push_back(Roof(backend));
  }
  const double rate = Median(rates);
  const double roof = Median(roofs);
  state.counters["GB/s"] = rate;
  state.counters["roof_GB/s"] = roof;
  state.counters["share"] = rate / roof;
  if (multiply_adds > 0) state.counters["GFLOP/s"] = 2 * multiply_adds * rate / bytes;
}

template <class Args>
void Add(Backend& backend, const std::string& shape, std::function<Args(Data&)> make,
         double multiply_adds = 0) {
  benchmark::RegisterBenchmark(fmt::format("{}/{}", Name(Args::kOp), shape).c_str(),
                               [&backend, make, multiply_adds](benchmark::State& state) {
                                 Data data(backend);
                                 std::vector<Args> sets = {make(data)};
                                 const int64_t bytes = sets[0].bytes();
                                 const bool cold = backend.can_capture() && bytes >= (1 << 20);
                                 const auto size = cold ? static_cast<size_t>(kColdBytes / bytes) + 1 : 1;
                                 while (sets.size() < std::min<size_t>(size, kCalls)) {
                                   sets.push_back(make(data));
                                 }
                                 Measure(state, data, std::move(sets), multiply_adds);
                               })
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

std::vector<int32_t> Ascending(int32_t first, int64_t n) {
  std::vector<int32_t> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), first);
  return values;
}

void AddMatMul(Backend& backend, DType dtype, int64_t n, int64_t k, std::initializer_list<int64_t> row_counts,
               Precision precision = Precision::exact) {
  for (const int64_t rows : row_counts) {
    const int64_t mb = n * k * SizeOf(dtype) >> 20;
    const std::string shape = fmt::format("{}/{}x{}/{}MiB/rows:{}{}", Name(dtype), n, k, mb, rows,
                                          precision == Precision::bf16 ? "/rounded" : "");
    Add<MatMulArgs>(
        backend, shape,
        [=](Data& d) {
          return MatMulArgs{.x = d.Random(kF32, {rows, k}),
                            .w = d.Random(dtype, {n, k}),
                            .bias = {},
                            .out = d.Zeros(kF32, {rows, n}),
                            .precision = precision};
        },
        static_cast<double>(rows * n * k));
  }
}

void AddPointwise(Backend& backend, int64_t rows) {
  const std::string shape = fmt::format("rows:{}", rows);
  Add<EmbeddingArgs>(backend, "24832x5120/" + shape, [=](Data& d) {
    return EmbeddingArgs{.table = d.Random(kBf16, {24832, 5120}),
                         .ids = d.RandomInts({rows}, 24832),
                         .out = d.Zeros(kF32, {rows, 5120})};
  });
  Add<RmsNormArgs>(backend, "5120/" + shape, [=](Data& d) {
    return RmsNormArgs{.x = d.Random(kF32, {rows, 5120}),
                       .weight = d.Random(kBf16, {5120}),
                       .out = d.Zeros(kF32, {rows, 5120}),
                       .eps = 1e-6F,
                       .one_plus = true};
  });
  Add<AddRmsNormArgs>(backend, "5120/" + shape, [=](Data& d) {
    return AddRmsNormArgs{.h = d.Random(kF32, {rows, 5120}),
                          .delta = d.Zeros(kF32, {rows, 5120}),
                          .weight = d.Random(kBf16, {5120}),
                          .out = d.Zeros(kF32, {rows, 5120}),
                          .eps = 1e-6F,
                          .one_plus = true};
  });
  Add<SiluMulArgs>(backend, "17408/" + shape, [=](Data& d) {
    return SiluMulArgs{.gate_up = d.Random(kF32, {rows, int64_t{2} * 17408}),
                       .out = d.Zeros(kF32, {rows, 17408})};
  });
  Add<GatedRmsNormArgs>(backend, "48x128/" + shape, [=](Data& d) {
    return GatedRmsNormArgs{.x = d.Random(kF32, {rows, 48, 128}),
                            .z = d.Random(kF32, {rows, 48, 128}),
                            .weight = d.Random(kF32, {128}),
                            .out = d.Zeros(kF32, {rows, 48, 128}),
                            .eps = 1e-6F};
  });
  Add<RopeArgs>(backend, "24x256/64/" + shape, [=](Data& d) {
    return RopeArgs{.x = d.Random(kF32, {rows, 24, 256}),
                    .positions = d.Ints(Ascending(1000, rows)),
                    .inv_freq = d.Random(kF32, {32})};
  });
}

void AddAttention(Backend& backend, int64_t context, int64_t rows) {
  const std::string shape = fmt::format("24:4x256/context:{}/rows:{}", context, rows);
  Add<AttentionArgs>(backend, shape, [=](Data& d) {
    return AttentionArgs{.q = d.Random(kF32, {rows, 24, 256}),
                         .k = d.Random(kF32, {context + rows, 4, 256}),
                         .v = d.Random(kF32, {context + rows, 4, 256}),
                         .positions = d.Ints(Ascending(static_cast<int32_t>(context), rows)),
                         .out = d.Zeros(kF32, {rows, 24, 256}),
                         .scale = 1.0F / 16};
  });
}

void AddMixers(Backend& backend, int64_t rows) {
  const std::string shape = fmt::format("rows:{}", rows);
  Add<CausalConv1dArgs>(backend, "10240x4/" + shape, [=](Data& d) {
    return CausalConv1dArgs{.x = d.Random(kF32, {rows, 10240}),
                            .weight = d.Random(kBf16, {10240, 4}),
                            .state = d.Zeros(kF32, {3, 10240}),
                            .out = d.Zeros(kF32, {rows, 10240}),
                            .hold = rows > 1};
  });
  Add<GatedDeltaRuleArgs>(backend, "16:48x128x128/" + shape, [=](Data& d) {
    return GatedDeltaRuleArgs{.q = d.Random(kF32, {rows, 16, 128}),
                              .k = d.Random(kF32, {rows, 16, 128}),
                              .v = d.Random(kF32, {rows, 48, 128}),
                              .a = d.Random(kF32, {rows, 48}),
                              .b = d.Random(kF32, {rows, 48}),
                              .a_log = d.Random(kF32, {48}),
                              .dt_bias = d.Random(kF32, {48}),
                              .state = d.Zeros(kF32, {48, 128, 128}),
                              .out = d.Zeros(kF32, {rows, 48, 128}),
                              .changes = rows > 1 ? d.Zeros(kF32, {rows, 48, 128}) : Tensor{},
                              .decays = rows > 1 ? d.Zeros(kF32, {rows, 48}) : Tensor{}};
  });
  if (rows == 1) return;
  Add<CommitConvArgs>(backend, "48x10240x4/" + shape, [=](Data& d) {
    return CommitConvArgs{.x = d.Random(kF32, {48, rows, 10240}),
                          .states = d.Zeros(kF32, {48, 3, 10240}),
                          .last = d.Ints({static_cast<int32_t>(rows) - 1})};
  });
  Add<CommitDeltaArgs>(backend, "48x16:48x128x128/" + shape, [=](Data& d) {
    return CommitDeltaArgs{.k = d.Random(kF32, {48, rows, 16, 128}),
                           .changes = d.Zeros(kF32, {48, rows, 48, 128}),
                           .decays = d.Random(kF32, {48, rows, 48}),
                           .states = d.Zeros(kF32, {48, 48, 128, 128}),
                           .last = d.Ints({static_cast<int32_t>(rows) - 1})};
  });
}

void AddDraft(Backend& backend) {
  Add<DFlashGroupedConvArgs>(backend, "5120x2/group:16/rows:8", [](Data& d) {
    return DFlashGroupedConvArgs{.y = d.Random(kF32, {8, 5120}),
                                 .base = d.Random(kBf16, {2, 2, 5120}),
                                 .delta = d.Random(kF32, {8, 2, 2, 320}),
                                 .residual = {},
                                 .out = d.Zeros(kF32, {8, 5120}),
                                 .side = 1};
  });
  Add<DFlashBlockAttnArgs>(backend, "32:8x128/context:2048/rows:8", [](Data& d) {
    return DFlashBlockAttnArgs{.q = d.Random(kF32, {8, 32, 128}),
                               .k_block = d.Random(kF32, {8, 8, 128}),
                               .v_block = d.Random(kF32, {8, 8, 128}),
                               .k_ctx = d.Random(kF32, {2048, 8, 128}),
                               .v_ctx = d.Random(kF32, {2048, 8, 128}),
                               .pages = {},
                               .start = d.Ints({2048}),
                               .out = d.Zeros(kF32, {8, 32, 128}),
                               .scale = 0.088F,
                               .window = 2048};
  });
  Add<TopKPairsArgs>(backend, "248320/k:16/rows:7", [](Data& d) {
    return TopKPairsArgs{
        .x = d.Random(kF32, {7, 248320}), .values = d.Zeros(kF32, {7, 16}), .ids = d.Zeros(kI32, {7, 16})};
  });
  Add<SelectorEdgesArgs>(backend, "rank:256/k:16/rows:7", [](Data& d) {
    return SelectorEdgesArgs{.values = d.Random(kF32, {7, 16}),
                             .ids = d.RandomInts({7, 16}, 24832),
                             .hidden = d.Random(kF32, {7, 256}),
                             .predecessor = d.Random(kBf16, {24832, 256}),
                             .successor = d.Random(kBf16, {24832, 256}),
                             .anchor = d.Ints({1}),
                             .edges = d.Zeros(kF32, {7, 16, 16})};
  });
  Add<PathWalkArgs>(backend, "k:16/rows:7", [](Data& d) {
    return PathWalkArgs{.edges = d.Random(kF32, {7, 16, 16}),
                        .ids = d.RandomInts({7, 16}, 248320),
                        .drafted = d.Zeros(kI32, {7}),
                        .q = {},
                        .draws = {}};
  });
  Add<ArgMaxArgs>(backend, "248320/rows:8", [](Data& d) {
    return ArgMaxArgs{.x = d.Random(kF32, {8, 248320}), .out = d.Zeros(kI32, {8})};
  });
}

Draws DrawsOf(Data& d) { return {.seed = d.Ints({1, 0, 0}), .position = d.Ints({100})}; }

// Weights that one plain step of Qwen3.8-27B reads: 64 MLPs, 48 linear and 16 full attentions, the head;
// bf16.
constexpr double kStepBytes = 2.0 * (64.0 * 3 * 5120 * 17408 + 48.0 * 5120 * (10240 + 6144 + 96 + 6144) +
                                     16.0 * 5120 * (12288 + 2048 + 6144) + 248320.0 * 5120);

// All that a plain step does to choose its token, and its share of a step that reads at the roof.
void MeasureSamplingChain(benchmark::State& state, Backend& backend) {
  Data data(backend);
  Queue& queue = data.queue();
  const Tensor logits = data.Random(kF32, {1, 248320});
  const Tensor scaled = data.Zeros(kF32, {1, 248320});
  const ApplyTemperatureArgs temperature = {logits, scaled, 0.1F};  // to -10..10, as wide as real logits
  const ApplyTopKTopPArgs filter = {scaled, 20, 0.95F};
  const RandomSampleArgs sample = {.x = scaled, .out = data.Zeros(kI32, {1}), .draws = DrawsOf(data)};
  std::vector<double> times;
  const auto run = [&] {
    backend.Stamp(queue, 0);
    Run(queue, temperature);
    Run(queue, filter);
    Run(queue, sample);
    backend.Stamp(queue, 1);
    backend.Synchronize(queue);
  };
  run();  // warm
  while (state.KeepRunning()) {
    run();
    times.push_back(backend.StampSeconds(queue, 0, 1));
    state.SetIterationTime(times.back());
  }
  std::vector<double> roofs(5);
  std::generate(roofs.begin(), roofs.end(), [&] { return Roof(backend); });
  const double roof = Median(roofs);
  state.counters["roof_GB/s"] = roof;
  state.counters["share_of_27B_step"] = Median(times) / (kStepBytes / (roof * 1e9));
}

void AddSampling(Backend& backend) {
  for (const int blocks : {1, 0}) {
    Add<RandomSampleArgs>(backend, blocks == 1 ? "248320/rows:1/one-block" : "248320/rows:1/split",
                          [blocks](Data& d) {
                            return RandomSampleArgs{.x = d.Random(kF32, {1, 248320}),
                                                    .out = d.Zeros(kI32, {1}),
                                                    .draws = DrawsOf(d),
                                                    .blocks = blocks};
                          });
  }
  Add<SoftmaxArgs>(backend, "248320/rows:7", [](Data& d) {
    return SoftmaxArgs{.x = d.Random(kF32, {7, 248320}), .out = d.Zeros(kF32, {7, 248320})};
  });
  Add<RejectionSampleArgs>(backend, "248320/k:16/rows:8", [](Data& d) {
    return RejectionSampleArgs{.block = d.RandomInts({8}, 248320),
                               .p = d.Zeros(kF32, {7, 248320}),
                               .q = d.Zeros(kF32, {7, 16}),
                               .ids = d.RandomInts({7, 16}, 248320),
                               .bonus = d.Ints({1}),
                               .target = d.Zeros(kI32, {8}),
                               .draws = DrawsOf(d)};
  });
  benchmark::RegisterBenchmark("SamplingChain/248320/top_k:20/top_p:0.95/rows:1",
                               [&backend](benchmark::State& state) { MeasureSamplingChain(state, backend); })
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

// What the matrix products of a prefill are measured against.
void MeasureTileLoop(benchmark::State& state, Backend& backend) {
  const std::unique_ptr<Queue> queue = backend.CreateQueue();
  TileProbe probe(*queue);
  std::vector<double> rates;
  while (state.KeepRunning()) {
    const TileProbe::Run run = probe.Measure(5e-3);
    state.SetIterationTime(run.seconds);
    rates.push_back(2 * run.multiply_adds / run.seconds / 1e9);
  }
  state.counters["GFLOP/s"] = Median(rates);
}

}  // namespace

void RegisterCases(Backend& backend) {
  if (HasTileLoop(backend.device())) {
    benchmark::RegisterBenchmark("TileLoop/bf16",
                                 [&backend](benchmark::State& state) { MeasureTileLoop(state, backend); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  }
  // the target's projections: gate|up, qkv|z|b|a, q|gate|k|v, o and out, down, the head
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{34816, 5120},
                             {16480, 5120},
                             {14336, 5120},
                             {5120, 6144},
                             {5120, 17408},
                             {17408, 5120},
                             {10240, 5120},
                             {248320, 5120}}) {
    AddMatMul(backend, kBf16, n, k, {1, 4, 8, 16});
  }
  AddMatMul(backend, kBf16, 16384, 8192, {1, 8, 64});
  if (backend.can_capture()) {  // a chunk of a prefill; minutes on a CPU
    for (const Precision precision : {Precision::bf16, Precision::exact}) {
      AddMatMul(backend, kBf16, 34816, 5120, {512}, precision);
      AddMatMul(backend, kBf16, 5120, 17408, {512}, precision);
    }
  }
  AddMatMul(backend, kF32, 8192, 8192, {1});
  AddMatMul(backend, kBf16, 1280, 5120, {8});    // the draft's kernel_projection
  AddMatMul(backend, kBf16, 2048, 192, {1, 8});  // the head of scenarios/checkpoints/tiny-code
  for (const int64_t rows : {1, 8}) {
    AddPointwise(backend, rows);
    for (const int64_t context : {512, 2048, 8192}) AddAttention(backend, context, rows);
    AddMixers(backend, rows);
  }
  AddDraft(backend);
  AddSampling(backend);
}

}  // namespace vt::bench

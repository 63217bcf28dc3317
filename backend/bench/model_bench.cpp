#include "backend/bench/model_bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include <nlohmann/json.hpp>

#include "backend/bench/recorder.h"
#include "backend/model/parse_config.h"
#include "backend/vt/error.h"
#include "backend/vt/ops.h"
#include "backend/vt/read_probe.h"

namespace vt::bench {

namespace {

namespace fs = std::filesystem;
namespace model = warmleg::model;
using Json = nlohmann::ordered_json;

constexpr uint64_t kMostProbeBytes = uint64_t{4} << 30;
constexpr double kProbe_s = 0.3;

std::string ConfigText(const std::string& path) {
  const fs::path file = fs::is_directory(path) ? fs::path(path) / "config.json" : fs::path(path);
  std::ifstream in(file);
  if (!in)
    throw InputError(fmt::format("{}: cannot be read; name a config.json or its folder", file.string()));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The dtype that the config says its weights are stored in.
DType WeightType(const std::string& text) {
  const Json config = Json::parse(text, nullptr, false);
  const Json& inner = config.contains("text_config") ? config["text_config"] : config;
  for (const Json* at : {&inner, &config}) {
    for (const char* key : {"dtype", "torch_dtype"}) {
      if (at->contains(key) && (*at)[key].is_string()) {
        return (*at)[key].get<std::string>() == "float32" ? DType::f32 : DType::bf16;
      }
    }
  }
  return DType::bf16;
}

struct Row {
  RecordedCall call;
  double seconds = 0;  // of one call
};
struct Phase {
  std::string name;
  std::vector<Row> rows;  // the dearest first
  double Sum(bool matmul) const {
    double sum = 0;
    for (const Row& row : rows) {
      if ((row.call.op == Op::MatMul) == matmul) sum += row.seconds * static_cast<double>(row.call.calls);
    }
    return sum;
  }
  double Bytes() const {
    double sum = 0;
    for (const Row& row : rows)
      sum += static_cast<double>(row.call.bytes) * static_cast<double>(row.call.calls);
    return sum;
  }
};

Phase Measure(std::string name, std::vector<RecordedCall> calls, Backend& backend, int64_t context) {
  Phase phase{std::move(name), {}};
  // The same call in two parts of a round is measured once.
  std::vector<std::pair<std::pair<Op, std::string>, double>> known;
  for (RecordedCall& call : calls) {
    const std::pair<Op, std::string> key{call.op, call.shape};
    const auto same = std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.first == key; });
    const double seconds = same != known.end() ? same->second : call.measure(backend, context);
    if (same == known.end()) known.emplace_back(key, seconds);
    phase.rows.push_back({std::move(call), seconds});
  }
  std::stable_sort(phase.rows.begin(), phase.rows.end(), [](const Row& a, const Row& b) {
    return a.seconds * static_cast<double>(a.call.calls) > b.seconds * static_cast<double>(b.call.calls);
  });
  return phase;
}

double GbPerS(const Row& row) { return static_cast<double>(row.call.bytes) / row.seconds / 1e9; }

Json ToJson(const Phase& phase, double roof) {
  Json ops = Json::array();
  for (const Row& row : phase.rows) {
    ops.push_back({{"op", Name(row.call.op)},
                   {"part", row.call.part},
                   {"shape", row.call.shape},
                   {"calls", row.call.calls},
                   {"bytes", row.call.bytes},
                   {"seconds", row.seconds},
                   {"gb_s", GbPerS(row)},
                   {"share", GbPerS(row) / roof}});
  }
  const double matmul = phase.Sum(true);
  const double others = phase.Sum(false);
  return {{"name", phase.name},
          {"ops", ops},
          {"bytes", phase.Bytes()},
          {"sum_s", matmul + others},
          {"matmul_s", matmul},
          {"others_s", others},
          {"floor_s", phase.Bytes() / roof / 1e9}};
}

void Print(const Phase& phase, double roof) {
  fmt::print("\n{}\n{:<18} {:<7} {:>6} {:>10} {:>10} {:>9} {:>6}  {}\n", phase.name, "op", "part", "calls",
             "us each", "us", "GB/s", "share", "shape");
  for (const Row& row : phase.rows) {
    fmt::print("{:<18} {:<7} {:>6} {:>10.2f} {:>10.1f} {:>9.1f} {:>6.2f}  {}\n", Name(row.call.op),
               row.call.part, row.call.calls, row.seconds * 1e6,
               row.seconds * static_cast<double>(row.call.calls) * 1e6, GbPerS(row), GbPerS(row) / roof,
               row.call.shape);
  }
  const double matmul = phase.Sum(true);
  const double others = phase.Sum(false);
  const double floor = phase.Bytes() / roof / 1e9;
  fmt::print(
      "sum {:.1f} us = MatMul {:.1f} + others {:.1f} ({:.1f} % of MatMul)   {:.3f} GB   floor {:.1f} us, "
      "{:.2f} of "
      "the sum\n",
      (matmul + others) * 1e6, matmul * 1e6, others * 1e6, 100 * others / matmul, phase.Bytes() / 1e9,
      floor * 1e6, floor / (matmul + others));
}

}  // namespace

void RunModelBench(const ModelBench& bench, Backend& backend) {
  const std::string text = ConfigText(bench.target);
  model::Findings findings;
  const model::TargetConfig target = model::ParseTargetConfig(text, std::nullopt, &findings);
  findings.Raise();
  std::optional<model::DraftConfig> draft;
  if (!bench.draft.empty()) {
    draft = model::ParseDraftConfig(ConfigText(bench.draft), &target, &findings);
    findings.Raise();
  }
  if (bench.context < 1 || bench.context + kMaxRows > target.max_positions) {
    throw InputError(fmt::format("--context {}: from 1 to the model's {} positions", bench.context,
                                 target.max_positions - kMaxRows));
  }
  const DType dtype = WeightType(text);
  const auto queue = backend.CreateQueue();
  double roof = 0;
  const uint64_t probe_bytes = std::min(WeightBytes(target, dtype), kMostProbeBytes);
  const auto probe = [&] { roof = std::max(roof, ReadProbe(*queue, probe_bytes).Best(kProbe_s)); };
  probe();
  std::vector<Phase> phases;
  phases.push_back(Measure("plain step", RecordStep(target, dtype, bench.context, backend.device()), backend,
                           bench.context));
  if (draft) {
    phases.push_back(Measure(fmt::format("round of {} rows", draft->block_size),
                             RecordRound(target, *draft, dtype, bench.context, backend.device()), backend,
                             bench.context));
  }
  probe();  // before and after: a busy moment must not lower the roof
  const DeviceInfo info = backend.Info();
  if (bench.json) {
    Json all{{"schema", "warmleg.opbench/1"},
             {"device", ToString(info.device)},
             {"name", info.name},
             {"runtime", info.runtime},
             {"model", bench.target},
             {"draft", bench.draft.empty() ? Json(nullptr) : Json(bench.draft)},
             {"context", bench.context},
             {"weights", Name(dtype)},
             {"roof_gb_s", roof},
             {"phases", Json::array()}};
    for (const Phase& phase : phases) all["phases"].push_back(ToJson(phase, roof));
    fmt::print("{}\n", all.dump(1));
    return;
  }
  fmt::print("{}  {}  {}   {}, context {}   read roof {:.1f} GB/s\n", ToString(info.device), info.name,
             info.runtime, bench.target, bench.context, roof);
  for (const Phase& phase : phases) Print(phase, roof);
}

}  // namespace vt::bench

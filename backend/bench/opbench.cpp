// warmleg-opbench: every op alone, with its bytes, GB/s and share of the read roof measured in the same run.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "backend/backends.h"
#include "backend/bench/cases.h"
#include "backend/bench/model_bench.h"
#include "backend/bench/tool.h"
#include "backend/vt/error.h"

namespace {

void Bench(const std::string& device, const std::string& op, std::vector<std::string> rest, char* program) {
  vt::RegisterBackends();
  vt::Backend& backend = vt::GetBackend(vt::ParseDevice(device));
  if (!op.empty()) rest.push_back(fmt::format("--benchmark_filter=^{}/", op));
  std::vector<char*> argv = {program};
  for (std::string& arg : rest) argv.push_back(arg.data());
  auto argc = static_cast<int>(argv.size());
  benchmark::Initialize(&argc, argv.data());
  if (argc > 1) throw vt::InputError(fmt::format("unknown argument '{}'; --help lists them", argv[1]));
  benchmark::AddCustomContext("device", fmt::format("{} {}", device, backend.Info().name));
  vt::bench::RegisterCases(backend);
  if (benchmark::RunSpecifiedBenchmarks() == 0) {
    throw vt::InputError(
        fmt::format("no case matches; ops are those of backend/vt/ops.h, --op was '{}'", op));
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string device = "cpu";
  std::string op;
  vt::bench::ModelBench model;
  CLI::App app(
      "Measures each op on a device. Examples:\n"
      "  warmleg-opbench --device cpu --op MatMul\n"
      "  warmleg-opbench --device rocm:0 --model TARGET/config.json --draft DRAFT/config.json");
  app.add_option("--device", device, "cpu, rocm:N, cuda:N")->capture_default_str();
  app.add_option("--op", op, "only this op, as spelled in backend/vt/ops.h");
  CLI::Option* config = app.add_option(
      "--model", model.target,
      "every op at this model's shapes instead, with counts per step: a target's config.json or its folder");
  app.add_option("--draft", model.draft, "with --model: the round with this draft too")->needs(config);
  app.add_option("--context", model.context, "with --model: tokens before the step")
      ->needs(config)
      ->capture_default_str();
  app.add_flag("--json", model.json, "with --model: one JSON object instead of the table")->needs(config);
  app.allow_extras();
  app.footer("Google Benchmark's own options (--benchmark_filter, --benchmark_format, ...) are passed on.");
  return vt::bench::RunTool(app, argc, argv, "warmleg-opbench", [&] {
    if (model.target.empty()) return Bench(device, op, app.remaining(), argv[0]);
    if (!op.empty() || !app.remaining().empty())
      throw vt::InputError("--model takes neither --op nor other options");
    vt::RegisterBackends();
    vt::bench::RunModelBench(model, vt::GetBackend(vt::ParseDevice(device)));
  });
}

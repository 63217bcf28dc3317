#include "harness/report/samples.h"

#include <fmt/format.h>

#include <fstream>
#include <limits>

#include "backend/vt/error.h"
#include "harness/record/json.h"
#include "harness/store/store.h"

namespace warmleg::report {
namespace {

float Number(const record::Json& line, const char* field) {
  const auto it = line.find(field);
  return it != line.end() && it->is_number() ? it->get<float>() : std::numeric_limits<float>::quiet_NaN();
}

void ReadFile(const std::filesystem::path& file, std::vector<Tick>& ticks) {
  std::ifstream in(file);
  std::string line;
  for (int64_t number = 1; std::getline(in, line); ++number) {
    const record::Json json = record::ParseStrict(line, file.string(), false, number);
    if (number == 1) {
      if (!json.is_object() || json.value("schema", record::Json()) != "warmleg.samples/1")
        throw vt::InputError(fmt::format("{}: is no warmleg.samples/1", file.string()));
      continue;
    }
    const auto ns = json.is_object() ? json.find("t_ns") : json.end();
    if (!json.is_object() || ns == json.end() || !ns->is_number_integer())
      throw vt::InputError(fmt::format("{}:{}: has no t_ns", file.string(), number));
    Tick tick;
    tick.ns = ns->get<int64_t>();
    for (size_t i = 0; i < kSeries.size(); ++i) tick.value[i] = Number(json, kSeries[i].field);
    ticks.push_back(tick);
  }
}

}  // namespace

Samples ReadSamples(const record::Telemetry& telemetry, const std::filesystem::path& result_file) {
  std::vector<record::SamplesFile> files = telemetry.earlier_samples;
  if (telemetry.samples_file) {
    record::SamplesFile& last = files.emplace_back();
    last.file = *telemetry.samples_file, last.sha256 = telemetry.samples_sha256.value_or("");
  }
  Samples out;
  for (const record::SamplesFile& named : files) {
    const std::filesystem::path file = result_file.parent_path() / named.file;
    const size_t before = out.ticks.size();
    try {
      if (store::FileSha256(file) != named.sha256)
        throw vt::InputError(fmt::format("{}: differs from the hash in the result; not drawn", named.file));
      ReadFile(file, out.ticks);
    } catch (const vt::InputError& e) {
      out.ticks.resize(before);
      out.problems.emplace_back(e.what());
    }
  }
  return out;
}

}  // namespace warmleg::report

#include "tests/support/situations.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "backend/vt/error.h"
#include "harness/judge/campaign.h"
#include "harness/record/json.h"
#include "harness/record/sha256.h"
#include "harness/store/store.h"

namespace warmleg::testing {
namespace {

using record::ClockStat;
using record::Json;
using record::Leg;
using record::Result;

constexpr int64_t kCommitted = 60, kPromptTokens = 256, kCommittedPerRound = 3;
constexpr const char* kClasses[] = {"code", "maths", "extraction", "prose"};

ClockStat Stat(double centre) {
  ClockStat s;
  s.p5 = centre * 0.995, s.p50 = centre, s.p95 = centre * 1.005, s.mean = centre;
  s.first_third = centre, s.last_third = centre;
  return s;
}

record::ClockWindow Window(const Situation& s) {
  record::ClockWindow w;
  w.samples_all = 40;
  if (!s.clocks) return w;
  w.samples = 40;
  w.sclk_mhz = Stat(s.sclk_mhz), w.mclk_mhz = Stat(s.mclk_mhz), w.power_w = Stat(104), w.temp_c = Stat(70);
  w.busy_percent = Stat(97), w.top_sclk_mhz = 2900, w.energy_j = 371.5, w.perf_level = "auto";
  w.perf_levels = {"auto"}, w.power_caps_w = {120};
  return w;
}

void SetTimes(Leg& leg, const Situation& s, bool plain, double speed) {
  record::Times& t = leg.times;
  const double round_s = plain ? s.plain_round_s * s.slow_plain : s.drafting_round_s * s.slow_drafting;
  t.prefill_s = s.prefill_s * s.slow_prefill * speed * (plain ? 1 : 1.04);
  t.ttft_s = *t.prefill_s + 0.002;
  t.decode_s = static_cast<double>(leg.counters.rounds) * round_s * speed;
  t.e2e_s = *t.ttft_s + *t.decode_s;
  if (plain) return;
  t.draft_s = 0.10 * *t.decode_s, t.select_s = 0.01 * *t.decode_s, t.verify_s = 0.86 * *t.decode_s;
  t.commit_s = 0.01 * *t.decode_s, t.host_s = 0.01 * *t.decode_s, t.unaccounted_s = 0.01 * *t.decode_s;
}

Leg MakeLeg(const Situation& s, int64_t process, int64_t pair, bool plain, double speed) {
  Leg leg;
  leg.process = process, leg.pair = pair, leg.arm = plain ? "plain" : "dflash2";
  leg.prompt_class = kClasses[pair % 4], leg.prompt = fmt::format("{}-{:02}", leg.prompt_class, pair);
  leg.state = pair == 0 ? record::State::cold : record::State::warm;
  if (pair == 0) leg.reasons.push_back(record::MakeReason(record::Code::warmup));
  leg.graph_mode = "eager";
  record::Counters& c = leg.counters;
  c.committed = kCommitted, c.prefill_made = 1, c.output_tokens = kCommitted + 1,
  c.prompt_tokens = kPromptTokens;
  c.rounds = plain ? kCommitted : kCommitted / kCommittedPerRound, c.bonus = c.rounds;
  c.accepted = c.committed - c.rounds, c.drafted = plain ? 0 : 7 * c.rounds;
  if (!plain)
    c.accepted_at = {c.accepted / 2, c.accepted - c.accepted / 2, 0, 0, 0, 0, 0},
    c.rounds_with_accepted = {0, 0, c.rounds, 0, 0, 0, 0, 0};
  SetTimes(leg, s, plain, speed);
  leg.read_bytes_per_round = 5.4e9;
  leg.clocks = Window(s);
  record::Provider provider;
  provider.op = "MatMul", provider.device = s.device, provider.asked = "auto", provider.provider = s.provider;
  provider.calls = 124 * c.rounds, provider.bytes = int64_t{1} << 30;
  leg.providers.push_back(provider);
  leg.output_sha256 = record::Sha256(leg.prompt);
  if (s.all_legs_crash) leg.reasons.push_back(record::MakeReason(record::Code::crashed));
  return leg;
}

void AddProcess(Result& r, const Situation& s, int64_t index, Noise& noise) {
  double level = std::exp(s.process_spread * noise.Next());
  double sentinel = 0.7;
  if (s.slow_process == index) level *= s.slow_process_factor, sentinel *= s.slow_process_factor;
  record::Process p;
  p.index = index, p.pid_start = fmt::format("{}@{}", 1000 + index, 70000 + index), p.load_s = 4.5;
  p.peak_rss_bytes = int64_t{1} << 30, p.read_gb_s = 221;
  p.sentinel_s.values.assign(static_cast<size_t>(s.pairs) + 2, sentinel), p.sentinel_s.bytes = 1.2e11;
  r.processes.push_back(p);
  int64_t at = 0;
  for (int64_t pair = 0; pair <= s.pairs; ++pair)
    for (const bool plain : {pair % 2 == 0, pair % 2 != 0}) {
      double speed = level * std::exp(s.leg_spread * noise.Next());
      if (s.shift_after_pair && pair > *s.shift_after_pair) speed *= s.shift_factor;
      r.legs.push_back(MakeLeg(s, index, pair, plain, speed));
      r.legs.back().index = at++;
    }
}

record::Environment Machine(const Situation& s) {
  record::Environment e;
  e.boot_id = "2c3a1f52-0000-4000-8000-000000000001", e.kernel = s.kernel, e.cpu = "a cpu with 16 cores";
  e.ram_bytes = int64_t{1} << 37, e.compiler = s.compiler, e.git = s.git;
  e.gpu.emplace();
  e.gpu->name = "8060S", e.gpu->gfx = "gfx1151", e.gpu->pci = "0000:c5:00.0", e.gpu->cu = 40;
  e.gpu->integrated = true, e.gpu->vbios = "113-STRXLGEN-001", e.gpu->firmware["mes"] = "0x83";
  e.gpu->peak_gb_s = 256;
  e.rocm.emplace();
  e.rocm->build = s.rocm_built.empty() ? s.rocm : s.rocm_built, e.rocm->loaded = s.rocm;
  e.rocm->runtime = s.rocm, e.rocm->driver = "6.14";
  record::Library library;
  library.path = "lib/libamdhip64.so.7", library.soname = "libamdhip64.so.7";
  library.build_id = record::Sha256(s.rocm).substr(0, 16);
  e.libraries.push_back(library);
  e.cpu_governor = "performance", e.power_supply = "AC";
  return e;
}

record::Workload DefaultWorkload(const Situation& s) {
  record::Workload w;
  w.target_hash = std::string(32, 'a'), w.draft_hash = std::string(32, 'b'), w.dtype = "BF16";
  w.prompt_ids_hash = record::Sha256(s.name), w.prompts = 4, w.max_new_tokens = kCommitted + 1,
  w.block_size = 8;
  w.ignore_eos = true, w.seed = 1, w.precision = "exact", w.chat = "raw", w.graph_mode = "eager";
  w.weights = "checkpoint";
  if (s.workload.empty()) return w;
  Json json = record::ToJson(w);
  for (const auto& [field, value] : s.workload.items()) json[field] = value;
  return record::FromJson<record::Workload>(json, "workload of " + s.file);
}

// Reads the fields of one entry and refuses the rest.
class Entry {
 public:
  Entry(Json json, std::string what) : json_(std::move(json)), what_(std::move(what)) {}

  template <class T>
  void Read(const char* name, T& value) {
    const auto it = json_.find(name);
    if (it == json_.end()) return;
    try {
      value = it->get<T>();
    } catch (const Json::exception&) {
      throw vt::InputError(
          fmt::format("{}: {} is {}, of another type than expected", what_, name, it->dump()));
    }
    json_.erase(name);
  }
  void Read(const char* name, std::optional<int64_t>& value) {
    int64_t read = value.value_or(-1);
    Read(name, read);
    if (read >= 0) value = read;
  }
  void Finish() const {
    if (!json_.empty())
      throw vt::InputError(fmt::format("{}: {} is no field of a situation", what_, json_.begin().key()));
  }

 private:
  Json json_;
  std::string what_;
};

void ReadSituation(Entry& e, Situation& s) {
  e.Read("file", s.file), e.Read("name", s.name), e.Read("created", s.created), e.Read("device", s.device);
  e.Read("processes", s.processes), e.Read("pairs", s.pairs), e.Read("seed", s.seed);
  e.Read("process_spread", s.process_spread), e.Read("leg_spread", s.leg_spread);
  e.Read("slow_plain", s.slow_plain), e.Read("slow_drafting", s.slow_drafting),
      e.Read("slow_prefill", s.slow_prefill);
  e.Read("slow_process", s.slow_process), e.Read("slow_process_factor", s.slow_process_factor);
  e.Read("shift_after_pair", s.shift_after_pair), e.Read("shift_factor", s.shift_factor);
  e.Read("sclk_mhz", s.sclk_mhz), e.Read("mclk_mhz", s.mclk_mhz), e.Read("clocks", s.clocks);
  e.Read("complete", s.complete), e.Read("all_legs_crash", s.all_legs_crash);
  e.Read("rocm", s.rocm), e.Read("rocm_built", s.rocm_built), e.Read("kernel", s.kernel);
  e.Read("compiler", s.compiler), e.Read("git", s.git), e.Read("provider", s.provider);
  e.Read("workload", s.workload);
}

}  // namespace

double Noise::Uniform() {
  state_ += 0x9E3779B97F4A7C15U;  // splitmix64
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) / static_cast<double>(uint64_t{1} << 53);
}

double Noise::Next() {
  const double radius = std::sqrt(-2 * std::log(Uniform()));
  return radius * std::cos(2 * std::numbers::pi * Uniform());
}

Result MakeResult(const Situation& s) {
  Result r;
  r.created = s.created, r.complete = s.complete;
  if (!s.complete) r.reasons.push_back(record::MakeReason(record::Code::interrupted));
  r.scenario = {{"schema", "warmleg.scenario/1"},
                {"name", s.name},
                {"device", s.device},
                {"plan", {{"processes", s.processes}, {"pairs", s.pairs}}}};
  r.scenario["sha256"] = record::Sha256(r.scenario.dump());
  r.workload = DefaultWorkload(s);
  r.environment = Machine(s);
  r.telemetry.device.emplace().pci = "0000:c5:00.0";
  r.telemetry.sources["sclk_mhz"] = "rocm_smi", r.telemetry.interval_ms = 100;
  r.reference.ids_hash = record::Sha256("ids"), r.reference.source = "process";
  Noise noise(s.seed);
  for (int64_t i = 0; i < s.processes; ++i) AddProcess(r, s, i, noise);
  judge::Judge(r, judge::MakePolicy(s.device, false, false, false, 1));
  return r;
}

std::vector<Situation> ParseSituations(const std::string& text, const std::string& what) {
  const Json json = record::ParseStrict(text, what, true);
  if (!json.is_object() || !json.contains("files") || !json["files"].is_array())
    throw vt::InputError(what + ": expected an object with the list \"files\"");
  std::vector<Situation> out;
  for (const Json& item : json["files"]) {
    Entry entry(item, fmt::format("{}: files[{}]", what, out.size()));
    Situation s;
    int64_t count = 1;
    ReadSituation(entry, s);
    entry.Read("count", count);
    entry.Finish();
    const std::string file = s.file;
    for (int64_t i = 1; i <= count; ++i, ++s.seed) {
      if (count > 1) s.file = fmt::format("{}-{}.json", file.substr(0, file.rfind(".json")), i);
      out.push_back(s);
    }
  }
  return out;
}

std::vector<std::string> WriteSituations(const std::vector<Situation>& situations,
                                         const std::string& folder) {
  std::vector<std::string> paths;
  for (const Situation& s : situations) {
    paths.push_back(folder + "/" + s.file);
    store::WriteAtomically(paths.back(), record::Dump(record::ToJson(MakeResult(s))), true);
  }
  return paths;
}

}  // namespace warmleg::testing

// What parent and worker say to each other over two pipes: frames of a 4-byte little-endian length and one
// JSON object {"type": NAME, "body": {...}}. Parsing is strict: an unknown or missing field is a
// ProtocolError, so a torn or foreign frame never becomes a leg.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "backend/decode/generation.h"
#include "backend/decode/sampling.h"
#include "backend/vt/stats.h"

namespace warmleg::run {

struct ProtocolError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr size_t kMaxFrameBytes = size_t{64} << 20;

// ---- parent to worker

struct LoadRequest {
  std::string target, draft;  // directories; draft empty: plain decoding only
  std::string device;         // as vt::ParseDevice takes it
  int64_t capacity = 0;       // longest prompt + max_new_tokens
  std::string weights;        // checkpoint | random: made from the configs by `seed`
  int64_t seed = 0;
  double committed_per_round =
      0;  // accepted counts are drawn with this mean of accepted + 1; 0: they are judged
};

// Runs every shape that will be timed once: both prefills of each prompt length, every verify width, one
// plain step.
struct WarmRequest {
  std::vector<std::vector<int32_t>> prompts;  // one of each length
  std::string draft_arm;                      // name of the drafting arm; empty: plain only
  int block_size = 0;
  std::string precision;  // exact | bf16
  decode::Sampling sampling;
  int64_t max_new_tokens = 0;
};

struct LegRequest {
  int64_t process = 0;
  int64_t index = 0;  // of the leg in its process
  std::string arm;    // plain, or the drafting arm's name
  std::vector<int32_t> prompt_ids;
  int64_t max_new_tokens = 0;
  int block_size = 0;  // 1: plain decoding
  bool ignore_eos = false;
  std::string precision;  // exact | bf16
  decode::Sampling sampling;
  int64_t repeats = 1;
  int64_t clock_interval_ms = 0;  // ask the device for its clock; 0: a sensor tells it
  bool margins = false;           // plain top-1 minus top-2 of every output token
};

// Plain steps from the state after `prompt_ids`; the first one of a process builds that state and fixes the
// count.
struct SentinelRequest {
  std::vector<int32_t> prompt_ids;
  int64_t steps = 0;  // 0: as many as take about `seconds`
  double seconds = 0;
};

struct RoofRequest {
  uint64_t bytes = 0;
};

struct QuitRequest {};

using Request = std::variant<LoadRequest, WarmRequest, LegRequest, SentinelRequest, RoofRequest, QuitRequest>;

// ---- worker to parent

struct ProgressReply {
  std::string what;  // "target", "draft"
  uint64_t done_bytes = 0, total_bytes = 0;
};

struct LibraryReply {
  std::string path, soname, build_id;  // soname and build_id may be empty
};

struct DeviceReply {
  std::string device, name, gfx, pci;
  int compute_units = 0;
  bool integrated = false;
  uint64_t memory_bytes = 0;
  double peak_gb_s = 0;
  double top_clock_mhz = 0;
  std::string built_with, runtime, driver;  // releases, as in vt::DeviceInfo
  std::string memory_kind;
};

struct LoadedReply {
  double load_s = 0;  // both checkpoints
  std::string target_hash, draft_hash;
  uint64_t target_bytes = 0, draft_bytes = 0;
  std::string dtype;  // of the target's matrices
  int64_t vocab = 0;
  int64_t draft_block_size = 0;  // of the draft's config; 0 without a draft
  bool can_capture = false;
  DeviceReply device;
  std::vector<LibraryReply> libraries;
};

// CLOCK_MONOTONIC seconds of one repeat.
struct SpanReply {
  double start = 0, prefill_end = 0, end = 0;
};

// One answer of the device clock source.
struct ClockReply {
  double at = 0;  // CLOCK_MONOTONIC seconds
  double mhz = 0;
};

struct LegReply {
  int64_t index = 0;
  decode::Counters counters;            // summed over repeats
  decode::Times times;                  // summed over repeats
  std::vector<int32_t> output_ids;      // of the first repeat
  bool repeats_equal = true;            // every repeat gave these ids
  std::string finish;                   // length | stop
  std::vector<float> margins;           // of the first repeat, when asked for
  bool graph = false;                   // every step of every repeat ran as a captured graph
  bool graph_replay_mismatch = false;   // a replay gave another result than eager execution
  std::string graph_refusal;            // why not, on a device that can capture
  std::vector<std::string> first_use;   // shapes that this leg used for the first time in this process
  std::vector<SpanReply> spans;         // one a repeat
  std::vector<ClockReply> clock;        // where it was asked for
  std::vector<vt::OpTotals> providers;  // of the leg's own window
  uint64_t mem_available_bytes = 0, mem_cached_bytes = 0;  // at leg start; 0: unreadable
  uint64_t peak_rss_bytes = 0;                             // of the process so far
  double read_bytes_per_round = 0;  // least bytes of a step or round at the leg's mean context
};

struct SentinelReply {
  double seconds = 0;
  int64_t steps = 0;
  uint64_t bytes = 0;  // least bytes these steps move
};

struct DoneReply {
  double value = 0;  // roof: GB/s; warm: seconds
  uint64_t peak_rss_bytes = 0;
};

struct FailedReply {
  std::string kind;  // input | environment | oom | internal
  std::string text;
};

using Reply = std::variant<ProgressReply, LoadedReply, LegReply, SentinelReply, DoneReply, FailedReply>;

// One whole frame.
std::string Encode(const Request& request);
std::string Encode(const Reply& reply);
// `text`: the JSON of one frame without its length. Throws ProtocolError that names the field.
Request DecodeRequest(std::string_view text);
Reply DecodeReply(std::string_view text);

// Cuts a byte stream into frames.
class FrameReader {
 public:
  void Feed(std::string_view bytes) { buffer_ += bytes; }
  // The next whole frame's JSON. Throws ProtocolError on a length of 0 or above kMaxFrameBytes.
  std::optional<std::string> Next();
  // Bytes of a frame that has not ended.
  size_t pending() const { return buffer_.size(); }

 private:
  std::string buffer_;
};

}  // namespace warmleg::run

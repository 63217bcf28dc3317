// The engine of one worker: checkpoints, one session, and which shapes it has run already.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backend/decode/generate.h"
#include "backend/decode/sentinel.h"
#include "backend/model/loader.h"
#include "harness/run/protocol.h"

namespace warmleg::run {

class Engine {
 public:
  using OnProgress = std::function<void(const ProgressReply&)>;

  LoadedReply Load(const LoadRequest& request, const OnProgress& progress);
  DoneReply Warm(const WarmRequest& request);
  LegReply Leg(const LegRequest& request);
  SentinelReply Sentinel(const SentinelRequest& request);
  DoneReply Roof(const RoofRequest& request);

 private:
  decode::Generation Generate(const std::string& arm, const std::vector<int32_t>& prompt,
                              const decode::Options& options);
  // Notes the shapes of a generation; returns those that this process had not run before.
  std::vector<std::string> NoteShapes(const std::string& arm, const decode::Generation& generation);
  double ReadBytesPerRound(bool drafting, int64_t context) const;

  vt::Backend* backend_ = nullptr;
  std::optional<model::TargetWeights> target_;
  std::optional<model::DraftWeights> draft_;
  std::unique_ptr<decode::Session> session_;
  std::unique_ptr<decode::Sentinel> sentinel_;
  std::set<std::string> shapes_;
};

// Bytes of this process: VmHWM; 0 when unreadable.
uint64_t PeakRssBytes();

}  // namespace warmleg::run

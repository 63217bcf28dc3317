// What the user sees on stderr while a campaign runs: one line a leg, or one line that is rewritten on a
// terminal.
#pragma once

#include <cstdio>
#include <string>

#include "harness/record/leg.h"
#include "harness/run/protocol.h"

namespace warmleg::run {

class Progress {
 public:
  // `out` is a terminal or not; a test passes a file.
  explicit Progress(std::FILE* out = stderr);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Line(const std::string& text);     // stays
  void Passing(const std::string& text);  // rewritten by the next on a terminal
  void Load(const ProgressReply& progress);
  void Leg(const record::Leg& leg, const std::string& place);

  void ClearPassing();  // before anything else is printed on the same terminal

 private:
  std::FILE* out_;
  bool terminal_;
  bool passing_ = false;
  int shown_percent_ = -1;
};

}  // namespace warmleg::run

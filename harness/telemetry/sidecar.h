// The full series beside a result, NAME.samples.jsonl: one line of schema, device and sources, then one line
// a sample. Lines wait in an unnamed temporary file, not in memory.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "harness/telemetry/sample.h"

namespace warmleg::telemetry {

class Sidecar {
 public:
  Sidecar(std::string pci, std::string name, int interval_ms);

  void Add(const BoardSample& sample);
  // Field -> source of its last value; a field that never had a value names the source of its reason.
  const std::map<std::string, std::string>& sources() const { return sources_; }
  // Everything so far, by a temporary file in the same folder, fsync and rename; returns the file's SHA-256
  // as hex. EnvironmentError with the cause; an older file at `path` is then untouched.
  std::string WriteTo(const std::string& path) const;

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  std::string pci_, name_;
  int interval_ms_;
  std::unique_ptr<std::FILE, Close> spool_;
  bool spool_failed_ = false;  // the disk under the temporary folder is full: WriteTo says so
  std::map<std::string, std::string> sources_;
};

}  // namespace warmleg::telemetry

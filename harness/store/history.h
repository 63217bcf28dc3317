// Results of many runs in one SQLite file: what a comparison needs of each, found again by content.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/judge/measured.h"

namespace warmleg::store {

// One line of `history list`.
struct HistoryEntry {
  std::string sha256, file, added, created, name, verdict, rocm, board, git;
  bool complete = false;
  std::optional<double> plain_tok_s, drafting_tok_s, prefill_tok_s;  // geometric means over processes
  std::optional<std::string> struck;                                 // the reason
};

// Several processes may write at once (WAL, busy timeout); each call is one transaction. What the caller did
// wrong is a vt::InputError: a file that is no history, is corrupt, or was written by a newer build. What the
// system refuses (full disk, no rights, a lock held longer than the timeout) is a vt::EnvironmentError.
class History {
 public:
  // Creates the file (and its folder) when it is not there and `create` is true; brings an older one up to
  // date.
  explicit History(const std::filesystem::path& file, bool create = true);
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  bool Contains(const std::string& sha256);
  // False: a file with this content is there already; nothing changes, whatever its path.
  bool Add(const judge::Measured& measured);
  // The entry whose hash begins with `sha256` (8 digits or more) or whose file is `sha256`; vt::InputError
  // when none or several do.
  HistoryEntry Find(const std::string& sha256);
  // Takes it out of trends for good; the file stays listed with the reason.
  void Strike(const std::string& sha256, const std::string& reason);

  // One at a time, by creation.
  void ForEach(const std::function<void(const HistoryEntry&)>& take);
  // Those not struck, grouped: all of one scenario, workload and board together, by creation. `take` sees one
  // group at a time, so memory holds one group.
  void ForEachGroup(const std::function<void(std::vector<judge::Measured>)>& take);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmleg::store

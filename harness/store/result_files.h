// Files that a command line names: each a result, or a folder of results.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace warmleg::store {

struct ResultFiles {
  std::vector<std::filesystem::path> files;    // those of a folder by name
  std::vector<std::filesystem::path> skipped;  // *.json of a folder that are no results
};

// A folder gives its own *.json whose head names the schema warmleg.result (any version, so that a newer one
// is refused when it is read, not passed over); hidden files and subfolders are left alone. vt::InputError
// with every path that is not there, and every folder without a result.
ResultFiles FindResults(const std::vector<std::string>& paths);

}  // namespace warmleg::store

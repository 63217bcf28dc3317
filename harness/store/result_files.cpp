#include "harness/store/result_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>

#include "backend/vt/error.h"

namespace warmleg::store {
namespace {

namespace fs = std::filesystem;

// `schema` is the first key that every writer of ours puts down; a foreign tool may have put it later.
bool NamesResultSchema(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string head(1 << 14, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(in.gcount()));
  return head.find("\"warmleg.result/") != std::string::npos;
}

void AddFolder(const fs::path& folder, ResultFiles& out, std::vector<std::string>& problems) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".json" && entry.path().filename().string().front() != '.' &&
        !entry.is_directory())
      found.push_back(entry.path());
  if (error)
    problems.push_back(fmt::format("{}: cannot read the folder: {}", folder.string(), error.message()));
  std::sort(found.begin(), found.end());
  const size_t before = out.files.size();
  for (fs::path& file : found) (NamesResultSchema(file) ? out.files : out.skipped).push_back(std::move(file));
  if (!error && out.files.size() == before)
    problems.push_back(fmt::format("{}: no warmleg.result file in this folder", folder.string()));
}

}  // namespace

ResultFiles FindResults(const std::vector<std::string>& paths) {
  ResultFiles out;
  std::vector<std::string> problems;
  for (const std::string& path : paths) {
    std::error_code error;
    if (fs::is_directory(path, error))
      AddFolder(path, out, problems);
    else if (fs::exists(path, error))
      out.files.emplace_back(path);
    else
      problems.push_back(fmt::format("{}: no such file or folder", path));
  }
  if (!problems.empty()) throw vt::InputError(fmt::format("{}", fmt::join(problems, "; ")));
  return out;
}

}  // namespace warmleg::store

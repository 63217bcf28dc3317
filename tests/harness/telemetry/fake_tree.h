// The fake AMD GPU of tests/fake-gpu: as a tree of files (no rights needed) and as a namespace over /sys, in
// which the real librocm_smi64 answers.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include <sys/wait.h>

namespace warmleg::testing_support {

inline const std::string kFakeGpu = "python3 tests/fake-gpu/with-fake-gpu";

struct Run {
  int exit_code = -1;
  std::string out;
};

// stdout of a shell command; stderr goes to the test's own.
inline Run Shell(const std::string& command) {
  Run run;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return run;
  std::array<char, 4096> buffer;
  for (size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    run.out.append(buffer.data(), n);
  const int status = ::pclose(pipe);
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return run;
}

inline std::string Slurp(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// A condition that becomes true in its own time; false after `seconds`.
template <typename Condition>
bool Eventually(Condition condition, double seconds = 20) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// A profile's files below a folder of its own.
class FakeTree {
 public:
  explicit FakeTree(const std::string& profile) {
    std::string name = (std::filesystem::temp_directory_path() / "warmleg-tree.XXXXXX").string();
    dir_ = ::mkdtemp(name.data());
    const Run run = Shell(kFakeGpu + " build --profile " + profile + " --dir " + dir_.string());
    EXPECT_EQ(run.exit_code, 0);
  }
  ~FakeTree() {
    std::error_code ec;
    std::filesystem::remove_all(dir_, ec);
  }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;

  void Set(const std::string& keys) const {
    EXPECT_EQ(Shell(kFakeGpu + " set --dir " + dir_.string() + " " + keys).exit_code, 0) << keys;
  }
  // Replaces a file of gpu0 whole.
  void Write(const std::string& file, const std::string& text) const {
    const std::filesystem::path beside = dir_ / ".staging" / "test";
    std::ofstream(beside) << text;
    std::filesystem::create_directories((Gpu() / file).parent_path());
    std::filesystem::rename(beside, Gpu() / file);
  }
  void Remove(const std::string& file) const { std::filesystem::remove_all(Gpu() / file); }
  std::string Read(const std::string& file) const { return Slurp(Gpu() / file); }
  std::string Root() const { return dir_.string(); }
  static bool MachineHasAmdGpu() {
    return Shell("grep -qs 0x1002 /sys/class/drm/card*/device/vendor").exit_code == 0;
  }
  std::filesystem::path Gpu() const { return dir_ / "gpu0"; }
  std::string Sys() const { return (dir_ / "sys").string(); }

 private:
  std::filesystem::path dir_;
};

// Why a namespace cannot be made here; empty when it can.
inline std::string NoNamespaces() {
  static const Run run = Shell(kFakeGpu + " --profile strix-halo-steady -- true 2>&1");
  return run.exit_code == 0 ? std::string() : "mount namespaces are not allowed here: " + run.out;
}

}  // namespace warmleg::testing_support

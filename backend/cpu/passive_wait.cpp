#include "backend/cpu/passive_wait.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>

namespace vt::cpu {

namespace {

// glibc passes main's arguments to constructors; libgomp's own constructor has run by now.
__attribute__((constructor)) void StartPassively(int, char** argv, char**) {
  if (WaitPolicyIsSet() || getauxval(AT_SECURE) != 0) return;
  if (setenv("OMP_WAIT_POLICY", "passive", 1) != 0) return;
  // by its real path, so that the process keeps its name; a program that was replaced meanwhile has none
  std::array<char, 4096> path{};
  const ssize_t n = readlink("/proc/self/exe", path.data(), path.size() - 1);
  const bool real = n > 0 && access(path.data(), X_OK) == 0;
  execv(real ? path.data() : "/proc/self/exe", argv);
  // not started again: it runs as it is, only slower on busy cores
}

}  // namespace

bool WaitPolicyIsSet() {
  for (const char* name : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

}  // namespace vt::cpu

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "harness/telemetry/dpm.h"

// A current clock comes with no problem, and the other way round.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const warmleg::telemetry::DpmTable table =
      warmleg::telemetry::ParseDpm(std::string_view(reinterpret_cast<const char*>(data), size));
  if (table.current_mhz.has_value() == table.problem.has_value()) std::abort();
  if (table.current_level && !table.current_mhz) std::abort();
  return 0;
}

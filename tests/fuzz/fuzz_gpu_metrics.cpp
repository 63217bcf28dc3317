#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "harness/telemetry/gpu_metrics.h"

// Never reads past the end, and never gives a filler or a share above 100 % as a value.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using warmleg::telemetry::Number;
  const auto result = warmleg::telemetry::ParseGpuMetrics(std::as_bytes(std::span(data, size)));
  if (!result.metrics) return 0;
  const auto& m = *result.metrics;
  for (const Number* n :
       {&m.current_sclk_mhz, &m.current_mclk_mhz, &m.average_sclk_mhz, &m.average_mclk_mhz}) {
    if (n->value && *n->value >= 65535) std::abort();
  }
  if (m.busy_percent.value && *m.busy_percent.value > 100) std::abort();
  if (m.residency) warmleg::telemetry::ThrottleNames({}, *m.residency);
  if (m.throttle_bits) warmleg::telemetry::ThrottleNames(*m.throttle_bits);
  return 0;
}

#include "harness/telemetry/gpu_metrics.h"

#include <algorithm>
#include <string_view>

namespace warmleg::telemetry {
namespace {

class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> data) : data_(data) {}

  template <typename T>
  T At(size_t offset) const {  // the caller has checked the size of the format
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      value |= static_cast<uint64_t>(std::to_integer<uint8_t>(data_[offset + i])) << (8 * i);
    }
    return static_cast<T>(value);
  }
  // All ones: sentinel_value.
  template <typename T>
  Number Divided(size_t offset, double by) const {
    const T raw = At<T>(offset);
    if (IsAllOnes(raw)) return Null(Missing::sentinel_value, Source::gpu_metrics);
    return Value(static_cast<double>(raw) / by, Source::gpu_metrics);
  }
  Number U16(size_t offset, double by = 1) const { return Divided<uint16_t>(offset, by); }

 private:
  std::span<const std::byte> data_;
};

Number Percent(Number n) {
  if (n.value && *n.value > 100) return Null(Missing::unit_suspect, Source::gpu_metrics);
  return n;
}

GpuMetrics Blank(int format, int content) {
  GpuMetrics m = NoGpuMetrics(Missing::unsupported);
  m.format = format;
  m.content = content;
  return m;
}

// 1.0 has the clock counter before the temperatures, 1.1 and later behind the energy counter.
GpuMetrics DiscreteCard(const Bytes& b, int content) {
  GpuMetrics m = Blank(1, content);
  const size_t temps = content == 0 ? 16 : 4;
  const size_t clocks = 40;
  m.temp_c = b.U16(temps);
  m.junction_c = b.U16(temps + 2);
  m.memory_c = b.U16(temps + 4);
  m.busy_percent = Percent(b.U16(temps + 12));
  m.memory_busy_percent = Percent(b.U16(temps + 14));
  m.socket_power_w = b.U16(temps + 18);
  m.average_sclk_mhz = b.U16(clocks);
  m.average_mclk_mhz = b.U16(clocks + 4);
  m.current_sclk_mhz = b.U16(clocks + 14);
  m.current_mclk_mhz = b.U16(clocks + 18);
  m.throttle_missing = Missing::sentinel_value;
  if (const auto bits = b.At<uint32_t>(clocks + 28); !IsAllOnes(bits)) m.asic_throttle_bits = bits;
  if (content == 3) {
    if (const auto bits = b.At<uint64_t>(112); !IsAllOnes(bits)) m.throttle_bits = bits;
  }
  return m;
}

// Averages only; milliwatts and hundredths of a degree.
GpuMetrics Apu(const Bytes& b) {
  GpuMetrics m = Blank(3, 0);
  m.temp_c = b.U16(4, 100);
  m.busy_percent = Percent(b.U16(42));
  m.socket_power_w = b.Divided<uint32_t>(112, 1000);
  m.stapm_limit_w = b.U16(172, 1000);
  m.average_sclk_mhz = b.U16(174);
  m.average_fclk_mhz = b.U16(182);
  m.average_mclk_mhz = b.U16(186);
  ThrottleResidency residency;
  for (size_t i = 0; i < ThrottleResidency::kCount; ++i) residency.count[i] = b.At<uint32_t>(228 + 4 * i);
  m.residency = residency;
  return m;
}

struct NamedBit {
  int bit;
  std::string_view name;
};
// SMU_THROTTLER_*_BIT of the kernel's amdgpu_smu.h, the meaning of indep_throttle_status.
constexpr std::array kBits = {
    NamedBit{0, "ppt0"},          NamedBit{1, "ppt1"},          NamedBit{2, "ppt2"},
    NamedBit{3, "ppt3"},          NamedBit{4, "spl"},           NamedBit{5, "fppt"},
    NamedBit{6, "sppt"},          NamedBit{7, "sppt_apu"},      NamedBit{16, "tdc_gfx"},
    NamedBit{17, "tdc_soc"},      NamedBit{18, "tdc_mem"},      NamedBit{19, "tdc_vdd"},
    NamedBit{20, "tdc_cvip"},     NamedBit{21, "edc_cpu"},      NamedBit{22, "edc_gfx"},
    NamedBit{23, "apcc"},         NamedBit{32, "temp_gpu"},     NamedBit{33, "temp_core"},
    NamedBit{34, "temp_mem"},     NamedBit{35, "temp_edge"},    NamedBit{36, "temp_hotspot"},
    NamedBit{37, "temp_soc"},     NamedBit{38, "temp_vr_gfx"},  NamedBit{39, "temp_vr_soc"},
    NamedBit{40, "temp_vr_mem0"}, NamedBit{41, "temp_vr_mem1"}, NamedBit{42, "temp_liquid0"},
    NamedBit{43, "temp_liquid1"}, NamedBit{44, "vrhot0"},       NamedBit{45, "vrhot1"},
    NamedBit{46, "prochot_cpu"},  NamedBit{47, "prochot_gfx"},  NamedBit{56, "ppm"},
    NamedBit{57, "fit"},
};
constexpr std::array<std::string_view, ThrottleResidency::kCount> kResidency = {
    "prochot", "spl", "fppt", "sppt", "thm_core", "thm_gfx", "thm_soc"};

}  // namespace

GpuMetrics NoGpuMetrics(Missing why) {
  GpuMetrics m;
  for (Number* n : {&m.temp_c, &m.junction_c, &m.memory_c, &m.busy_percent, &m.memory_busy_percent,
                    &m.socket_power_w, &m.average_sclk_mhz, &m.average_mclk_mhz, &m.average_fclk_mhz,
                    &m.current_sclk_mhz, &m.current_mclk_mhz, &m.stapm_limit_w}) {
    *n = Null(why, Source::gpu_metrics);
  }
  m.throttle_missing = why;
  return m;
}

GpuMetricsResult ParseGpuMetrics(std::span<const std::byte> bytes) {
  if (bytes.empty()) return {std::nullopt, Missing::empty};
  if (bytes.size() < 4) return {std::nullopt, Missing::error};
  const Bytes b(bytes);
  const size_t declared = b.At<uint16_t>(0);
  const int format = b.At<uint8_t>(2);
  const int content = b.At<uint8_t>(3);
  constexpr std::array<size_t, 4> kDiscreteSize = {80, 96, 104, 120};
  size_t needed = 0;
  if (format == 1 && content <= 3) needed = kDiscreteSize[static_cast<size_t>(content)];
  if (format == 3 && content == 0) needed = 264;
  if (needed == 0) return {std::nullopt, Missing::unsupported};
  if (declared < needed || bytes.size() < needed) return {std::nullopt, Missing::error};
  return {format == 1 ? DiscreteCard(b, content) : Apu(b), Missing::unsupported};
}

std::vector<std::string> ThrottleNames(uint64_t bits) {
  std::vector<std::string> names;
  for (int bit = 0; bit < 64; ++bit) {
    if ((bits >> bit & 1) == 0) continue;
    const auto known =
        std::find_if(kBits.begin(), kBits.end(), [bit](const NamedBit& named) { return named.bit == bit; });
    names.push_back(known != kBits.end() ? std::string(known->name) : "bit_" + std::to_string(bit));
  }
  return names;
}

std::vector<std::string> ThrottleNames(const ThrottleResidency& before, const ThrottleResidency& after) {
  std::vector<std::string> names;
  for (size_t i = 0; i < ThrottleResidency::kCount; ++i) {
    if (after.count[i] > before.count[i] && !IsAllOnes(after.count[i])) names.emplace_back(kResidency[i]);
  }
  return names;
}

std::vector<std::string> AsicThrottleNames(uint32_t bits) {
  std::vector<std::string> names;
  for (int bit = 0; bit < 32; ++bit) {
    if ((bits >> bit & 1) != 0) names.push_back("asic_bit_" + std::to_string(bit));
  }
  return names;
}

ThrottleClass ClassOf(const std::string& name) {
  if (name.starts_with("temp_") || name.starts_with("thm_")) return ThrottleClass::thermal;
  if (name.starts_with("prochot") || name.starts_with("vrhot")) return ThrottleClass::hw_slowdown;
  for (std::string_view power : {"ppt", "spl", "fppt", "sppt", "tdc_", "edc_", "apcc", "ppm"}) {
    if (name.starts_with(power)) return ThrottleClass::power;
  }
  return ThrottleClass::other;
}

}  // namespace warmleg::telemetry

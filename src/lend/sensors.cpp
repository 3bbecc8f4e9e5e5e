// SPDX-License-Identifier: Apache-2.0
#include "lend/sensors.hpp"

#include <algorithm>
#include <array>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/entries.hpp"
#include "os/process.hpp"

namespace gridctl::lend {

namespace {

constexpr std::size_t k_sensor_bytes = 4096;
constexpr Duration k_tool_wait = std::chrono::seconds{5};
constexpr int k_celsius_most = 200;  // beyond it a sensor is broken
// Drivers of processors and of GPUs. Others measure disks and boards.
constexpr std::array<std::string_view, 8> k_hot{"coretemp", "k10temp", "zenpower", "cpu_thermal", "amdgpu", "nouveau", "i915", "xe"};

std::string word_of(const os::Path& file) { return std::string(trim(os::read_file(file, k_sensor_bytes).value_or(""))); }

std::vector<std::string> names_below(const os::Path& folder) { return os::list_directory(folder).value_or(std::vector<std::string>{}); }

void take(std::optional<Heat>& most, int celsius, const std::string& sensor) {
  if (celsius <= 0 || celsius > k_celsius_most || (most && most->celsius >= celsius)) return;
  most = Heat{celsius, sensor};
}

}  // namespace

std::optional<bool> on_battery(const os::Path& sys) {
  bool battery = false, discharges = false, mains = false;
  for (const std::string& name : names_below(sys / "class/power_supply")) {
    const os::Path one = sys / "class/power_supply" / name;
    const std::string type = word_of(one / "type");
    if (is_one_of(word_of(one / "scope"), {"Device"})) continue;
    if (is_one_of(type, {"Battery"})) {
      battery = true;
      discharges = discharges || is_one_of(word_of(one / "status"), {"Discharging"});
    } else if (word_of(one / "online") == "1") {
      mains = true;
    }
  }
  if (!battery) return std::nullopt;
  return discharges && !mains;
}

std::optional<Heat> parse_gpu_heat(std::string_view text) {
  std::optional<Heat> most;
  for (const std::string& line : split_lines(text)) {
    const std::size_t comma = line.find(',');
    if (comma == std::string::npos) continue;
    const auto index = parse_number<int>(trim(std::string_view(line).substr(0, comma)));
    const auto celsius = parse_number<int>(trim(std::string_view(line).substr(comma + 1)));
    if (index && celsius) take(most, *celsius, "GPU " + std::to_string(*index));
  }
  return most;
}

std::optional<Heat> hottest(const os::Path& sys) {
  std::optional<Heat> most;
  if (os::find_program("nvidia-smi")) {
    os::RunOptions options;
    options.timeout = k_tool_wait;
    const auto told = os::run({"nvidia-smi", "--query-gpu=index,temperature.gpu", "--format=csv,noheader,nounits"}, options);
    if (told && told->status.success()) most = parse_gpu_heat(told->out);
  }
  for (const std::string& chip : names_below(sys / "class/hwmon")) {
    const os::Path folder = sys / "class/hwmon" / chip;
    const std::string driver = word_of(folder / "name");
    if (std::ranges::find(k_hot, driver) == k_hot.end()) continue;
    for (const std::string& file : names_below(folder))
      if (file.starts_with("temp") && file.ends_with("_input"))
        take(most, parse_number<int>(word_of(folder / file)).value_or(0) / 1000, driver);
  }
  return most;
}

}  // namespace gridctl::lend

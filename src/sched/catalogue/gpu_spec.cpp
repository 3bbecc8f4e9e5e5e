// SPDX-License-Identifier: Apache-2.0
#include "sched/catalogue/gpu_spec.hpp"

#include <algorithm>
#include <cctype>

#include "base/bytes.hpp"
#include "base/text.hpp"

namespace gridctl::sched {

namespace {
constexpr int k_gpus_max = 256;  // per host; as in the inventory
constexpr std::size_t k_names_max = 32;
constexpr std::size_t k_name_length_max = 64;
constexpr std::size_t k_shown_max = 60;  // bytes of what was given, in a message
constexpr std::string_view k_shape = "expected vendor:names:memory:count, e.g. A100,H100:40GB..:2";

std::string excerpt(std::string_view text) {
  std::string flat = sanitize(text.substr(0, k_shown_max));
  std::ranges::replace(flat, '\t', ' ');
  return flat;
}

Error bad(std::string_view text, const std::string& why) {
  return make_error(Code::usage, std::string(k_shape) + ", got '" + excerpt(text) + "'; " + why);
}

struct Range {
  std::string_view low, high;
  bool open = false;  // written with ".."
};
Range range_of(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return {text, text, false};
  return {trim(text.substr(0, dots)), trim(text.substr(dots + 2)), true};
}

bool is_count(std::string_view text) {
  const Range range = range_of(text);
  const bool some = !range.low.empty() || !range.high.empty();
  return some && (range.low.empty() || all_digits(range.low)) && (range.high.empty() || all_digits(range.high));
}

bool is_size(std::string_view text) {
  const Range range = range_of(text);
  const auto sized = [](std::string_view part) { return part.empty() || parse_size(part).has_value(); };
  return !(range.low.empty() && range.high.empty()) && sized(range.low) && sized(range.high);
}

Result<int> count_of(std::string_view whole, std::string_view digits) {
  int value = digits.size() > 6 ? k_gpus_max + 1 : 0;
  for (std::size_t i = 0; value <= k_gpus_max && i < digits.size(); ++i) value = value * 10 + (digits[i] - '0');
  if (digits.size() > 1 && digits[0] == '0') return bad(whole, "the count has a leading zero");
  if (value >= 1 && value <= k_gpus_max) return value;
  const bool model = value > k_gpus_max && digits.size() == 4;
  return bad(whole, "the count must be 1 to " + std::to_string(k_gpus_max) +
                        (model ? "; did you mean 'RTX" + std::string(digits) + "'?" : ""));
}

Result<void> read_count(std::string_view whole, std::string_view part, job::GpuRequest& into) {
  const Range range = range_of(part);
  into.count_min = 1;
  into.count_max = k_gpus_max;
  if (!range.low.empty()) {
    TRY_ASSIGN(into.count_min, count_of(whole, range.low));
  }
  if (!range.high.empty()) {
    TRY_ASSIGN(into.count_max, count_of(whole, range.high));
  }
  if (into.count_min > into.count_max) return bad(whole, "the count range is reversed");
  return {};
}

Result<void> read_memory(std::string_view whole, std::string_view part, job::GpuRequest& into) {
  if (part.find_first_not_of("0123456789.") == std::string_view::npos && part.find("..") == std::string_view::npos)
    return bad(whole, "GPUs are counted in whole numbers");
  const Range range = range_of(part);
  std::string low(range.low), high(range.high);
  // "16..32GB": the unit of one end applies to both.
  if (all_digits(low) && !high.empty()) {
    const std::size_t unit = high.find_first_not_of("0123456789.");
    if (unit == std::string::npos) return bad(whole, "the memory has no unit; write e.g. 40GB");
    low += high.substr(unit);
  }
  if (!low.empty()) {
    TRY_ASSIGN(into.memory_min, parse_size(low));
  }
  if (!high.empty()) {
    TRY_ASSIGN(into.memory_max, parse_size(high));
  }
  if (into.memory_min && into.memory_max && *into.memory_min > *into.memory_max)
    return bad(whole, "the memory range is reversed");
  constexpr std::uint64_t k_least = 1 << 20, k_most = std::uint64_t{1} << 43;  // 1 MiB, 8 TiB
  for (const auto& size : {into.memory_min, into.memory_max})
    if (size && (*size < k_least || *size > k_most)) return bad(whole, "no GPU has this much memory; write e.g. 40GB");
  return {};
}

// Suggests the right spelling for "24G", "80g", "2x", "A100x8": a size or a count written differently.
std::string meant_by(std::string_view name) {
  const std::size_t times = name.find_last_of("xX");
  if (times != std::string_view::npos && times + 1 < name.size() && all_digits(name.substr(times + 1)) &&
      name.substr(0, times).find_first_of("0123456789") != std::string_view::npos)
    return std::string(name.substr(0, times)) + ":" + std::string(name.substr(times + 1));
  const std::size_t digits = name.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) return {};
  const std::string number(name.substr(0, digits)), unit = lower(name.substr(digits));
  if (is_one_of(unit, {"g", "gi"})) return number + "GB..:1";
  return unit == "x" ? number : "";
}

Result<void> read_names(std::string_view whole, std::string_view part, job::GpuRequest& into) {
  for (const std::string& raw : split(part, ',')) {
    const std::string name(trim(raw));
    if (name.empty()) return bad(whole, "a name is empty");
    if (name.size() > k_name_length_max || into.names.size() == k_names_max) return bad(whole, "too long");
    if (!std::isalnum(static_cast<unsigned char>(name[0])))
      return bad(whole, "'" + excerpt(name) + "' is not a GPU name");
    for (char c : name)
      if (!std::isalnum(static_cast<unsigned char>(c)) && std::string_view(" ._+-").find(c) == std::string_view::npos)
        return bad(whole, "'" + excerpt(name) + "' is not a GPU name");
    if (const std::string meant = meant_by(name); !meant.empty())
      return bad(whole, "no GPU is called '" + excerpt(name) + "'; did you mean '" + meant + "'?");
    if (lower(name).starts_with("tpu")) return bad(whole, "TPUs are not supported");
    into.names.push_back(name);
  }
  return {};
}
}  // namespace

Result<job::GpuRequest> parse_gpu_spec(std::string_view text) {
  job::GpuRequest request;
  if (trim(text).empty()) return bad(text, "it is empty");
  if (text.size() > 1024) return bad(text, "too long");
  int stage = 0;  // 1 vendor, 2 names, 3 memory, 4 count: parts come in this order
  for (const std::string& raw : split(text, ':')) {
    const std::string_view part = trim(raw);
    if (part.empty()) return bad(text, "a part is empty");
    const auto vendor = parse_vendor(lower(part));
    const int kind = vendor ? 1 : is_count(part) ? 4 : is_size(part) ? 3 : 2;
    if (kind <= stage) {
      const bool doubled = kind == 2 && stage == 2;
      return bad(text, "'" + excerpt(part) + "' is " + (doubled ? "neither a memory nor a count" : "out of order"));
    }
    stage = kind;
    if (kind == 1) request.vendor = *vendor;
    if (kind == 2) TRY(read_names(text, part, request));
    if (kind == 3) TRY(read_memory(text, part, request));
    if (kind == 4) TRY(read_count(text, part, request));
  }
  return request;
}

}  // namespace gridctl::sched

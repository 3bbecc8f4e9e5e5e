// SPDX-License-Identifier: Apache-2.0
#include "lend/gpu_power.hpp"

#include <algorithm>

#include "base/formatted.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/entries.hpp"
#include "os/process.hpp"

namespace gridctl::lend {

namespace {

constexpr Duration k_power_wait = std::chrono::seconds{10};
constexpr std::size_t k_power_bytes = 64 * 1024, k_power_fields = 4, k_uuid_most = 80;

Result<std::string> nvidia_smi(std::vector<std::string> words) {
  words.insert(words.begin(), "nvidia-smi");
  os::RunOptions options;
  options.timeout = k_power_wait;
  TRY_ASSIGN(const os::RunOutcome outcome, os::run(words, options));
  if (outcome.status.success()) return outcome.out;
  const std::string said = sanitize(trim(trim(outcome.err).empty() ? outcome.out : outcome.err), 200);
  return make_error(Code::unsupported, "nvidia-smi: " + (said.empty() ? "it fails" : said));
}

Result<std::vector<PowerLimit>> ask_limits() {
  TRY_ASSIGN(const std::string text, nvidia_smi({"--query-gpu=uuid,power.limit,power.min_limit,power.max_limit", "--format=csv,noheader,nounits"}));
  std::vector<PowerLimit> all = parse_power_limits(text);
  if (all.empty()) return make_error(Code::unsupported, "no GPU here tells its power limit");
  return all;
}

Result<void> set_limit(const std::string& gpu, double watts) {
  TRY(nvidia_smi({"-i", gpu, "-pl", formatted("%.2f", watts)}));
  return {};
}

}  // namespace

std::vector<PowerLimit> parse_power_limits(std::string_view text) {
  std::vector<PowerLimit> all;
  for (const std::string& line : split_lines(text)) {
    const std::vector<std::string> words = split(line, ',');
    if (words.size() != k_power_fields) continue;
    PowerLimit one{std::string(trim(words[0])), 0, 0, 0};
    const auto now = parse_number<double>(trim(words[1])), least = parse_number<double>(trim(words[2])), most = parse_number<double>(trim(words[3]));
    if (!one.gpu.starts_with("GPU-") || one.gpu.size() > k_uuid_most || !now || !least || !most || !(*now > 0) || !(*most >= *least)) continue;
    one.now = *now, one.least = *least, one.most = *most;
    all.push_back(std::move(one));
  }
  return all;
}

Result<std::vector<PowerLimit>> try_power_limits() {
  TRY_ASSIGN(std::vector<PowerLimit> all, ask_limits());
  for (const PowerLimit& one : all) TRY(set_limit(one.gpu, one.now));
  return all;
}

Result<bool> GpuPower::keep(std::optional<int> watts) {
  if (watts == set_ && (watts || !os::exists(file_))) return false;
  if (!watts) {
    TRY(put_back());
    set_.reset();
    return true;
  }
  TRY_ASSIGN(const std::vector<PowerLimit> all, ask_limits());
  if (!os::exists(file_)) {
    std::string before;
    for (const PowerLimit& one : all) before += one.gpu + " " + formatted("%.2f", one.now) + "\n";
    TRY(os::write_file_durably(file_, before));
  }
  set_ = watts;  // also when it fails: it is not tried every two seconds
  for (const PowerLimit& one : all) TRY(set_limit(one.gpu, std::clamp(static_cast<double>(*watts), one.least, one.most)));
  return true;
}

Result<void> GpuPower::put_back() {
  if (!os::exists(file_)) return {};
  TRY_ASSIGN(const std::string text, os::read_file(file_, k_power_bytes));
  for (const std::string& line : split_lines(text)) {
    const std::size_t cut = line.find(' ');
    const auto watts = cut == std::string::npos ? std::nullopt : parse_number<double>(std::string_view(line).substr(cut + 1));
    if (watts) TRY(set_limit(line.substr(0, cut), *watts));
  }
  return os::remove_file(file_);
}

}  // namespace gridctl::lend

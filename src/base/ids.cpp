// SPDX-License-Identifier: Apache-2.0
#include "base/ids.hpp"

#include <cctype>

namespace gridctl {

namespace {
constexpr std::size_t k_name_max = 63;  // characters; fits a DNS label and a container name with our prefix
bool is_name_char(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
}  // namespace

std::string checkpoint_name(const JobId& job, CheckpointSeq seq) { return job.value + "@" + std::to_string(seq.value); }

Result<void> check_name(std::string_view what, std::string_view name) {
  const std::string shown = std::string(what) + " name '" + std::string(name.substr(0, k_name_max)) + "'";
  if (name.empty()) return make_error(Code::usage, std::string(what) + " name is empty");
  if (name.size() > k_name_max) return make_error(Code::usage, shown + "… is longer than 63 characters");
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool edge = i == 0 || i + 1 == name.size();
    if (is_name_char(name[i]) || (name[i] == '-' && !edge)) continue;
    return make_error(Code::usage, shown + " is not allowed: use lower-case letters, digits and inner '-'",
                      "try '" + to_name(name) + "'");
  }
  return {};
}

std::string to_name(std::string_view text) {
  std::string name;
  for (char raw : text) {
    const char c = static_cast<char>(std::tolower(static_cast<unsigned char>(raw)));
    if (is_name_char(c)) name += c;
    else if (!name.empty() && name.back() != '-') name += '-';
    if (name.size() == k_name_max) break;
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "job" : name;
}

}  // namespace gridctl

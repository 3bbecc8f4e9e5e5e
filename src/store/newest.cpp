// SPDX-License-Identifier: Apache-2.0
#include "store/newest.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "crypto/sha256.hpp"

namespace gridctl::store {
namespace {

constexpr std::string_view k_newest_label = "gridctl/newest/1", k_check = "newest-check ";
constexpr std::size_t k_words = 7;

std::string line_of(const Newest& one) {
  return std::string(k_newest_word) + " " + one.job.value + " " + one.job_name + " " + std::to_string(one.seq.value) +
         " " + std::to_string(one.created_at.ms) + " " + std::to_string(one.seen_at.ms) + " " + one.seen_at_remote +
         "\n";
}

std::string check_of(std::string_view lines, const StoreKey& key) {
  return std::string(k_check) + to_hex(crypto::hmac_sha256(key.key_for(k_newest_label).bytes, as_bytes(lines))) + "\n";
}

std::optional<Newest> parse_line(const std::string& line) {
  const std::vector<std::string> words = split(line, ' ');
  Newest one;
  if (words.size() != k_words || !parse_into(words[3], one.seq.value) || !parse_into(words[4], one.created_at.ms) ||
      !parse_into(words[5], one.seen_at.ms))
    return std::nullopt;
  one.job = {words[1]};
  one.job_name = words[2];
  one.seen_at_remote = words[6];
  return one;
}

Error tampered() {
  return make_error(Code::state_unreadable,
                    "its list of the newest checkpoints was changed after gridctl wrote it, or belongs to another key");
}

}  // namespace

std::string to_text(const std::vector<Newest>& newest, const StoreKey& key) {
  std::string lines;
  for (const Newest& one : newest) lines += line_of(one);
  return lines.empty() ? lines : lines + check_of(lines, key);
}

Result<std::vector<Newest>> parse_newest(std::string_view text, const StoreKey& key) {
  std::vector<Newest> newest;
  std::string lines, check;
  for (const std::string& line : split_lines(text)) {
    if (line.starts_with(k_check)) {
      check += line + "\n";
    } else if (line.starts_with(k_newest_word)) {
      std::optional<Newest> one = parse_line(line);
      if (!one) return tampered();
      newest.push_back(*std::move(one));
      lines += line + "\n";
    }
  }
  if (check != (lines.empty() ? "" : check_of(lines, key))) return tampered();
  return newest;
}

std::vector<Newest> merged(std::vector<Newest> one, const std::vector<Newest>& other) {
  one.insert(one.end(), other.begin(), other.end());
  std::map<JobId, Newest> highest;
  for (Newest& each : one) {
    const auto [at, is_new] = highest.try_emplace(each.job, each);
    if (!is_new && at->second.seq < each.seq) at->second = std::move(each);
  }
  std::vector<Newest> all;
  for (auto& [job, each] : highest) all.push_back(std::move(each));
  std::ranges::stable_sort(all, [](const Newest& a, const Newest& b) { return a.created_at.ms > b.created_at.ms; });
  if (all.size() > k_newest_max) all.resize(k_newest_max);
  return all;
}

}  // namespace gridctl::store

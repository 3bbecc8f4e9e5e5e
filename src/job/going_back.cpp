// SPDX-License-Identifier: Apache-2.0
#include "job/going_back.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"

namespace gridctl::job {

namespace {

constexpr std::size_t k_gist_lines = 3;
constexpr std::size_t k_gist_max = 400;  // bytes
constexpr int k_steps_back = 2;          // without progress; then the program is to blame

const Saved* find_saved(const State& state, CheckpointSeq seq) {
  const auto& list = state.saved.list;
  const auto found = std::ranges::find(list, seq, &Saved::seq);
  return found == list.end() ? nullptr : &*found;
}

// Returns the newest for which `may` is true; a provisional one only if there is no other, and what an attempt left at
// its end only if there is nothing else.
template <class May>
std::optional<CheckpointSeq> newest_of(const State& state, May may) {
  std::optional<CheckpointSeq> sure, unsure, left;
  for (const Saved& one : state.saved.list) {
    if (state.is_suspect(one.seq) || !may(one)) continue;
    (one.as_left ? left : one.provisional ? unsure : sure) = one.seq;
  }
  return sure ? sure : unsure ? unsure : left;
}

bool is_proven(const State& state, const Saved& one, const HostName& maker) {
  return one.seq == state.proven || (!one.provisional && one.host != maker);
}

}  // namespace

std::string gist_of(std::string_view output) {
  std::vector<std::string> lines;
  for (std::string_view line : split(output, '\n')) {
    std::string gist;
    for (const char c : line) {
      const bool digit = is_digit(c);
      if (!digit) gist += c;
      else if (gist.empty() || gist.back() != '#') gist += '#';
    }
    if (gist.find_first_not_of(" \t\r") != std::string::npos) lines.push_back(std::move(gist));
  }
  if (lines.size() > k_gist_lines) lines.erase(lines.begin(), lines.end() - k_gist_lines);
  std::string text = join(lines, "\n");
  return text.size() > k_gist_max ? text.substr(text.size() - k_gist_max) : text;
}

bool has_saved_nothing(const State& state, const Attempt& attempt) {
  return attempt.resumed_from.value > 0 && !attempt.last_saved_at &&
         std::ranges::none_of(state.saved.list, [&](const Saved& one) { return one.attempt == attempt.number && !one.as_left; });
}

std::vector<std::string> failed_from(const State& state, CheckpointSeq bad, const End& end) {
  if (state.failures.size() < 2 || bad.value == 0 || state.failures.back().restored != bad) return {};
  const Failure& last = state.failures.back();
  std::vector<std::string> hosts;
  bool again = false;
  for (const Failure& one : state.failures) {
    if (one.restored != bad) continue;
    if (std::ranges::find(hosts, one.host.value) == hosts.end()) hosts.push_back(one.host.value);
    again = again || (&one != &last && (one.host != last.host || (!end.last.empty() && one.last == end.last)));
  }
  return again ? hosts : std::vector<std::string>{};
}

std::optional<CheckpointSeq> earlier_than(const State& state, CheckpointSeq bad) {
  if (bad.value == 0 || state.is_suspect(bad) || state.gone_back >= k_steps_back) return std::nullopt;
  if (state.gone_back == 0) return newest_of(state, [&](const Saved& one) { return one.seq < bad; });
  // This checkpoint was made by the host whose checkpoint was blamed first, so it may be bad for the same reason.
  const Saved* blamed = find_saved(state, state.suspects.empty() ? bad : state.suspects.back());
  const HostName maker = blamed == nullptr ? HostName{} : blamed->host;
  return newest_of(state, [&](const Saved& one) { return one.seq < bad && is_proven(state, one, maker); });
}

std::optional<CheckpointSeq> newest_trusted(const State& state) {
  return newest_of(state, [](const Saved&) { return true; });
}

std::optional<CheckpointSeq> newest_before(const State& state, CheckpointSeq bad) {
  return newest_of(state, [&](const Saved& one) { return one.seq < bad; });
}

void note_progress(State& state, CheckpointSeq from) {
  state.gone_back = 0;
  if (from.value == 0) return;
  state.proven = std::max(state.proven, from);
  std::erase(state.suspects, from);  // the user insisted, and was right
}

std::string withdraw_marks(State& state) {
  const auto count = std::min(static_cast<std::size_t>(state.gone_back), state.suspects.size());
  if (count == 0) return "";
  std::string text = "; it also fails from earlier checkpoints, so checkpoint";
  std::vector<std::string> numbers;
  for (std::size_t i = state.suspects.size() - count; i < state.suspects.size(); ++i)
    numbers.push_back(std::to_string(state.suspects[i].value));
  text += (count > 1 ? "s " : " ") + join(numbers, " and ") + (count > 1 ? " are" : " is") + " no longer suspect";
  state.suspects.resize(state.suspects.size() - count);
  state.gone_back = 0;
  state.restore.reset();
  return text;
}

std::optional<CheckpointSeq> newest_proven(const State& state) {
  if (state.saved.list.empty()) return std::nullopt;
  const HostName maker = state.saved.list.back().host;
  return newest_of(state, [&](const Saved& one) { return is_proven(state, one, maker); });
}

}  // namespace gridctl::job

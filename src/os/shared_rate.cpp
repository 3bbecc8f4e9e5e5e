// SPDX-License-Identifier: Apache-2.0
#include "os/shared_rate.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace gridctl::os {

namespace {

constexpr Duration k_forgotten = std::chrono::seconds{3};
constexpr std::uint64_t k_least_part = 100, k_least_share = 4 * 1024;  // a heartbeat passes in any case
constexpr std::uint64_t k_wire_percent = 97;                           // of the rate; the rest are headers of packets
constexpr std::uint64_t k_gaps_part = 16, k_fades = 8;  // an eighth at each look
constexpr std::size_t k_senders_bytes = 64 * 1024;

std::uint64_t least_share(std::uint64_t rate) { return std::max(rate / k_least_part, k_least_share); }

}  // namespace

std::uint64_t fair_share(std::uint64_t rate, std::uint64_t demand, const std::vector<Sender>& others) {
  // The water level: those who want less than it get what they want, the others divide the rest.
  std::vector<std::uint64_t> demands{demand};
  std::uint64_t taken = 0;
  for (const Sender& one : others) {
    demands.push_back(one.demand);
    taken += std::min(one.share, rate);
  }
  std::ranges::sort(demands);
  std::uint64_t left = rate, level = rate;
  for (std::size_t at = 0; at < demands.size(); ++at) {
    level = left / (demands.size() - at);
    if (demands[at] > level) break;
    left -= demands[at];
    level = rate;  // if all get what they want
  }
  const std::uint64_t fair = std::min(demand, level), free = rate - std::min(rate, taken);
  return std::max(std::min(fair, free), least_share(rate));
}

std::string to_text(const std::vector<Sender>& senders) {
  std::string text;
  for (const Sender& one : senders)
    text += one.name + " " + std::to_string(one.share) + " " + std::to_string(one.demand) + " " + std::to_string(one.seen.ns) + "\n";
  return text;
}

std::vector<Sender> parse_senders(std::string_view text, BootTime now) {
  std::vector<Sender> all;
  for (const std::string& line : split_lines(text)) {
    const std::vector<std::string> words = split(line, ' ');
    Sender one;
    if (words.size() != 4 || words[0].empty() || !parse_into(words[1], one.share) || !parse_into(words[2], one.demand) || !parse_into(words[3], one.seen.ns)) continue;
    one.name = words[0];
    if (one.seen <= now && now - one.seen < k_forgotten) all.push_back(std::move(one));
  }
  return all;
}

std::uint64_t SharedRate::share_of(std::uint64_t rate, std::uint64_t used, bool held) {
  const auto lock = FileLock::acquire(file_.native() + ".lock");
  if (!lock) return least_share(rate);
  rate = rate * k_wire_percent / 100;
  const BootTime now = clock_.boot();
  std::vector<Sender> all = parse_senders(read_file(file_, k_senders_bytes).value_or(""), now);
  std::erase_if(all, [&](const Sender& one) { return one.name == name_; });
  std::uint64_t least = least_share(rate);
  if (kind_ == Kind::gaps) least = std::max({least, rate / k_gaps_part, demand_ - demand_ / k_fades});
  demand_ = held ? rate : std::min(rate, std::max(2 * used, least));
  Sender own{name_, 0, demand_, now};
  own.share = fair_share(rate, own.demand, all);
  const std::uint64_t share = own.share;
  all.push_back(std::move(own));
  listed_ = true;
  return write_file_atomically(file_, to_text(all)) ? share : least_share(rate);
}

void SharedRate::leave() {
  if (!std::exchange(listed_, false)) return;
  const auto lock = FileLock::acquire(file_.native() + ".lock");
  if (!lock) return;
  std::vector<Sender> all = parse_senders(read_file(file_, k_senders_bytes).value_or(""), clock_.boot());
  std::erase_if(all, [&](const Sender& one) { return one.name == name_; });
  (void)write_file_atomically(file_, to_text(all));
}

}  // namespace gridctl::os

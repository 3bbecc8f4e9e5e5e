// SPDX-License-Identifier: Apache-2.0
#include "points.hpp"

namespace gridctl::sim {

namespace {
constexpr Nanos k_rich = 10 * k_s;        // after a fault, or after the effect before
constexpr double k_richer = 8;            // so much more often then
constexpr std::string_view k_attempt = "attempt.";
// The pairs have no remotes, no damaged journals, users who never pause, and hosts that are what they were and have no ranks.
constexpr std::string_view k_elsewhere[] = {"remote.", "folders.bag_replace", "records.begin_pause", "records.end_pause",
                                            "records.update_provider", "records.save_host_report", "freight.push_part",
                                            "host.keep_work"};
}  // namespace

std::string to_text(const Pair& pair) {
  return std::string(point_name(pair.first)) + ", then " + std::string(point_name(pair.second));
}

bool is_possible(Point point, Fate fate) {
  const std::string_view name = point_name(point);
  if (fate == Fate::well) return true;
  for (const std::string_view one : k_elsewhere)
    if (name.starts_with(one)) return false;
  // The supervisor is the simulator's own, and has nobody to answer to. What it writes it writes again.
  const bool only_late = point == Point::attempt_launch || point == Point::attempt_release_lease;
  if (name.starts_with(k_attempt)) return fate == (only_late ? Fate::late : Fate::fails);
  return true;
}

Points::Points(const Options& options)
    : random_(options.seed * 0xA24BAED4963EE407u + 11), rate_(options.point_faults), commit_faults_(options.commit_faults) {}

namespace {
// The last of the steps that keep something.
bool is_commit(Point point) {
  return point == Point::records_commit_checkpoint || point == Point::records_save_results || point == Point::records_take_result ||
         point == Point::freight_merge || point == Point::freight_bring || point == Point::folders_remove_secrets;
}
}  // namespace

Fate Points::pass(Nanos now, int node, const std::string& subject, Point point) {
  const auto [known, is_first] = last_.try_emplace({node, subject}, Last{point, now});
  const Last before = std::exchange(known->second, Last{point, now});
  Fate fate = Fate::well;
  const Pair pair{is_first ? point : before.point, point};
  pairs.insert(pair);
  if (!planned.empty() && planned.front().pair == pair) fate = planned.front().fate, planned.erase(planned.begin());
  if (rate_ > 0) {
    const bool is_rich = now - stirred_ < k_rich || (!is_first && now - before.at < k_s);
    const double rate = (is_rich ? k_richer * rate_ : rate_) * (is_commit(point) ? commit_faults_ : 1);
    if (random_.chance(rate)) fate = static_cast<Fate>(random_.between(1, 3));
    if (!is_possible(point, fate)) fate = Fate::well;
  }
  ++counts[static_cast<std::size_t>(point)][static_cast<std::size_t>(fate)];
  return fate;
}

}  // namespace gridctl::sim

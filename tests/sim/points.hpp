// SPDX-License-Identifier: Apache-2.0
// The fault points of one world: what was reached, which followed which, and what becomes of each. Drawn, and more often
// where much is under way; or planned: the second of two that follow each other, once.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "options.hpp"
#include "random.hpp"
#include "support/fault_points.hpp"

namespace gridctl::sim {

using testing::Fate, testing::Point;

// Two effects of one machine for one job, or for one host, with none between them. The very first one follows itself.
struct Pair {
  Point first, second;
  auto operator<=>(const Pair&) const = default;
};
[[nodiscard]] std::string to_text(const Pair& pair);
// Whether it can come to that. What the simulator plays itself, or where "late" is what the links do anyway, has less.
[[nodiscard]] bool is_possible(Point point, Fate fate);

class Points {
 public:
  explicit Points(const Options& options);
  // Before each effect.
  [[nodiscard]] Fate pass(Nanos now, int node, const std::string& subject, Point point);
  void stir(Nanos now) { stirred_ = now; }  // a fault begins or ends: what comes next meets it
  void heal() { rate_ = 0; }
  // Pairs are noted, and one may be planned.
  void track() { tracks_ = true; }
  [[nodiscard]] bool is_active() const { return rate_ > 0 || tracks_; }
  [[nodiscard]] Random& random() { return random_; }
  [[nodiscard]] Nanos delay() { return random_.between(k_s / 10, 4 * k_s); }

  struct Planned {
    Pair pair;
    Fate fate = Fate::fails;
  };
  std::vector<Planned> planned;  // in turn; each until it has come to that
  std::set<Pair> pairs;            // that were met
  using Counts = std::array<std::array<std::uint64_t, testing::k_fate_names.size()>, testing::k_points>;
  Counts counts{};

 private:
  struct Last {
    Point point;
    Nanos at;
  };
  Random random_;
  double rate_, commit_faults_;
  bool tracks_ = false;
  Nanos stirred_ = -k_min;
  std::map<std::pair<int, std::string>, Last> last_;  // by node and subject
};

}  // namespace gridctl::sim

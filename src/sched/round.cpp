// SPDX-License-Identifier: Apache-2.0
#include "sched/round.hpp"

#include <algorithm>
#include <utility>

#include "sched/candidate.hpp"
#include "sched/cheaper.hpp"

namespace gridctl::sched {

void take_away(HostFacts& host, const std::vector<std::string>& gpu_uuids, double cpus, std::uint64_t memory_bytes) {
  host.busy_gpus.insert(host.busy_gpus.end(), gpu_uuids.begin(), gpu_uuids.end());
  host.cpus_free = std::max(0.0, host.cpus_free.value_or(host.inventory.cpus) - cpus);
  const std::uint64_t memory = host.memory_free.value_or(host.inventory.memory_bytes);
  host.memory_free = memory - std::min(memory, memory_bytes);
}

namespace {
// Everything of a request that placing looks at, as one text.
class Kind {
 public:
  Kind& operator<<(std::string_view text) {
    text_.append(text);
    text_ += '\x1f';
    return *this;
  }
  Kind& operator<<(double number) {
    const auto* bytes = reinterpret_cast<const char*>(&number);
    text_.append(bytes, sizeof number);
    return *this;
  }
  template <class T>
  Kind& operator<<(const std::optional<T>& value) {
    return value ? *this << 1.0 << static_cast<double>(*value) : *this << 0.0;
  }
  Kind& operator<<(const std::vector<std::string>& words) {
    *this << static_cast<double>(words.size());
    for (const std::string& word : words) *this << word;
    return *this;
  }
  [[nodiscard]] std::string take() && { return std::move(text_); }

 private:
  std::string text_;
};

std::string kind_of(const job::Spec& spec, const JobKnowledge& known, const std::vector<Avoid>& avoided) {
  Kind kind;
  kind << (spec.image.empty() ? 0.0 : 1.0) << static_cast<double>(spec.optimize);
  const job::Resources& want = spec.resources;
  kind << want.cpus << static_cast<double>(want.memory_bytes) << static_cast<double>(want.disk_bytes)
       << (want.any_order ? 1.0 : 0.0) << static_cast<double>(want.gpus.size());
  for (const job::GpuRequest& gpu : want.gpus)
    kind << gpu.vendor << gpu.names << gpu.memory_min << gpu.memory_max << static_cast<double>(gpu.count_min)
         << static_cast<double>(gpu.count_max);
  for (const job::Variant& variant : spec.variants) kind << variant.kind << (variant.image.empty() ? 0.0 : 1.0);
  const job::Constraints& only = spec.constraints;
  kind << only.region_in << only.region_not << only.classes << only.max_price << only.providers << only.query
       << (only.is_private ? 1.0 : 0.0);
  for (const auto& [key, value] : only.labels) kind << key << value;
  const WorkEstimate& task = known.task;
  kind << task.work << task.stall << task.state_bytes << task.input_bytes << task.silence << (task.saves ? 1.0 : 0.0)
       << (task.resumes ? 1.0 : 0.0) << known.time_left << known.failures_max;
  for (const auto& [host, bytes] : known.bytes_there) kind << host.value << bytes;
  for (const Avoid& avoid : avoided) kind << avoid.host.value;
  return std::move(kind).take();
}
}  // namespace

// A heap with the best in front. Room only shrinks during a round: what does not fit now never will.
struct Round::Ranking {
  struct Entry {
    Rank rank;
    HostFacts* host = nullptr;
  };
  Result<Query> query;
  std::vector<Entry> heap;
  Refuge refuge{};
  bool waits = false;  // a host that is not avoided is merely busy

  static bool worse(const Entry& a, const Entry& b) { return b.rank < a.rank; }
  void pop() {
    std::pop_heap(heap.begin(), heap.end(), worse);
    heap.pop_back();
  }
};

Round::Round(std::vector<HostFacts> hosts) : hosts_(std::move(hosts)) {}
Round::~Round() = default;

Round::Ranking& Round::ranking_of(const job::Spec& spec, const JobKnowledge& known, const std::vector<Avoid>& avoided) {
  std::unique_ptr<Ranking>& ranking = rankings_[kind_of(spec, known, avoided)];
  if (ranking != nullptr) return *ranking;
  ranking = std::make_unique<Ranking>(Ranking{Query::parse(spec.constraints.query), {}, {}, false});
  std::vector<std::pair<Candidate, HostFacts*>> late;
  for (HostFacts& host : hosts_) {
    Candidate c = consider(spec, ranking->query, host);
    note_avoidance(c, avoided);
    if (c.rejection) {
      ranking->waits = ranking->waits || (c.rejection->code == "busy" && c.avoided.empty());
      continue;
    }
    estimate(c, known, spec.optimize);
    if (may_move_for_less(spec)) ranking->refuge.offer(c);
    if (c.placement.late) late.emplace_back(std::move(c), &host);
    else ranking->heap.push_back({c.rank, &host});
  }
  for (auto& [c, host] : late) {
    lean_on(ranking->refuge, c, known);
    ranking->heap.push_back({c.rank, host});
  }
  std::make_heap(ranking->heap.begin(), ranking->heap.end(), Ranking::worse);
  return *ranking;
}

std::optional<GangPlan> Round::place_gang(const job::Spec& spec, const GangWish& wish, std::span<const PairLink> links,
                                          const JobKnowledge& known, const std::vector<Avoid>& avoided) {
  GangDecision decision = sched::place_gang(spec, wish, hosts_, topology_of(hosts_, links), links, avoided, known);
  if (!decision.plan) return std::nullopt;
  for (const Placement& member : decision.plan->members)
    for (HostFacts& host : hosts_)
      if (host.name == member.host) take_away(host, member.gpu_uuids, member.cpus, member.memory_bytes);
  return std::move(decision.plan);
}

std::optional<Placement> Round::place(const job::Spec& spec, const JobKnowledge& known,
                                      const std::vector<Avoid>& avoided) {
  if (spec.num_nodes > 1) return std::nullopt;
  Ranking& ranking = ranking_of(spec, known, avoided);
  while (!ranking.heap.empty()) {
    HostFacts& host = *ranking.heap.front().host;
    Candidate now = consider(spec, ranking.query, host);
    note_avoidance(now, avoided);
    if (now.rejection) {
      ranking.waits = ranking.waits || now.avoided.empty();
      ranking.pop();
      continue;
    }
    estimate(now, known, spec.optimize);
    lean_on(ranking.refuge, now, known);
    if (ranking.heap.front().rank < now.rank) {  // less is left there: others may be better now
      ranking.pop();
      ranking.heap.push_back({now.rank, &host});
      std::push_heap(ranking.heap.begin(), ranking.heap.end(), Ranking::worse);
      continue;
    }
    if (!now.avoided.empty() && ranking.waits) return std::nullopt;  // the busy one is worth waiting for
    take_away(host, now.placement.gpu_uuids, now.placement.cpus, now.placement.memory_bytes);
    return now.placement;
  }
  return std::nullopt;
}

}  // namespace gridctl::sched

// SPDX-License-Identifier: Apache-2.0
// Represents one host considered for one job. Inside sched only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "sched/place.hpp"
#include "sched/query/query.hpp"

namespace gridctl::sched {

// Defines the order of place(); the best comes first.
struct Rank {
  std::size_t avoided = 0;
  double late = 0;  // seconds within which it is safely done, when that is too late for its deadline
  std::size_t alternative = 0;
  bool on_probation = false;
  Aim aim{};
  double price = 0;
  std::string_view name;  // of the host, borrowed
  auto operator<=>(const Rank&) const = default;
};

// Represents a host under consideration: set `rejection` to reject it.
struct Candidate {
  const HostFacts* host = nullptr;
  Placement placement;
  std::size_t alternative = 0;            // index into resources.gpus; 0 when their order says nothing
  std::vector<const Gpu*> gpus;           // of the host, those to lease
  const job::Variant* variant = nullptr;  // of the job that would run there; null when it has none
  std::optional<Rejection> rejection;
  std::string avoided;           // reason, or empty
  std::size_t avoided_rank = 0;  // by how late it failed this job
  Rank rank;

  bool reject(std::string code, std::string detail, bool temporary = false) {
    rejection = Rejection{host->name, std::move(code), std::move(detail), temporary};
    return false;
  }
};

// Returns whether a member of the job could run there: the filters of place(), without comparing hosts.
[[nodiscard]] Candidate consider(const job::Spec& spec, const Result<Query>& query, const HostFacts& host);
// Notes why the job avoids the host, if it does.
void note_avoidance(Candidate& candidate, const std::vector<Avoid>& avoided);
// Estimates the job's run there; fills placement and rank. Call it after note_avoidance.
void estimate(Candidate& candidate, const JobKnowledge& known, job::Optimize optimize);

// Rejects a host that ends before the job has what it needs there (host_end.hpp). Call it after estimate.
bool fits_before_end(Candidate& candidate, const job::Spec& spec, const JobKnowledge& known);

// Names, among the hosts on which a job is certainly in time, the one that allows the latest change. Jobs that do not
// move for less (cheaper.hpp) have none, because no move is offered to them.
struct Refuge {
  HostName host;
  double within = k_never;  // seconds until the job is surely done, if it goes there after a failure elsewhere
  void offer(const Candidate& estimated);
};
// Treats a host that is not in time as in time, if the job can try it: should it fail there at once, the refuge is
// still in time.
void lean_on(const Refuge& refuge, Candidate& estimated, const JobKnowledge& known);

[[nodiscard]] std::string short_number(double value);                      // "2.5", "64"
[[nodiscard]] std::string price_text(double usd_per_hour);                 // "1.50 USD/h"
[[nodiscard]] std::string gpus_text(const std::vector<const Gpu*>& gpus);  // "2x NVIDIA A100 80GB"

}  // namespace gridctl::sched

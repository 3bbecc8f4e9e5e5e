// SPDX-License-Identifier: Apache-2.0
// Fetches what jobs leave in their working directories: `outputs` as trees in the local store; for the rest, only its
// size and place. Blocking: for threads of a pool and for commands.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "control/copies/freight.hpp"
#include "control/reach/job_folders.hpp"
#include "job/outputs.hpp"
#include "registry/records.hpp"
#include "registry/job_records.hpp"
#include "wire/frame.hpp"
#include "wire/results.hpp"

namespace gridctl::control {

inline constexpr Duration k_keep_work = std::chrono::hours{24};  // what is left of a job without `outputs`, on its host

struct ResultsWanted {
  std::vector<std::string> patterns;  // empty: what the job has made outside of its checkpoints
  bool tree = false;                  // bring it here; else only count it
  std::optional<Digest> before;       // what attempts before have brought: it stays, unless there is something newer
  bool nothing = false;               // the job wants nothing at such an end
  std::shared_ptr<std::atomic<int>> failures{};  // of tries at an attempt's end that reached the host; may be null
};
struct GatheredResults {
  wire::ResultsReply reply;           // of the host
  std::optional<Digest> root;         // of all that is here now; none when there is nothing
  std::uint64_t files = 0, bytes = 0;  // of it
};
// Returns the host with a budget of its own for all connections of one piece of work.
[[nodiscard]] HostReach with_budget(HostReach host, const os::Clock& clock);
// Asks over `link`, and fetches over separate connections. unsupported if the host's agent is too old.
[[nodiscard]] Result<GatheredResults> gather_results(Freight& freight, const HostReach& host, wire::Link& link,
                                                     const os::Clock& clock, const JobId& job, Epoch epoch,
                                                     const ResultsWanted& wanted);

// Masks file names, which a program chose: none is stored or shown with a secret of the job.
void mask_names(JobFolders& folders, const JobId& job, wire::ResultsReply& reply);

// Returns the outputs to fetch from an ended attempt.
[[nodiscard]] ResultsWanted wanted_at_end(const std::vector<job::Output>& outputs, bool success,
                                          const std::optional<registry::Results>& before);
// Notes that outputs could not be fetched and stay on their host for a while, for `job pull`.
[[nodiscard]] Result<void> note_left_there(registry::RunRecords& records, const JobId& job, Epoch epoch,
                                           const HostName& host, WallTime now);
// Records the results, and adds them to the job's history. `at_end`: those of an attempt that has ended.
[[nodiscard]] Result<void> keep_results(registry::JobRecords& records, const JobId& job, Epoch epoch,
                                        const HostName& host, const ResultsWanted& wanted,
                                        const GatheredResults& gathered, bool at_end, WallTime now);
// Returns "3 files, 12 MB (a.txt, b.txt, …)".
[[nodiscard]] std::string files_in_words(std::uint64_t files, std::uint64_t bytes,
                                         const std::vector<std::string>& names);

}  // namespace gridctl::control

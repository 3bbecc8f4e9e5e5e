// SPDX-License-Identifier: Apache-2.0
// Writes the JSON that users' scripts read: stable keys in a fixed order, then additions. Absent values are null, times
// RFC 3339 UTC with milliseconds, sizes bytes, money USD. Every function returns text without a newline at its end.
#pragma once

#include <span>
#include <string>

#include "base/error.hpp"
#include "job/exactness.hpp"
#include "registry/records.hpp"
#include "registry/use.hpp"
#include "ui/provider_view.hpp"

namespace gridctl::ui {

[[nodiscard]] std::string submitted_json(const JobId& id, const std::string& name, job::JobState state);
// Holds the deadline of a job and its expected end, as far as they are known.
struct DeadlineTold {
  WallTime at;
  bool hard = false;
  std::optional<WallTime> expected_at;  // its end
  std::optional<WallTime> surely_at;
};
// Returns {"at","hard","expected_at","surely_at"}, or null.
[[nodiscard]] std::string deadline_json(const std::optional<DeadlineTold>& deadline);
// States whether a restored attempt is identical to the uninterrupted run.
struct ExactnessTold {
  AttemptNumber attempt;
  job::ExactnessVerdict verdict;
  std::string text;  // one line for people, with what to change in the program
};
// Returns {"verdict","attempt","number","steps","largest_difference","text"}, or null.
[[nodiscard]] std::string exactness_json(const std::optional<ExactnessTold>& told);
[[nodiscard]] std::string job_json(const registry::Job& job, std::span<const registry::AttemptRecord> attempts,
                                   std::span<const registry::JobRow> twins = {},
                                   const std::optional<DeadlineTold>& deadline = {}, const Metrics& told = {},
                                   const std::optional<ExactnessTold>& exactness = {},
                                   const registry::JobUse* use = nullptr);
[[nodiscard]] std::string jobs_json(std::span<const registry::JobRow> jobs);
[[nodiscard]] std::string event_json(const registry::EventRecord& event);
[[nodiscard]] std::string provider_json(const registry::Provider& provider);
// Adds all findings: "inventory" as base/inventory.hpp writes it (a GPU's "measured" names the facts that only a
// benchmark showed), "declared_gpus", "contradictions", "history" (newest last), "standing" of the host and its GPUs,
// and how reliable each GPU is.
struct ProviderView;
[[nodiscard]] std::string provider_detail_json(const ProviderView& view);
[[nodiscard]] std::string providers_json(std::span<const registry::Provider> providers);
[[nodiscard]] std::string checkpoint_json(const registry::Checkpoint& checkpoint);
[[nodiscard]] std::string checkpoints_json(std::span<const registry::Checkpoint> checkpoints);
// Returns {"type":"error","code",…}, as printed on stderr with --json.
[[nodiscard]] std::string error_json(const Error& error, int exit_code);
// Returns a JSON string with its quotes; invalid UTF-8 becomes U+FFFD.
[[nodiscard]] std::string quoted(std::string_view text);
[[nodiscard]] std::string json_number(double value);  // six digits; null when it is not finite

}  // namespace gridctl::ui

// SPDX-License-Identifier: Apache-2.0
// Implements the part that all ways of submitting a job share.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cmd/context.hpp"
#include "cmd/job_origin.hpp"
#include "control/follow/inputs.hpp"
#include "job/notify.hpp"
#include "job/spec.hpp"
#include "registry/registry.hpp"

namespace gridctl::cmd {

struct Submission {
  job::Spec spec;
  std::map<std::string, std::string> secrets;  // one for each of spec.secrets
  std::vector<registry::Input> inputs;         // their trees are stored already
  std::string items{};                         // of a bag; see config::ParsedJob
  std::string known_tasks{};                   // of a bag: records of its journal about tasks that are over
  JobOrigin origin{};
  std::vector<job::Notify> notify{};
};

// Fails with not_found if it names a provider that does not exist.
[[nodiscard]] Result<void> check_named_providers(registry::HostRecords& registry, const job::Spec& spec);
// Fails with unsupported, too, for jobs that can be planned and explained but not run yet.
[[nodiscard]] Result<void> check_supported(registry::HostRecords& registry, const job::Spec& spec);
// Stores the working directory, the mounts and the image archive; names on stderr the files that it left out.
[[nodiscard]] Result<std::vector<registry::Input>> store_inputs(Context& context, const job::Spec& spec);
// Lists the files that store_inputs would store, for --dry-run: "sends the working directory /home/ada/train: 12 files,
// 3.4 MiB; largest data.bin 3.0 MiB". The text contains foreign names.
[[nodiscard]] std::vector<std::string> sent_in_words(const std::vector<control::InputListing>& sent);
[[nodiscard]] std::string sent_json(const std::vector<control::InputListing>& sent);
// Returns the job's secrets as they were kept, otherwise from the environment; usage if one of them is in neither, with
// `again` as the command to repeat.
[[nodiscard]] Result<std::map<std::string, std::string>> secrets_of(const control::Paths& paths,
                                                                    const registry::Job& job, const std::string& again);
// Records everything durably, secrets first: a daemon may start the job the moment it is recorded.
[[nodiscard]] Result<JobId> record(Context& context, registry::Registry& registry, const Submission& submission);

}  // namespace gridctl::cmd

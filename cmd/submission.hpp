// SPDX-License-Identifier: Apache-2.0
// The common part of every way of submitting a job.
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

// not_found for a provider that it names and nobody knows.
[[nodiscard]] Result<void> check_named_providers(registry::Registry& registry, const job::Spec& spec);
// Fails with unsupported, too, for jobs that are planned and explained but cannot run yet.
[[nodiscard]] Result<void> check_supported(registry::Registry& registry, const job::Spec& spec);
// Stores working directory, mounts and image archive; says on stderr what it left out.
[[nodiscard]] Result<std::vector<registry::Input>> store_inputs(Context& context, const job::Spec& spec);
// Lists the files that store_inputs would store, for --dry-run: "sends the working directory /home/ada/train: 12 files,
// 3.4 MiB; largest data.bin 3.0 MiB". Foreign text.
[[nodiscard]] std::vector<std::string> sent_in_words(const std::vector<control::InputListing>& sent);
[[nodiscard]] std::string sent_json(const std::vector<control::InputListing>& sent);
// The job's secrets as they were kept, else from the environment; usage when one is in neither, with `again` as the
// command to repeat.
[[nodiscard]] Result<std::map<std::string, std::string>> secrets_of(const control::Paths& paths,
                                                                    const registry::Job& job, const std::string& again);
// Everything durable, secrets first: a daemon may take the job up the moment it is recorded.
[[nodiscard]] Result<JobId> record(Context& context, registry::Registry& registry, const Submission& submission);

}  // namespace gridctl::cmd

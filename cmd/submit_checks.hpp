// SPDX-License-Identifier: Apache-2.0
// Finds out for `job submit` what must be known before a job is placed, and warns about what may surprise its owner.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cmd/command.hpp"
#include "cmd/context.hpp"
#include "job/spec.hpp"
#include "registry/host_records.hpp"
#include "registry/job_records.hpp"
#include "sched/gang.hpp"
#include "sched/place.hpp"
#include "sched/query/host_facts.hpp"

namespace gridctl::cmd {

// Returns a warning that no drill has shown whether the job resumes; empty: one has, or little would be lost.
[[nodiscard]] Result<std::string> drill_warning(registry::JobRecords& registry, const job::Spec& spec,
                                                const sched::Decision& decision,
                                                const std::vector<sched::HostFacts>& hosts);

// Asks the registries of the images, for some seconds in all, if a borrowed host would suit the job otherwise. Digests
// go into the job, and problems into the facts of the hosts.
void find_image_digests(Context& context, job::Spec& spec, std::vector<sched::HostFacts>& hosts);

// Returns the hosts whose links decide where the gang goes, and were not all measured (`again`: or were); empty:
// nothing need be measured.
[[nodiscard]] std::set<std::string> hosts_to_measure(const sched::GangDecision& gang, const sched::GangWish& wish,
                                                     const sched::Decision& member, bool again);
// Measures the links between these hosts for some seconds and shows the progress; `again`: including those measured
// before. A failed measurement leaves the rate unknown, and forbids nothing.
void measure_between(Context& context, registry::HostRecords& registry, std::set<std::string> hosts, bool again);

// Returns a warning about members on borrowed hosts, which exchange everything unencrypted; empty: there are none.
[[nodiscard]] std::string clear_text_warning(const sched::GangDecision& gang,
                                             const std::vector<sched::HostFacts>& hosts);
// Returns a warning that `interval: off` does not hold on borrowed hosts that would suit the job; empty: it holds.
[[nodiscard]] std::string compulsory_checkpoints_warning(const job::Spec& spec, const sched::Decision& decision,
                                                         const std::vector<sched::HostFacts>& hosts);

// Sends this directory with the job, and says so, if a word of the command names a file in it ("python3 train.py"), or
// an item a file or directory ("ls *.wav | ... whisper {}"), and no directory was named. A directory that is too large
// is an error that says what to type, because the program would not find its file. `items`: those of a bag, each
// followed by a NUL.
[[nodiscard]] Result<void> send_what_is_named(Context& context, const Parsed& parsed, std::string_view items, job::Spec& spec);

}  // namespace gridctl::cmd

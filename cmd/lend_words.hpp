// SPDX-License-Identifier: Apache-2.0
// Defines options and texts that the commands of an owner share.
#pragma once

#include <optional>
#include <string>

#include "base/inventory.hpp"
#include "cmd/command.hpp"
#include "cmd/context.hpp"
#include "wire/guest.hpp"

namespace gridctl::cmd {

// Holds minutes of the day, local time.
struct Hours {
  int from = 0, to = 0;
};
// Reads --hours. usage unless it is FROM-TO.
[[nodiscard]] Result<std::optional<Hours>> hours_of(const Parsed& parsed);
// Writes the options' values into `terms`, and leaves the rest. Errors: usage.
[[nodiscard]] Result<void> describe_terms(const Parsed& parsed, wire::GuestTerms& terms);
// Declare the options for an owner's limits, which `join` and `limits` share.
inline constexpr Option k_disk_option{
    "disk", 0, "SIZE", "how much of the disk jobs and the data kept for them may use, such as 50GB; or 'all'"};
inline constexpr Option k_max_job_option{
    "max-job", 0, "DURATION",
    "a job that has run for this long ends here and continues on another host; or 'unlimited'"};
inline constexpr Option k_cpus_option{"cpus", 0, "N", "processors that jobs may use together; or 'all'"};
inline constexpr Option k_memory_option{"memory", 0, "SIZE", "memory that jobs may use together, such as 16GB; or 'all'"};
inline constexpr Option k_price_option{"price", 0, "PRICES", "USD for an hour of a GPU and of a processor, for a gigabyte of traffic, and at least for a job: gpu=0.25,cpu=0.01,traffic=0.05,minimum=0.02; or 'free'"};
inline constexpr Option k_registries_option{"registries", 0, "LIST", "where images of jobs may come from, such as docker.io,ghcr.io; or 'public'"};
// Refuses limits that cannot be enforced on this machine, and registries at addresses in its own network. Errors name
// the option.
[[nodiscard]] Result<void> check_limits(Context& context, const Parsed& parsed, const wire::GuestTerms& terms, const Inventory& inventory);
// Returns why --cpus and --memory are not enforced on this machine, in words; empty: they are.
[[nodiscard]] std::string why_no_limits(const wire::GuestTerms& terms, const Inventory& inventory);
// Returns text such as "hours always; egress filtered; reclaim yes; disk 50 GB; ...".
[[nodiscard]] std::string limits_text(const wire::GuestTerms& terms);
// Installs this gridctl's agent below ~/.gridctl of this machine. Returns its path.
[[nodiscard]] Result<os::Path> own_agent(Context& context, const ControllerId& controller, BootTime deadline);
inline constexpr std::string_view k_egress_words = "filtered|open|none";
// Returns "23:00-07:00", or "always".
[[nodiscard]] std::string hours_text(const wire::GuestTerms& terms);

}  // namespace gridctl::cmd

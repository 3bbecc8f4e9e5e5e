// SPDX-License-Identifier: Apache-2.0
// Defines options and texts that the commands of an owner share.
#pragma once

#include <optional>
#include <string>
#include <vector>

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
inline constexpr Option k_up_option{"up", 0, "RATE", "what the work of others may send out of this machine, such as 20Mbps; or 'unlimited'"};
inline constexpr Option k_when_option{"when", 0, "WHEN", "'always', or 'idle' (jobs run once nobody has used this machine for 10 minutes), or 'idle:30m'"};
inline constexpr Option k_gpu_power_option{"gpu-power", 0, "WATTS", "power limit of GPUs while jobs of others hold them, such as 280W; or 'unlimited'"};
inline constexpr Option k_max_heat_option{"max-heat", 0, "CELSIUS", "jobs leave while a GPU or processor is hotter for 30 seconds, such as 83C; or 'unlimited'"};
inline constexpr Option k_on_battery_option{"on-battery", 0, "YES|NO", "whether jobs run while this machine is on its battery", "", Completion::choices, "yes|no"};
// Refuses limits that cannot be enforced on this machine, and registries at addresses in its own network. Errors name
// the option.
[[nodiscard]] Result<void> check_limits(Context& context, const Parsed& parsed, const wire::GuestTerms& terms, const Inventory& inventory);
// Names a limit that cannot be enforced on this machine.
struct Unheld {
  std::string options;  // "--cpus and --memory do"
  std::string why;
};
[[nodiscard]] std::vector<Unheld> unheld_limits(const wire::GuestTerms& terms, const Inventory& inventory);
// Names what --when idle cannot see on this machine; empty: nothing, or it is not set.
[[nodiscard]] std::string unseen_use(Context& context, const wire::GuestTerms& terms);
// Returns "always", or text such as "idle for 10m".
[[nodiscard]] std::string when_text(const wire::GuestTerms& terms);
// Returns text such as "hours always; egress filtered; reclaim yes; disk 50 GB; ..."
[[nodiscard]] std::string limits_text(const wire::GuestTerms& terms);
// Installs this gridctl's agent below ~/.gridctl of this machine. Returns its path.
[[nodiscard]] Result<os::Path> own_agent(Context& context, const ControllerId& controller, BootTime deadline);
inline constexpr std::string_view k_egress_words = "filtered|open|none";
// Returns "23:00-07:00", or "always".
[[nodiscard]] std::string hours_text(const wire::GuestTerms& terms);

}  // namespace gridctl::cmd

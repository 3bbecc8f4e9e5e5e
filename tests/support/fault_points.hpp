// SPDX-License-Identifier: Apache-2.0
// Every place where an effect of ours becomes durable or leaves the process, by name: the members of the interfaces
// behind which disks, the database, hosts, engines and remotes lie. tests/tidy compares this list with those headers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gridctl::testing {

// NAME(interface, member). `records`: the database; `folders`, `freight`: our disk and the store; `remote`: copies;
// `wire`: requests to hosts; `host`: the agent's disk; `attempt`: the process that supervises one attempt there.
#define GRIDCTL_FAULT_POINTS(NAME)                                                                                    \
  NAME(records, update_provider) NAME(records, set_liveness) NAME(records, save_figures) NAME(records, together)      \
  NAME(records, add_host_event) NAME(records, save_host_report) NAME(records, save_host_span) NAME(records, submit)   \
  NAME(records, apply) NAME(records, note) NAME(records, take_result) NAME(records, save_explanation)                 \
  NAME(records, commit_checkpoint) NAME(records, remove_checkpoint) NAME(records, save_results)                       \
  NAME(records, note_used_up) NAME(records, begin_pause) NAME(records, end_pause) NAME(records, replace)              \
  NAME(folders, log_append) NAME(folders, keep_secrets) NAME(folders, remove_secrets) NAME(folders, bag_append)       \
  NAME(folders, bag_replace) NAME(folders, bag_output) NAME(folders, bag_gather)                                      \
  NAME(freight, reach) NAME(freight, push) NAME(freight, push_part) NAME(freight, pull) NAME(freight, merge)          \
  NAME(freight, prove_port) NAME(freight, bring) NAME(freight, heal)                                                  \
  NAME(remote, put) NAME(remote, put_new) NAME(remote, remove)                                                        \
  NAME(wire, poll) NAME(wire, prepare) NAME(wire, start) NAME(wire, stop) NAME(wire, clean) NAME(wire, log)           \
  NAME(wire, results) NAME(wire, standby)                                                                             \
  NAME(host, set_fence) NAME(host, order_stop) NAME(host, set_deadline) NAME(host, set_kept_from)                     \
  NAME(host, set_tempo) NAME(host, set_limits) NAME(host, take_lease) NAME(host, release_lease) NAME(host, create)    \
  NAME(host, begin) NAME(host, keep_work) NAME(host, remove)                                                          \
  NAME(attempt, launch) NAME(attempt, write_status) NAME(attempt, snapshot) NAME(attempt, release_lease)              \
  NAME(attempt, write_end)

enum class Point : std::uint8_t {
#define NAME(interface, member) interface##_##member,
  GRIDCTL_FAULT_POINTS(NAME)
#undef NAME
};
inline constexpr std::array k_point_names{
#define NAME(interface, member) std::string_view(#interface "." #member),
    GRIDCTL_FAULT_POINTS(NAME)
#undef NAME
};
inline constexpr std::size_t k_points = k_point_names.size();
[[nodiscard]] inline std::string_view point_name(Point point) { return k_point_names[static_cast<std::size_t>(point)]; }

// What becomes of an effect. `fails`: it does not happen, and whoever wanted it is told so. `late`: it happens when
// others have gone on. `lost`: it happens, and whoever wanted it is told that it failed.
enum class Fate : std::uint8_t { well, fails, late, lost };
inline constexpr std::array k_fate_names{std::string_view("well"), std::string_view("fails"), std::string_view("late"),
                                         std::string_view("lost")};

}  // namespace gridctl::testing

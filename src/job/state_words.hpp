// SPDX-License-Identifier: Apache-2.0
// Defines the words of a job's state that are stored, shown and used in decisions.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/names.hpp"

namespace gridctl::job {

inline constexpr std::string_view k_waits_for_provider = "waiting_for_provider";  // why a job waits: no host is free
inline constexpr std::string_view k_restart_requested = "restart_requested";      // why a job waits: its exit code asks
inline constexpr std::string_view k_move_blocked = "move_blocked";  // why a job stays: no other host can take it
inline constexpr std::string_view k_sending = "send";               // Launching::doing before the host says a word
inline constexpr std::string_view k_for_deadline = "deadline";    // why a job moves, and a limit of its file
inline constexpr std::string_view k_for_less = "cheaper";         // why a job moves: its host is too dear
inline constexpr std::string_view k_for_priority = "preempted";   // why a job moves: a more urgent one waits
inline constexpr std::string_view k_for_straggler = "straggler";  // why a gang moves: a member holds up the others
inline constexpr std::string_view k_for_end = "ends";             // why a job moves: its host ends soon, in order
inline constexpr std::string_view k_paused = "paused";            // why a job moves: it has been paused for too long
inline constexpr std::string_view k_to_grow = "grown";            // why an elastic gang begins anew: with more hosts

inline constexpr std::string_view k_row_starting = "starting", k_row_running = "running", k_row_succeeded = "succeeded",
                                  k_row_failed = "failed";  // states of an AttemptRow

// Describes how a job came to its end while its own attempt still ran, or without one.
enum class Overtaken : std::uint8_t {
  twin,          // one of its twins was done first
  tasks_done,    // the last task of a bag
  tasks_failed,  // the bag is over, and tasks of it have failed
};
inline constexpr Names<Overtaken, Overtaken::tasks_failed> overtaken_name{"replica_succeeded", "tasks_done",
                                                                          "tasks_failed"};

// First words of a host's detail when a limit of the machine's owner ended an attempt: gridctl-lend(7).
inline constexpr std::string_view k_owner_limit = "the owner of this machine ";

}  // namespace gridctl::job

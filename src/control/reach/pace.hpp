// SPDX-License-Identifier: Apache-2.0
// How often hosts are looked after.
#pragma once

#include "base/time.hpp"

namespace gridctl::control {

inline constexpr Duration k_tick = std::chrono::milliseconds{200};    // how often monitors are called
inline constexpr Duration k_nap = std::chrono::seconds{5};            // a longer gap between ticks: we slept
inline constexpr Duration k_heartbeat_max = std::chrono::seconds{5};  // between polls of a host with jobs
inline constexpr Duration k_heartbeat_min = std::chrono::milliseconds{500};
inline constexpr int k_beats_to_lost = 12;  // in `lost_after`: silence is noticed a heartbeat late
inline constexpr Duration k_heartbeat_idle = std::chrono::seconds{10};   // of a host without
inline constexpr Duration k_connect_timeout = std::chrono::seconds{20};  // login, agent upload and hello
inline constexpr Duration k_reconnect_max = std::chrono::seconds{15};    // longest pause between two tries
// An unanswered poll this old, and so many heartbeats at least: reconnect. A new login is tried well before
// `lost_after`: an agent that is stuck or a router that has forgotten us must not pass for the host's death.
inline constexpr Duration k_answer_patience = std::chrono::seconds{2};
inline constexpr int k_patience_beats = 3;
inline constexpr Duration k_work_answer = std::chrono::seconds{15};  // one small request of a worker

// After START or STOP could not be carried out, or something could not be fetched.
inline constexpr Duration k_launch_retry = std::chrono::seconds{1};
inline constexpr int k_collect_tries = 30;  // then an I/O error is believed, and the job ends without its last files
inline constexpr Duration k_stop_retry = std::chrono::seconds{2};
inline constexpr Duration k_pull_retry = std::chrono::seconds{3};       // then twice as long each time,
inline constexpr Duration k_pull_retry_max = std::chrono::minutes{10};  // but no longer than this
inline constexpr Duration k_settle_retry = std::chrono::seconds{5};
inline constexpr Duration k_busy_memory = std::chrono::seconds{10};  // a host that was just full is not asked again
inline constexpr Duration k_reload_pause = std::chrono::seconds{5};  // full look at the registry, without a sign

}  // namespace gridctl::control

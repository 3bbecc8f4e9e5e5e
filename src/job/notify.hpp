// SPDX-License-Identifier: Apache-2.0
// Holds the rules for notifications about a job: recipients and events. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.hpp"
#include "base/result.hpp"

namespace gridctl::job {

enum class Notice : std::uint8_t {
  end,      // the job has ended, however
  failure,  // the job has failed
  move,     // the job runs again, as another attempt
  budget,   // a budget or limit stops the job
  silence,  // a host no longer answers and is given up
};
inline constexpr Names<Notice, Notice::silence> notice_name{"end", "failure", "move", "budget", "silence"};

struct Notify {
  std::vector<Notice> on;  // empty: all
  std::string command;     // shell text, run on the machine of the daemon
  std::string webhook;     // http or https URL that gets a POST
  std::string mail;        // address
  bool operator==(const Notify&) const = default;
};

// Rules of a job are kept beside it: they are not part of what runs, and no host sees them.
[[nodiscard]] std::string to_json(const std::vector<Notify>& rules);
[[nodiscard]] Result<std::vector<Notify>> parse_notify(std::string_view json);

// Returns the notices that an event stands for; none for most kinds. `attempt` is that of the event.
[[nodiscard]] std::vector<Notice> notices_of(std::string_view event_kind, std::uint64_t attempt);
// Returns the first of the notices that the rule asks for.
[[nodiscard]] std::optional<Notice> wanted(const Notify& rule, const std::vector<Notice>& notices);

}  // namespace gridctl::job

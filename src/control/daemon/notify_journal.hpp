// SPDX-License-Identifier: Apache-2.0
// Keeps a file in the state directory that records which events were seen and which notifications are still to be sent.
// A notification that was being sent when a daemon ended may have arrived, so it is never sent again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "job/notify.hpp"
#include "os/files.hpp"

namespace gridctl::control {

enum class Channel : std::uint8_t { command, webhook, mail };
[[nodiscard]] std::string_view channel_name(Channel channel);

struct Message {
  std::string id;      // unique in the state directory: "job-event-17"
  job::Notice notice = job::Notice::end;
  std::string job_id, job_name, state;  // empty for a host's
  std::string provider, kind, text;
  WallTime at;
};
// Format: {"id","notice","job_id","name","state","provider","kind","at","text","content"}; `text` and `content` are the
// line for people, as chat programs read them.
[[nodiscard]] std::string to_json(const Message& message);
[[nodiscard]] std::string to_line(const Message& message);  // "train-gpt (k3jf…) failed: exit code 3 on ada"

struct Delivery {
  Message message;
  Channel channel = Channel::command;
  std::string address;  // shell text, URL or mail address
  std::uint64_t tries = 0;
  WallTime next;         // not before
  bool sending = false;  // noted before the first byte leaves
  bool queued = false;   // for a thread of this process; not kept
};

struct NotifyJournal {
  std::int64_t event = 0, host_event = 0;  // seen up to here
  std::vector<Delivery> open;

  // Leaves out notifications that were being sent; `doubtful` gets those.
  [[nodiscard]] static Result<NotifyJournal> read(const os::Path& file, std::vector<Delivery>& doubtful);
  [[nodiscard]] Result<void> write(const os::Path& file) const;  // durable
};

// Returns the pause before the next attempt, after this many; nullopt: there are no more attempts.
[[nodiscard]] std::optional<Duration> retry_after(std::uint64_t tries);

}  // namespace gridctl::control

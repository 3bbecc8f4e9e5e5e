// SPDX-License-Identifier: Apache-2.0
// Runs programs that streams start inside a job: each with pipes, or with its own terminal.
#pragma once

#include <map>
#include <optional>

#include "agent/init.hpp"
#include "base/result.hpp"
#include "os/loop.hpp"
#include "os/process.hpp"
#include "transfer/stream_hub.hpp"

namespace gridctl::agent {

class Programs {
 public:
  Programs(os::Loop& loop, transfer::StreamHub& hub, const std::optional<InitPlan>& plan);
  // Answers the open; the caller reports an error.
  [[nodiscard]] Result<void> start(std::uint32_t id, const wire::StreamOpen& request);

 private:
  struct Program {
    int pid = -1;
    std::uint32_t errors = 0;  // stream of its standard error
    bool terminal = false;
    bool output_over = false, errors_over = true;
    std::optional<os::ExitStatus> ended{};
    bool was_idle = false;  // nothing came from it since the last look after its end
    os::Loop::Timer look{};
  };

  [[nodiscard]] Result<int> spawn(const wire::StreamOpen& request, const os::SpawnOptions& base) const;
  void join(std::uint32_t id, const wire::StreamOpen& request, transfer::StreamEnds ends, os::Fd errors, int pid);
  void reap();
  void look(std::uint32_t id);
  void conclude(std::uint32_t id);
  void give_up(std::uint32_t id);
  void heed(std::uint32_t id, const wire::StreamNote& note, int terminal);

  os::Loop& loop_;
  transfer::StreamHub& hub_;
  const std::optional<InitPlan>& plan_;
  std::map<std::uint32_t, Program> programs_;
  std::map<int, os::Loop::Timer> dying_;  // killed when the time is over
  os::Loop::Watch children_;
};

}  // namespace gridctl::agent

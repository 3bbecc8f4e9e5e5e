// SPDX-License-Identifier: Apache-2.0
// Pauses an attempt: its files, and the conditions. Orders come from connections, the supervisor carries them out, and
// each of them may be killed at any moment: the order and the record are durable before the first call, and every step
// may run twice.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/attempt_dir.hpp"
#include "agent/engine.hpp"
#include "agent/helper_process.hpp"
#include "base/result.hpp"
#include "wire/pause.hpp"

namespace gridctl::agent {

// Holds the content of ctl/pause: the last order.
struct PauseOrder {
  OpId op;
  bool resume = false;
  bool gpu_only = false;
};
[[nodiscard]] std::optional<PauseOrder> read_pause_order(const AttemptDir& attempt);
[[nodiscard]] Result<void> write_pause_order(const AttemptDir& attempt, const PauseOrder& order);

// Holds the content of pause-answer: the result of that operation's order.
struct PauseAnswer {
  OpId op;
  wire::PauseReply reply{};
  std::string code{};  // of the error; empty: it was done
  std::string message{};
};
[[nodiscard]] std::optional<PauseAnswer> read_pause_answer(const AttemptDir& attempt);
[[nodiscard]] Result<void> write_pause_answer(const AttemptDir& attempt, const PauseAnswer& answer);
[[nodiscard]] Result<wire::PauseReply> outcome_of(const PauseAnswer& answer);

enum class PauseStage : std::uint8_t { running, pausing, paused, resuming };

// Holds the content of paused: the supervisor's progress.
struct PauseRecord {
  PauseStage stage = PauseStage::running;
  bool gpu_only = false;
  std::map<std::string, std::uint64_t> gpu_bytes{};  // by UUID: what the attempt held there
  BootTime since{};                                  // of `pausing`
  Duration before{};                                 // all former pauses together
  std::string boot_id{};

  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] bool off_gpus() const { return stage == PauseStage::paused && !gpu_bytes.empty(); }
};
[[nodiscard]] PauseRecord read_pause_record(const AttemptDir& attempt);
[[nodiscard]] Result<void> write_pause_record(const AttemptDir& attempt, const PauseRecord& record);

// Returns why an attempt with that specification cannot leave its GPUs in place; empty if nothing prevents it.
[[nodiscard]] std::string why_not_off_gpus(const wire::AttemptSpec& spec, const std::vector<Gpu>& gpus);
// Returns why the host's memory cannot take this many more bytes: the machine's memory, or that of the attempt's group.
[[nodiscard]] std::string why_no_memory(std::uint64_t bytes, std::uint64_t available, std::uint64_t group_left);
[[nodiscard]] std::uint64_t memory_available();
[[nodiscard]] std::uint64_t memory_left_in(const Path& group);  // UINT64_MAX: not limited

// Holds GPU memory as the vendor's tool reports it.
struct GpuMemory {
  std::uint64_t ours = 0;  // of these processes; all that is used where processes are not shown
  std::uint64_t free = 0;
};
[[nodiscard]] Result<std::map<std::string, GpuMemory>> gpu_memory(const std::vector<std::string>& uuids,
                                                                  const std::vector<os::ProcessId>& ours);

// Runs the helper's `pause` or `resume` on these processes until it answers. Keep the helper that paused until they are
// resumed: without persistence mode, the driver would forget the GPUs with its last user.
[[nodiscard]] Result<std::unique_ptr<HelperProcess>> call_pause_helper(const Path& home, const std::string& what,
                                                                       const std::vector<os::ProcessId>& processes,
                                                                       Duration patience, os::Clock& clock);

// Stops every process of the attempt except its first, by its control group, its engine or signals.
[[nodiscard]] Result<void> freeze(Engine& engine, const std::string& name, const Path& host_run);
void thaw(Engine& engine, const std::string& name, const Path& host_run);

// Implements the connection's side: leaves the order, and waits for the supervisor's answer.
[[nodiscard]] Result<wire::PauseReply> await_pause(const AttemptDir& attempt, const wire::PauseRequest& request,
                                                   os::Clock& clock);

}  // namespace gridctl::agent

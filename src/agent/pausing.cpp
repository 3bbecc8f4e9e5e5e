// SPDX-License-Identifier: Apache-2.0
// Moves the supervisor's attempt off the host's GPUs and processors, and back.
#include <algorithm>

#include "agent/pause.hpp"
#include "agent/process_tree.hpp"
#include "agent/owner_terms.hpp"
#include "agent/supervise.hpp"
#include "os/log.hpp"

namespace gridctl::agent {
namespace {

constexpr std::uint64_t k_spare_gpu_bytes = 512ull << 20;  // of GPU memory, beyond what is to come back
constexpr Duration k_helper_least = std::chrono::seconds{60};
constexpr std::uint64_t k_slowest = 200ull << 20;  // bytes a second of a copy; a hundredth of what a sound bus does

Duration patience_for(std::uint64_t bytes) {
  return k_helper_least + std::chrono::seconds{static_cast<std::int64_t>(bytes / k_slowest)};
}

}  // namespace

// Reads the order and carries it out once; also finishes what an earlier supervisor had begun.
void AttemptRunner::read_pause() {
  if (!payload_id_ || stop_wanted()) return;
  const auto order = read_pause_order(attempt_);
  if (!order) return;
  if (const auto answer = read_pause_answer(attempt_); answer && answer->op == order->op) return;
  PauseAnswer answer{order->op};
  const BootTime began = now();
  if (const Result<void> done = order->resume ? resume() : pause(order->gpu_only); !done) {
    answer.code = code_name(done.error().code);
    answer.message = done.error().one_line();
  }
  answer.reply = {pause_.bytes(), now() - began};
  if (order->resume && pause_.stage == PauseStage::running) pause_.gpu_bytes.clear();
  if (const auto written = write_pause_answer(attempt_, answer); !written)
    os::log(os::LogLevel::error, "cannot report the pause: " + written.error().one_line());
  publish();
}

Result<void> AttemptRunner::note_pause(PauseStage stage) {
  if (account_) account_->add(holds_gpus(), !is_paused());
  pause_.stage = stage;
  return write_pause_record(attempt_, pause_);
}

std::vector<os::ProcessId> AttemptRunner::members() {
  std::vector<os::ProcessId> all = engine_->members(name(), attempt_.run(launch_));
  merge(all, {*payload_id_});
  return all;
}

Result<void> AttemptRunner::pause(bool gpu_only) {
  if (pause_.stage == PauseStage::paused) return {};
  const bool begun = pause_.stage != PauseStage::running;  // by a supervisor that is gone
  if (status_.phase != wire::AttemptPhase::running) return make_error(Code::busy, "the job is not running yet");
  if (gpu_only && spec_.gpu_uuids.empty()) return make_error(Code::refused, "the job does not hold a GPU");
  if (!begun) {
    pause_.gpu_bytes.clear();
    TRY(look_at_gpus());
    pause_.gpu_only = gpu_only;
    pause_.since = now();
    pause_.boot_id = os::boot_id();
    TRY(note_pause(PauseStage::pausing));
  }
  const auto stop_it = [&]() -> Result<void> {
    TRY(lease_memory());
    TRY(leave_gpus());
    if (!pause_.gpu_only) TRY(freeze(*engine_, name(), attempt_.run(launch_)));
    // An empty group of processes also freezes.
    if (!os::is_alive(*payload_id_)) return make_error(Code::not_found, "the program of the job has ended");
    return note_pause(PauseStage::paused);
  };
  Result<void> done = stop_it();
  if (!done) {
    const Result<void> back = put_back();
    if (!back)
      done = std::move(done).error().with_context("and it could not be moved back: " + back.error().one_line());
    return done;
  }
  update_lease(false);  // without its GPUs now
  return {};
}

// Checks how much memory the job holds on its GPUs, and whether the host's memory can take it.
Result<void> AttemptRunner::look_at_gpus() {
  if (spec_.gpu_uuids.empty()) return {};
  if (gpus_.empty()) {
    TRY_ASSIGN(gpus_, find_gpus(spec_.gpu_uuids));
  }
  if (const std::string why = why_not_off_gpus(spec_, gpus_); !why.empty()) return make_error(Code::unsupported, why);
  TRY_ASSIGN(const auto held, gpu_memory(spec_.gpu_uuids, members()));
  for (const auto& [uuid, memory] : held) pause_.gpu_bytes[uuid] = memory.ours;
  const std::string why = why_no_memory(pause_.bytes(), memory_available(), memory_left_in(memory_group_));
  return why.empty() ? Result<void>{} : make_error(Code::no_space, why);
}

Result<void> AttemptRunner::lease_memory() {
  if (pause_.gpu_bytes.empty()) return {};
  return ledger_.take(lease(), capacity_for(attempt_.agent_home(), attempt_.controller()));
}

Result<void> AttemptRunner::leave_gpus() {
  if (pause_.gpu_bytes.empty()) return {};
  auto helper = call_pause_helper(attempt_.agent_home(), "pause", members(), patience_for(pause_.bytes()), clock_);
  if (!helper) {
    // No process has a context on a GPU yet, or any more.
    if (helper.error().code == Code::not_found && pause_.bytes() == 0) return {};
    harmed_at_ = now();
    return std::move(helper).error();
  }
  pause_helper_ = std::move(*helper);
  TRY_ASSIGN(const auto held, gpu_memory(spec_.gpu_uuids, members()));
  for (const auto& [uuid, memory] : held)
    if (memory.ours > pause_.gpu_bytes[uuid] / 10)
      return make_error(Code::io, "the driver says that the job has left " + uuid + ", but nvidia-smi still shows " +
                                      format_size(memory.ours) + " in use there");
  return {};
}

Result<void> AttemptRunner::resume() {
  if (pause_.stage == PauseStage::running) return {};
  if (pause_.stage == PauseStage::paused && !pause_.gpu_bytes.empty()) {
    Lease with_gpus = lease();
    with_gpus.gpus = spec_.gpu_uuids;
    TRY(ledger_.take(with_gpus, machine_capacity()));
    // The room is never found out by trying: a restore that finds too little memory cannot be repeated.
    const Result<void> room = look_for_room();
    if (!room) {
      update_lease(false);
      return room;
    }
    TRY(note_pause(PauseStage::resuming));
  }
  return put_back();
}

Result<void> AttemptRunner::look_for_room() {
  TRY_ASSIGN(const auto held, gpu_memory(spec_.gpu_uuids, {}));
  for (const auto& [uuid, memory] : held) {
    const std::uint64_t wanted = pause_.gpu_bytes[uuid] + k_spare_gpu_bytes;
    if (memory.free < wanted)
      return make_error(Code::busy, "other programs use " + uuid + ": " + format_size(memory.free) + " are free, " +
                                        format_size(wanted) + " are needed");
  }
  return {};
}

// Works from any stage: the processes run, and have their GPUs again.
Result<void> AttemptRunner::put_back() {
  thaw(*engine_, name(), attempt_.run(launch_));
  if (!pause_.gpu_bytes.empty()) {
    const auto helper =
        call_pause_helper(attempt_.agent_home(), "resume", members(), patience_for(pause_.bytes()), clock_);
    if (!helper && helper.error().code != Code::not_found) {
      harmed_at_ = now();
      return helper.error();
    }
  }
  pause_helper_.reset();
  const Duration lasted = now() - pause_.since;
  pause_.before += lasted;
  TRY(note_pause(PauseStage::running));
  // The allowed running time does not shrink during a pause.
  if (running_since_) running_since_ = *running_since_ + lasted;
  if (limits_.run_until) limits_.run_until = *limits_.run_until + lasted;
  if (limits_.run_until)
    if (const auto told = os::write_file_atomically(attempt_.limits_file(), to_text(limits_)); !told)
      os::log(os::LogLevel::warn, "cannot postpone a limit: " + told.error().one_line());
  update_lease(false);
  return {};
}

// Adopts the pause of an earlier supervisor: the order, which has no answer yet, finishes it.
void AttemptRunner::adopt_pause() {
  pause_ = read_pause_record(attempt_);
  const auto order = read_pause_order(attempt_);
  const auto answer = order ? read_pause_answer(attempt_) : std::nullopt;
  const bool open = order && (!answer || answer->op != order->op);
  if (pause_.stage == PauseStage::running || pause_.stage == PauseStage::paused || open) return;
  if (const auto back = put_back(); !back)
    os::log(os::LogLevel::error, "a job that was being paused could not be moved back: " + back.error().one_line());
}

// This happens before the stop: frozen processes get no signal, and a process off its GPUs cannot save.
void AttemptRunner::leave_pause() {
  if (pause_.stage == PauseStage::running || !payload_id_) return;
  if (!pause_.gpu_bytes.empty()) kill_payload();
  thaw(*engine_, name(), attempt_.run(launch_));
}

void AttemptRunner::say_pause() {
  const bool paused = pause_.stage == PauseStage::paused || pause_.stage == PauseStage::resuming;
  status_.paused_ms_ago = paused ? std::max<std::int64_t>(0, (now() - pause_.since).count() / 1'000'000) : -1;
  status_.paused_ms = pause_.before.count() / 1'000'000;
  if (paused) status_.no_checkpoint.clear();
}

}  // namespace gridctl::agent

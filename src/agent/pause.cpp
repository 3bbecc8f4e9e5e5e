// SPDX-License-Identifier: Apache-2.0
#include "agent/pause.hpp"

#include <poll.h>
#include <signal.h>

#include <algorithm>

#include "agent/process_tree.hpp"
#include "base/names.hpp"
#include "base/numbers.hpp"
#include "base/record.hpp"
#include "base/text.hpp"
#include "os/process.hpp"
#include "probe/health_nvidia.hpp"
#include "probe/tools.hpp"

namespace gridctl::agent {
namespace {

constexpr std::uint64_t k_pause_file_bytes = 64 * 1024;
constexpr Names<PauseStage, PauseStage::resuming> k_stages{"running", "pausing", "paused", "resuming"};
constexpr auto k_stage_name = [](PauseStage stage) { return k_stages(stage); };
constexpr auto k_stage_of = [](std::string_view word) { return k_stages.find(word); };
constexpr int k_freeze_tries = 500, k_freeze_wait_ms = 20;
constexpr int k_answer_look_ms = 50;

Path order_file(const AttemptDir& attempt) { return attempt.control() / "pause"; }
Path answer_file(const AttemptDir& attempt) { return attempt.path / "pause-answer"; }
Path record_file(const AttemptDir& attempt) { return attempt.path / "paused"; }

template <class T>
std::optional<T> read_own(const Path& path) {
  const auto text = os::read_file(path, k_pause_file_bytes);
  if (!text) return std::nullopt;
  Result<T> value = read_record<T>(*text, "a file of a pause", k_lenient_rules, Code::io);
  return value ? std::optional<T>(*std::move(value)) : std::nullopt;
}

std::string text_in(const Path& path) { return os::read_file(path, k_pause_file_bytes).value_or(""); }

}  // namespace

template <class R>
void fields(R& r, Of<R, PauseOrder>& m) {
  r("op", m.op)("resume", m.resume)("gpu_only", m.gpu_only);
}
template <class R>
void fields(R& r, Of<R, PauseAnswer>& m) {
  r("op", m.op)("gpu_bytes", m.reply.gpu_bytes)("took_ms", m.reply.took)("code", m.code)("message", m.message);
}
template <class R>
void fields(R& r, Of<R, PauseRecord>& m) {
  r.word_or("stage", m.stage, k_stage_name, k_stage_of, PauseStage::running)("gpu_only", m.gpu_only);
  r("gpu_bytes", m.gpu_bytes)("since_ns", m.since)("before_ns", m.before)("boot_id", m.boot_id);
}

std::optional<PauseOrder> read_pause_order(const AttemptDir& attempt) {
  return read_own<PauseOrder>(order_file(attempt));
}
Result<void> write_pause_order(const AttemptDir& attempt, const PauseOrder& order) {
  return os::write_file_durably(order_file(attempt), write_record(order));
}
std::optional<PauseAnswer> read_pause_answer(const AttemptDir& attempt) {
  return read_own<PauseAnswer>(answer_file(attempt));
}
Result<void> write_pause_answer(const AttemptDir& attempt, const PauseAnswer& answer) {
  return os::write_file_atomically(answer_file(attempt), write_record(answer));
}
Result<wire::PauseReply> outcome_of(const PauseAnswer& answer) {
  if (answer.code.empty()) return answer.reply;
  for (const Code code :
       {Code::busy, Code::refused, Code::unsupported, Code::no_space, Code::timed_out, Code::not_found})
    if (answer.code == code_name(code)) return make_error(code, answer.message);
  return make_error(Code::io, answer.message);
}

std::uint64_t PauseRecord::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [uuid, bytes] : gpu_bytes) sum += bytes;
  return sum;
}

PauseRecord read_pause_record(const AttemptDir& attempt) {
  PauseRecord record = read_own<PauseRecord>(record_file(attempt)).value_or(PauseRecord{});
  return record.boot_id == os::boot_id() ? record : PauseRecord{};  // memory does not survive a boot
}
Result<void> write_pause_record(const AttemptDir& attempt, const PauseRecord& record) {
  return os::write_file_durably(record_file(attempt), write_record(record));
}

std::string why_not_off_gpus(const wire::AttemptSpec& spec, const std::vector<Gpu>& gpus) {
#if !defined(__x86_64__)
  return "the driver moves processes off a GPU only on x86_64 hosts";
#endif
  if (spec.gang) return "processes that exchange data between GPUs do not survive being moved off them";
  for (const Gpu& gpu : gpus) {
    if (gpu.vendor == Vendor::amd) return "AMD's driver moves a process off a GPU only for root, and only into files";
    if (gpu.vendor != Vendor::nvidia) return "the driver of " + gpu.name + " cannot move a process off the GPU";
    if (gpu.uuid.starts_with("MIG-") || !gpu.partition.profile.empty())
      return "the driver cannot move a process off part of a GPU (MIG)";
  }
  return {};
}

std::string why_no_memory(std::uint64_t bytes, std::uint64_t available, std::uint64_t group_left) {
  const std::uint64_t wanted = bytes + bytes / 10;
  if (wanted > available)
    return format_size(bytes) + " of GPU memory would have to fit into the " + format_size(available) +
           " of free memory on the host";
  if (wanted > group_left)
    return format_size(bytes) + " of GPU memory would have to fit into the " + format_size(group_left) +
           " left of the job's memory limit";
  return {};
}

std::uint64_t memory_available() {
  const auto kib = leading_number<std::uint64_t>(line_value(text_in("/proc/meminfo"), "MemAvailable:"));
  return kib.value_or(0) * 1024;
}

std::uint64_t memory_left_in(const Path& group) {
  if (group.empty()) return UINT64_MAX;
  for (const auto& [limit_file, used_file] :
       {std::pair{"memory.max", "memory.current"}, std::pair{"memory.limit_in_bytes", "memory.usage_in_bytes"}}) {
    const auto limit = leading_number<std::uint64_t>(os::read_file(group / limit_file, 64).value_or(""));
    const auto used = leading_number<std::uint64_t>(os::read_file(group / used_file, 64).value_or(""));
    if (limit && used) return *limit > *used ? *limit - *used : 0;
  }
  return UINT64_MAX;
}

Result<std::map<std::string, GpuMemory>> gpu_memory(const std::vector<std::string>& uuids,
                                                    const std::vector<os::ProcessId>& ours) {
  const std::vector<wire::GpuHealth> seen =
      probe::read_nvidia_health(probe::ask_tool(probe::Toolbox{}, probe::nvidia_health_call()));
  std::map<std::string, GpuMemory> found;
  for (const std::string& uuid : uuids) {
    const auto gpu = std::ranges::find(seen, uuid, &wire::GpuHealth::uuid);
    if (gpu == seen.end() || !gpu->memory_total || !gpu->memory_used)
      return make_error(Code::unsupported, "nvidia-smi does not show the memory in use on " + uuid + "");
    GpuMemory& memory = found[uuid];
    memory.free = *gpu->memory_total - std::min(*gpu->memory_total, *gpu->memory_used);
    if (!gpu->processes) memory.ours = *gpu->memory_used;
    else
      for (const wire::GpuProcess& process : *gpu->processes)
        if (std::ranges::any_of(ours, [&](const os::ProcessId& one) { return one.pid == process.pid; }))
          memory.ours += process.memory_bytes;
  }
  return found;
}

Result<std::unique_ptr<HelperProcess>> call_pause_helper(const Path& home, const std::string& what,
                                                         const std::vector<os::ProcessId>& processes, Duration patience,
                                                         os::Clock& clock) {
  TRY_ASSIGN(const os::Path path, install_gpubench(home));
  std::vector<std::string> argv{path.string(), what};
  for (const os::ProcessId& process : processes) argv.push_back(std::to_string(process.pid));
  TRY_ASSIGN(auto helper, HelperProcess::start(argv));
  for (const BootTime deadline = clock.boot() + patience;;) {
    TRY_ASSIGN(const std::string line, helper->receive(deadline, clock));
    if (line == k_helper_done) return helper;
    if (line.starts_with("error ")) return error_of_line(line);
  }
}

// --- freezing --------------------------------------------------------------------------------------------------------

namespace {

enum class Motion { moving, waits_in_kernel, still };

struct Moment {
  Motion motion = Motion::still;  // a process that is gone is still
  int parent = 0;
};

Moment moment_of(const os::ProcessId& process) {
  const std::string status = text_in("/proc/" + std::to_string(process.pid) + "/status");
  const std::string state = line_value(status, "State:");
  const bool still = state.empty() || std::string_view("TtZX").find(state[0]) != std::string_view::npos;
  const Motion motion = still ? Motion::still : state[0] == 'D' ? Motion::waits_in_kernel : Motion::moving;
  return {motion, leading_number<int>(line_value(status, "PPid:")).value_or(0)};
}

// Returns all processes except the first, which waits for the others and passes signals on.
std::vector<os::ProcessId> followers(Engine& engine, const std::string& name, const Path& host_run) {
  std::vector<os::ProcessId> all = engine.members(name, host_run);
  if (const auto init = lock_holder(host_run / "lock")) std::erase(all, *init);
  return all;
}

// Makes one round: returns whether all processes are stopped. The next round finds processes that they have started in
// the meantime. A process in vfork(2) waits in the kernel and ignores SIGSTOP until its child runs another program,
// which a stopped child never does: so children of a process that waits in the kernel continue until it has stopped.
bool stop_once(const std::vector<os::ProcessId>& all) {
  std::map<int, Moment> seen;
  for (const os::ProcessId& process : all) seen[process.pid] = moment_of(process);
  const auto awaited = [&](const Moment& child) {
    const auto parent = seen.find(child.parent);
    return parent != seen.end() && parent->second.motion == Motion::waits_in_kernel;
  };
  std::vector<os::ProcessId> to_stop, to_continue;
  for (const os::ProcessId& process : all) {
    const bool still = seen[process.pid].motion == Motion::still;
    if (awaited(seen[process.pid]) == still) (still ? to_continue : to_stop).push_back(process);
  }
  signal_each(to_continue, SIGCONT);
  signal_each(to_stop, SIGSTOP);
  return std::ranges::all_of(seen, [](const auto& one) { return one.second.motion == Motion::still; });
}

}  // namespace

Result<void> freeze(Engine& engine, const std::string& name, const Path& host_run) {
  if (engine.set_frozen(name, true)) return {};
  for (int turn = 0; turn < k_freeze_tries; ++turn) {
    const std::vector<os::ProcessId> all = followers(engine, name, host_run);
    if (all.empty()) return make_error(Code::not_found, "the program of the job has ended");
    if (stop_once(all)) return {};
    ::poll(nullptr, 0, k_freeze_wait_ms);
  }
  return make_error(Code::busy,
                    "some processes of the job do not stop: they are blocked in the kernel, or run as another user");
}

void thaw(Engine& engine, const std::string& name, const Path& host_run) {
  (void)engine.set_frozen(name, false);
  signal_each(followers(engine, name, host_run), SIGCONT);
}

Result<wire::PauseReply> await_pause(const AttemptDir& attempt, const wire::PauseRequest& request, os::Clock& clock) {
  for (const BootTime give_up = clock.boot() + wire::k_pause_wait_max; clock.boot() < give_up;) {
    if (const auto answer = read_pause_answer(attempt); answer && answer->op == request.op) return outcome_of(*answer);
    if (const auto order = read_pause_order(attempt); order && order->op != request.op)
      return make_error(Code::cancelled, "a later request to pause or resume the job replaced this one");
    const auto stored = read_stored_status(attempt, clock);
    if (!stored || !*stored || (*stored)->ended()) return make_error(Code::not_found, "the attempt has ended");
    ::poll(nullptr, 0, k_answer_look_ms);
  }
  return make_error(Code::timed_out, "the host has not finished yet");
}

}  // namespace gridctl::agent

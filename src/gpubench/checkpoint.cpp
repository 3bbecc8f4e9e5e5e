// SPDX-License-Identifier: Apache-2.0
// Moves the GPU memory of running processes into the host's memory and back, through the driver's own process
// checkpoint (drivers 570 and later). If a process has several GPUs, or a job several processes, all are locked before
// one is checkpointed, and all are restored before one is unlocked.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include "gpubench/library.hpp"
#include "gpubench/work.hpp"

namespace gridctl::gpubench {
namespace {

constexpr unsigned k_lock_ms = 10'000;  // a kernel that runs for longer is not interrupted
constexpr std::size_t k_processes_max = 1024;

enum class ProcessState : int { running, locked, checkpointed, failed };
constexpr std::array k_state_words{"running", "locked", "checkpointed", "failed"};

struct LockArguments {
  unsigned timeout_ms = 0, reserved0 = 0;
  std::uint64_t reserved[7]{};
};
static_assert(sizeof(LockArguments) == 64);

struct CheckpointApi {
  int (*init)(unsigned) = nullptr;
  int (*error_text)(int, const char**) = nullptr;
  int (*state)(int, int*) = nullptr;
  int (*lock)(int, LockArguments*) = nullptr;
  int (*checkpoint)(int, void*) = nullptr;
  int (*restore)(int, void*) = nullptr;
  int (*unlock)(int, void*) = nullptr;
};

Result<CheckpointApi> checkpoint_api() {
  CheckpointApi api;
  const std::array entries{Entry{"cuInit", static_cast<void*>(&api.init)},
                           Entry{"cuGetErrorString", static_cast<void*>(&api.error_text)},
                           Entry{"cuCheckpointProcessGetState", static_cast<void*>(&api.state)},
                           Entry{"cuCheckpointProcessLock", static_cast<void*>(&api.lock)},
                           Entry{"cuCheckpointProcessCheckpoint", static_cast<void*>(&api.checkpoint)},
                           Entry{"cuCheckpointProcessRestore", static_cast<void*>(&api.restore)},
                           Entry{"cuCheckpointProcessUnlock", static_cast<void*>(&api.unlock)}};
  TRY(load({"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"}, entries)
          .context("the NVIDIA driver cannot move a process off the GPU: this needs driver 570 or later"));
  if (const int code = api.init(0); code != 0)
    return make_error(Code::unsupported, "the CUDA driver does not start: error " + std::to_string(code));
  return api;
}

class Processes {
 public:
  Processes(const CheckpointApi& api, const std::vector<int>& pids) : api_(api) {
    for (const int pid : pids)
      if (state_of(pid)) pids_.push_back(pid);
  }
  [[nodiscard]] bool none() const { return pids_.empty(); }

  void say_states() const {
    for (const int pid : pids_)
      if (const auto state = state_of(pid))
        say_text(std::to_string(pid), k_state_words[static_cast<std::size_t>(*state)]);
  }

  Result<void> pause() {
    LockArguments limit{.timeout_ms = k_lock_ms};
    Result<void> done =
        each(ProcessState::running, "locking", Code::busy, [&](int pid) { return api_.lock(pid, &limit); });
    if (done)
      done =
          each(ProcessState::locked, "checkpointing", Code::io, [&](int pid) { return api_.checkpoint(pid, nullptr); });
    // Undoes the completed steps, so that the job continues to run.
    if (!done) (void)resume();
    return done;
  }

  Result<void> resume() {
    TRY(each(ProcessState::checkpointed, "restoring", Code::io, [&](int pid) { return api_.restore(pid, nullptr); }));
    return each(ProcessState::locked, "unlocking", Code::io, [&](int pid) { return api_.unlock(pid, nullptr); });
  }

 private:
  [[nodiscard]] std::optional<ProcessState> state_of(int pid) const {
    int state = 0;
    if (api_.state(pid, &state) != 0 || state < 0 || state >= static_cast<int>(k_state_words.size()))
      return std::nullopt;
    return static_cast<ProcessState>(state);
  }

  template <class Call>
  Result<void> each(ProcessState from, const char* what, Code code, Call call) {
    for (const int pid : pids_) {
      const auto state = state_of(pid);
      if (state == ProcessState::failed)
        return make_error(Code::io,
                          "the driver says that process " + std::to_string(pid) + " can no longer be saved");
      if (state != from) continue;
      const int result = call(pid);
      if (result == 0) continue;
      const char* why = nullptr;
      if (api_.error_text(result, &why) != 0 || why == nullptr) why = "unknown";
      return make_error(code, std::string(what) + " process " + std::to_string(pid) +
                                  " failed in the CUDA driver: " + why + " (" + std::to_string(result) + ")");
    }
    return {};
  }

  const CheckpointApi& api_;
  std::vector<int> pids_;  // of those given, the ones that the driver knows
};

}  // namespace

Result<void> take_and_give_back(std::string_view what, std::span<char* const> words) {
  std::vector<int> pids;
  for (const std::string_view word : words.first(std::min(words.size(), k_processes_max))) {
    int pid = 0;
    if (std::from_chars(word.data(), word.data() + word.size(), pid).ec != std::errc{} || pid <= 0)
      return make_error(Code::usage, "'" + std::string(word) + "' is not a process id");
    pids.push_back(pid);
  }
  TRY_ASSIGN(const CheckpointApi api, checkpoint_api());
  Processes processes(api, pids);
  if (processes.none()) return make_error(Code::not_found, "none of these processes uses CUDA");
  Result<void> done = what == "pause" ? processes.pause() : what == "resume" ? processes.resume() : Result<void>{};
  processes.say_states();
  return done;
}

}  // namespace gridctl::gpubench

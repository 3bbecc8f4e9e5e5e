// SPDX-License-Identifier: Apache-2.0
// The supervisor's loop while the payload lives.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>

#include "agent/process_tree.hpp"
#include "agent/supervise.hpp"
#include "base/text.hpp"
#include "os/log.hpp"

namespace gridctl::agent {
namespace {

constexpr std::size_t k_read_bytes = 256 * 1024;
constexpr int k_reads_per_turn = 16;  // 4 MiB of output, then other events have their turn
constexpr int k_blind_look_ms = 500;  // without pidfds (kernels before 5.3)

}  // namespace

bool Supervisor::drain_notifications() {
  alignas(inotify_event) char events[8192];
  bool any = false;
  while (::read(notifications_.get(), events, sizeof events) > 0) any = true;
  return any;
}

void Supervisor::read_control() {
  if (const auto number = read_number(attempt_.deadline_file()); number && number->has_value())
    if (stop_.renew(BootTime{**number}) && payload_id_ && !stop_wanted()) update_lease(false);
  if (const auto kept = read_number(attempt_.kept_file()); kept && kept->has_value())
    checkpoints_->release(static_cast<std::uint64_t>(**kept));
  if (const auto grace = read_number(attempt_.stop_file()); grace && grace->has_value())
    begin_stop(stop_.order(wire::EndReason::stopped, Duration{**grace}, now()));
  begin_stop(stop_.expire(spec_.stop_grace, now()));
}

void Supervisor::begin_stop(StopStep step) {
  if (step == StopStep::none || !payload_id_) return;
  status_.phase = wire::AttemptPhase::stopping;
  status_.doing.clear();
  publish();
  if (step == StopStep::terminate) signal_each({*payload_id_}, SIGTERM);  // init passes it on to the whole job
}

void Supervisor::read_phase() {
  if (stop_wanted()) return;
  const auto text = read_hostile(attempt_.run(launch_), "phase");
  const bool running = text && trim(*text) == "run";
  const auto phase = running ? wire::AttemptPhase::running : wire::AttemptPhase::starting;
  const std::string doing = running ? "" : "setup";
  if (phase == status_.phase && doing == status_.doing) return;
  status_.phase = phase;
  status_.doing = doing;
  publish();
}

void Supervisor::read_log() {
  std::string buffer(k_read_bytes, '\0');
  for (int turn = 0; turn < k_reads_per_turn; ++turn) {
    const ssize_t got = ::read(log_pipe_.get(), buffer.data(), buffer.size());
    if (got <= 0) return;
    ring_->append(std::string_view(buffer).substr(0, static_cast<std::size_t>(got)), now());
  }
}

void Supervisor::arm_timer() {
  const BootTime due = stop_.due(now());
  itimerspec when{};
  when.it_value.tv_sec = std::max<std::int64_t>(due.ns, 1) / 1'000'000'000;
  when.it_value.tv_nsec = std::max<std::int64_t>(due.ns, 1) % 1'000'000'000;
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void Supervisor::act_on_time() {
  std::uint64_t expirations = 0;
  [[maybe_unused]] const auto got = ::read(timer_.get(), &expirations, sizeof expirations);
  if (!stop_wanted()) {
    if (now() >= stop_.deadline()) read_control();
    return;
  }
  if (payload_id_ && stop_.kill_now(now())) signal_each(engine_->members(name(), attempt_.run(launch_)), SIGKILL);
}

void Supervisor::follow() {
  for (bool over = false; !over;) {
    arm_timer();
    pollfd waiting[] = {{payload_.get(), POLLIN, 0},
                        {log_pipe_.get(), POLLIN, 0},
                        {notifications_.get(), POLLIN, 0},
                        {timer_.get(), POLLIN, 0},
                        {checkpoints_changed_.get(), POLLIN, 0}};
    ::poll(waiting, 5, payload_.valid() ? -1 : k_blind_look_ms);
    over = payload_.valid() ? waiting[0].revents != 0 : !os::is_alive(*payload_id_);
    if (waiting[1].revents != 0) read_log();
    if (waiting[2].revents != 0 && drain_notifications()) {
      read_control();
      read_phase();
    }
    if (waiting[4].revents != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto got = ::read(checkpoints_changed_.get(), &count, sizeof count);
      status_.detail = checkpoints_->problem();
      publish();
    }
    act_on_time();
  }
}

void Supervisor::publish() {
  if (started_at_) status_.started_ms_ago = std::max<std::int64_t>(0, (now() - *started_at_).count() / 1'000'000);
  if (ring_) status_.log_bytes = ring_->end();
  if (checkpoints_) status_.checkpoints = checkpoints_->list();
  if (const auto written = write_status(attempt_, status_, clock_, true); !written)
    os::log(os::LogLevel::error, "cannot write the status: " + written.error().one_line());
}

}  // namespace gridctl::agent

// SPDX-License-Identifier: Apache-2.0
// Implements the supervisor's loop while the payload lives.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "agent/announced.hpp"
#include "agent/owner_terms.hpp"
#include "agent/process_tree.hpp"
#include "agent/supervise.hpp"
#include "base/text.hpp"
#include "job/state_words.hpp"
#include "os/log.hpp"

namespace gridctl::agent {
namespace {

constexpr int k_reads_per_turn = 16;  // at most 4 MiB of output, then other events have their turn
constexpr Duration k_tell_again = std::chrono::seconds{1};
constexpr Duration k_owner_look = std::chrono::seconds{5};         // at limits that the owner may have changed, and for shutdowns
constexpr Duration k_before_shutdown = std::chrono::seconds{5};    // jobs have ended so long before it
constexpr std::uint64_t k_notice_bytes = 256;
constexpr Duration k_owner_grace_most = std::chrono::seconds{30};  // a job that reached one may save for so long

}  // namespace

void AttemptRunner::read_control() {
  if (const auto number = read_number(attempt_.deadline_file()); number && number->has_value())
    if (stop_.renew(BootTime{**number}) && payload_id_ && !stop_wanted()) update_lease(false);
  if (const auto kept = read_number(attempt_.kept_file()); kept && kept->has_value())
    checkpoints_->release(static_cast<std::uint64_t>(**kept));
  read_tempo();
  if (const auto grace = read_number(attempt_.stop_file()); grace && grace->has_value()) {
    const Result<std::string> notice = os::read_file(attempt_.notice_file(), k_notice_bytes);
    if (notice) end_by_host(wire::EndReason::stopped, trim(*notice), Duration{**grace});
    else begin_stop(stop_.order(wire::EndReason::stopped, Duration{**grace}, now()));
  }
  begin_stop(stop_.expire(spec_.stop_grace, now()));
  keep_limits();
  keep_owners_limits();
  keep_shutdown();
  read_pause();
}

// The end of the allowance ends the job here, whether or not anyone is watching.
void AttemptRunner::keep_limits() {
  if (const auto text = os::read_file(attempt_.limits_file(), k_limits_bytes))
    if (auto limits = parse_limits(*text)) limits_ = *std::move(limits);
  // A paused job does not use up its running time, but its deadline still passes.
  const bool paused = pause_.stage != PauseStage::running;
  const auto due = due_of(paused ? HostLimits{{}, {}, {}, limits_.time_until} : limits_, running_since_);
  stop_.set_limit(due ? std::optional{due->at} : std::nullopt);
  const StopStep step = stop_.exhaust(spec_.stop_grace, now());
  if (step != StopStep::none && due) status_.detail = due->limit;
  begin_stop(step);
}

// The owner of a lent machine may set limits, whatever the controller allows. They are read again each time, because
// the owner may change them while the job runs. They hold for a job that is being ended, too: how long it has for that,
// the controller has chosen.
void AttemptRunner::keep_owners_limits() {
  owner_look_at_ = now() + k_owner_look;
  if (owner_ended_ || !started_at_) return;
  const auto owner = owner_terms(attempt_.agent_home(), attempt_.controller());
  if (!owner || !*owner) return;
  const auto end = [&](wire::EndReason why, std::string_view notice, const std::string& words) {
    owner_ended_ = true;
    status_.detail = words;
    tell_owner((*owner)->folder, spec_.job_name + " ends: " + words, clock_.wall());
    (void)os::write_file_atomically(attempt_.notice_file(), notice);  // for a supervisor that comes after this one
    end_by_host(why, notice, std::min(spec_.stop_grace, k_owner_grace_most));
  };
  if (const std::string over = disk_watch_ ? disk_watch_->over() : ""; !over.empty()) return end(wire::EndReason::disk_full, "disk", over);
  const auto most = (*owner)->terms.max_job_ms;
  if (!most) return;
  const BootTime until = *started_at_ + std::chrono::milliseconds{*most};
  if (now() >= until)
    return end(wire::EndReason::limit, "max-job", std::string(job::k_owner_limit) + "lets a job run for " + format_duration(std::chrono::milliseconds{*most}));
  owner_look_at_ = std::min(owner_look_at_, until);
}

// A shutdown announced to logind ends the job shortly before, so that it continues elsewhere at once.
void AttemptRunner::keep_shutdown() {
  if (owner_ended_ || !started_at_) return;
  const std::optional<WallTime> at = announced_shutdown();
  if (!at) return;
  const Duration left = std::chrono::milliseconds{at->ms - clock_.wall().ms} - k_before_shutdown;
  const Duration grace = std::min(spec_.stop_grace, k_owner_grace_most);
  if (left > grace) {
    owner_look_at_ = std::min(owner_look_at_, now() + (left - grace));
    return;
  }
  status_.detail = "this machine shuts down at " + format_rfc3339(*at);
  owner_ended_ = true;
  (void)os::write_file_atomically(attempt_.notice_file(), "shutdown");
  end_by_host(wire::EndReason::stopped, "shutdown", std::clamp(left, Duration{}, grace));
}

// Ends the job for a reason of the host. The job finds the reason and the remaining time in its file, and gets the
// signal that it asked for; in that case, TERM comes late in the grace period.
void AttemptRunner::end_by_host(wire::EndReason why, std::string_view notice, Duration grace) {
  const StopStep step = stop_.order(why, grace, now(), spec_.notice_signal > 0);
  if (!warned_ && grace > Duration{} && payload_id_) warn_payload(notice);
  begin_stop(step);
}

void AttemptRunner::warn_payload(std::string_view reason) {
  warned_ = true;
  const Duration left = stop_.kill_at().value_or(now()) - now();
  if (const auto told = tell_notice(attempt_, launch_, reason, left, clock_.wall()); !told)
    os::log(os::LogLevel::warn, "cannot write the notice for the job: " + told.error().one_line());
}

void AttemptRunner::read_tempo() {
  if (const auto pause = read_number(attempt_.pause_file()); pause && pause->has_value())
    checkpoints_->set_pause(std::chrono::milliseconds{**pause});
  const auto interval = read_number(attempt_.interval_file());
  if (!interval || !interval->has_value() || **interval == interval_ms_ || launch_ == 0) return;
  interval_ms_ = **interval;
  checkpoints_->set_interval(std::chrono::milliseconds{interval_ms_});
  const std::int64_t seconds = std::max<std::int64_t>(1, (interval_ms_ + 500) / 1000);
  if (const auto told = tell_interval(attempt_, launch_, std::to_string(seconds)); !told)
    return os::log(os::LogLevel::warn, "cannot tell the job its new interval: " + told.error().one_line());
  if (spec_.interval_signal > 0 && payload_id_) signal_each({*payload_id_}, spec_.interval_signal);
}

void AttemptRunner::begin_stop(StopStep step) {
  if (step == StopStep::none || !payload_id_) return;
  status_.phase = wire::AttemptPhase::stopping;
  status_.doing.clear();
  publish();
  leave_pause();
  if (step == StopStep::warn) signal_each({*payload_id_}, spec_.notice_signal);  // init passes it on to those with a handler
  if (step == StopStep::terminate) signal_each({*payload_id_}, SIGTERM);  // init passes it on to the whole job
}

void AttemptRunner::read_phase() {
  if (stop_wanted()) return;
  const auto text = read_hostile(attempt_.run(launch_), "phase");
  const bool running = text && trim(*text) == k_run_phase;
  if (running && !running_since_) {
    running_since_ = now();
    keep_limits();
    if (stop_wanted()) return;
  }
  const auto phase = running ? wire::AttemptPhase::running : wire::AttemptPhase::starting;
  const std::string doing = running ? "" : spec_.setup.empty() ? "start" : "setup";
  if (phase == status_.phase && doing == status_.doing) return;
  status_.phase = phase;
  status_.doing = doing;
  publish();
}

void AttemptRunner::read_log() {
  for (int turn = 0; turn < k_reads_per_turn && ring_->take(log_pipe_.get(), now()); ++turn) continue;
}

void AttemptRunner::arm_timer() {
  BootTime due = std::min(stop_.due(now()), tell_again_at_.value_or(stop_.due(now())));
  if (!owner_ended_) due = std::min(due, owner_look_at_);
  if (account_) due = std::min(due, account_->due());
  itimerspec when{};
  when.it_value.tv_sec = std::max<std::int64_t>(due.ns, 1) / 1'000'000'000;
  when.it_value.tv_nsec = std::max<std::int64_t>(due.ns, 1) % 1'000'000'000;
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void AttemptRunner::act_on_time() {
  std::uint64_t expirations = 0;
  [[maybe_unused]] const auto got = ::read(timer_.get(), &expirations, sizeof expirations);
  if (tell_again_at_ && now() >= *tell_again_at_) publish();
  if (account_) account_->tick(holds_gpus(), !is_paused());
  if (!stop_wanted()) {
    if (now() >= stop_.due(now())) read_control();
    else if (now() >= owner_look_at_) keep_owners_limits(), keep_shutdown();
    return;
  }
  if (!owner_ended_ && now() >= owner_look_at_) keep_owners_limits(), keep_shutdown();
  if (stop_.terminate_now(now()) && payload_id_) signal_each({*payload_id_}, SIGTERM);
  if (payload_id_ && stop_.kill_now(now())) kill_payload();
}

// The job may change its own files, including its lock, without effect here: its first process is known by pid and
// start time, and an engine knows its container by name.
void AttemptRunner::kill_payload() {
  std::vector<os::ProcessId> all = engine_->members(name(), attempt_.run(launch_));
  merge(all, {*payload_id_});
  signal_each(all, SIGKILL);
  if (::kill(payload_id_->pid, 0) == 0 || errno != EPERM || !os::is_alive(*payload_id_)) return;
  if (const auto removed = engine_->remove(name()); !removed)  // it runs as another user: only its engine may
    os::log(os::LogLevel::error, removed.error().one_line());
}

void AttemptRunner::follow() {
  for (bool over = false; !over;) {
    arm_timer();
    pollfd waiting[] = {{payload_.get(), POLLIN, 0},
                        {log_pipe_.get(), POLLIN, 0},
                        {changes_.fd(), POLLIN, 0},
                        {timer_.get(), POLLIN, 0},
                        {checkpoints_changed_.get(), POLLIN, 0}};
    // Kernels before 5.3 have no pidfds.
    ::poll(waiting, 5, payload_.valid() ? changes_.patience_ms() : k_blind_look_ms);
    over = payload_.valid() ? waiting[0].revents != 0 : !os::is_alive(*payload_id_);
    if (waiting[1].revents != 0) read_log();
    if (changes_.drain()) {
      read_control();
      read_phase();
    }
    if (waiting[4].revents != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto got = ::read(checkpoints_changed_.get(), &count, sizeof count);
      if (stop_.reason() != wire::EndReason::limit && !owner_ended_) status_.detail = checkpoints_->problem();
      keep_owners_limits();
      publish();
    }
    act_on_time();
  }
}

void AttemptRunner::publish() {
  if (started_at_) status_.started_ms_ago = std::max<std::int64_t>(0, (now() - *started_at_).count() / 1'000'000);
  if (running_since_) status_.running_ms_ago = std::max<std::int64_t>(0, (now() - *running_since_).count() / 1'000'000);
  status_.allowed_ms = allowed_ms(limits_, running_since_, now());
  if (ring_) status_.log_bytes = ring_->end();
  if (checkpoints_) status_.checkpoints = checkpoints_->list();
  if (checkpoints_) status_.no_checkpoint = checkpoints_->stalled();
  say_pause();
  const bool failed_before = std::exchange(tell_again_at_, std::nullopt).has_value();
  const auto written = write_status(attempt_, status_, clock_, true);
  if (written) return;
  tell_again_at_ = now() + k_tell_again;
  if (!failed_before) os::log(os::LogLevel::error, "cannot write the status: " + written.error().one_line());
}

}  // namespace gridctl::agent

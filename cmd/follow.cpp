// SPDX-License-Identifier: Apache-2.0
#include "cmd/follow.hpp"

#include <csignal>

#include "cmd/bag_output.hpp"
#include "cmd/log_printer.hpp"
#include "control/copies/moving.hpp"
#include "control/daemon/daemon.hpp"
#include "job/last_step.hpp"
#include "os/loop.hpp"
#include "ui/job_view.hpp"
#include "ui/json.hpp"
#include "ui/width.hpp"

namespace gridctl::cmd {

namespace {
constexpr Duration k_daemon_check = std::chrono::seconds{2};  // how often a lost daemon is noticed
constexpr std::uint64_t k_tail_lines = 10;                    // of output shown by `watch` before what is new
constexpr std::string_view k_last_output = "last_output";  // the event that repeats the end of the output
constexpr std::int64_t k_use_ms = 2'000;  // between two looks at what the job uses of its hosts
constexpr std::size_t k_events_page = 200;                    // events read at once
constexpr std::int64_t k_moving_ms = 10'000, k_moving_json_ms = 2'000;  // between two reports of a transfer
constexpr std::int64_t k_old_ms = 15'000;  // a sign of life that nobody has asked for since
constexpr std::size_t k_events_before = 5;                    // shown by `watch` before what is new

// Represents the block at the bottom of a terminal that is redrawn when it changes.
class Block {
 public:
  explicit Block(Context& context) : context_(&context) {}
  void erase() {
    std::string text;
    for (std::size_t i = 0; i < drawn_.size(); ++i) text += "\033[1A\033[2K";
    if (!text.empty()) context_->write_err("\r" + text);
    drawn_.clear();
  }
  void draw(std::vector<std::string> lines) {
    if (lines == drawn_) return;
    erase();
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    context_->write_err(text);
    drawn_ = std::move(lines);
  }

 private:
  Context* context_;
  std::vector<std::string> drawn_;
};

// Displays one `watch`, tick by tick.
class Watcher {
 public:
  Watcher(Context& context, registry::JobRecords& registry, JobId id, const WatchOptions& options)
      : context_(&context),
        registry_(&registry),
        id_(std::move(id)),
        options_(options),
        block_(context),
        printer_(context),
        reader_(context.paths(), id_),
        live_(context.redraws && !options.quiet) {}

  Result<void> begin() {
    if (options_.from_start) return {};
    TRY(reader_.begin_at_tail(k_tail_lines));
    TRY_ASSIGN(const std::vector<registry::EventRecord> events, registry_->events(id_, 0, 0));
    if (events.size() > k_events_before) after_event_ = events[events.size() - k_events_before - 1].id;
    return {};
  }

  // Returns true if the job is final and everything is shown.
  Result<bool> tick(const registry::Job& job) {
    const bool final = job::is_final(job.state);
    TRY(print_events());
    if (job.spec.tasks && job.spec.twin_of.value.empty() && (options_.logs || !options_.joblog.empty() || !options_.results.empty()))
      return tick_bag(job, final);
    if (options_.logs) TRY(print_log(final));
    show_moving();
    if (live_) TRY(draw(job));
    return final || context_->reader_gone();
  }

  // Shows transfers in the block of a terminal; otherwise as an occasional line.
  void show_moving() {
    moving_ = control::moving_now(context_->paths(), id_, context_->now());
    if (moving_.empty() || (live_ && !options_.events_json)) return;
    const WallTime now = context_->now();
    if (now.ms - told_moving_.ms < (options_.events_json ? k_moving_json_ms : k_moving_ms)) return;
    told_moving_ = now;
    for (const control::Moving& one : moving_) {
      if (options_.events_json) context_->print_line(progress_json(one));
      else if (!options_.quiet) context_->note(control::in_words(one));
    }
  }

  [[nodiscard]] std::string progress_json(const control::Moving& one) const {
    return JsonObject()("kind", "progress")("job_id", id_.value)("at", format_rfc3339(context_->now()))("provider", one.host)(
        "direction", one.up ? "up" : "down")("bytes", one.bytes)("bytes_total", one.of)("bytes_per_second",
                                                                                      one.per_second())
        .text();
  }

 private:
  Result<void> print_log(bool final) {
    TRY(printer_.print_new(reader_, [this] { block_.erase(); }, final));
    if (final) printer_.flush();
    return {};
  }

  Result<bool> tick_bag(const registry::Job& job, bool final) {
    if (!bag_) {
      bag_.emplace(*context_, job, options_);
      TRY(bag_->begin(id_));
    }
    TRY_ASSIGN(const bool all, bag_->print_new(final, [this] { block_.erase(); }));
    if (all && options_.logs && !options_.keep_order && job::is_last_step(job.spec)) TRY(print_log(final));
    if (live_) TRY(draw(job));
    return (final && all) || context_->reader_gone();
  }

  Result<void> print_events() {
    TRY_ASSIGN(const std::int64_t version, registry_->data_version());
    if (version == version_) return {};
    version_ = version;
    for (;;) {
      TRY_ASSIGN(const std::vector<registry::EventRecord> events, registry_->events(id_, after_event_, k_events_page));
      if (!events.empty()) block_.erase();
      for (const registry::EventRecord& event : events) {
        after_event_ = event.id;
        const bool shown = options_.logs && event.kind == k_last_output;  // among the output
        if (options_.events_json) context_->print_line(ui::event_json(event));
        else if (!options_.quiet && !shown) context_->note(ui::event_line(event, context_->now(), context_->err_style));
      }
      if (events.size() < k_events_page) return {};
    }
  }

  Result<void> draw(const registry::Job& job) {
    if (version_ != drawn_version_) {
      TRY_ASSIGN(view_.attempts, registry_->attempts(id_));
      TRY_ASSIGN(const std::vector<registry::Checkpoint> checkpoints, registry_->checkpoints(id_));
      view_.job = job;
      view_.checkpoints = checkpoints.size();
      view_.head.reset();
      for (const registry::Checkpoint& checkpoint : checkpoints)
        if (checkpoint.seq == job.machine.head) view_.head = checkpoint;
      drawn_version_ = version_;
    }
    if (const WallTime now = context_->now(); now.ms - use_read_.ms >= k_use_ms) {
      use_read_ = now;
      const registry::UseNow use = registry::read_use(context_->state, now);
      const registry::JobUse* mine = use.of(id_);
      view_.use = mine == nullptr || job.state != job::JobState::running ? std::nullopt : std::optional{*mine};
    }
    std::vector<std::string> lines = ui::job_block(view_, context_->now(), context_->columns_err(), context_->err_style);
    for (const control::Moving& one : moving_) lines.push_back(ui::truncate("  " + control::in_words(one), context_->columns_err()));
    if (bag_) lines.push_back(bag_->progress());
    block_.draw(std::move(lines));
    return {};
  }

  Context* context_;
  registry::JobRecords* registry_;
  JobId id_;
  WatchOptions options_;
  Block block_;
  LogPrinter printer_;
  LogReader reader_;
  std::optional<BagPrinter> bag_;
  bool live_;
  std::vector<control::Moving> moving_;
  WallTime told_moving_, use_read_;
  ui::JobView view_;
  std::int64_t version_ = -1, drawn_version_ = -2;
  std::int64_t after_event_ = 0;
};
}  // namespace

Result<void> repeat(Context& context, Duration period, const std::function<Result<bool>()>& look,
                    const std::string& meanwhile, const std::string& again) {
  os::Loop loop;
  std::optional<Error> problem;
  const auto end_with = [&](Error error) {
    problem = std::move(error);
    loop.stop();
  };
  const std::optional<BootTime> deadline =
      context.timeout ? std::optional(context.clock.boot() + *context.timeout) : std::nullopt;
  const auto turn = [&] {
    Result<bool> done = look();
    if (!done) return end_with(std::move(done).error());
    if (*done) return loop.stop();
    if (!deadline || context.clock.boot() < *deadline) return;
    context.exit_code_of_error = 124;
    end_with(make_error(Code::timed_out, "--timeout " + format_duration(*context.timeout) + " ran out; " + meanwhile,
                        again));
  };
  const auto interrupted = [&] { end_with(make_error(Code::interrupted, "interrupted; " + meanwhile, again)); };
  const os::Loop::Watch on_int = loop.on_signal(SIGINT, interrupted);
  const os::Loop::Watch on_term = loop.on_signal(SIGTERM, interrupted);
  const os::Loop::Timer first = loop.after(Duration{0}, turn);
  const os::Loop::Timer every = loop.every(period, turn);
  loop.run();
  if (problem) return *problem;
  return {};
}

Result<void> follow(Context& context, registry::JobRecords& registry, const JobId& id,
                    const std::function<Result<bool>(const registry::Job&)>& look) {
  std::optional<registry::Job> job;
  std::int64_t version = -1;
  BootTime next_check{};
  const auto tick = [&]() -> Result<bool> {
    TRY_ASSIGN(const std::int64_t now, registry.data_version());
    if (!job || now != version) {
      TRY_ASSIGN(job, registry.job(id));
      version = now;
    }
    // A user who waits for a job wants it followed: a daemon that died is restarted.
    if (!job::is_final(job->state) && context.clock.boot() >= next_check) {
      next_check = context.clock.boot() + k_daemon_check;
      TRY_ASSIGN(const control::DaemonStatus status, control::daemon_status(context.state));
      if (!status.running) TRY(control::ensure_daemon(context.state, true));
    }
    return look(*job);
  };
  return repeat(context, k_follow_period, tick, "the job continues", "gridctl job watch " + id.value);
}

Result<registry::Job> watch(Context& context, registry::JobRecords& registry, const JobId& id,
                            const WatchOptions& options) {
  Watcher watcher(context, registry, id, options);
  TRY(watcher.begin());
  TRY(follow(context, registry, id, [&](const registry::Job& job) { return watcher.tick(job); }));
  return registry.job(id);
}

bool is_followed(const Context& context) {
  const Result<control::DaemonStatus> status = control::daemon_status(context.state);
  return status && status->running;
}

Result<void> warn_unfollowed(Context& context, registry::JobRecords& registry) {
  if (context.json) return {};
  TRY_ASSIGN(const std::size_t unfinished, registry.count_unfinished());
  if (unfinished == 0 || is_followed(context)) return {};
  const std::string who = unfinished == 1 ? "the unfinished job" : std::to_string(unfinished) + " unfinished jobs";
  context.note("warning: no daemon follows " + who + ", so what you see may be old: gridctl daemon start");
  return {};
}

std::string liveness_today(const registry::Provider& provider, bool followed, WallTime now) {
  if (followed || provider.liveness == "unknown") return provider.liveness;
  if (provider.last_seen_at && now.ms - provider.last_seen_at->ms <= k_old_ms) return provider.liveness;
  return provider.liveness == "answering" ? "answered" : "unknown";
}

}  // namespace gridctl::cmd

// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/follow.hpp"
#include "cmd/log_reader.hpp"
#include "cmd/provider_facts.hpp"
#include "cmd/recovery_view.hpp"
#include "cmd/submission.hpp"
#include "config/job_file.hpp"
#include "control/daemon/daemon.hpp"
#include "control/follow/drilled.hpp"
#include "job/drill.hpp"
#include "os/files.hpp"

namespace gridctl::cmd {

namespace job_drill {
namespace {
constexpr Duration k_interval = std::chrono::seconds{10};  // told to the program, so that it saves soon
constexpr Duration k_look_before =
    std::chrono::seconds{30};                               // at what it prints, from its first checkpoint to the kill
constexpr Duration k_look_after = std::chrono::minutes{2};  // beyond twice the time it took to its first checkpoint
constexpr std::size_t k_steps_twice = 10;  // that the program should have done since its checkpoint: 8 tell whether it is exact
constexpr std::size_t k_steps_after = 64;  // that tell whether it repeats its first batches
constexpr Duration k_look_exact = std::chrono::minutes{1};  // for these, unless the job requires to know
constexpr Duration k_clean = std::chrono::minutes{2};       // until nothing of it is left on a host

// Reads the job as it would be submitted, but under another name and with the note that this is a drill.
Result<Submission> read_drill(Context& context, registry::Registry& registry, const Parsed& parsed,
                              std::vector<std::string> known_providers) {
  const std::string& what = parsed.positionals[0];
  Submission submission;
  if (os::exists(what) || what.ends_with(".yaml") || what.ends_with(".yml")) {
    TRY_ASSIGN(config::ParsedJob job, config::load_job_file(what, {}, std::move(known_providers)));
    for (const std::string& warning : job.warnings) context.warn(warning);
    submission.spec = std::move(job.spec);
    submission.secrets = std::move(job.secrets);
  } else {
    TRY_ASSIGN(const JobId id, registry.resolve(what));
    TRY_ASSIGN(const registry::Job job, registry.job(id));
    submission.spec = job.spec;
    TRY_ASSIGN(submission.secrets, secrets_of(context.paths(), job, "gridctl job drill " + id.value));
    TRY_ASSIGN(submission.inputs, registry.inputs(id));
  }
  if (parsed.has("provider")) submission.spec.constraints.providers = parsed.values("provider");
  TRY(check_supported(registry, submission.spec));
  return submission;
}

job::SavedState saved(const registry::Checkpoint& checkpoint) {
  return {checkpoint.seq, checkpoint.root, checkpoint.files};
}

class Drill {
 public:
  Drill(Context& context, registry::Registry& registry, const JobId& id, bool exact_required)
      : context_(context), registry_(registry), id_(id), exact_required_(exact_required), log_(context.paths(), id) {}

  // Returns true when there is a verdict.
  Result<bool> tick(const registry::Job& job) {
    TRY(log_.read_new([this](AttemptNumber attempt, std::string_view bytes) {
      progress_[attempt].read(bytes);
      numbers_[attempt].read(bytes);
    }));
    if (job::is_final(job.state)) return conclude(job);
    const auto* running = std::get_if<job::Running>(&job.machine.phase);
    if (running == nullptr) return false;
    if (!killed_) return before_the_kill(job, running->attempt);
    if (running->attempt.epoch > *killed_) return after_the_kill(running->attempt);
    return false;
  }

  [[nodiscard]] const job::DrillVerdict& verdict() const { return verdict_; }
  [[nodiscard]] const std::optional<ui::ExactnessTold>& exactness() const { return exactness_; }
  [[nodiscard]] const job::DrillFacts& facts() const { return facts_; }
  [[nodiscard]] std::optional<Duration> took() const { return took_; }
  [[nodiscard]] std::uint64_t restored_bytes() const { return restored_bytes_; }

 private:
  Result<std::optional<registry::Checkpoint>> first_of(Epoch epoch) {
    TRY_ASSIGN(const std::vector<registry::Checkpoint> all, registry_.checkpoints(id_));
    for (const registry::Checkpoint& one : all)
      if (one.epoch == epoch && !one.stray) return std::optional{one};
    return std::optional<registry::Checkpoint>{};
  }

  Result<bool> before_the_kill(const registry::Job& job, const job::Attempt& attempt) {
    const BootTime now = context_.clock.boot();
    if (attempt.epoch != watched_) {
      watched_ = attempt.epoch;
      runs_since_ = now;
      saved_since_.reset();
      context_.note("the job runs on " + attempt.lead().host.value + "; waiting for its first checkpoint");
    }
    if (!saved_since_) {
      TRY_ASSIGN(const std::optional<registry::Checkpoint> first, first_of(attempt.epoch));
      if (!first) return tell_no_checkpoint();
      facts_.first = saved(*first);
      saved_since_ = now;
      to_first_checkpoint_ = now - runs_since_;
    }
    // A count that has moved distinguishes a beginning from a continuation.
    if (!progress_[attempt.number].moves_or_is_mute() && now < *saved_since_ + k_look_before) return false;
    if (!would_do_steps_twice(job, attempt) && now < *saved_since_ + (exact_required_ ? k_look_after : k_look_before))
      return false;
    facts_.from = attempt.lead().host.value;
    facts_.before = progress_[attempt.number].ranges();
    before_ = attempt.number;
    killed_ = attempt.epoch;
    killed_at_ = now;
    context_.note("checkpoint " + std::to_string(job.machine.head.value) + " is safe; from now on " + facts_.from +
                  " is treated as lost");
    TRY(registry_.apply(id_, {context_.now(), job::Drilled{attempt.epoch}}));
    return false;
  }

  // Steps that run again after the kill show whether it continues exactly. A program that prints none is not waited
  // for.
  bool would_do_steps_twice(const registry::Job& job, const job::Attempt& attempt) {
    std::size_t steps = 0;
    for (const auto& [name, series] : numbers_[attempt.number].series()) steps = std::max(steps, series.size());
    if (newest_ != job.machine.head) steps_saved_ = steps;
    newest_ = job.machine.head;
    return steps == 0 || steps >= steps_saved_ + k_steps_twice;
  }

  // The host's report warns of a fault that a run at full price would reveal hours later.
  Result<bool> tell_no_checkpoint() {
    TRY_ASSIGN(const std::string why, registry_.no_checkpoint(id_));
    if (why.empty()) return false;
    verdict_ = {"no", why, {}};
    return true;
  }

  Result<bool> after_the_kill(const job::Attempt& attempt) {
    const BootTime now = context_.clock.boot();
    if (facts_.to.empty()) {
      facts_.to = attempt.lead().host.value;
      began_again_ = now;
      TRY(note_restored(attempt.resumed_from));
      context_.note("the job runs on " + facts_.to + " from checkpoint " + std::to_string(attempt.resumed_from.value) +
                    ", " + format_duration(now - killed_at_) + " later");
    }
    TRY(look(attempt.number, attempt.epoch));
    const Duration patience = 2 * to_first_checkpoint_ + k_look_after;
    const bool final = now > began_again_ + patience;
    const std::optional<job::DrillVerdict> verdict = job::judge_drill(facts_, final);
    if (verdict && !knows_exactness() && now < began_again_ + (exact_required_ ? patience : k_look_exact)) return false;
    return take(verdict);
  }

  Result<void> look(AttemptNumber number, Epoch epoch) {
    // Output lags behind: lines printed before the kill may have arrived only now.
    facts_.before = progress_[before_].ranges();
    facts_.after = progress_[number].ranges();
    if (!facts_.after.empty() && !took_) took_ = context_.clock.boot() - killed_at_;
    TRY_ASSIGN(exactness_, exactness_of(context_.paths(), registry_, id_));
    if (facts_.saved_after) return {};
    TRY_ASSIGN(const std::optional<registry::Checkpoint> first, first_of(epoch));
    if (first) facts_.saved_after = saved(*first);
    return {};
  }

  Result<void> note_restored(CheckpointSeq seq) {
    if (seq.value == 0) return {};
    TRY_ASSIGN(const registry::Checkpoint restored, registry_.checkpoint(id_, seq));
    facts_.restored = saved(restored);
    restored_bytes_ = restored.bytes;
    return {};
  }

  bool take(std::optional<job::DrillVerdict> verdict) {
    if (!verdict) return false;
    if (!took_) took_ = began_again_ - killed_at_;
    verdict_ = *std::move(verdict);
    if (!exactness_ || verdict_.word != "yes") return true;
    const bool exact = exactness_->verdict.verdict == job::Exactness::exact;
    if (exact_required_ && !exact) verdict_ = {"no", "recovery.exact is required: " + exactness_->text, {}};
    else verdict_.why += "; " + exactness_->text;
    return true;
  }

  // More of its output would not change the result.
  [[nodiscard]] bool knows_exactness() const {
    if (!exactness_ || numbers_.empty() || numbers_.rbegin()->second.series().empty()) return true;
    const job::ExactnessVerdict& verdict = exactness_->verdict;
    const bool clear = verdict.verdict == job::Exactness::exact || verdict.verdict == job::Exactness::repeats;
    return verdict.complete && (clear || verdict.steps_after >= k_steps_after);
  }

  // The job has ended on its own.
  Result<bool> conclude(const registry::Job& job) {
    TRY_ASSIGN(const std::vector<registry::AttemptRecord> attempts, registry_.attempts(id_));
    const std::string how = job.machine.reason_text;
    if (!killed_) {
      verdict_ = {"no", "the job ended before it had a checkpoint: " + how, {}};
      return true;
    }
    if (attempts.empty() || attempts.back().epoch <= *killed_) {
      verdict_ = {"no", "the job did not run again: " + how, {}};
      return true;
    }
    const registry::AttemptRecord& last = attempts.back();
    facts_.to = last.provider.value;
    facts_.succeeded = job.state == job::JobState::succeeded;
    if (!facts_.succeeded) {
      verdict_ = {"no", "on " + facts_.to + " it failed: " + how, {}};
      return true;
    }
    TRY(note_restored(last.resumed_from));
    if (began_again_ == BootTime{}) began_again_ = context_.clock.boot();
    TRY(look(last.number, last.epoch));
    return take(job::judge_drill(facts_, true));
  }

  Context& context_;
  registry::Registry& registry_;
  JobId id_;
  const bool exact_required_;
  LogReader log_;
  std::map<AttemptNumber, job::ProgressReader> progress_;
  std::map<AttemptNumber, job::StepNumbers> numbers_;
  CheckpointSeq newest_;
  std::size_t steps_saved_ = 0;  // that had been printed when that one came
  std::optional<ui::ExactnessTold> exactness_;
  job::DrillFacts facts_;
  job::DrillVerdict verdict_;
  Epoch watched_;
  BootTime runs_since_{}, killed_at_{}, began_again_{};
  std::optional<BootTime> saved_since_;
  Duration to_first_checkpoint_{};
  AttemptNumber before_;
  std::optional<Epoch> killed_;
  std::optional<Duration> took_;
  std::uint64_t restored_bytes_ = 0;
};

// Ends the drill's job and waits until no host has anything from it.
Result<void> clean_up(Context& context, registry::JobRecords& registry, const JobId& id, bool keep) {
  TRY(registry.apply(id, {context.now(), job::CancelRequested{Duration::zero()}}));
  TRY(control::ensure_daemon(context.state, true));
  const BootTime late = context.clock.boot() + k_clean;
  TRY(follow(context, registry, id, [&](const registry::Job& job) -> Result<bool> {
    return !job.machine.needs_controller() || (job::is_final(job.state) && context.clock.boot() > late);
  }));
  if (keep) return {};
  TRY_ASSIGN(const std::vector<registry::Checkpoint> all, registry.checkpoints(id));
  for (const registry::Checkpoint& one : all) TRY(registry.remove_checkpoint(id, one.seq));
  return {};
}

std::string summary_of(const job::DrillVerdict& verdict, const std::optional<Duration>& took) {
  std::string text = "recoverable: " + verdict.word;
  if (verdict.word == "yes" && took) text += ", " + format_duration(*took);
  if (verdict.steps_lost)
    text += ", " + ui::counted(*verdict.steps_lost, "step") + " lost";
  return text + ": " + sanitize(verdict.why);
}

std::string drill_json(const registry::Drill& drill, const job::DrillFacts& facts, std::uint64_t bytes,
                       const std::optional<ui::ExactnessTold>& exactness) {
  JsonObject json;
  json("name", drill.name)("job_id", drill.id.value)("recoverable", drill.verdict);
  json.raw("seconds", drill.took ? std::to_string(seconds(*drill.took)) : "null")("steps_lost", drill.steps_lost);
  json.text_or_null("from", facts.from).text_or_null("to", facts.to);
  json("checkpoint_bytes", bytes)("summary", drill.summary);
  return json.raw("exactness", ui::exactness_json(exactness)).text();
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry known, context.open_for_reading());  // what is refused leaves nothing behind
  TRY_ASSIGN(const std::vector<sched::HostFacts> hosts, all_host_facts(known, context.now()));
  std::vector<std::string> names;
  for (const sched::HostFacts& host : hosts) names.push_back(host.name.value);
  TRY_ASSIGN(Submission submission, read_drill(context, known, parsed, std::move(names)));
  const job::Spec asked = submission.spec;
  const sched::Decision decision = sched::place(asked, hosts, {});
  if (!decision.could_ever_fit) return nothing_fits(asked.name, decision);
  TRY_ASSIGN(registry::Registry registry, context.open());
  if (submission.inputs.empty()) {
    TRY_ASSIGN(submission.inputs, store_inputs(context, asked));
  }
  submission.spec.name += "-drill";
  submission.spec.twins = 1;  // what is to be shown is that one goes on
  submission.spec.envs["GRIDCTL_DRILL"] = "1";
  submission.spec.checkpoint.interval = job::CheckpointPolicy::Interval::fixed;
  submission.spec.checkpoint.every = k_interval;
  TRY_ASSIGN(const JobId id, record(context, registry, submission));
  context.note("drill of " + asked.name + ": job " + id.value);
  TRY(control::ensure_daemon(context.state, true));

  Drill drill(context, registry, id, asked.recovery.exact_required);
  Result<void> followed = follow(context, registry, id, [&](const registry::Job& job) { return drill.tick(job); });
  if (!followed) {  // interrupted, out of time, or broken: the drill's job is not left behind
    Error error = std::move(followed).error();
    if (error.code != Code::interrupted && error.code != Code::timed_out) return error;
    TRY(registry.apply(id, {context.now(), job::CancelRequested{Duration::zero()}}));
    Error told = make_error(error.code, "the drill was interrupted; cancelling its job",
                            "gridctl job drill " + parsed.positionals[0]);
    return told;
  }
  context.note("ending the drill's job");
  TRY(clean_up(context, registry, id, parsed.has("keep")));
  const job::DrillVerdict& verdict = drill.verdict();
  const registry::Drill result{asked.name,   control::resume_fingerprint(asked),         id,           context.now(),
                               verdict.word, summary_of(verdict, drill.took()), drill.took(), verdict.steps_lost};
  TRY(registry.save_drill(result));
  context.print_line(context.json ? drill_json(result, drill.facts(), drill.restored_bytes(), drill.exactness())
                                  : result.summary);
  if (!context.json && !drill.facts().to.empty() && drill.facts().to == drill.facts().from)
    context.note("no other host could run the job, so it resumed on the same one");
  return verdict.word == "yes" ? 0 : 1;
}
}  // namespace
}  // namespace job_drill

const Command k_job_drill{
    .name = "job drill",
    .summary = "test whether a job survives the loss of its host",
    .examples = {{"Test whether the job survives the loss of its host", "gridctl job drill train.yaml"},
                 {"Use the specification of an earlier job", "gridctl job drill train-gpt"},
                 {"In CI, on two particular hosts", "gridctl job drill train.yaml -p ada -p bob --timeout 30m --json"}},
    .description =
        "Starts the job under the name NAME-drill, waits for its first checkpoint, treats the host as lost, and checks "
        "whether the job continues from the checkpoint on another host. It judges by the steps in the output ('step "
        "120', 'epoch=3', …) or otherwise by the checkpoints that the job saves. Numbers such as the loss, compared "
        "for the steps that run twice, show whether it continues exactly; 'recovery: {exact: required}' in the job "
        "file makes the drill fail otherwise. It then ends the drill's job and cleans up the hosts. The drill does "
        "what a real failover does, except that it skips the wait of lost_after and does not count against the "
        "host.\n\nThe job sees GRIDCTL_DRILL=1, so that it can use a smaller model or data set, and "
        "GRIDCTL_CKPT_INTERVAL=10. `job show` reports the result. `job submit` warns about a job without a drill that "
        "may run for over an hour on paid or borrowed hosts. Exit code 1 means that the job is not recoverable, or "
        "that nothing proves that it is. --timeout ends the drill and its job.",
    .positionals = {{"FILE.yaml|ID", Completion::file}},
    .options = {{"provider", 'p', "NAME", "use only these hosts", "", Completion::provider, "", true},
                {"keep", 0, "", "keep the drill's checkpoints"}},
    .exit_codes = {1, 3, 4, 5, 7, 130},
    .waits = true,
    .run = job_drill::run};

}  // namespace gridctl::cmd

// SPDX-License-Identifier: Apache-2.0
// A new version of a service that runs. First one more replica has the new version, which proves that it can be placed
// and gets ready; then each replica is drained, stopped and started with it, one after the other; then the additional
// one leaves. Replicas know what they run: a command that was interrupted is finished by the next one.
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "cmd/job_changes.hpp"
#include "cmd/json_text.hpp"
#include "cmd/service_now.hpp"
#include "cmd/submission.hpp"
#include "config/job_file.hpp"
#include "control/daemon/daemon.hpp"
#include "control/follow/secrets.hpp"
#include "job/twin.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "ui/human.hpp"

namespace gridctl::cmd {

namespace service_apply {
namespace {
using std::chrono::seconds;
constexpr Duration k_apply_look = std::chrono::milliseconds{200};
constexpr Duration k_unplaced_patience = seconds{60};  // for a host; what is stopped just now frees one in seconds
constexpr Duration k_end_grace = seconds{30};
constexpr Duration k_settle_patience = std::chrono::minutes{10};  // until a replica's start or end is over
constexpr Example k_examples[] = {
    {"Run the file's version of a service, one replica after the other", "gridctl service apply chat.yaml"}};
constexpr Positional k_positionals[] = {{"FILE.yaml", Completion::file}};
constexpr int k_exits[] = {1, 2, 3, 4, 5, 7, 9};

struct Version {
  JobId service;
  registry::Job leader;  // as it was when the command began
  job::Spec spec;        // of the file
  std::vector<registry::Input> inputs;
  std::map<std::string, std::string> secrets;
};

// Keys of which the gateway knows no more than one value.
Result<void> check_same_address(const job::Spec& before, const job::Spec& after) {
  std::string key;
  const job::Service &one = *before.service, &other = *after.service;
  if (one.path != other.path || one.every != other.every || one.timeout != other.timeout) key = "service.probe";
  else if (one.retry_post != other.retry_post) key = "service.retry_post";
  else if (one.keys_file != other.keys_file) key = "service.auth";
  else if (before.twins != after.twins || one.replicas_min != other.replicas_min || one.sleeps != other.sleeps)
    key = "service.replicas";
  else if (one.scale_concurrency != other.scale_concurrency || one.up_after != other.up_after ||
           one.down_after != other.down_after)
    key = "service.scale";
  else if (!(before.recovery == after.recovery)) key = "recovery";
  if (key.empty()) return {};
  return make_error(Code::unsupported,
                    "the file changes '" + key + "', which 'service apply' cannot change while the service runs",
                    "gridctl service stop " + before.name + ", then submit the file");
}

class Roll {
 public:
  Roll(Context& context, registry::Registry& registry, Version version)
      : context_(context),
        registry_(registry),
        version_(std::move(version)),
        files_(control::gateway_files(context.paths(), version_.service)) {}

  // Nothing is left to do, also not of a command that was interrupted.
  Result<bool> is_done() {
    for (int number = 1; number <= version_.leader.spec.twins; ++number) {
      TRY_ASSIGN(const bool has, has_version(number));
      if (!has) return false;
    }
    const Result<registry::Job> spare = registry_.job(id_of(job::slots_of(version_.leader.spec)));
    if (!spare) return spare.error().code == Code::not_found ? Result<bool>(true) : spare.error();
    return job::is_final(spare->state) || spare->machine.cancel.has_value();
  }

  Result<void> run() {
    const int spare = job::slots_of(version_.leader.spec);
    TRY(wait_ended(spare));
    TRY(put_spare(spare));
    if (const Result<void> ready = wait_ready(spare); !ready) {
      TRY(end(spare, Duration{}));
      return Error(ready.error()).with_context("the earlier version keeps running");
    }
    context_.note("a first replica of the new version is ready");
    for (int number = version_.leader.spec.twins; number >= 1; --number)
      if (const Result<void> rolled = roll(number); !rolled) {
        (void)drain(spare);
        TRY(end(spare, k_end_grace));
        return Error(rolled.error())
            .with_context(std::to_string(version_.leader.spec.twins - number) + " of " +
                          std::to_string(version_.leader.spec.twins) +
                          " replicas run the new version; the others run the one before");
      }
    TRY(drain(spare));
    return end(spare, k_end_grace);
  }

 private:
  [[nodiscard]] JobId id_of(int number) const {
    return number == 1 ? version_.service : registry::twin_id(version_.service, number);
  }
  [[nodiscard]] job::Spec spec_of(int number) const {
    return number == 1 ? version_.spec
                       : job::twin_spec(version_.spec, version_.service, version_.leader.submitted_at, number);
  }

  // The registry says that it has this version: the file, and what the files that it names contain.
  Result<bool> has_version(int number) {
    const Result<registry::Job> job = registry_.job(id_of(number));
    if (!job)
      return job.error().code == Code::not_found ? Result<bool>(number <= version_.leader.spec.twins) : job.error();
    if (!(job->spec == spec_of(number))) return false;
    TRY_ASSIGN(const std::vector<registry::Input> inputs, registry_.inputs(job->id));
    return changes_of(job->spec, inputs, job->spec, version_.inputs).empty();
  }

  // The replica of this number runs the new version from its next attempt on; one that does not run begins.
  Result<void> put(int number) {
    const JobId id = id_of(number);
    if (!version_.secrets.empty()) TRY(control::write_secrets(context_.paths().secrets_of(id), version_.secrets));
    const Result<registry::Job> there = registry_.job(id);
    if (!there && there.error().code != Code::not_found) return there.error();
    if (!there) {
      TRY(registry_.submit(id, spec_of(number), context_.now(), version_.inputs));
    } else if (job::is_final(there->state)) {
      TRY(registry_.replace(id, spec_of(number), version_.inputs, {context_.now(), job::ResumeRequested{}}));
    } else {
      TRY_ASSIGN(const bool has, has_version(number));
      if (!has)
        TRY(registry_.replace(id, spec_of(number), version_.inputs,
                              {context_.now(), job::ServerReplaced{there->machine.epoch}}));
    }
    TRY(control::ensure_daemon(context_.state, true));
    return {};
  }

  // An additional replica that an earlier command has ended may still be at it.
  Result<void> wait_ended(int number) {
    const BootTime deadline = context_.clock.boot() + k_settle_patience;
    for (; context_.clock.boot() < deadline; os::pause_for(k_apply_look)) {
      const Result<registry::Job> job = registry_.job(id_of(number));
      if (!job) return job.error().code == Code::not_found ? Result<void>{} : job.error();
      if (job::is_final(job->state) || (!job->machine.cancel && job->machine.limit.empty())) return {};
    }
    return make_error(Code::timed_out, "the replica of the update before does not end",
                      "gridctl job explain " + id_of(number).value);
  }

  // One that stands in for another replica is replaced: until it has stopped, its server would pass for the new one.
  Result<void> put_spare(int number) {
    const Result<registry::Job> before = registry_.job(id_of(number));
    if (!before && before.error().code != Code::not_found) return before.error();
    const bool stands_in = before && !job::is_final(before->state);
    if (stands_in) TRY(drain(number));
    TRY(put(number));
    if (!stands_in) return {};
    TRY(wait_stopped(number, before->machine.epoch));
    (void)os::remove_tree(files_.leave(number));
    return {};
  }

  // Its server answers; or why it never will.
  Result<void> wait_ready(int number) {
    const JobId id = id_of(number);
    const BootTime began = context_.clock.boot();
    BootTime placed_last = began;
    TRY_ASSIGN(const registry::Job before, registry_.job(id));
    const std::size_t failures = before.machine.failures.size();
    for (;; os::pause_for(k_apply_look)) {
      const BootTime now = context_.clock.boot();
      TRY_ASSIGN(const registry::Job job, registry_.job(id));
      const std::string who = "the replica of the new version (" + id.value + ")";
      if (job::is_final(job.state))
        return make_error(Code::job_failed, who + " has ended: " + job.machine.reason_text,
                          "gridctl job logs " + id.value);
      if (job.machine.failures.size() > failures)
        return make_error(Code::job_failed, who + " does not get ready: " + job.machine.reason_text,
                          "gridctl job logs " + id.value);
      if (job.machine.attempt() != nullptr) placed_last = now;
      const std::optional<control::GatewayInfo> told = control::read_gateway(files_);
      const auto slot = static_cast<std::size_t>(number) - 1;
      if (told && slot < told->replicas.size() && told->replicas[slot].ready && job.state == job::JobState::running &&
          told->replicas[slot].epoch == job.machine.epoch && job.spec == spec_of(number))
        return {};
      if (now - placed_last > k_unplaced_patience)
        return make_error(Code::no_provider_fits, "no host takes " + who + ": " + job.machine.reason_text,
                          "gridctl job explain " + id.value);
      if (now - began > version_.spec.service->initial_delay + k_settle_patience)
        return make_error(Code::timed_out, who + " is not ready after " + format_duration(now - began),
                          "gridctl job explain " + id.value);
    }
  }

  // Requests that it has are answered, and it gets no new ones; at most as long as `drain` says.
  Result<void> drain(int number) {
    const BootTime deadline = context_.clock.boot() + version_.leader.spec.service->drain;
    bool drains = false;  // the gateway has taken notice
    for (; context_.clock.boot() < deadline; os::pause_for(k_apply_look)) {
      TRY(control::let_leave(files_, number, context_.now()));
      if (!control::gateway_lives(files_)) return {};
      const Result<std::string> stats = ask_service(context_, version_.service, "show stat");
      if (!stats) continue;
      for (const control::ServerLine& line : control::parse_stats(*stats))
        if (line.name == control::server_name(number)) {
          drains = drains || line.status.starts_with("DRAIN") || line.status.starts_with("MAINT");
          if (drains && line.under_way == 0) return {};
        }
    }
    context_.note("requests are still under way after " + format_duration(version_.leader.spec.service->drain) +
                  ": they end now");
    return {};
  }

  Result<void> roll(int number) {
    const Result<registry::Job> before = registry_.job(id_of(number));
    if (!before) return before.error().code == Code::not_found ? Result<void>{} : before.error();
    const std::optional<control::GatewayInfo> told = control::read_gateway(files_);
    const bool sleeps = number == 1 && told && told->asleep && before->machine.attempt() == nullptr;
    if (job::is_final(before->state) || sleeps) {  // fewer will do now: it has the version when it is wanted again
      TRY(registry_.replace(before->id, spec_of(number), version_.inputs, {context_.now(), job::MoveWithdrawn{}}));
      return {};
    }
    TRY_ASSIGN(const bool has, has_version(number));
    if (has) return wait_ready(number);
    TRY(drain(number));
    TRY(control::let_leave(files_, number, context_.now()));
    TRY(put(number));
    TRY(wait_stopped(number, before->machine.epoch));
    (void)os::remove_tree(files_.leave(number));
    TRY(wait_ready(number));
    context_.note("replica " + std::to_string(number) + " runs the new version");
    return {};
  }

  // Until then its server may still be there.
  Result<void> wait_stopped(int number, Epoch epoch) {
    const BootTime deadline = context_.clock.boot() + k_settle_patience;
    for (; context_.clock.boot() < deadline; os::pause_for(k_apply_look)) {
      TRY_ASSIGN(const registry::Job job, registry_.job(id_of(number)));
      if (job.machine.attempt() == nullptr || job.machine.epoch != epoch) return {};
      TRY(control::let_leave(files_, number, context_.now()));
    }
    return make_error(Code::timed_out, "replica " + std::to_string(number) + " does not stop",
                      "gridctl job explain " + id_of(number).value);
  }

  Result<void> end(int number, Duration grace) {
    TRY(registry_.apply(id_of(number), {context_.now(), job::CancelRequested{grace}}));
    TRY(control::ensure_daemon(context_.state, true));
    return {};
  }

  Context& context_;
  registry::Registry& registry_;
  const Version version_;
  const control::GatewayFiles files_;
};

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open());
  std::vector<std::string> names;
  TRY_ASSIGN(const std::vector<registry::Provider> providers, registry.providers());
  for (const registry::Provider& provider : providers) names.push_back(provider.name.value);
  TRY_ASSIGN(config::ParsedJob file, config::load_job_file(parsed.positionals[0], {}, std::move(names)));
  if (!file.spec.service)
    return make_error(Code::bad_job_file, parsed.positionals[0] + " describes no service: it has no 'service'",
                      "gridctl job apply " + parsed.positionals[0]);
  const Result<JobId> id = registry.resolve(file.spec.name);
  if (!id && id.error().code != Code::not_found) return id.error();
  const Result<registry::Job> leader = id ? registry.job(*id) : Result<registry::Job>(id.error());
  if (!leader || leader->name != file.spec.name || job::is_final(leader->state) || leader->machine.cancel) {
    Parsed words = parsed;
    words.options["detach"] = {""};
    return k_job_submit.run(context, words);
  }
  if (!leader->spec.service)
    return make_error(Code::exists, "job " + leader->name + " (" + leader->id.value + ") runs, and is no service",
                      "gridctl job cancel " + leader->id.value);
  for (const std::string& warning : file.warnings) context.note("warning: " + sanitize(warning));
  TRY(check_same_address(leader->spec, file.spec));
  TRY_ASSIGN(std::vector<registry::Input> inputs, store_inputs(context, file.spec));
  TRY_ASSIGN(const std::vector<registry::Input> before, registry.inputs(leader->id));
  const JobOrigin origin = origin_of(k_service_apply, parsed, {}, file.secrets);
  const std::string who = "service " + leader->name + " (" + leader->id.value + ")";
  Version version{leader->id, *leader, std::move(file.spec), std::move(inputs), std::move(file.secrets)};
  version.spec.service->version = leader->spec.service->version;
  const std::vector<std::string> changed = changes_of(leader->spec, before, version.spec, version.inputs);
  if (!changed.empty()) {
    ++version.spec.service->version;
    context.note("changes " + sanitize(join(changed, ", ")));
  }
  Roll roll(context, registry, std::move(version));
  TRY_ASSIGN(const bool done, roll.is_done());
  if (done) return context.print_line(who + " runs this version already");
  TRY(roll.run());
  TRY(write_origin(context.paths(), leader->id, origin));
  return context.print_line(who + " runs the new version");
}
}  // namespace
}  // namespace service_apply

const Command k_service_apply{
    .noun = "service",
    .verb = "apply",
    .summary = "replace a service by a new version while it answers",
    .examples = service_apply::k_examples,
    .description =
        "Starts one more replica with the file's version. When its probe passes, the other replicas get the new "
        "version one after the other: each finishes its requests, is stopped, and is ready again before the next one's "
        "turn. If the first replica of the new version finds no host or does not get ready, it is stopped, and the "
        "earlier version keeps running. If the service does not run, the file is submitted. After an interruption, run "
        "the same command again: it continues where it stopped.",
    .positionals = service_apply::k_positionals,
    .exit_codes = service_apply::k_exits,
    .waits = true,
    .run = service_apply::run};

}  // namespace gridctl::cmd

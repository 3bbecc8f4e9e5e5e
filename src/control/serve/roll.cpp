// SPDX-License-Identifier: Apache-2.0
#include "control/serve/roll.hpp"

#include "job/twin.hpp"
#include "registry/registry.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_roll_look = std::chrono::milliseconds{200};
constexpr Duration k_unplaced_patience = std::chrono::seconds{60};  // for a host; what is stopped just now frees one in seconds
constexpr Duration k_end_grace = std::chrono::seconds{30};
constexpr int k_rounds_max = 3;
constexpr int k_drains_max = 3;  // of one replica, when the additional one is lost meanwhile
constexpr Duration k_settle_patience = std::chrono::minutes{10};  // until a replica's start or end is over

class Roll {
 public:
  Roll(RollDesk& desk, const NewVersion& version) : desk_(desk), version_(version) {}

  // Returns true if nothing is left to do, including for an interrupted command.
  Result<bool> is_done() {
    TRY_ASSIGN(const bool all, all_have_it());
    if (!all) return false;
    const Result<registry::Job> spare = desk_.job(id_of(job::slots_of(version_.leader.spec)));
    if (!spare) return spare.error().code == Code::not_found ? Result<bool>(true) : spare.error();
    return job::is_final(spare->state) || spare->machine.cancel.has_value();
  }

  Result<void> run() {
    const int spare = job::slots_of(version_.leader.spec);
    TRY(wait_ended(spare));
    TRY(put_spare(spare));
    if (const Result<void> ready = wait_ready(spare); !ready) {
      TRY_ASSIGN(const bool is_ours, has_version(spare));
      if (is_ours) TRY(end(spare, Duration{}));
      return Error(ready.error()).with_context("the earlier version keeps running");
    }
    desk_.note("a first replica of the new version is ready");
    bool all = false;
    for (int round = 0; !all && round < k_rounds_max; ++round) {
      for (int number = version_.leader.spec.twins; number >= 1; --number)
        if (const Result<void> rolled = roll(number, spare); !rolled) {
          (void)drain(spare);
          TRY(end(spare, k_end_grace));
          return Error(rolled.error())
              .with_context(std::to_string(version_.leader.spec.twins - number) + " of " +
                            std::to_string(version_.leader.spec.twins) +
                            " replicas run the new version; the others run the earlier one");
        }
      // A replica made in the meantime may have the version that the first one had then.
      TRY_ASSIGN(all, all_have_it());
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

  Result<bool> all_have_it() {
    for (int number = 1; number <= version_.leader.spec.twins; ++number) {
      TRY_ASSIGN(const bool has, has_version(number));
      if (!has) return false;
    }
    return true;
  }

  // Returns true if, by the registry, the replica has this version: the file, and the contents of the files that it
  // names.
  Result<bool> has_version(int number) {
    const Result<registry::Job> job = desk_.job(id_of(number));
    if (!job)
      return job.error().code == Code::not_found ? Result<bool>(number <= version_.leader.spec.twins) : job.error();
    if (!(job->spec == spec_of(number))) return false;
    TRY_ASSIGN(const std::vector<registry::Input> inputs, desk_.inputs(job->id));
    return desk_.are_same(job->spec, inputs, version_.inputs);
  }

  // Gives the replica the new version from its next attempt on; starts it if it is not running.
  Result<void> put(int number) {
    const JobId id = id_of(number);
    TRY(desk_.keep_secrets(id));
    const Result<registry::Job> there = desk_.job(id);
    if (!there && there.error().code != Code::not_found) return there.error();
    if (!there) {
      TRY(desk_.submit(id, spec_of(number), version_.inputs));
    } else if (job::is_final(there->state)) {
      TRY(desk_.replace(id, spec_of(number), version_.inputs, job::ResumeRequested{}));
    } else {
      TRY_ASSIGN(const bool has, has_version(number));
      if (!has)
        TRY(desk_.replace(id, spec_of(number), version_.inputs, job::ServerReplaced{there->machine.epoch}));
    }
    TRY(desk_.committed());
    return {};
  }

  // An additional replica that an earlier command ended may still be stopping.
  Result<void> wait_ended(int number) {
    const BootTime deadline = desk_.now() + k_settle_patience;
    for (; desk_.now() < deadline; desk_.pause(k_roll_look)) {
      const Result<registry::Job> job = desk_.job(id_of(number));
      if (!job) return job.error().code == Code::not_found ? Result<void>{} : job.error();
      if (job::is_final(job->state) || (!job->machine.cancel && job->machine.limit.empty())) return {};
    }
    return make_error(Code::timed_out, "the additional replica of an earlier update does not end",
                      "gridctl job explain " + id_of(number).value);
  }

  // A replica that stands in for another is replaced: until it has stopped, its server would pass for the new one.
  Result<void> put_spare(int number) {
    const Result<registry::Job> before = desk_.job(id_of(number));
    if (!before && before.error().code != Code::not_found) return before.error();
    const bool stands_in = before && !job::is_final(before->state);
    if (stands_in) {
      TRY_ASSIGN(const bool has, has_version(number));
      if (has) return {};  // by a roll that was interrupted
      TRY(drain(number));
    }
    TRY(put(number));
    if (!stands_in) return {};
    TRY(wait_stopped(number, before->machine.epoch));
    desk_.let_stay(number);
    return {};
  }

  // Returns true if fewer replicas are needed now: this one gets the version when it is wanted again.
  [[nodiscard]] bool is_unwanted(int number, const GatewayInfo& told, const registry::Job& job) const {
    if (number > version_.leader.spec.twins) return false;
    if (job::is_final(job.state)) return told.wanted > 0 && number > told.wanted;
    return number == 1 && told.asleep && job.machine.attempt() == nullptr;
  }

  // A replica that is being stopped for the new version still answers with the earlier one.
  static bool is_ready(int number, const registry::Job& job, const std::optional<GatewayInfo>& told) {
    const auto slot = static_cast<std::size_t>(number) - 1;
    return told && slot < told->replicas.size() && told->replicas[slot].ready && std::holds_alternative<job::Running>(job.machine.phase) &&
           told->replicas[slot].epoch == job.machine.epoch;
  }

  // Waits until its server answers; returns an error if it never will.
  Result<void> wait_ready(int number) {
    const JobId id = id_of(number);
    const BootTime began = desk_.now();
    BootTime placed_last = began;
    TRY_ASSIGN(const registry::Job before, desk_.job(id));
    const std::size_t failures = before.machine.failures.size();
    for (;; desk_.pause(k_roll_look)) {
      const BootTime now = desk_.now();
      TRY_ASSIGN(const registry::Job job, desk_.job(id));
      const std::string who = "the replica of the new version (" + id.value + ")";
      if (!(job.spec == spec_of(number)))
        return make_error(Code::job_failed, who + " was replaced by one of the earlier version",
                          "gridctl job explain " + id.value);
      const std::optional<GatewayInfo> told = desk_.told();
      if (told && is_unwanted(number, *told, job)) return {};
      if (job::is_final(job.state))
        return make_error(Code::job_failed, who + " has ended: " + job.machine.reason_text,
                          "gridctl job logs " + id.value);
      if (job.machine.failures.size() > failures)
        return make_error(Code::job_failed, who + " does not become ready: " + job.machine.reason_text,
                          "gridctl job logs " + id.value);
      if (job.machine.attempt() != nullptr) placed_last = now;
      if (is_ready(number, job, told)) return {};
      if (now - placed_last > k_unplaced_patience)
        return make_error(Code::no_provider_fits, "no host can run " + who + ": " + job.machine.reason_text,
                          "gridctl job explain " + id.value);
      if (now - began > version_.spec.service->initial_delay + k_settle_patience)
        return make_error(Code::timed_out, who + " is not ready after " + format_duration(now - began),
                          "gridctl job explain " + id.value);
    }
  }

  // Lets the replica answer its requests and gives it no new ones, for at most as long as `drain` says.
  Result<void> drain(int number) {
    const BootTime deadline = desk_.now() + version_.leader.spec.service->drain;
    bool drains = false;  // the gateway has taken notice
    for (; desk_.now() < deadline; desk_.pause(k_roll_look)) {
      TRY(desk_.let_leave(number));
      if (!desk_.gateway_lives()) return {};
      const std::optional<ServerLine> line = desk_.line(number);
      if (!line) continue;
      drains = drains || line->status.starts_with("DRAIN") || line->status.starts_with("MAINT");
      if (drains && line->under_way == 0) return {};
    }
    desk_.note("requests are still under way after " + format_duration(version_.leader.spec.service->drain) +
                  ": they end now");
    return {};
  }

  Result<void> roll(int number, int spare) {
    const Result<registry::Job> before = desk_.job(id_of(number));
    if (!before) return before.error().code == Code::not_found ? Result<void>{} : before.error();
    const std::optional<GatewayInfo> told = desk_.told();
    if (job::is_final(before->state) || (told && is_unwanted(number, *told, *before))) {
      TRY(desk_.replace(before->id, spec_of(number), version_.inputs, job::MoveWithdrawn{}));
      return {};
    }
    TRY_ASSIGN(const bool has, has_version(number));
    if (has) return wait_ready(number);
    TRY(drain_beside(number, spare));
    TRY(desk_.let_leave(number));
    TRY(put(number));
    TRY(wait_stopped(number, before->machine.epoch));
    desk_.let_stay(number);
    TRY(wait_ready(number));
    desk_.note("replica " + std::to_string(number) + " runs the new version");
    return {};
  }

  // The additional replica's host may have been lost since it was ready, even while this one is drained.
  Result<void> drain_beside(int number, int spare) {
    for (int tries = 0; tries < k_drains_max; ++tries) {
      TRY(wait_ready(spare));
      TRY(drain(number));
      TRY_ASSIGN(const registry::Job job, desk_.job(id_of(spare)));
      if (is_ready(spare, job, desk_.told())) return {};
    }
    return make_error(Code::job_failed, "the replica of the new version (" + id_of(spare).value + ") does not stay ready",
                      "gridctl job explain " + id_of(spare).value);
  }

  // Waits, because its server may still be running until then.
  Result<void> wait_stopped(int number, Epoch epoch) {
    const BootTime deadline = desk_.now() + k_settle_patience;
    for (; desk_.now() < deadline; desk_.pause(k_roll_look)) {
      TRY_ASSIGN(const registry::Job job, desk_.job(id_of(number)));
      if (job.machine.attempt() == nullptr || job.machine.epoch != epoch) return {};
      TRY(desk_.let_leave(number));
    }
    return make_error(Code::timed_out, "replica " + std::to_string(number) + " does not stop",
                      "gridctl job explain " + id_of(number).value);
  }

  Result<void> end(int number, Duration grace) {
    TRY(desk_.apply(id_of(number), job::CancelRequested{grace}));
    TRY(desk_.committed());
    return {};
  }

  RollDesk& desk_;
  const NewVersion& version_;
};
}  // namespace

Result<bool> is_rolled(RollDesk& desk, const NewVersion& version) { return Roll(desk, version).is_done(); }
Result<void> roll(RollDesk& desk, const NewVersion& version) { return Roll(desk, version).run(); }

}  // namespace gridctl::control

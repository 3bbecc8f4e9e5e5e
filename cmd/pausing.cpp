// SPDX-License-Identifier: Apache-2.0
#include "cmd/pausing.hpp"

#include "cmd/network.hpp"
#include "control/daemon/daemon.hpp"
#include "control/follow/pauses.hpp"
#include "os/random.hpp"

namespace gridctl::cmd {

namespace {

Result<const job::Attempt*> attempt_of(const registry::Job& job) {
  const auto* running = std::get_if<job::Running>(&job.machine.phase);
  const std::string name = job.name + " (" + job.id.value + ")";
  if (running == nullptr)
    return make_error(
        Code::usage,
        "job " + name + " is " + std::string(job::state_name(job.state)) + ": only a running job can be paused",
        "gridctl job show " + job.id.value);
  if (running->attempt.is_gang())
    return make_error(Code::unsupported,
                      "job " + name +
                          " runs on several hosts, and their connections do not survive a pause; cancelling "
                          "it keeps its last checkpoint, and 'gridctl job resume' continues from that",
                      "gridctl job cancel " + job.id.value);
  return &running->attempt;
}

// Adds the other way to free the host: save, leave, and continue later.
Error with_the_other_way(Error error, const registry::Job& job) {
  if (error.code != Code::unsupported && error.code != Code::no_space && error.code != Code::io) return error;
  error.message +=
      "; cancelling the job saves a checkpoint and frees the GPU, and 'gridctl job resume' continues from it";
  error.hint = "gridctl job cancel " + job.id.value;
  return error;
}

// The daemon may have seen the pause already, and the job may have ended in the meantime.
Result<void> record_pause(Context& context, registry::JobRecords& registry, const registry::Job& job,
                          const job::Attempt& attempt, const PauseWish& wish) {
  const HostName& host = attempt.lead().host;
  const WallTime now = context.now();
  const auto write = [&]() -> Result<void> {
    TRY_ASSIGN(const bool changed,
               wish.resume ? registry.end_pause(job.id, now) : registry.begin_pause(job.id, now, wish.most));
    if (!changed) return {};
    return registry.note(
        job.id, now, wish.resume ? control::resumed_in_place(attempt, host) : control::paused_in_place(attempt, host));
  };
  return registry.together(write);
}

}  // namespace

Result<bool> is_paused(registry::RunRecords& registry, const registry::Job& job) {
  TRY_ASSIGN(const std::optional<registry::Pause> pause, registry.paused(job.id));
  return pause.has_value();
}

Result<std::string> pause_in_place(Context& context, registry::Registry& registry, const registry::Job& job,
                                   const PauseWish& wish) {
  TRY_ASSIGN(const job::Attempt* attempt, attempt_of(job));
  const job::Member& member = attempt->lead();
  TRY_ASSIGN(const registry::Provider provider, registry.provider(member.host));
  TRY_ASSIGN(control::SshNetwork net, network_of(context, registry));
  if (!wish.resume && !member.gpu_uuids.empty() && !attempt->last_saved_at)
    context.note(job.name +
                 " has saved no checkpoint yet: if the GPU's driver fails during the pause, the job starts over");
  const std::string op = job.id.value + ":" + std::to_string(attempt->epoch.value) + ":pause:" + os::random_id(8);
  const control::HostAccess host{provider, &net, &context.clock};
  const Result<wire::PauseReply> reply =
      control::pause_on(host, {{op}, job.id, attempt->epoch, wish.resume, wish.gpu_only});
  if (!reply) return with_the_other_way(reply.error(), job);
  TRY(record_pause(context, registry, job, *attempt, wish));
  TRY(control::ensure_daemon(context.state, true));
  std::string text = (wish.resume ? "runs on " : "is paused on ") + member.host.value;
  if (reply->gpu_bytes > 0)
    text += ": " + format_size(reply->gpu_bytes) + (wish.resume ? " returned to" : " left") + " its GPU in " +
            format_duration(std::chrono::ceil<std::chrono::milliseconds>(reply->took));
  return text;
}

}  // namespace gridctl::cmd

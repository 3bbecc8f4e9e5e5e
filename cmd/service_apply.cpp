// SPDX-License-Identifier: Apache-2.0
// Implements a new version of a running service; see control/serve/roll.
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/job_changes.hpp"
#include "cmd/service_now.hpp"
#include "cmd/submission.hpp"
#include "config/job_file.hpp"
#include "control/daemon/daemon.hpp"
#include "control/follow/secrets.hpp"
#include "control/serve/roll.hpp"
#include "os/files.hpp"

namespace gridctl::cmd {

namespace service_apply {
namespace {
// Checks keys for which the gateway supports only one value.
Result<void> check_same_address(const job::Spec& before, const job::Spec& after) {
  std::string key;
  const job::Service &one = *before.service, &other = *after.service;
  if (one.path != other.path || one.every != other.every || one.timeout != other.timeout ||
      one.probe_headers != other.probe_headers || one.probe_body != other.probe_body ||
      one.probe_command != other.probe_command)
    key = "service.probe";
  else if (one.retry_post != other.retry_post) key = "service.retry_post";
  else if (one.affinity != other.affinity) key = "service.affinity";
  else if (one.keys_file != other.keys_file) key = "service.auth";
  else if (before.twins != after.twins || one.replicas_min != other.replicas_min || one.sleeps != other.sleeps)
    key = "service.replicas";
  else if (one.scale_concurrency != other.scale_concurrency || one.scale_rate != other.scale_rate || one.up_after != other.up_after ||
           one.down_after != other.down_after)
    key = "service.scale";
  else if (!(before.recovery == after.recovery)) key = "recovery";
  if (key.empty()) return {};
  return make_error(Code::unsupported,
                    "the file changes '" + key + "', which 'service apply' cannot change while the service runs",
                    "gridctl service stop " + before.name + ", then submit the file");
}

class Desk : public control::RollDesk {
 public:
  Desk(Context& context, registry::Registry& registry, JobId service, std::map<std::string, std::string> secrets)
      : context_(context),
        registry_(registry),
        service_(std::move(service)),
        files_(control::gateway_files(context.paths(), service_)),
        secrets_(std::move(secrets)) {}

  Result<registry::Job> job(const JobId& id) override { return registry_.job(id); }
  Result<std::vector<registry::Input>> inputs(const JobId& id) override { return registry_.inputs(id); }
  Result<void> submit(const JobId& id, const job::Spec& spec, const std::vector<registry::Input>& inputs) override {
    TRY(registry_.submit(id, spec, context_.now(), inputs));
    return {};
  }
  Result<void> replace(const JobId& id, const job::Spec& spec, const std::vector<registry::Input>& inputs,
                       const job::Event& what) override {
    TRY(registry_.replace(id, spec, inputs, {context_.now(), what}));
    return {};
  }
  Result<void> apply(const JobId& id, const job::Event& what) override {
    TRY(registry_.apply(id, {context_.now(), what}));
    return {};
  }
  Result<void> keep_secrets(const JobId& id) override {
    if (secrets_.empty()) return {};
    return control::write_secrets(context_.paths().secrets_of(id), secrets_);
  }
  Result<void> committed() override {
    TRY(control::ensure_daemon(context_.state, true));
    return {};
  }
  bool are_same(const job::Spec& spec, const std::vector<registry::Input>& one,
                const std::vector<registry::Input>& other) override {
    return changes_of(spec, one, spec, other).empty();
  }
  bool gateway_lives() override { return control::gateway_lives(files_); }
  std::optional<control::GatewayInfo> told() override { return control::read_gateway(files_); }
  std::optional<control::ServerLine> line(int replica) override {
    const Result<std::string> stats = ask_service(context_, service_, "show stat");
    if (!stats) return std::nullopt;
    for (control::ServerLine& line : control::parse_stats(*stats))
      if (line.name == control::server_name(replica)) return std::move(line);
    return std::nullopt;
  }
  Result<void> let_leave(int replica) override { return control::let_leave(files_, replica, context_.now()); }
  void let_stay(int replica) override { (void)os::remove_tree(files_.leave(replica)); }
  BootTime now() override { return context_.clock.boot(); }
  void pause(Duration time) override { os::pause_for(time); }
  void note(const std::string& text) override { context_.note(text); }

 private:
  Context& context_;
  registry::Registry& registry_;
  const JobId service_;
  const control::GatewayFiles files_;
  const std::map<std::string, std::string> secrets_;
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
    return make_error(Code::exists,
                      "job " + leader->name + " (" + leader->id.value + ") is running and is not a service",
                      "gridctl job cancel " + leader->id.value);
  for (const std::string& warning : file.warnings) context.warn(warning);
  TRY(check_same_address(leader->spec, file.spec));
  TRY_ASSIGN(std::vector<registry::Input> inputs, store_inputs(context, file.spec));
  TRY_ASSIGN(const std::vector<registry::Input> before, registry.inputs(leader->id));
  const JobOrigin origin = origin_of(k_service_apply, parsed, {}, file.secrets);
  const std::string who = "service " + leader->name + " (" + leader->id.value + ")";
  control::NewVersion version{leader->id, *leader, std::move(file.spec), std::move(inputs)};
  version.spec.service->version = leader->spec.service->version;
  const std::vector<std::string> changed = changes_of(leader->spec, before, version.spec, version.inputs);
  if (!changed.empty()) {
    ++version.spec.service->version;
    context.note("changes " + sanitize(join(changed, ", ")));
  }
  Desk desk(context, registry, leader->id, std::move(file.secrets));
  TRY_ASSIGN(const bool done, control::is_rolled(desk, version));
  if (done) return context.print_line(who + " runs this version already");
  TRY(control::roll(desk, version));
  TRY(write_origin(context.paths(), leader->id, origin));
  return context.print_line(who + " runs the new version");
}
}  // namespace
}  // namespace service_apply

const Command k_service_apply{
    .name = "service apply",
    .summary = "replace a service by a new version while it answers",
    .examples = {{"Run the file's version of a service, one replica after the other",
                 "gridctl service apply chat.yaml"}},
    .description =
        "Starts one more replica with the file's version. When its probe passes, the other replicas get the new "
        "version one after the other: each finishes its requests, is stopped, and is ready again before the next one's "
        "turn. If the first replica of the new version finds no host or does not get ready, it is stopped, and the "
        "earlier version keeps running. If the service does not run, the file is submitted. After an interruption, run "
        "the same command again: it continues where it stopped.",
    .positionals = {{"FILE.yaml", Completion::file}},
    .exit_codes = {1, 2, 3, 4, 5, 7, 9},
    .waits = true,
    .run = service_apply::run};

}  // namespace gridctl::cmd

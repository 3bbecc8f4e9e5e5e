// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/recovery_view.hpp"
#include "cmd/service_now.hpp"
#include "control/reach/version.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace service_show {
namespace {
const std::initializer_list<Positional> k_positionals = {{"NAME", Completion::job}};

std::string replica_json(const ReplicaNow& one) {
  const control::ServerLine told = one.told.value_or(control::ServerLine{});
  JsonObject json;
  json("job_id", one.job.id.value)("name", one.job.name)("state", job::state_name(one.job.state));
  json.text_or_null("provider", one.job.provider.value)("ready", one.is_ready())("detail", one.words());
  json("under_way", told.under_way)("requests", told.requests)("failed", told.failed)("answer_ms", told.answer_ms);
  return json.text();
}

bool is_asleep(const ServiceNow& now) {
  return now.gateway && now.gateway->asleep && now.leader.machine.attempt() == nullptr;
}

std::string service_json(const ServiceNow& now) {
  const control::ServerLine all = now.all.value_or(control::ServerLine{});
  JsonObject json;
  json("service_id", now.leader.id.value)("name", now.leader.name)("state", job::state_name(now.leader.state));
  json.text_or_null("url", now.url())("ready", now.ready())("replicas_wanted", now.wanted());
  json.raw("replicas", json_list(now.replicas, replica_json));
  json("requests", all.requests)("failed", all.failed)("retried", all.retried)("under_way", all.under_way);
  json("answer_ms", all.answer_ms)("asleep", is_asleep(now)).text_or_null("trouble", now.gateway ? now.gateway->trouble : "");
  return json.text();
}

std::string state_text(const ServiceNow& now) {
  return is_asleep(now) ? "ASLEEP" : std::string(job::state_name(now.leader.state));
}

std::string ready_text(const ServiceNow& now) {
  return std::to_string(now.ready()) + "/" + std::to_string(now.wanted());
}

Result<int> ls(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const std::vector<registry::JobRow> rows,
             registry.jobs({.states = {}, .active_only = !parsed.has("all"), .limit = 0}));
  std::vector<ServiceNow> services;
  for (const registry::JobRow& row : rows) {
    TRY_ASSIGN(const registry::Job job, registry.job(row.id));
    if (!job.spec.service || !job.spec.twin_of.value.empty()) continue;
    TRY_ASSIGN(ServiceNow now, service_now(context, registry, row.id));
    services.push_back(std::move(now));
  }
  if (context.json) return context.print_line(json_list(services, service_json));
  if (services.empty()) return context.note("no services; a job file with 'service: {port: 8000}' makes one");
  ui::Table table({{.title = "SERVICE", .shrinks = true},
                   {.title = "ID"},
                   {.title = "STATE", .width_min = 9},
                   {.title = "READY", .right = true},
                   {.title = "REQUESTS", .right = true},
                   {.title = "FAILED", .right = true},
                   {.title = "URL"}});
  for (const ServiceNow& now : services)
    table.add({now.leader.name, now.leader.id.value, state_text(now), ready_text(now),
               std::to_string(now.all ? now.all->requests : 0), std::to_string(now.all ? now.all->failed : 0),
               now.url().empty() ? "-" : now.url()},
              {ui::Paint::bold});
  return context.print(table.render(context.columns_out(), context.out_style));
}

Result<int> show(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const JobId id, resolve_service(registry, parsed.positionals[0]));
  TRY_ASSIGN(const ServiceNow now, service_now(context, registry, id));
  TRY_ASSIGN(std::optional<ToleranceView> tolerance, tolerance_view(registry, now.leader));
  tolerance = tolerance_with(std::move(tolerance), now.ready());
  if (context.json) {
    std::string text = service_json(now);
    if (tolerance) text.insert(text.size() - 1, ",\"fault_tolerance\":" + std::to_string(tolerance->level));
    return context.print_line(text);
  }
  ui::Facts facts;
  facts.add("service", now.leader.name + " (" + now.leader.id.value + ")");
  facts.add("state", state_text(now) + ": " + sanitize(now.leader.machine.reason_text));
  facts.add("url", now.url().empty() ? "none yet" : now.url());
  facts.add("ready", ready_text(now));
  if (tolerance) facts.add("fault tolerance", sanitize(tolerance->text));
  if (now.all)
    facts.add("requests", std::to_string(now.all->requests) + ", " + std::to_string(now.all->failed) + " failed, " +
                              std::to_string(now.all->retried) + " sent again, " + std::to_string(now.all->under_way) +
                              " under way, " + std::to_string(now.all->answer_ms) + " ms to an answer");
  if (now.gateway) facts.add("trouble", now.gateway->trouble);
  if (now.gateway && now.gateway->version != control::k_version)
    facts.add("gateway", "is an earlier gridctl's; 'kill " + std::to_string(now.gateway->pid) +
                             "' has this one's started, and requests wait or fail for about 2 s");
  context.print(facts.render(context.out_style));
  ui::Table table({{.title = "REPLICA"},
                   {.title = "PROVIDER", .shrinks = true},
                   {.title = "STATE", .width_min = 9},
                   {.title = "UNDER WAY", .right = true},
                   {.title = "REQUESTS", .right = true},
                   {.title = "DETAIL", .shrinks = true}});
  for (const ReplicaNow& one : now.replicas)
    table.add({one.job.id.value, one.job.provider.value.empty() ? "-" : one.job.provider.value,
               std::string(job::state_name(one.job.state)), std::to_string(one.told ? one.told->under_way : 0),
               std::to_string(one.told ? one.told->requests : 0), one.words()});
  return context.print("\n" + table.render(context.columns_out(), context.out_style));
}

Result<int> url(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const JobId id, resolve_service(registry, parsed.positionals[0]));
  TRY_ASSIGN(const ServiceNow now, service_now(context, registry, id));
  if (now.gateway && !now.gateway->trouble.empty()) return make_error(Code::unsupported, now.gateway->trouble);
  if (now.url().empty())
    return make_error(
        Code::not_found,
        "service " + now.leader.name + " has no address now: it is " + std::string(job::state_name(now.leader.state)),
        "gridctl service show " + id.value);
  if (context.json) return context.print_line(JsonObject()("url", now.url()).text());
  return context.print_line(now.url());
}
}  // namespace
}  // namespace service_show

const Command k_service_ls{
    .name = "service ls",
    .summary = "list services",
    .examples = {{"List services and how many of their replicas are ready", "gridctl service ls"}},
    .description =
        "READY counts the replicas whose probe passes; they get requests. FAILED counts "
        "answers of 500 and above and connections that broke.",
    .options = {{"all", 'a', "", "also services that have ended"}},
    .exit_codes = k_exits_state,
    .run = service_show::ls};

const Command k_service_show{
    .name = "service show",
    .summary = "show the replicas of a service and their requests",
    .examples = {{"Show the replicas of a service", "gridctl service show chat"},
                 {"Wait in a script until two are ready", "gridctl service show chat --json | jq '.ready >= 2'"}},
    .description =
        "Shows the address of the service, its requests, and each replica: where it runs, whether its probe "
        "passes, and how many requests it has under way.",
    .positionals = service_show::k_positionals,
    .exit_codes = k_exits_job,
    .run = service_show::show};

const Command k_service_url{
    .name = "service url",
    .summary = "print the address of a service",
    .examples = {{"Ask a service", "curl $(gridctl service url chat)/v1/models"}},
    .description =
        "Prints the address alone, for scripts. The address is on this machine, and stays the same while "
        "replicas move. Requests that come while no replica is ready wait for one, up to 60 s.",
    .positionals = service_show::k_positionals,
    .exit_codes = k_exits_job,
    .run = service_show::url};

}  // namespace gridctl::cmd

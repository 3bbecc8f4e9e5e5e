// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "cmd/bag_view.hpp"
#include "cmd/commands.hpp"
#include "cmd/deadline_view.hpp"
#include "cmd/follow.hpp"
#include "cmd/job_origin.hpp"
#include "cmd/outcome.hpp"
#include "cmd/provider_facts.hpp"
#include "cmd/receipt_words.hpp"
#include "cmd/recovery_view.hpp"
#include "cmd/training_outcome.hpp"
#include "sched/standing/reliability.hpp"
#include "ui/json.hpp"
#include "ui/table.hpp"
#include "ui/use_view.hpp"

namespace gridctl::cmd {

namespace job_show {
namespace {
// Returns text such as "4.20 USD of 50.00 USD, enough for 30.5h at 1.50 USD an hour".
std::string cost_text(const registry::Job& job, double price) {
  std::string text = ui::money(job.cost, false);
  if (!job.spec.budget_total) return text;
  text += " of " + ui::money(*job.spec.budget_total, false);
  if (price > 0)
    text += ", enough for " + sched::short_hours(std::max(0.0, *job.spec.budget_total - job.cost) / price) +
            " more at " + ui::money(price, false) + " an hour";
  return text;
}

// Returns text such as "done in 1h12m for 3.40 USD, as estimated when it was first placed; it took 1.1 times as long
// and cost 1.2 times as much".
std::string expected_text(const registry::Job& job) {
  const job::Expected& expected = *job.machine.expected;
  std::string text = "done in " + format_duration(std::chrono::seconds{std::llround(expected.seconds)});
  if (expected.usd > 0) text += " for " + ui::money(expected.usd, false);
  text += ", as estimated when it was first placed";
  if (job.state != job::JobState::succeeded || !job.ended_at) return text;
  const double took = static_cast<double>(job.ended_at->ms - job.submitted_at.ms) / 1000;
  text += "; it took " + ui::number(took / expected.seconds, 2) + " times as long";
  if (expected.usd > 0) text += " and cost " + ui::number(job.cost / expected.usd, 2) + " times as much";
  return text;
}

// Returns text such as "train-r2 (k3jf7qw2mxnpar2) RUNNING on bob".
std::string twin_text(const registry::JobRow& twin) {
  return twin.name + " (" + twin.id.value + ") " + std::string(job::state_name(twin.state)) +
         (twin.provider.value.empty() ? "" : " on " + twin.provider.value);
}

// Returns the digest as borrowed hosts run it; several images are told apart by name.
std::string image_digest_text(const job::Spec& spec, const std::string& image, const std::string& digest) {
  return (spec.image_digests.size() > 1 ? image + " = " : "") + digest + (spec.constraints.image_tags ? ", not used: images: tags" : ", on borrowed hosts");
}

ui::Facts facts_of(const registry::Job& job, const std::vector<registry::JobRow>& twins, double price,
                   const std::optional<registry::Checkpoint>& head, const std::optional<registry::Drill>& drill,
                   const std::optional<DeadlineView>& deadline, const std::optional<ToleranceView>& tolerance,
                   const std::string& no_checkpoint, const Metrics& told,
                   const std::optional<ui::ExactnessTold>& exactness, WallTime now) {
  ui::Facts facts;
  facts.add("job", job.id.value);
  facts.add("name", job.name);
  facts.add("state", std::string(job::state_name(job.state)));
  const bool paused = job.reason == registry::k_paused_reason;
  facts.add("reason", paused ? "paused in place; gridctl job resume " + job.id.value + " continues it" : why_of(job));
  if (job.exit_code) facts.add("exit code", std::to_string(*job.exit_code));
  facts.add("provider", job.provider.value);
  if (const job::Attempt* attempt = job.machine.attempt(); attempt != nullptr && job::is_elastic(job.spec))
    facts.add("hosts", std::to_string(attempt->members.size()) + " of " + job::nodes_text(job.spec));
  else if (job::is_elastic(job.spec)) facts.add("hosts", job::nodes_text(job.spec));
  facts.add("resources", job.resources);
  const std::string part = job.spec.tasks ? "worker" : job.spec.service ? "replica" : "twin";
  for (const registry::JobRow& twin : twins)
    if (!job.spec.tasks || !job::is_final(twin.state)) facts.add(part, twin_text(twin));
  facts.add(part + " of", job.spec.twin_of.value);
  facts.add("owner", job.spec.owner);
  if (job.spec.priority != 0) facts.add("priority", std::to_string(job.spec.priority));
  facts.add("image", job.spec.image);
  std::vector<std::string> variants;
  for (const job::Variant& variant : job.spec.variants)
    variants.push_back(variant.kind + (variant.image.empty() ? "" : " (" + variant.image + ")"));
  facts.add("variants", join(variants, ", "));
  for (const auto& [image, digest] : job.spec.image_digests) facts.add("image digest", image_digest_text(job.spec, image, digest));
  facts.add("submitted", ui::moment(job.submitted_at, now) + ", " + ui::age(job.submitted_at, now));
  if (job.ended_at) facts.add("ended", ui::moment(job.ended_at, now) + ", " + ui::age(job.ended_at, now));
  facts.add("took", ui::span(job.submitted_at, job.ended_at, now));
  if (job.recoveries > 0)
    facts.add("moves", std::to_string(job.recoveries) + ", work lost " + format_duration(job.machine.lost));
  if (head)
    facts.add("checkpoint", checkpoint_name(job.id, head->seq) + ", " + format_size(head->bytes) + ", " +
                                ui::age(head->created_at, now));
  if (exactness) facts.add("exactness", sanitize(exactness->text));
  facts.add("warning", no_checkpoint);
  if (job.cost > 0 || job.spec.budget_total) facts.add("cost", cost_text(job, price));
  if (job.machine.expected) facts.add("expected", expected_text(job));
  if (const auto& predicted = job.spec.workload.predicted) {
    facts.add("predicted", predicted_text(*predicted));
    facts.add("measured", measured_text(*predicted, told));
  }
  if (deadline) facts.add("deadline", deadline->text);
  if (tolerance) facts.add("fault tolerance", sanitize(tolerance->text));
  if (drill) facts.add("drill", ui::age(drill->at, now) + ": " + drill->summary);
  return facts;
}

ui::Table table_of(const JobId& id, const std::vector<registry::AttemptRecord>& attempts, WallTime now) {
  ui::Table table({{.title = "ATTEMPT", .right = true},
                   {.title = "PROVIDER", .shrinks = true},
                   {.title = "STATE", .width_min = 9},
                   {.title = "STARTED"},
                   {.title = "RAN", .right = true},
                   {.title = "FROM", .shrinks = true},
                   {.title = "EXIT", .right = true},
                   {.title = "REASON", .shrinks = true}});
  for (const registry::AttemptRecord& attempt : attempts) {
    table.add({std::to_string(attempt.number.value), attempt.provider.value, attempt.state,
               ui::moment(attempt.started_at, now), ui::span(attempt.started_at, attempt.ended_at, now),
               attempt.resumed_from.value == 0 ? "-" : checkpoint_name(id, attempt.resumed_from),
               attempt.exit_code ? std::to_string(*attempt.exit_code) : "-", attempt.reason});
    if (attempt.members.size() < 2) continue;
    for (const registry::MemberRecord& member : attempt.members)  // a gang's, below their attempt
      table.add({"rank " + std::to_string(member.rank), member.provider.value, member.state, "", "", "",
                 member.exit_code ? std::to_string(*member.exit_code) : "-", ""});
  }
  return table;
}

Result<std::optional<DeadlineView>> deadline_of(registry::Registry& registry, const registry::Job& job, WallTime now) {
  if (!job.spec.deadline) return std::optional<DeadlineView>{};
  TRY_ASSIGN(const std::vector<sched::HostFacts> hosts, all_host_facts(registry, now));
  return deadline_view(registry, job, hosts, now);
}

// Returns the USD per hour of a job and its twins; the workers of a bag share the price of a host.
Result<double> price_of_all(registry::JobRecords& registry, const registry::Job& job, const std::vector<registry::JobRow>& twins) {
  std::map<std::string, double> prices;
  const auto add = [&](const registry::Job& one) {
    const job::Attempt* attempt = one.machine.attempt();
    if (attempt == nullptr) return;
    double& price = prices[job.spec.tasks ? attempt->lead().host.value : one.id.value];
    price = std::max(price, one.machine.price_per_hour());
  };
  add(job);
  for (const registry::JobRow& twin : twins) {
    TRY_ASSIGN(const registry::Job its, registry.job(twin.id));
    add(its);
  }
  double sum = 0;
  for (const auto& [payer, price] : prices) sum += price;
  return sum;
}

Result<int> show_file(Context& context, const JobId& id) {
  const JobOrigin origin = read_origin(context.paths(), id);
  if (origin.command.empty())
    return make_error(Code::not_found,
                      "gridctl did not keep the file of job " + id.value + ": an older version submitted it",
                      "gridctl job show " + id.value);
  if (context.json)
    return context.print_line(
        JsonObject()("job_id", id.value).text_or_null("file", origin.file)("command", origin.command).text());
  if (origin.file.empty()) return context.print_line(origin.command);
  context.print(origin.file);
  return context.note("submitted by: " + sanitize(origin.command));
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const JobId id, registry.resolve(parsed.positionals[0]));
  if (parsed.has("file")) return show_file(context, id);
  TRY(warn_unfollowed(context, registry));
  TRY_ASSIGN(registry::Job job, registry.job(id));
  if (!job::is_final(job.state)) {
    TRY_ASSIGN(const registry::Spent spent, registry.spent(id, context.now()));
    job.cost = spent.usd;
  }
  TRY_ASSIGN(const std::vector<registry::AttemptRecord> attempts, registry.attempts(id));
  TRY_ASSIGN(const std::optional<DeadlineView> deadline, deadline_of(registry, job, context.now()));
  TRY_ASSIGN(const std::optional<ToleranceView> tolerance, tolerance_view(registry, job));
  TRY_ASSIGN(const std::vector<registry::JobRow> twins, registry.twins(id));
  TRY_ASSIGN(const Metrics told, told_by(registry, job));
  TRY_ASSIGN(const std::optional<ui::ExactnessTold> exactness, exactness_of(context.paths(), registry, id));
  const registry::UseNow uses = registry::read_use(context.state, context.now());
  const registry::JobUse* use = uses.of(id);
  std::optional<BagSeen> bag;
  if (job.spec.tasks && job.spec.twin_of.value.empty()) {
    TRY_ASSIGN(bag, read_bag(context.paths(), job));
  }
  if (context.json) {
    std::string text = ui::job_json(job, attempts, twins, deadline ? std::optional{deadline->told} : std::nullopt, told, exactness, use);
    if (!job.spec.image_digests.empty()) {
      JsonObject digests;
      for (const auto& [image, digest] : job.spec.image_digests) digests(image, digest);
      text.insert(text.size() - 1, ",\"image_digests\":" + digests.text());
    }
    if (bag) text.insert(text.size() - 1, ",\"tasks\":" + tasks_json(*bag) + ",\"bag\":" + bag_json(bag->bag));
    if (tolerance) text.insert(text.size() - 1, ",\"fault_tolerance\":" + std::to_string(tolerance->level));
    return context.print_line(text);
  }
  TRY_ASSIGN(const double price, price_of_all(registry, job, twins));
  std::optional<registry::Checkpoint> head;
  if (job.machine.head.value != 0) {
    Result<registry::Checkpoint> newest = registry.checkpoint(id, std::nullopt);
    if (newest) head = *std::move(newest);
    else if (newest.error().code != Code::not_found) return std::move(newest).error();  // a drill's are removed
  }
  TRY_ASSIGN(const std::optional<registry::Drill> drill, registry.drill(job.name));
  std::string no_checkpoint;
  if (!job::is_final(job.state)) {
    TRY_ASSIGN(no_checkpoint, registry.no_checkpoint(id));
  }
  const WallTime now = context.now();
  ui::Facts facts = facts_of(job, twins, price, head, drill, deadline, tolerance, no_checkpoint, told, exactness, now);
  facts.add("receipts", disputes_of(context, id));
  context.print(facts.render(context.out_style));
  if (bag) {
    context.print("\n");
    for (const std::string& line : bag_in_words(*bag)) context.print_line(line);
  }
  if (!attempts.empty())
    context.print("\n" + table_of(id, attempts, now).render(context.columns_out(), context.out_style));
  if (use != nullptr && job.state == job::JobState::running)
    context.print("\n" + ui::use_table(*use).render(context.columns_out(), context.out_style));
  return 0;
}
}  // namespace
}  // namespace job_show

const Command k_job_show{
    .name = "job show",
    .summary = "show everything about a job",
    .examples = {{"Show the most recent job", "gridctl job show @last"},
                 {"Print its state in a script", "gridctl job show train-gpt --json | jq -r .state"},
                 {"Get its job file back", "gridctl job show train-gpt --file > train.yaml"}},
    .description =
        "Shows the job's state with its reason, its attempts and its newest checkpoint, and how busy each host of a "
        "running job is: GPUs, their memory and temperature, processors and memory, as measured within the last "
        "minute. ID is the job's id, a unique prefix of the id, its name, or @last. With --file, the command prints "
        "the job file as it was submitted, or the command line of a job without a file; values of secrets are masked.",
    .positionals = {{"ID", Completion::job}},
    .options = {{"file", 0, "", "print the submitted job file"}},
    .exit_codes = k_exits_job,
    .run = job_show::run};

}  // namespace gridctl::cmd

// SPDX-License-Identifier: Apache-2.0
#include "cmd/submit_checks.hpp"

#include "base/text.hpp"
#include "cmd/network.hpp"
#include "control/follow/drilled.hpp"
#include "control/follow/inputs.hpp"
#include "control/measure/network_watch.hpp"
#include "images/ask_digest.hpp"
#include "job/image_reference.hpp"
#include "job/task_template.hpp"
#include "sched/geo/residency.hpp"

namespace gridctl::cmd {

namespace {
constexpr Duration k_long_job = std::chrono::hours{1};

constexpr Duration k_registries_wait = std::chrono::seconds{10};  // somebody waits for it

bool would_suit_a_lent_host(job::Spec spec, const std::vector<sched::HostFacts>& hosts) {
  spec.num_nodes = 1;
  spec.constraints.image_tags = true;
  std::set<HostName> never;
  for (const sched::Rejection& one : sched::place(spec, hosts, {}).rejections)
    if (!one.temporary) never.insert(one.host);
  return std::ranges::any_of(hosts, [&](const sched::HostFacts& host) {
    return sched::is_lent(host.host_class, host.labels) && !never.contains(host.name);
  });
}

constexpr Duration k_measuring_patience = std::chrono::seconds{15};
constexpr std::size_t k_measured_hosts_max = 8;  // 28 links: more cannot be measured in some seconds

constexpr std::uint64_t k_sent_unasked_max = 1u << 30, k_files_unasked_max = 20'000;
constexpr int k_items_looked_at = 1000;  // items are of one kind, as a rule

bool is_below(const os::Path& path) {
  if (path.empty() || path.is_absolute()) return false;
  const os::Path plain = path.lexically_normal();
  return plain.begin() != plain.end() && *plain.begin() != "..";
}
}  // namespace

Result<std::string> drill_warning(registry::JobRecords& registry, const job::Spec& spec,
                                  const sched::Decision& decision, const std::vector<sched::HostFacts>& hosts) {
  if ((spec.max_duration && *spec.max_duration < k_long_job) || !decision.placement) return std::string();
  const auto host = std::ranges::find(hosts, decision.placement->host, &sched::HostFacts::name);
  const bool own =
      host == hosts.end() || (host->price_per_hour == 0 && host->host_class != "market" && host->host_class != "cloud");
  if (own) return std::string();
  if (job::interval_on(spec, sched::is_lent(host->host_class, host->labels)) == job::CheckpointPolicy::Interval::off)
    return "job " + spec.name + " takes no checkpoints (checkpoint.interval: off), and " +
           decision.placement->host.value +
           " may be taken away at any time: the job would start over from its beginning";
  TRY_ASSIGN(const std::optional<registry::Drill> drill, registry.drill(spec.name));
  const std::string command = "`gridctl job drill` shows whether it resumes on another host";
  if (!drill) return "job " + spec.name + " was never drilled; " + command;
  if (drill->verdict != "yes") return "the last drill of " + spec.name + " said: " + drill->summary;
  if (drill->fingerprint != control::resume_fingerprint(spec))
    return "job " + spec.name + " has changed since its last drill; " + command;
  return std::string();
}

void find_image_digests(Context& context, job::Spec& spec, std::vector<sched::HostFacts>& hosts) {
  const std::vector<std::string> images = job::images_without_digest(spec);
  if (images.empty() || !would_suit_a_lent_host(spec, hosts)) return;
  const BootTime until = context.clock.boot() + k_registries_wait;
  std::map<std::string, std::string> problems;
  for (const std::string& image : images) {
    const auto read = job::parse_image_reference(image);
    if (!read) continue;
    const auto digest = images::ask_digest(*read, until - context.clock.boot(), context.clock);
    if (digest) spec.image_digests[image] = *digest;
    else problems[image] = digest.error().one_line();
  }
  for (sched::HostFacts& host : hosts) host.image_problems = problems;
}

std::set<std::string> hosts_to_measure(const sched::GangDecision& gang, const sched::GangWish& wish,
                                       const sched::Decision& member, bool again) {
  std::set<std::string> hosts;
  if (wish.near == sched::Near::any || (!again && gang.plan && gang.plan->unmeasured.empty())) return hosts;
  if (gang.plan)
    for (const sched::Placement& one : gang.plan->members) hosts.insert(one.host.value);
  if (member.placement) hosts.insert(member.placement->host.value);
  for (const sched::Placement& one : member.runners_up)
    if (hosts.size() < k_measured_hosts_max) hosts.insert(one.host.value);
  return hosts.size() > 1 ? hosts : std::set<std::string>{};
}

void measure_between(Context& context, registry::HostRecords& registry, std::set<std::string> hosts, bool again) {
  control::MeasureAll wanted;
  wanted.even_fresh = again;
  wanted.among = std::move(hosts);
  wanted.until = context.clock.boot() + k_measuring_patience;
  wanted.told = [&](const sched::LinkTask& task, const Result<void>* outcome) {
    if (outcome == nullptr) context.note("measuring the link between " + task.a + " and " + task.b + (again ? " again" : ""));
    else if (!*outcome) context.note("  not measured: " + sanitize(outcome->error().one_line()));
  };
  const auto measure = [&]() -> Result<void> {
    TRY_ASSIGN(control::SshNetwork net, network_of(context, registry));
    return control::measure_now(registry, context.paths(), net, context.clock, wanted);
  };
  const Result<void> measured = measure();
  if (!measured) context.note("  not measured: " + sanitize(measured.error().one_line()));
}

std::string compulsory_checkpoints_warning(const job::Spec& spec, const sched::Decision& decision,
                                           const std::vector<sched::HostFacts>& hosts) {
  if (job::interval_on(spec, true) == spec.checkpoint.interval) return "";
  std::set<std::string> suitable;
  if (decision.placement) suitable.insert(decision.placement->host.value);
  for (const sched::Placement& one : decision.runners_up) suitable.insert(one.host.value);
  std::vector<std::string> lent;
  for (const sched::HostFacts& host : hosts)
    if (suitable.contains(host.name.value) && sched::is_lent(host.host_class, host.labels)) lent.push_back(host.name.value);
  if (lent.empty()) return "";
  return "checkpoint.interval: off does not hold on borrowed hosts: if the job runs on " + join(lent, " or ") +
         ", checkpoints are taken there as with interval: auto";
}

std::string clear_text_warning(const sched::GangDecision& gang, const std::vector<sched::HostFacts>& hosts) {
  std::vector<std::string> lent;
  if (gang.plan && gang.plan->members.size() > 1)
    for (const sched::Placement& member : gang.plan->members)
      for (const sched::HostFacts& host : hosts)
        if (host.name == member.host && sched::is_lent(host.host_class, host.labels)) lent.push_back(host.name.value);
  if (lent.empty()) return "";
  return "the members of this job exchange data unencrypted, and " + join(lent, ", ") +
         (lent.size() == 1 ? " belongs" : " belong") +
         " to others: anyone who runs these hosts or the network between them can read and change the data; "
         "constraints: {traffic: protected} keeps the members on your own hosts";
}

namespace {
bool is_file_of(const os::Path& here, const os::Path& path) {
  std::error_code ignored;
  return is_below(path) && std::filesystem::is_regular_file(here / path, ignored);
}

// Returns the package or file that `python3 -m NAME` runs.
std::string module_of(const os::Path& here, std::string name) {
  for (char& c : name)
    if (c == '.') c = '/';
  std::error_code ignored;
  if (is_file_of(here, name + ".py")) return name + ".py";
  return is_below(name) && std::filesystem::is_directory(here / name, ignored) ? name : "";
}

std::string named_in(const os::Path& here, const std::vector<std::string>& command) {
  const bool is_line = command.size() == 1 && command[0].find_first_of(" \t\n") != std::string::npos;
  const std::vector<std::string> words = is_line ? split(trim(command[0]), ' ') : command;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].empty() || words[i].starts_with('-')) continue;
    if (i > 0 && words[i - 1] == "-m")
      if (std::string module = module_of(here, words[i]); !module.empty()) return module;
    // A program without a slash is searched for in $PATH.
    if ((i > 0 || words[i].find('/') != std::string::npos) && is_file_of(here, words[i])) return words[i];
  }
  return "";
}

// Returns the first item, or column of one, that is a file or a directory here.
std::string named_by_items(const os::Path& here, std::string_view items) {
  for (int looked = 0; !items.empty() && looked < k_items_looked_at; ++looked) {
    const std::size_t end = std::min(items.find('\0'), items.size());
    for (const std::string& column : split(items.substr(0, end), job::k_column_separator)) {
      std::error_code ignored;
      if (is_below(column) && column.find_first_not_of("./") != std::string::npos && std::filesystem::exists(here / column, ignored)) return column;
    }
    items.remove_prefix(std::min(end + 1, items.size()));
  }
  return "";
}
}  // namespace

Result<void> send_what_is_named(Context& context, const Parsed& parsed, std::string_view items, job::Spec& spec) {
  if (!parsed.has_command || parsed.has("workdir") || !spec.workdir.empty()) return {};
  std::error_code failed;
  const os::Path here = std::filesystem::current_path(failed);
  std::string name = failed ? "" : named_in(here, parsed.command);
  if (!failed && name.empty()) name = named_by_items(here, items);
  if (name.empty()) return {};
  const auto too_much = [&](const std::string& why) {
    return make_error(Code::usage, sanitize(name) + " is on this machine, and this directory " + why +
                                       ": -w . sends it, -w DIR another one, and -w '' none");
  };
  if (here == os::home_directory() || here == here.root_path()) return too_much("is not one to send unasked");
  spec.workdir = here.string();
  TRY_ASSIGN(const std::vector<control::InputListing> sent, control::list_inputs(spec));
  for (const control::InputListing& one : sent)
    if (one.role == "workdir" && (one.bytes > k_sent_unasked_max || one.files > k_files_unasked_max))
      return too_much("is too large to send unasked (" + std::to_string(one.files) + " files, " + format_size(one.bytes) + ")");
  context.note("sending this directory with the job, because it contains " + sanitize(name) + "; -w DIR sends another one, -w '' none");
  return {};
}

}  // namespace gridctl::cmd

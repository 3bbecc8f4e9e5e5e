// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <filesystem>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "cmd/bag_options.hpp"
#include "cmd/bag_view.hpp"
#include "cmd/commands.hpp"
#include "cmd/submission.hpp"
#include "config/tasks.hpp"
#include "control/daemon/daemon.hpp"
#include "control/follow/bag_files.hpp"
#include "control/follow/secrets.hpp"
#include "job/last_step.hpp"

namespace gridctl::cmd {

namespace {

Error wrong(const registry::Job& bag, const std::string& why) {
  return make_error(Code::usage, "--append: " + bag.name + " (" + bag.id.value + ") " + why, "gridctl help gridctl-job.5");
}

std::vector<std::int64_t> numbers_of(const config::ParsedJob& array) {
  const job::Tasks& tasks = *array.spec.tasks;
  std::vector<std::int64_t> numbers;
  if (tasks.items == job::ItemForm::none)
    for (int i = 0; i < array.spec.workload.tasks; ++i) numbers.push_back(tasks.array_first + i * tasks.array_step);
  for (const std::string& item : split(array.items, '\0'))
    if (const auto number = parse_number<std::int64_t>(item.substr(item.find('=') + 1))) numbers.push_back(*number);
  return numbers;
}

// An array that continues where the bag's ends needs no items; numbers are appended to a list of numbers.
Result<void> fit_array(const registry::Job& bag, config::ParsedJob& more) {
  const job::Tasks& its = *bag.spec.tasks;
  const std::vector<std::int64_t> numbers = numbers_of(more);
  const bool lists = its.items == job::ItemForm::variables && bag.spec.envs.contains(config::k_array_count_name);
  more.items.clear();
  more.spec.tasks->items = lists ? its.items : job::ItemForm::none;
  if (lists) {
    for (const std::int64_t number : numbers) more.items += "SLURM_ARRAY_TASK_ID=" + std::to_string(number) + '\0';
    return {};
  }
  const std::int64_t next = its.array_first + bag.spec.workload.tasks * its.array_step;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] != next + static_cast<std::int64_t>(i) * its.array_step)
      return wrong(bag, "numbers its tasks in steps of " + std::to_string(its.array_step) +
                            ": its array continues with " + std::to_string(next));
  return {};
}

// The bag keeps the options it was submitted with.
Result<void> check_options(const Parsed& parsed) {
  static constexpr std::array k_taken{"append", "array", "each", "arg-file", "detach", "yes"};
  for (const Option& option : k_job_submit.options)
    if (parsed.has(option.name) && std::ranges::find(k_taken, option.name) == k_taken.end())
      return make_error(Code::usage,
                        "--" + std::string(option.name) +
                            " cannot be combined with --append: the bag keeps the options it was submitted with");
  return {};
}

Result<config::ParsedJob> read_more(const Parsed& parsed, const registry::Job& bag) {
  const std::string here = std::filesystem::current_path().string();
  if (!parsed.positionals.empty()) {
    TRY_ASSIGN(config::ParsedJob more, config::load_job_file(parsed.positionals[0], {}));
    if (!more.spec.tasks) return make_error(Code::usage, "--append: " + parsed.positionals[0] + " has no tasks");
    if (more.spec.envs.contains("SKYPILOT_NUM_JOBS"))
      return wrong(bag, "passes num_jobs to its tasks, so it cannot grow: submit the other tasks as a separate bag");
    if (more.spec.envs.contains(config::k_array_count_name)) TRY(fit_array(bag, more));
    return more;
  }
  if (parsed.has("array")) {
    const Result<config::ArraySpec> array = config::parse_array(parsed.value("array"));
    if (!array) return make_error(Code::usage, "--array: expected " + array.error().message);
    config::ParsedJob more;
    TRY(config::set_array(*array, more));
    TRY(fit_array(bag, more));
    return more;
  }
  const bool has_words = !parsed.command.empty() && parsed.command.front() != ":::" && parsed.command.front() != "::::";
  if (has_words)
    return make_error(Code::usage, "--append: the bag already has a command; give items only",
                      "ls *.wav | gridctl job submit --append " + bag.id.value);
  return each_from_command(parsed, config::local_context(here));
}

std::ptrdiff_t columns_of(std::string_view items) { return std::ranges::count(items.substr(0, items.find('\0')), '\x1f'); }

// Returns the first so many items of the bag, followed by these.
Result<std::string> items_with(const os::Path& folder, std::uint64_t tasks, const std::string& more) {
  TRY_ASSIGN(std::string items, control::read_bag_items(folder));
  std::size_t end = 0;
  for (std::uint64_t i = 0; i < tasks; ++i) {
    end = items.find('\0', end);
    if (end++ == std::string::npos) return make_error(Code::state_unreadable, "the bag has fewer items than tasks");
  }
  if (more.size() > control::k_bag_items_bytes_max - end) return make_error(Code::usage, "--append: the items of the bag would be larger than 1 GiB");
  items.resize(end);
  return items + more;
}

}  // namespace

// The items are written before the job names them, because the daemon takes what the job names into the journal.
Result<int> append_to_bag(Context& context, const Parsed& parsed) {
  TRY(check_options(parsed));
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const JobId id, registry.resolve(parsed.value("append")));
  TRY_ASSIGN(registry::Job bag, registry.job(id));
  if (!bag.spec.tasks || !bag.spec.twin_of.value.empty()) return wrong(bag, "is not a bag of tasks");
  TRY_ASSIGN(const config::ParsedJob more, read_more(parsed, bag));
  if (more.spec.tasks->items != bag.spec.tasks->items)
    return wrong(bag, "has tasks with " + std::string(job::item_form_name(bag.spec.tasks->items)) + " as items, and these have " +
                          std::string(job::item_form_name(more.spec.tasks->items)));
  if (more.spec.tasks->items == job::ItemForm::columns) {
    TRY_ASSIGN(const std::string known, control::read_bag_items(context.paths().bag_of(id)));
    if (columns_of(known) != columns_of(more.items)) return wrong(bag, "has items of " + std::to_string(columns_of(known) + 1) + " columns");
  }
  const int added = more.spec.workload.tasks;
  const auto commit = [&]() -> Result<void> {
    TRY_ASSIGN(bag, registry.job(id));
    const bool ends = bag.machine.cancel || (job::is_last_step(bag.spec) && std::holds_alternative<job::Collecting>(bag.machine.phase));
    if (ends && !job::is_final(bag.state))
      return make_error(
          Code::state_in_use,
          "--append: " + bag.name + " (" + id.value + ") is about to end: add the tasks after it has ended",
          "gridctl job watch " + id.value);
    const int tasks = bag.spec.workload.tasks;
    if (added > job::k_tasks_max - tasks) return make_error(Code::usage, "--append: more than 10,000,000 tasks");
    if (!more.items.empty()) {
      const os::Path folder = context.paths().bag_of(id);
      TRY_ASSIGN(const std::string items, items_with(folder, static_cast<std::uint64_t>(tasks), more.items));
      TRY(control::write_bag_items(folder, items));
    }
    bag.spec.workload.tasks = tasks + added;
    TRY(registry.update_spec(id, bag.spec));
    if (!job::is_final(bag.state)) return {};
    TRY_ASSIGN(const BagSeen seen, read_bag(context.paths(), bag));
    const std::optional<int> most = bag.spec.tasks->max_fails;
    if (most && seen.bag.progress().failed > static_cast<std::uint64_t>(*most))
      return make_error(
          Code::usage,
          "--append: " + bag.name + " (" + id.value + ") has ended because more than max_fails of its tasks failed",
          "gridctl job resume " + id.value + ", then add the tasks");
    TRY_ASSIGN(const auto secrets, secrets_of(context.paths(), bag, "gridctl job submit --append " + id.value));
    if (!secrets.empty()) TRY(control::write_secrets(context.paths().secrets_of(id), secrets));
    TRY(registry.apply(id, {context.now(), job::ResumeRequested{}}));
    return {};
  };
  TRY(registry.together(commit));
  TRY(control::ensure_daemon(context.state, true));
  if (context.json)
    return context.print_line(JsonObject()("job_id", id.value)("tasks_added", added)("tasks", bag.spec.workload.tasks).text());
  context.print_line(bag.name + " (" + id.value + ") has " + std::to_string(added) + (added == 1 ? " more task, " : " more tasks, ") +
                     std::to_string(bag.spec.workload.tasks) + " in all");
  return context.note("follow it: gridctl job watch " + id.value);
}

}  // namespace gridctl::cmd

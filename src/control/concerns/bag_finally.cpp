// SPDX-License-Identifier: Apache-2.0
#include "control/concerns/bag_finally.hpp"

#include <functional>
#include <utility>

#include "control/follow/limits.hpp"

namespace gridctl::control {

namespace {

constexpr const char* k_gather_work = "bag-gather";
constexpr Duration k_gather_pause = std::chrono::seconds{30};
constexpr std::size_t k_failed_named = 1000;

// Returns true when the job waits; stops its attempt first if it has one.
bool is_waiting(const Controls& controls, TrackedJob& leader) {
  if (leader.unsure) return false;
  if (leader.in<job::Running>() != nullptr || leader.in<job::Launching>() != nullptr)
    controls.book.apply(leader.id(), job::MoveRequested{leader.state().attempt()->epoch, std::string(job::k_for_tasks)});
  return leader.in<job::Waiting>() != nullptr && !leader.unsure;
}

// Commits a step of the bag's job together with its present specification. Tasks may just have been added; then the bag
// is not over.
void commit_unless_grown(const Controls& controls, TrackedJob& leader, const std::function<Result<job::Step>(job::Spec&)>& step) {
  registry::JobRecords& records = controls.world.records;
  std::optional<job::Spec> spec;
  Result<job::Step> taken = make_error(Code::busy, "tasks were added");
  const Result<void> committed = records.together([&]() -> Result<void> {
    TRY_ASSIGN(const registry::Job now, records.job(leader.id()));
    if (now.spec.workload.tasks != leader.spec().workload.tasks) return {};
    spec = now.spec;
    taken = step(*spec);
    return taken ? Result<void>{} : taken.error();
  });
  if (!committed) return controls.book.take(leader.id(), committed.error());
  if (!spec) return controls.book.refresh_soon();
  leader.row.spec = *std::move(spec);
  controls.book.take(leader.id(), taken);
}

void change(const Controls& controls, TrackedJob& leader, const std::function<void(job::Spec&)>& shape,
            const std::optional<GatheredTasks>& gathered) {
  commit_unless_grown(controls, leader, [&](job::Spec& spec) -> Result<job::Step> {
    registry::JobRecords& records = controls.world.records;
    TRY_ASSIGN(std::vector<registry::Input> inputs, records.inputs(leader.id()));
    std::erase_if(inputs, [](const registry::Input& one) { return one.role == job::k_tasks_role; });
    if (gathered) inputs.push_back({job::k_tasks_role, "", gathered->root, gathered->bytes});
    shape(spec);
    return records.replace(leader.id(), spec, inputs, {controls.world.clock.wall(), job::MoveWithdrawn{}});
  });
  if (leader.in<job::Waiting>() != nullptr && !leader.unsure) controls.placement.place_now(leader);
}

bool may_pass(Code code) { return code == Code::io || code == Code::no_space || code == Code::state_in_use || code == Code::busy; }

}  // namespace

void end_workers(const Controls& controls, const TrackedJob& leader, std::set<std::string> workers, const std::string& text) {
  for (const std::string& id : workers)
    if (const TrackedJob* worker = controls.book.find({id});
        worker != nullptr && worker != &leader && worker->goes_on() && !worker->unsure)
      controls.book.apply(worker->id(), job::LimitReached{std::string(k_limit_leader), leader.row.name + ": " + text, Duration::zero()});
}

void begin_last_step(const Controls& controls, TrackedJob& leader, const std::set<std::string>& workers, const bag::Bag& bag,
                     std::string text) {
  end_workers(controls, leader, workers, text);
  if (!is_waiting(controls, leader) || controls.attempts.is_under_way(leader.id(), k_gather_work)) return;
  const Result<std::vector<registry::Input>> inputs = controls.world.records.inputs(leader.id());
  if (!inputs) return report(inputs.error(), "while reading the files that a bag sends");
  std::optional<Digest> below;
  for (const registry::Input& input : *inputs)
    if (input.role == registry::k_workdir_role) below = input.root;
  const bag::Progress now = bag.progress();
  const auto shape = [now, list = bag::to_text(bag.failed().list(), k_failed_named)](job::Spec& spec) {
    spec = job::at_level(std::move(spec), 0);
    spec.envs[job::k_tasks_done_name] = std::to_string(now.done);
    spec.envs[job::k_tasks_failed_name] = std::to_string(now.failed);
    spec.envs[job::k_tasks_failed_list_name] = list;
  };
  controls.attempts.in_background(
      leader.id(), k_gather_work, {os::Lane::Kind::urgent, {}},
      [folders = &controls.world.folders, id = leader.id(), spec = leader.spec(), below] { return folders->bag_gather(id, spec, below); },
      [controls, shape, text = std::move(text)](TrackedJob& job, const Result<GatheredTasks>& gathered) {
        if (job.in<job::Waiting>() == nullptr || job.unsure) return;
        if (gathered) {
          if (!gathered->missing.empty())
            controls.book.note(
                job.id(),
                {"tasks_missing", "the files of these tasks were lost with their hosts: " + gathered->missing, {}, {}});
          return change(controls, job, shape, *gathered);
        }
        const std::string why =
            "the files of the tasks could not be collected for 'finally': " + gathered.error().one_line();
        controls.book.note(job.id(), {"gather_failed", why, {}, {}});
        if (may_pass(gathered.error().code)) return controls.attempts.try_later(job.id(), k_gather_work, k_gather_pause);
        end_bag(controls, job, {text + "; " + why, job::Overtaken::tasks_failed});
      });
}

void back_to_tasks(const Controls& controls, TrackedJob& leader) {
  reshape(controls, leader, [](job::Spec& spec) { spec = job::without_last_step(std::move(spec)); });
}

void reshape(const Controls& controls, TrackedJob& leader, const std::function<void(job::Spec&)>& shape) {
  if (is_waiting(controls, leader)) change(controls, leader, shape, std::nullopt);
}

void end_bag(const Controls& controls, TrackedJob& leader, const job::TwinSucceeded& end) {
  commit_unless_grown(controls, leader, [&](const job::Spec&) {
    return controls.world.records.apply(leader.id(), {controls.world.clock.wall(), end});
  });
}

void judge_last_step(const Controls& controls, TrackedJob& leader, const bag::Bag& bag) {
  const auto* collecting = leader.in<job::Collecting>();
  if (works_on_tasks(leader) || collecting == nullptr || leader.unsure || leader.state().cancel || !collecting->moving.empty()) return;
  const Epoch epoch = collecting->attempt.epoch;
  const bag::Progress now = bag.progress();
  if (now.over() && now.tasks == static_cast<std::uint64_t>(leader.spec().workload.tasks)) {
    if (!collecting->end.success()) return;
    end_bag(controls, leader, {bag::end_in_words(bag) + "; finally succeeded on " + collecting->attempt.where(),
                               now.failed == 0 ? job::Overtaken::tasks_done : job::Overtaken::tasks_failed});
  }
  if (!leader.unsure && !leader.state().cancel) controls.book.apply(leader.id(), job::MoveRequested{epoch, std::string(job::k_for_tasks)});
}

}  // namespace gridctl::control

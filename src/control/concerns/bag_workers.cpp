// SPDX-License-Identifier: Apache-2.0
#include "control/concerns/bag_workers.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/bytes.hpp"
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

namespace {

// The history of a worker's own job is seldom looked at. The bag's own job has the same event already.
void tell_of_worker(const Controls& controls, const TrackedJob& leader, const TrackedJob& worker, const char* kind,
                    const BagRun::Seat& seat, Epoch epoch) {
  if (worker.id() == leader.id()) return;
  const auto* collecting = worker.in<job::Collecting>();  // its reason is what is fetched
  const std::string text = collecting != nullptr && !collecting->moving.empty()
                               ? job::leaving_in_words(seat.host, collecting->moving) + ": stopped there"
                               : worker.state().reason_text;
  controls.book.note(leader.id(), {kind, text, epoch, seat.host});
}

}  // namespace

void look_after_leaving(const Controls& controls, const TrackedJob& leader, BagRun& run) {
  for (auto& [worker, seat] : run.seats()) {
    TrackedJob* job = controls.book.find(seat.job);
    const job::Attempt* attempt = job == nullptr ? nullptr : job->state().attempt();
    if (attempt == nullptr || attempt->epoch.value != worker.epoch || job->unsure) continue;
    job->idle_for_move.reset();
    job->runs_spared = std::ranges::any_of(seat.running, [&](bag::Index index) { return run.bag().is_spared(index); });
    const auto* running = job->in<job::Running>();
    const bool was_asked = seat.leaves;
    if (running == nullptr) {
      if (was_asked && !std::exchange(seat.has_left, true)) tell_of_worker(controls, leader, *job, "worker_left", seat, attempt->epoch);
      continue;
    }
    seat.leaves = running->move.has_value();
    if (seat.leaves != was_asked)
      tell_of_worker(controls, leader, *job, seat.leaves ? "worker_leaves" : "worker_stays", seat, attempt->epoch);
    if (!seat.leaves) {
      if (was_asked) run.give(worker);
    } else if (run.empty(worker)) {
      job->idle_for_move = running->move->since;
    }
  }
}

namespace {
constexpr std::size_t k_worker_name_max = 63;

constexpr double k_hungry_worth_s = 2;  // of hungry work for each worker: then another one is made
constexpr std::size_t k_hungry_named = 20;

struct Richer {
  job::Resources resources;
  bool has_place = false;  // now
};

// Returns the resources of a worker of this level, capped at those of the largest host. nullopt: no host has more than
// the workers of the previous level.
std::optional<Richer> richer(const Controls& controls, const TrackedJob& leader, std::uint64_t level) {
  Question question = controls.placement.question(leader);
  question.spec = job::at_level(std::move(question.spec), level);
  const job::Resources before = job::at_level(leader.spec(), level - 1).resources;
  const job::Resources wanted = question.spec.resources;
  std::set<std::pair<std::uint64_t, std::uint64_t>, std::greater<>> sizes{{wanted.memory_bytes, wanted.disk_bytes}};
  for (const sched::HostFacts& host : question.hosts)
    sizes.emplace(std::clamp(host.inventory->memory_bytes, before.memory_bytes, wanted.memory_bytes),
                  std::clamp(host.inventory->disk_free_bytes, before.disk_bytes, wanted.disk_bytes));
  for (const auto& [memory, disk] : sizes) {
    if (memory <= before.memory_bytes && disk <= before.disk_bytes) continue;
    question.spec.resources.memory_bytes = memory;
    question.spec.resources.disk_bytes = disk;
    const sched::Decision decision = controls.placement.decide(leader, question);
    if (decision.could_ever_fit) return Richer{question.spec.resources, decision.placement.has_value()};
  }
  return std::nullopt;
}

// Describes a raise as "64 MiB of memory", or "1 GiB of memory or 10 GiB of disk".
std::string raise_in_words(const job::Raise& raise, const job::Resources& resources) {
  const std::string memory = raise.memory > 0 ? format_size(resources.memory_bytes) + " of memory" : "";
  const std::string disk = raise.disk > 0 ? format_size(resources.disk_bytes) + " of disk" : "";
  return memory + (memory.empty() || disk.empty() ? "" : " or ") + disk;
}

job::Spec with_more(job::Spec spec, std::uint64_t level, const job::Resources& resources) {
  spec = job::at_level(std::move(spec), level);
  spec.resources = resources;
  return spec;
}

// Counts workers that can run the hungry tasks, now or soon.
struct Able {
  std::uint64_t working = 0, all = 0;  // all: of any level
  bool on_its_way = false, waits = false;
  double slowest_s = 0;  // of one task
};

Able able(const Controls& controls, const std::set<std::string>& members, BagRun& run, std::uint64_t level) {
  Able found;
  for (const std::string& id : members) {
    const TrackedJob* job = std::as_const(controls.book).find({id});
    if (job != nullptr && job->in<job::Done>() != nullptr) continue;
    ++found.all;
    if (job == nullptr) found.on_its_way = true;  // it was made a moment ago
    if (job == nullptr || job->spec().tasks->raise.level < level) continue;
    if (job->in<job::Waiting>() != nullptr) found.waits = true;
    else if (job->in<job::Running>() == nullptr) found.on_its_way = true;
  }
  for (const auto& [worker, seat] : run.seats()) {
    const bag::Holder* holder = run.bag().find(worker);
    if (seat.ended || holder == nullptr || !holder->open || holder->is_shunned() || holder->level < level) continue;
    ++found.working;
    found.slowest_s = std::max(found.slowest_s, seat.pace.task_s);
  }
  return found;
}

}  // namespace

std::uint64_t room_for(const Controls& controls, const TrackedJob& leader, std::uint64_t most) {
  Question question = controls.placement.question(leader);
  question.spec.resources = job::at_level(leader.spec(), 0).resources;
  for (std::uint64_t count = 0; count < most; ++count) {
    const auto placed = controls.placement.decide(leader, question).placement;
    if (!placed) return count;
    const auto host = std::ranges::find(question.hosts, placed->host, &sched::HostFacts::name);
    if (host != question.hosts.end()) sched::take_away(*host, placed->gpu_uuids, placed->cpus, placed->memory_bytes);
  }
  return most;
}

void feed_hungry(const Controls& controls, TrackedJob& leader, std::set<std::string> members, BagRun& run, std::uint64_t most,
                 const std::function<void(job::Spec)>& make) {
  const bag::Bag& bag = run.bag();
  if (bag.hungry().empty() || leader.unsure) return;
  const auto& [level, tasks] = *bag.hungry().begin();
  const Able there = able(controls, members, run, level);
  if (there.on_its_way) return;
  if (there.working > 0 && static_cast<double>(tasks.count()) * there.slowest_s < k_hungry_worth_s * static_cast<double>(there.working)) return;
  const job::Raise& raise = leader.spec().tasks->raise;
  const std::optional<Richer> next = richer(controls, leader, level);
  const std::string ran_out = "tasks that ran out of " + raise_in_words(raise, job::at_level(leader.spec(), level - 1).resources) + " (" +
                              bag::to_text(tasks.list(), k_hungry_named) + ")";
  if (!next) {
    if (there.working > 0) return;
    controls.book.note(leader.id(),
                       {"no_host_has_more", ran_out + " failed: no host that can run them has more", {}, {}});
    return run.add(bag::Capped{level});
  }
  const std::string again = ran_out + " are retried with " + raise_in_words(raise, next->resources);
  if (next->has_place && !there.waits && there.all < most) {
    if (there.working == 0) controls.book.note(leader.id(), {"tried_with_more", again, {}, {}});
    return make(with_more(leader.spec(), level, next->resources));
  }
  const bool others_work = there.working > 0 || bag.progress().held > 0 || bag.waiting(level - 1) > 0;
  if (others_work || raise.level >= level) return;
  end_workers(controls, leader, std::move(members), again);
  const std::uint64_t mine = level;
  reshape(controls, leader, [&](job::Spec& spec) { spec = with_more(std::move(spec), mine, next->resources); });
  if (leader.spec().tasks->raise.level >= mine) controls.book.note(leader.id(), {"tried_with_more", again, {}, {}});
}

std::uint32_t worker_number(const TrackedJob& job) {
  return job.spec().twin_of.empty() ? 1 : registry::twin_number(job.id());
}

job::Spec worker_spec(const TrackedJob& leader, job::Spec spec, std::uint32_t number) {
  const std::string ending = "-w" + std::to_string(number);
  spec.name = spec.name.substr(0, k_worker_name_max - ending.size()) + ending;
  spec.twin_of = leader.id();
  spec.budget_total.reset();
  spec.max_duration.reset();
  spec.deadline.reset();
  return spec;
}

}  // namespace gridctl::control

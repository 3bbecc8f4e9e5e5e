// SPDX-License-Identifier: Apache-2.0
// Runs bags: jobs with `tasks`. The job itself is the first worker. The other workers are jobs of their own, made while
// tasks wait and a host has room; like twins, they end with the bag. A worker's attempt holds ranges of tasks; when its
// host is lost, other workers get the ranges at once.
#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "control/concerns/bag_workers.hpp"
#include "control/concerns/table.hpp"
#include "control/follow/bag_link.hpp"
#include "control/follow/bag_run.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_news_wait = std::chrono::milliseconds{300};    // that a host may hold an answer back
constexpr Duration k_gather_least = std::chrono::milliseconds{20};  // of results, from the first on:
constexpr Duration k_gather_most = std::chrono::milliseconds{250};
constexpr int k_gather_share = 8;                                   // of the time that what a worker holds lasts
constexpr Duration k_link_kept = std::chrono::seconds{30};          // without a worker there
constexpr Duration k_last_results = std::chrono::seconds{20};       // that a host which answers is asked after an end
constexpr Duration k_last_output = std::chrono::seconds{10};        // that is waited for when all tasks are done;
constexpr Duration k_last_files = std::chrono::minutes{10};         // and where a last step needs it
constexpr std::uint32_t k_output_piece = 512 * 1024;
constexpr double k_worth_s = 2;                                     // of work that waits: for each worker more
constexpr Duration k_first_results = std::chrono::milliseconds{250};  // of the first worker: they tell how long tasks take
constexpr std::uint64_t k_many = 4000;                              // tasks that are worth another worker however short they are
constexpr std::uint64_t k_burst_most = 8;                           // workers that are made at once
constexpr int k_workers_failed_max = 3;
constexpr Duration k_feed_pause = std::chrono::seconds{1};          // between two looks at hungry tasks
constexpr Duration k_ask_pause = std::chrono::seconds{5};           // for room that nobody told of
constexpr const char* k_making = "while making a worker";

class BagConcern : public Concern {
 public:
  explicit BagConcern(const Controls& controls) : controls_(controls) {}

  [[nodiscard]] Duration period() const override { return std::chrono::milliseconds{200}; }

  // Hosts that still have to be cleaned up may hold results.
  void found(const TrackedJob& job) override {
    if (!job.spec().tasks) return;
    TrackedJob& mine = *controls_.book.find(job.id());
    for (const job::PendingCleanup& end : job.state().pending_cleanups) mine.unfetched.insert(end.epoch.value);
    if (const job::Attempt* attempt = job.state().attempt(); attempt != nullptr && works_on_tasks(job)) mine.unfetched.insert(attempt->epoch.value);
    Live& live = bags_[job.leader_id().value];
    live.members.insert(job.id().value);
    if (worker_number(job) == 1) reopen(job, live);  // its workers may have kept the bag open since it ended, and was resumed
    if (job.in<job::Collecting>() != nullptr) soon();
  }
  void changed(const TrackedJob& job, const job::State& before) override {
    if (!job.spec().tasks) return;
    bags_[job.leader_id().value].members.insert(job.id().value);
    TrackedJob& mine = *controls_.book.find(job.id());
    if (const job::Attempt* attempt = job.state().attempt(); works_on_tasks(job) && job.in<job::Running>() != nullptr)
      if (mine.unfetched.insert(attempt->epoch.value).second) soon();
    // No result of the host that ended the job has arrived yet.
    if (job.in<job::Collecting>() != nullptr && !std::holds_alternative<job::Collecting>(before.phase)) soon();
    // The job was resumed, so its journal has changed.
    if (std::holds_alternative<job::Done>(before.phase) && job.in<job::Done>() == nullptr && worker_number(job) == 1)
      reopen(job, bags_[job.id().value]);
  }
  void forgotten(const JobId& id) override {
    for (auto& [leader, live] : bags_) live.members.erase(id.value);
    std::erase_if(bags_, [](const auto& one) { return one.second.members.empty(); });
  }

  // A worker needs no host when no task is left for it.
  [[nodiscard]] std::optional<Held> holds(const TrackedJob& asking) const override {
    if (!asking.spec().tasks) return std::nullopt;
    const auto found = bags_.find(asking.leader_id().value);
    if (found == bags_.end() || found->second.run == nullptr)
      return Held{found == bags_.end() || found->second.trouble.empty() ? "the bag is being opened" : found->second.trouble};
    const bag::Bag& bag = found->second.run->bag();
    const bool over = bag.progress().over();
    if (over && works_on_tasks(asking))
      return Held{has_last_step(asking) ? "collecting the files of its tasks for its last step" : "all tasks are done"};
    if (!over && !works_on_tasks(asking)) return Held{"the bag still has unfinished tasks"};
    if (worker_number(asking) == 1) {  // else it would start as it was before it can be given more
      const bool starves = !over && !bag.hungry().empty() && bag.waiting(asking.spec().tasks->raise.level) == 0;
      return starves ? std::optional(Held{"the remaining tasks need more memory or disk"}) : std::nullopt;
    }
    const TrackedJob* leader = std::as_const(controls_.book).find({found->first});
    if (leader == nullptr || !leader->goes_on()) return Held{"the bag has ended"};
    return bag.waiting(asking.spec().tasks->raise.level) == 0 ? std::optional(Held{"no task is left for another worker"}) : std::nullopt;
  }

  void tick(BootTime now) override {
    std::vector<std::string> ids;  // bags may come and go meanwhile
    for (const auto& [id, live] : bags_) ids.push_back(id);
    for (const std::string& id : ids) {
      if (!bags_.contains(id)) continue;
      Live& live = bags_.at(id);
      TrackedJob* leader = controls_.book.find({id});
      if (leader != nullptr && live.is_stale && !reopen(*leader, live)) continue;
      if (leader != nullptr && (live.run != nullptr || open(*leader, live))) look_after(*leader, live, now);
      else release(live, leader);
    }
    for (auto& [name, line] : lines_) line.link->tick(now);
    std::erase_if(lines_, [&](const auto& one) { return now - one.second.used > k_link_kept; });
    pump_all();
  }

 private:
  struct Live {
    std::set<std::string> members;  // ids of the leader and of all workers that are followed
    std::shared_ptr<BagRun> run;
    bool is_stale = false;          // its journal says more, and is read when all that we know is written
    std::uint32_t next = 2;         // number of the next worker
    int failed_workers = 0;
    std::uint64_t no_room_at = 0;   // Fleet::capacity() when no host had room for one more
    BootTime ask_again{}, feed_at{};
    std::string trouble;            // why it cannot be opened, for people
    std::optional<BootTime> try_again{};
    std::optional<BootTime> began{};  // since when its first worker runs
    std::optional<BootTime> over{};  // since when its results are all here
  };
  struct Line {
    std::shared_ptr<BagLink> link;
    BootTime used{};
    BootTime not_before{};     // it answered at once though it had no news
    bool output_next = false;  // results and output are asked for in turns,
    std::size_t turn = 0;      // and so are the workers for their output
  };

  bool open(const TrackedJob& leader, Live& live) {
    if (!leader.goes_on()) return false;
    const BootTime now = controls_.world.clock.boot();
    if (live.try_again && now < *live.try_again) return false;
    Result<std::shared_ptr<BagRun>> run = BagRun::open(controls_.world, leader);
    if (!run) {
      live.try_again = now + std::chrono::seconds{30};
      if (std::exchange(live.trouble, run.error().one_line()) != live.trouble)
        controls_.book.note(leader.id(), {"bag_unreadable", live.trouble, {}, {}});
      return false;
    }
    live.run = *std::move(run);
    live.over.reset();
    live.trouble.clear();
    if (!live.run->repaired().empty())
      controls_.book.note(leader.id(), {"journal_repaired", live.run->repaired(), {}, {}});
    return true;
  }

  // Returns false if the journal cannot be read yet: a write under way would be missing from what is read.
  bool reopen(const TrackedJob& leader, Live& live) {
    live.is_stale = live.run != nullptr && !live.run->is_saved();
    if (live.is_stale) return save(live), false;
    live.run.reset();
    return open(leader, live);
  }

  // Lets the hosts be cleaned up: none of their results is needed any more.
  void release(Live& live, const TrackedJob* leader) {
    if (leader != nullptr && leader->goes_on()) return;  // it is only not open yet
    for (const std::string& id : live.members)
      if (TrackedJob* job = controls_.book.find({id})) job->unfetched.clear();
  }

  void look_after(TrackedJob& leader, Live& live, BootTime now) {
    for (const std::string& id : live.members)
      if (TrackedJob* job = controls_.book.find({id})) take_seats(*job, live, now);
    close_seats(leader, live, now);
    look_after_leaving(controls_, leader, *live.run);
    if (!leader.goes_on()) return void(live.run->seats().empty() ? live.run.reset() : void());
    report(live.run->add_tasks(leader), "while adding tasks to bag " + leader.id().value);
    save(live);
    judge_last_step(controls_, leader, live.run->bag());
    if (live.run->bag().progress().over() || is_too_bad(leader, live)) return end(leader, live);
    live.over.reset();
    if (!works_on_tasks(leader)) return back_to_tasks(controls_, leader);
    if (now >= live.feed_at) {
      live.feed_at = now + k_feed_pause;
      feed_hungry(controls_, leader, live.members, *live.run,
                  live.failed_workers < k_workers_failed_max ? workers_most(leader) : 0,
                  [&](job::Spec spec) { report(make(leader, live, std::move(spec)), k_making); });
    }
    grow(leader, live, now);
  }

  // Gives a seat to each running attempt, and asks ended ones for the results that they still hold.
  void take_seats(TrackedJob& job, Live& live, BootTime now) {
    const job::Attempt* attempt = job.state().attempt();
    const std::uint32_t number = worker_number(job);
    auto& seats = live.run->seats();
    const bool running = job.in<job::Running>() != nullptr && works_on_tasks(job);
    if (running && !job.unsure && !seats.contains({number, attempt->epoch.value}) &&
        !is_closed(live, {number, attempt->epoch.value})) {
      live.run->join({number, attempt->epoch.value}, job.id(), *attempt, job.spec().tasks->raise.level);
      live.run->give({number, attempt->epoch.value});
    }
    if (job.in<job::Launching>() != nullptr) (void)line_to(attempt->lead().host);  // ready when it runs
    for (const job::PendingCleanup& end : job.state().pending_cleanups)
      if (const bag::Worker worker{number, end.epoch.value}; !seats.contains(worker)) {
        // An earlier daemon may have left the holder open.
        const bag::Holder* holder = live.run->bag().find(worker);
        if (holder == nullptr || !holder->open) {
          job.unfetched.erase(worker.epoch);
          continue;
        }
        job::Attempt former;
        former.epoch = end.epoch;
        former.members.resize(1);
        former.members.front().host = end.host;
        live.run->join(worker, job.id(), former, 0);
      }
    for (auto& [worker, seat] : seats) {
      if (worker.number != number || (attempt != nullptr && attempt->epoch.value == worker.epoch && job.in<job::Collecting>() == nullptr))
        continue;
      if (!seat.ended) seat.ended = now;
      if (const auto* collecting = job.in<job::Collecting>(); collecting != nullptr && collecting->attempt.epoch.value == worker.epoch)
        seat.died = collecting->end.kind == job::EndKind::exited || collecting->end.kind == job::EndKind::signalled ||
                    collecting->end.kind == job::EndKind::oom;
    }
  }

  // Schedules a tick now, because a change should not wait for the next regular one.
  void soon() {
    if (std::exchange(is_soon_, true)) return;
    controls_.world.run.post([this] {
      is_soon_ = false;
      tick(controls_.world.clock.boot());
    });
  }
  void save(Live& live) {
    live.run->save(controls_.attempts, [this, weak = std::weak_ptr(live.run)] {
      pump_all();
      const auto run = weak.lock();
      if (run != nullptr && (run->bag().progress().over() || run->bag().progress().failed > 0)) soon();
    });
  }

  static bool is_closed(const Live& live, const bag::Worker& worker) {
    const bag::Holder* holder = live.run->bag().find(worker);
    return holder != nullptr && !holder->open;
  }

  void close_seats(const TrackedJob& leader, Live& live, BootTime now) {
    std::vector<bag::Worker> done;
    for (auto& [worker, seat] : live.run->seats()) {
      const TrackedJob* job = std::as_const(controls_.book).find(seat.job);
      if (job == nullptr && !seat.ended) seat.ended = now;  // it has ended, and nobody follows it any more
      if (!seat.ended) continue;
      const job::PendingCleanup* cleanup = nullptr;
      if (job != nullptr)
        for (const job::PendingCleanup& end : job->state().pending_cleanups)
          if (end.epoch.value == worker.epoch) cleanup = &end;
      const bool collecting = job != nullptr && job->in<job::Collecting>() != nullptr;
      const bool is_lost = cleanup != nullptr && cleanup->stale;
      if (is_lost) close(leader, live, worker, seat, true);
      const FleetHost* host = controls_.fleet.find(seat.host);
      // A lost host is asked when it is back, and each host for as long as its results cannot be written down here.
      if ((is_lost && (host == nullptr || !host->is_up())) || (leader.goes_on() && live.run->is_blocked())) {
        seat.ended = now;
        continue;
      }
      if (now - *seat.ended > k_last_results || (cleanup == nullptr && !collecting)) done.push_back(worker);
    }
    for (const bag::Worker& worker : done) give_up(leader, live, worker);
    if (controls_.book.is_certain()) live.run->close_forgotten(controls_.book);
  }

  // Gives the worker's tasks to other workers from now on.
  void close(const TrackedJob& leader, Live& live, const bag::Worker& worker, const BagRun::Seat& seat, bool is_lost) {
    const bag::Holder* holder = live.run->bag().find(worker);
    if (holder == nullptr || !holder->open) return;
    const std::uint64_t held = holder->held.count();
    if (held > 0 && !live.run->bag().progress().over())
      controls_.book.note(leader.id(), {"tasks_given_back",
                                        std::to_string(held) + " tasks that " + seat.host.value +
                                            " held go to other workers" + (is_lost ? ": the host is lost" : ""),
                                        {worker.epoch},
                                        seat.host});
    live.run->add(bag::Closed{worker, seat.died ? seat.running : std::vector<std::uint64_t>{}});
  }

  void give_up(const TrackedJob& leader, Live& live, const bag::Worker& worker) {
    const auto seat = live.run->seats().find(worker);
    close(leader, live, worker, seat->second, false);
    if (TrackedJob* job = controls_.book.find(seat->second.job)) job->unfetched.erase(worker.epoch);
    live.run->seats().erase(seat);
  }

  static bool is_too_bad(const TrackedJob& leader, const Live& live) {
    const std::optional<int> most = leader.spec().tasks->max_fails;
    return most && live.run->bag().progress().failed > static_cast<std::uint64_t>(*most);
  }

  void end(TrackedJob& leader, Live& live) {
    // A bag that failed too often stops at once; its results still arrive and are saved.
    const bool over = live.run->bag().progress().over();
    if ((over && !live.run->is_saved()) || leader.unsure || (over && !works_on_tasks(leader))) return;
    const BootTime since = live.over ? *live.over : *(live.over = controls_.world.clock.boot());
    if (over && controls_.world.clock.boot() - since < (has_last_step(leader) ? k_last_files : k_last_output))
      for (const auto& [worker, seat] : live.run->seats())
        if (!seat.ended && seat.output_at < seat.output_end) return;
    const bag::Progress now = live.run->bag().progress();
    std::string text = bag::end_in_words(live.run->bag());
    if (!now.over())
      text += "; this exceeds max_fails, so " + std::to_string(now.tasks - now.done - now.failed) + " were not run";
    if (now.twice > 0) text += "; " + std::to_string(now.twice) + " ran twice and count once";
    if (over && has_last_step(leader)) return begin_last_step(controls_, leader, live.members, live.run->bag(), std::move(text));
    end_bag(controls_, leader, {std::move(text), now.failed == 0 ? job::Overtaken::tasks_done : job::Overtaken::tasks_failed});
  }

  // Makes more workers if every present one has a host and enough tasks wait.
  void grow(const TrackedJob& leader, Live& live, BootTime now) {
    if (leader.in<job::Running>() == nullptr || leader.unsure || live.failed_workers >= k_workers_failed_max) return;
    if (!live.began) live.began = now;
    std::uint64_t workers = 1, starting = 0;  // they will take tasks that wait
    for (const std::string& id : live.members) {
      const TrackedJob* job = std::as_const(controls_.book).find({id});
      if (job == &leader || (job != nullptr && job->in<job::Done>() != nullptr)) continue;
      if (job != nullptr && job->in<job::Waiting>() != nullptr && job->spec().tasks->raise.level == 0) return;
      ++workers;
      if (job == nullptr || job->in<job::Running>() == nullptr) ++starting;  // the book may not know it yet
    }
    double slowest = 0;
    for (const auto& [worker, seat] : live.run->seats()) slowest = std::max(slowest, seat.pace.task_s);
    const std::uint64_t left = live.run->bag().waiting(0);
    if (slowest == 0 && left < k_many && now - *live.began < k_first_results) return;
    const std::uint64_t waiting = left - std::min(left, starting);
    const std::uint64_t most = workers_most(leader);
    std::uint64_t more = std::min({waiting, k_burst_most, most - std::min(most, workers)});
    if (slowest > 0) more = std::min(more, static_cast<std::uint64_t>(static_cast<double>(waiting) * slowest / k_worth_s));
    if (more == 0 || (live.no_room_at == controls_.fleet.capacity() && now < live.ask_again)) return;
    const std::uint64_t room = room_for(controls_, leader, more);
    if (room < more) {
      live.no_room_at = controls_.fleet.capacity();
      live.ask_again = now + k_ask_pause;
    }
    for (std::uint64_t i = 0; i < room; ++i) report(make(leader, live, job::at_level(leader.spec(), 0)), k_making);
  }

  static std::uint64_t workers_most(const TrackedJob& leader) {
    const int parallel = leader.spec().tasks->max_parallel;
    return static_cast<std::uint64_t>(parallel > 0 ? parallel : job::k_bag_workers_max);
  }

  Result<void> make(const TrackedJob& leader, Live& live, job::Spec spec) {
    while (true) {
      const Result<registry::Job> row = controls_.world.records.job(registry::twin_id(leader.id(), static_cast<int>(live.next)));
      if (!row && row.error().code == Code::not_found) break;
      if (!row) return row.error();
      if (row->state == job::JobState::failed) ++live.failed_workers;
      ++live.next;
      if (job::is_final(row->state) || !live.members.insert(row->id.value).second) continue;
      controls_.book.refresh_soon();  // it was made, and we were not told: it is the one that is wanted now
      return {};
    }
    TRY_ASSIGN(const std::vector<registry::Input> inputs, controls_.world.records.inputs(leader.id()));
    const JobId id = registry::twin_id(leader.id(), static_cast<int>(live.next));
    TRY(controls_.world.folders.share_secrets(leader.id(), id, leader.spec().secrets));
    TRY(controls_.world.records.submit(id, worker_spec(leader, std::move(spec), live.next), controls_.world.clock.wall(), inputs));
    ++live.next;
    live.members.insert(id.value);
    controls_.book.refresh_soon();
    return {};
  }

  void pump_all() {
    std::map<std::string, std::vector<std::pair<Live*, bag::Worker>>> by_host;
    for (auto& [id, live] : bags_)
      if (live.run != nullptr)
        for (const auto& [worker, seat] : live.run->seats()) by_host[seat.host.value].emplace_back(&live, worker);
    for (const auto& [host, seats] : by_host) pump(host, seats);
  }

  // Returns nullptr if the host is no longer registered.
  Line* line_to(const HostName& host) {
    const FleetHost* there = controls_.fleet.find(host);
    if (there == nullptr) return nullptr;
    Line& line = lines_[host.value];
    line.used = controls_.world.clock.boot();
    if (line.link == nullptr) {
      line.link = std::make_shared<BagLink>(controls_.world, there->provider, there->life);
      line.link->tick(line.used);
    }
    return &line;
  }

  void pump(const std::string& host, const std::vector<std::pair<Live*, bag::Worker>>& seats) {
    Line* mine = line_to({host});
    if (mine == nullptr) return;
    Line& line = *mine;
    if (!line.link->is_ready() || line.used < line.not_before) return;
    line.output_next = !line.output_next;
    if (line.output_next)
      for (std::size_t i = 0; i < seats.size(); ++i) {
        const auto& [live, worker] = seats[++line.turn % seats.size()];
        if (fetch_output(*line.link, *live, worker)) return;
      }
    wire::BagRequest request;
    request.wait = k_news_wait;
    Duration gather = k_gather_most;
    for (const auto& [live, worker] : seats) {
      if (request.workers.size() == wire::k_bag_workers_max) break;
      const BagRun::Seat& seat = live->run->seats().at(worker);
      if (seat.held) request.wait = {};  // output is fetched next
      request.workers.push_back(live->run->ask(worker, seat));
      gather = std::min(gather, live->run->busy_for(worker) / k_gather_share);
    }
    request.gather = std::max(gather, k_gather_least);
    std::vector<std::pair<std::string, bag::Worker>> asked;
    for (const auto& [live, worker] : seats) asked.emplace_back(live->run->id().value, worker);
    line.link->ask(request, [this, host, asked, since = line.used, wait = request.wait](const Result<wire::BagReply>& reply) {
      if (!reply) return report(reply.error(), "while asking for results of tasks");
      const bool news = std::ranges::any_of(reply->workers, [](const wire::BagTold& told) { return !told.results.empty(); });
      const BootTime now = controls_.world.clock.boot();
      if (!news && now - since < wait / 2) lines_[host].not_before = now + k_news_wait / 2;
      take(asked, *reply);
    });
  }

  // Fetches the output of the worker's tasks; returns false if there is none.
  bool fetch_output(BagLink& link, Live& live, const bag::Worker& worker) {
    BagRun::Seat& seat = live.run->seats().at(worker);
    if (seat.output_busy || seat.output_at >= seat.output_end) return false;
    seat.output_busy = true;
    link.ask_output({seat.job, {worker.epoch}, seat.output_at, k_output_piece},
                    [this, id = live.run->id(), worker](const Result<BagLink::Output>& output) {
                      if (output) return keep_output(id, worker, *output);
                      if (BagRun::Seat* mine = seat_of(id, worker)) mine->output_busy = false;
                      report(output.error(), "while fetching the output of tasks");
                    });
    return true;
  }

  void keep_output(const JobId& id, const bag::Worker& worker, const BagLink::Output& output) {
    const std::string name = "bag-output-" + std::to_string(worker.number) + "-" + std::to_string(worker.epoch);
    controls_.attempts.in_background(
        id, name, {os::Lane::Kind::urgent, {}},
        [folders = &controls_.world.folders, id, worker, output] {
          return folders->bag_output(id, worker.number, {worker.epoch}, output.offset, output.bytes);
        },
        [this, id, worker, end = output.offset + output.bytes.size()](TrackedJob&, const Result<void>& kept) {
          BagRun::Seat* seat = seat_of(id, worker);
          if (!kept) report(kept.error(), "while storing the output of tasks");
          if (seat == nullptr) return;
          seat->output_busy = false;
          if (!kept) return;
          seat->output_at = std::max(seat->output_at, end);
          Live& live = bags_.at(id.value);
          live.run->count(worker, *seat);
          live.run->give(worker);
          save(live);
          pump_all();
          if (bags_.at(id.value).run->bag().progress().over()) soon();
        });
    controls_.world.run.post([this] { pump_all(); });
  }

  [[nodiscard]] BagRun::Seat* seat_of(const JobId& id, const bag::Worker& worker) {
    const auto live = bags_.find(id.value);
    if (live == bags_.end() || live->second.run == nullptr) return nullptr;
    const auto seat = live->second.run->seats().find(worker);
    return seat == live->second.run->seats().end() ? nullptr : &seat->second;
  }

  void take(const std::vector<std::pair<std::string, bag::Worker>>& asked, const wire::BagReply& reply) {
    for (std::size_t i = 0; i < std::min(asked.size(), reply.workers.size()); ++i) {
      const auto& [id, worker] = asked[i];
      const wire::BagTold& told = reply.workers[i];
      const auto live = bags_.find(id);
      TrackedJob* leader = controls_.book.find({id});
      if (live == bags_.end() || live->second.run == nullptr || leader == nullptr) continue;
      const auto seat = live->second.run->seats().find(worker);
      if (seat == live->second.run->seats().end() || told.job != seat->second.job || told.epoch.value != worker.epoch) continue;
      const bool all = live->second.run->take(worker, seat->second, told);
      if (all && seat->second.ended && seat->second.output_at >= seat->second.output_end) give_up(*leader, live->second, worker);
      else live->second.run->give(worker);
      save(live->second);
    }
    controls_.world.run.post([this] { pump_all(); });
  }

  const Controls controls_;
  std::map<std::string, Live> bags_;  // by leader
  std::map<std::string, Line> lines_;  // by host
  bool is_soon_ = false;               // a tick beyond the regular ones is due
};

}  // namespace

std::unique_ptr<Concern> make_bags(const Controls& controls) { return std::make_unique<BagConcern>(controls); }

}  // namespace gridctl::control

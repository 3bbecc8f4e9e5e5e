// SPDX-License-Identifier: Apache-2.0
// Heartbeats and what they say, as control/host_monitor.cpp and supervisor_hosts.cpp do it.
#include <algorithm>

#include "control/follow/interpret_status.hpp"
#include "laptop.hpp"
#include "wire_path.hpp"

namespace gridctl::sim {

using namespace control;

namespace {
constexpr Duration k_first_pause = std::chrono::milliseconds{500};

bool is_witness(std::optional<BootTime> last_answer, Duration heartbeat, BootTime now) {
  return last_answer && now - *last_answer <= heartbeat + std::chrono::seconds{1};
}
}  // namespace

void Laptop::judge_hosts(BootTime now) {
  const int count = world_.options.hosts;
  for (int i = 0; i < count; ++i) {
    bool others_answer = false;
    for (int other = 0; other < count; ++other)
      if (other != i && is_witness(monitor(other).last_answer, monitor(other).heartbeat, now)) others_answer = true;
    monitor_tick(i, now, others_answer);
  }
  for (const auto& [id, job] : std::map<std::string, JobPtr>(jobs_)) {
    const job::Attempt* attempt = job->state.attempt();
    if (attempt == nullptr) continue;
    const Monitor& its = monitor(host_of(attempt->lead().host));
    const Duration silent = its.silence.counted();
    if (const auto lost = read_silence(job->state, attempt->lead(), its.silence)) apply(job, *lost);
    else if (silent > job->state.policy.lost_after) world_.truth->waits_too_long(job->state, silent);
  }
}

void Laptop::monitor_tick(int host, BootTime now, bool others_answer) {
  Monitor& mine = monitor(host);
  const bool asked = mine.link != Monitor::Link::up || mine.asked;
  mine.silence.tick(now, asked && others_answer);
  if (mine.link == Monitor::Link::down) {
    if (now >= mine.next_connect) connect(host);
    return;
  }
  if (mine.link == Monitor::Link::connecting) return;
  if (mine.asked && now - mine.asked_since > std::max(k_answer_patience, mine.heartbeat * k_patience_beats))
    return drop(host);
  if (now >= mine.next_poll && !mine.asked) poll(host);
}

void Laptop::heard(int host) {
  Monitor& mine = monitor(host);
  mine.last_answer = clock();
  mine.silence.answered(*mine.last_answer);
  world_.truth->heard(index_, host);
}

void Laptop::connect(int host) {
  Monitor& mine = monitor(host);
  mine.link = Monitor::Link::connecting;
  const std::uint64_t number = mine.connection = next_number_++;
  const auto current = [this, host, number] {
    return monitor(host).connection == number && monitor(host).link == Monitor::Link::connecting;
  };
  world_.send(index_, host, [this, life = node().life, host, current] {
    const Host::Hello hello = world_.hosts[static_cast<std::size_t>(host)]->greet(index_);
    world_.answer(index_, host, life, [this, host, current, hello] {
      if (current()) connected(host, hello);
    });
  });
  after(k_connect_timeout, [this, host, current] {
    if (current()) connected(host, make_error(Code::timed_out, "no greeting"));
  });
}

void Laptop::connected(int host, Result<Host::Hello> hello) {
  Monitor& mine = monitor(host);
  mine.tried = true;
  const BootTime now = clock();
  if (!hello) {
    mine.link = Monitor::Link::down;
    const bool wanted = std::any_of(wants_.begin(), wants_.end(), [&](const auto& w) { return w.first.first == host; });
    mine.pause =
        std::clamp(mine.pause * 2, k_first_pause, wanted ? std::max(mine.heartbeat, k_first_pause) : k_reconnect_max);
    mine.next_connect = now + mine.pause;
    return;
  }
  mine.link = Monitor::Link::up;
  mine.host = hello->connection;
  mine.pause = Duration::zero();
  mine.asked = false;
  mine.echo = hello->host_time;
  mine.next_poll = now;
  heard(host);
}

void Laptop::drop(int host) {
  Monitor& mine = monitor(host);
  mine.link = Monitor::Link::down;
  mine.asked = false;
  mine.next_connect = clock();
}

void Laptop::poll(int host) {
  Monitor& mine = monitor(host);
  const BootTime now = clock();
  mine.next_poll = now + mine.heartbeat;
  mine.asked = true;
  mine.asked_since = now;
  std::vector<wire::PollRequest> requests;
  for (auto at = wants_.lower_bound({host, 0}); at != wants_.end() && at->first.first == host; ++at)
    requests.push_back(at->second);
  if (requests.empty()) requests.emplace_back();
  const std::uint64_t question = mine.question = next_number_++;
  auto left = std::make_shared<std::size_t>(requests.size());
  for (wire::PollRequest& request : requests) {
    request.echo = mine.echo;
    world_.send(index_, host,
                [this, life = node().life, host, connection = mine.host, number = mine.connection, question, left,
                 request = Request{std::move(request)}] {
                  Host& there = *world_.hosts[static_cast<std::size_t>(host)];
                  Result<Answer> reply = make_error(Code::host_unreachable, "the connection broke");
                  if (there.serves(connection)) {
                    try {
                      reply = serve_by_wire(world_, there, index_, request);
                    } catch (const Killed&) {
                      there.kill_agents();
                    }
                  }
                  world_.answer(index_, host, life, [this, host, number, question, left, reply = std::move(reply)] {
                    Monitor& to = monitor(host);
                    if (to.connection != number || to.link != Monitor::Link::up) return;
                    if (!reply && is_uncertain(reply.error().code)) return drop(host);
                    heard(host);
                    if (to.question == question && --*left == 0) to.asked = false;
                    if (!reply) return drop(host);
                    const auto* status = std::get_if<wire::PollReply>(&*reply);
                    if (status == nullptr) return drop(host);
                    to.echo = std::max(to.echo, status->host_time);
                    polled(host, *status);
                  });
                });
  }
}

void Laptop::polled(int host, const wire::PollReply& reply) {
  monitor(host).boot_id = reply.boot_id;
  if (reply.held) monitor(host).busy_until = {}, monitor(host).held = reply.held;
  for (const wire::AttemptStatus& status : reply.attempts) on_status(host, status);
}

void Laptop::on_status(int host, const wire::AttemptStatus& status) {
  const auto found = jobs_.find(status.job.value);
  if (found == jobs_.end()) return;
  const JobPtr job = found->second;
  Reading reading =
      read_status(job->state, {"host" + std::to_string(host)}, job->accepted.contains(status.epoch.value), status);
  for (job::Happening& event : reading.events) apply(job, std::move(event));
  if (reading.checkpoints) pull_newest(job, host, status);
}

void Laptop::pull_newest(const JobPtr& job, int host, const wire::AttemptStatus& status) {
  const wire::HostCheckpoint* found = newest_beyond(status, job->saved[status.epoch.value]);
  const std::string name = "pull/" + std::to_string(status.epoch.value);
  if (found == nullptr || job->under_way.contains(name) || job->later.contains(name)) return;
  const job::Attempt* attempt = job->state.attempt();
  if (attempt == nullptr) return;
  job->under_way.insert(name);
  pull(job, host, status.epoch, *found,
       [=, this, epoch = status.epoch, number = attempt->number](Result<std::optional<wire::HostCheckpoint>> result) {
         done(job, name);
         if (result && *result) commit(job, epoch, number, **result);
         else try_later(job, name, k_pull_retry);
         carry_out(job);
       });
}

void Laptop::renew_wants() {
  std::vector<Duration> patience;
  for (const auto& [id, job] : jobs_)
    if (job->state.attempt() != nullptr) patience.push_back(job->state.policy.lost_after);
  const Duration heartbeat = heartbeat_for(patience, !jobs_.empty());
  std::map<std::pair<int, std::uint64_t>, wire::PollRequest> wants;
  for (const auto& [id, job] : jobs_) {
    const job::Attempt* attempt = job->state.attempt();
    if (attempt == nullptr) continue;
    if (attempt->lead().part < job::Part::promised && !job->accepted.contains(attempt->epoch.value)) continue;
    const Duration lease = job->state.policy.lease;
    wire::PollRequest& request = wants[{host_of(attempt->lead().host), static_cast<std::uint64_t>(lease.count())}];
    request.lease = lease;
    request.attempts.push_back({job->state.id, attempt->epoch, job->saved[attempt->epoch.value]});
  }
  const bool changed = wants.size() != wants_.size() ||
                       !std::equal(wants.begin(), wants.end(), wants_.begin(), [](const auto& a, const auto& b) {
                         return a.first == b.first && a.second.attempts.size() == b.second.attempts.size() &&
                                a.second.attempts.front().job == b.second.attempts.front().job &&
                                a.second.attempts.front().epoch == b.second.attempts.front().epoch;
                       });
  wants_ = std::move(wants);
  const BootTime now = clock();
  for (int i = 0; i < world_.options.hosts; ++i) {
    Monitor& mine = monitor(i);
    if (heartbeat < mine.heartbeat || changed) mine.next_poll = std::min(mine.next_poll, now);
    mine.heartbeat = heartbeat;
  }
}

}  // namespace gridctl::sim

// SPDX-License-Identifier: Apache-2.0
// What happens on hosts, checkpoints, and the end.
#include "truth.hpp"

#include <algorithm>

#include "host.hpp"

namespace gridctl::sim {

namespace {
constexpr Duration k_orphan_slack = std::chrono::seconds{30};
constexpr Nanos k_over_slack = 30 * k_s;  // for a supervisor that was just killed
}

int Truth::index(const JobId& job) const {
  const int found = world_.index_of(job);
  if (found < 0) throw Violation("R", "a job that nobody submitted: " + job.value);
  return found;
}

bool Truth::knows(const JobId& job) const {
  const auto found = shadows_.find(world_.index_of(job));
  return found != shadows_.end() && found->second.submitted;
}

bool Truth::is_over(const JobId& job) const {
  const auto found = shadows_.find(index(job));
  if (found == shadows_.end()) return false;
  const job::State& state = found->second.newest;
  return job::is_final(state.visible()) || state.cancel || found->second.cancelled || !state.overtaken.empty();
}

int Truth::family(int job) const {
  const JobId& leader = world_.jobs[static_cast<std::size_t>(job)].spec.twin_of;
  return leader.value.empty() ? job : index(leader);
}

int Truth::host_index(const HostName& host) const { return std::stoi(host.value.substr(4)); }

int Truth::host_of(int job) const {
  const auto found = shadows_.find(job);
  const job::Attempt* attempt = found == shadows_.end() ? nullptr : found->second.newest.attempt();
  return attempt == nullptr ? -1 : host_index(attempt->lead().host);
}

bool Truth::is_liar(const HostName& host) const { return host_index(host) == world_.options.liar; }

std::string Truth::name(const Payload& payload) const {
  return "job" + std::to_string(payload.job) + " epoch " + std::to_string(payload.epoch.value) + " on host" +
         std::to_string(payload.host);
}

Digest Truth::make_content(const Content& content) {
  Digest root;
  const std::uint64_t number = next_content_++;
  for (std::size_t i = 0; i < 8; ++i) root.bytes[i] = static_cast<std::byte>(number >> (8 * i) & 0xFF);
  contents_[root] = content;
  contents_[root].made_at = world_.now;
  return root;
}

const Content* Truth::content(const Digest& root) const {
  const auto found = contents_.find(root);
  return found == contents_.end() ? nullptr : &found->second;
}

Payload* Truth::find(int host, int job, Epoch epoch) {
  for (const auto& payload : payloads_)
    if (payload->host == host && payload->job == job && payload->epoch == epoch) return payload.get();
  return nullptr;
}

Payload* Truth::payload_starts(int host, int laptop, const wire::AttemptSpec& spec) {
  auto payload = std::make_unique<Payload>();
  payload->job = index(spec.job);
  payload->laptop = laptop;
  payload->host = host;
  payload->epoch = spec.epoch;
  payload->gpus = spec.gpu_uuids;
  payload->began_at = world_.now;
  if (spec.gang) payload->members = static_cast<int>(spec.gang->members.size());
  const std::string which = name(*payload);
  if (find(host, payload->job, spec.epoch) != nullptr) throw Violation("S8", which + " starts a second time");
  if (promises_.contains({host, payload->job, spec.epoch.value}))
    throw Violation("S8", which + " starts after the host has promised that it never will");
  for (const auto& other : payloads_) {
    if (!other->alive) continue;
    if (other->host == host)
      for (const std::string& gpu : other->gpus)
        if (std::find(payload->gpus.begin(), payload->gpus.end(), gpu) != payload->gpus.end())
          throw Violation("S1", gpu + " of host" + std::to_string(host) + " runs " + name(*other) + " and " + which);
    // One that sleeps with its host does not run; when the host wakes it must be killed before it goes on.
    const Node& there = world_.node(world_.host_node(other->host));
    const bool dormant = there.asleep || (there.woke_at > 0 && world_.now - there.woke_at < 2 * k_s);
    const bool is_peer = other->epoch == payload->epoch && other->host != host;
    if (world_.options.wait_mode && other->job == payload->job && !dormant && !is_peer)
      throw Violation("S5", name(*other) + " still runs when " + which + " starts");
    if (other->host == host && other->job == payload->job)
      throw Violation("S8", name(*other) + " still runs on the host where " + which + " starts");
  }
  if (spec.restore) {
    const Content* from = content(*spec.restore);
    if (from == nullptr || family(from->job) != family(payload->job))
      throw Violation("S6", which + " restores what is no checkpoint of its job");
  }
  world_.say("payload of ", which, " starts");
  if (const auto down = down_since_.extract(payload->job)) outage.add(world_.now - down.mapped());
  payloads_.push_back(std::move(payload));
  return payloads_.back().get();
}

bool Truth::serves(int host, const JobId& job, Epoch epoch) {
  const Payload* payload = find(host, index(job), epoch);
  return payload != nullptr && payload->alive && world_.now >= payload->ready_at;
}

bool Truth::was_ready(const JobId& job, Epoch epoch) const {
  return std::ranges::any_of(payloads_, [&](const auto& one) {
    return one->job == index(job) && one->epoch == epoch && one->ready_at <= (one->alive ? world_.now : one->ended_at);
  });
}

const job::State* Truth::newest(const JobId& job) const {
  const auto found = shadows_.find(world_.index_of(job));
  return found == shadows_.end() || !found->second.submitted ? nullptr : &found->second.newest;
}

void Truth::payload_ends(Payload& payload, Why why) {
  if (!payload.alive) return;
  payload.alive = false;
  payload.why = why;
  payload.ended_at = world_.now;
  payload.has_supervisor(world_.now);
  if (why == Why::power) down_since_.emplace(payload.job, world_.now);
  world_.say("payload of ", name(payload), " ends, why ", static_cast<int>(why));
}

void Truth::promised_never(int host, int laptop, const JobId& job, Epoch epoch, const char* by) {
  if (host == world_.options.liar) return;
  const int which = index(job);
  Payload* payload = find(host, which, epoch);
  if (payload != nullptr && payload->alive)
    throw Violation("S8", name(*payload) + " runs while the host says that it never will (" + by + ")");
  promises_.insert({host, which, epoch.value});
  world_.say("host", host, " promises laptop", laptop, " never to run job", which, " epoch ", epoch.value, ": ", by);
}

void Truth::recorded_never(int host, int laptop, const JobId& job, Epoch epoch) {
  if (host != world_.options.liar && accepted_.contains({host, index(job), epoch.value}))
    throw Violation("S8", job.value + " epoch " + std::to_string(epoch.value) + " was accepted by host" +
                              std::to_string(host) + ", and is recorded as never started");
  promised_never(host, laptop, job, epoch, "launch");
}

void Truth::accepts(int host, int laptop, const wire::StartRequest& request) {
  const JobId& job = request.spec.job;
  const Epoch epoch = request.spec.epoch;
  accepted_.insert({host, index(job), epoch.value});
  if (host != world_.options.liar) check_start(job, epoch), check_spec(host, laptop, request);
  check_image(host, laptop, request);
  if (promises_.contains({host, index(job), epoch.value}))
    throw Violation("S8", job.value + " epoch " + std::to_string(epoch.value) + " is accepted by host" +
                              std::to_string(host) + ", which has promised that it never will be");
}

void Truth::lease_extends(const Payload* payload, BootTime until) {
  if (payload == nullptr || !payload->alive) return;
  BootTime& owed = owed_[payload];
  owed = std::max(owed, until);
}

void Truth::lease_ends(const Payload& payload, BootTime now, BootTime deadline) {
  if (now < deadline) throw Violation("L3", name(payload) + " is stopped before its lease has passed");
  const auto owed = owed_.find(&payload);
  if (owed != owed_.end() && now + std::chrono::seconds{1} < owed->second)
    throw Violation("L3", name(payload) + " is stopped although its lease was renewed");
}

void Truth::outlives(const Payload& payload, BootTime now, BootTime deadline, Duration grace) {
  if (payload.alive && now > deadline + grace + k_orphan_slack)
    throw Violation("L2", name(payload) + " outlives its lease by more than grace and 30 s");
}

// Whatever becomes of the laptop. A gang runs from when all of it does; a member alone, from when it does. A supervisor
// that was killed and is there again has its slack to end it; without one, only the lease ends it (L2).
void Truth::runs(const Payload& payload, Duration grace) {
  const job::Spec& spec = world_.jobs[static_cast<std::size_t>(payload.job)].spec;
  if (!payload.alive || !spec.max_duration || payload.host == world_.options.liar || clock_is_set()) return;
  const bool may = world_.now - gang_began(payload) <= spec.max_duration->count();
  if (may || payload.alone_since >= 0) return void(over_since_.erase(&payload));
  const Nanos seen = over_since_.try_emplace(&payload, world_.now).first->second;
  const Nanos since = std::max(seen, world_.node(world_.host_node(payload.host)).woke_at);  // asleep, nobody ends it
  if (world_.now - since > grace.count() + k_over_slack)
    throw Violation("W7", name(payload) + " runs on though its host was told how long it may");
}

void Truth::healed() {
  healed_at_ = world_.now;
  for (const auto& payload : payloads_)
    if (payload->alive) world_.say("alive at the healing: ", name(*payload));
}

Nanos Truth::patience() const {
  const Options& o = world_.options;
  // Each job may have to run whole once more after each of the others, restart a few times from old faults'
  // consequences, and wait for a lease that nobody renews.
  return 4 * static_cast<Nanos>(world_.jobs.size()) * (o.work + o.start_time + o.transfer_time + k_min) + 4 * (o.lost_after + o.lease) + 20 * k_min;
}

bool Truth::all_settled() const {
  for (std::size_t i = 0; i < world_.jobs.size(); ++i) {
    const auto found = shadows_.find(static_cast<int>(i));
    if (found == shadows_.end() || !found->second.submitted) continue;
    if (found->second.newest.needs_controller()) return false;
  }
  return true;
}

void Truth::final_check() {
  for (auto& [i, shadow] : shadows_) {
    if (!shadow.submitted) continue;
    const job::State& state = shadow.newest;
    const std::string which = "job" + std::to_string(i);
    if (!job::is_final(state.visible()))
      throw Violation("L1", which + " does not finish in a healthy world: " +
                                std::string(job::state_name(state.visible())) + ", " + state.reason_text);
    if (state.visible() == job::JobState::failed && state.reason != "program_failed" && state.reason != "hung" &&
        state.overtaken_by != job::Overtaken::tasks_failed)
      throw Violation("L1", which + " failed by no fault of its own: " + state.reason_text);
    if (!state.pending_cleanups.empty() && !is_liar(state.pending_cleanups.front().host))
      throw Violation("L5", which + " still has loose ends on " + state.pending_cleanups.front().host.value);
    if (state.visible() == job::JobState::succeeded) ++finished;
  }
  for (const auto& payload : payloads_)
    if (payload->alive && payload->host != world_.options.liar)
      throw Violation("L5", name(*payload) + " still runs when all jobs are over");
  for (const auto& host : world_.hosts) host->check_empty();
  check_standbys();
  check_left();
}

}  // namespace gridctl::sim

// SPDX-License-Identifier: Apache-2.0
#include "freight.hpp"

#include <algorithm>

#include "truth.hpp"

namespace gridctl::sim {

namespace {
constexpr int k_unreached_max = 3;
constexpr double k_torn_pushes = 0.3;  // as seldom as pulls are torn; and of those so many
}

Result<Fate> SimFreight::pass(Point point, const std::string& subject) {
  const Fate fate = world_.pass(laptop_, subject, point);
  if (fate == Fate::late) run_.pause(Duration{world_.points.delay()});
  if (fate == Fate::fails) return make_error(Code::io, "the disk fails");
  return fate;
}

Result<transfer::BulkLink> SimFreight::reach(const control::HostReach& host, Duration patience) {
  const Fate fate = world_.pass(laptop_, host.provider.name.value, Point::freight_reach);
  if (fate == Fate::late) run_.pause(Duration{world_.points.delay()});
  if (fate == Fate::fails || fate == Fate::lost) return make_error(Code::host_unreachable, "the connection broke");
  return net_.open(host.provider, run_.clock().boot() + patience, host.life);
}

Nanos SimFreight::travel() const { return world_.rng.between(k_ms, std::max(world_.options.transfer_time, k_ms)); }

Result<std::uint64_t> SimFreight::push(const control::HostReach& host, const transfer::BulkLink&, const Digest& root) {
  if (world_.truth->content(root) == nullptr) return make_error(Code::not_found, "no such tree is here");
  TRY_ASSIGN(const Fate fate, pass(Point::freight_push, host.provider.name.value));
  if (fate == Fate::lost) return make_error(Code::checkpoint_damaged, "a chunk is damaged");  // brought back by `heal`
  run_.pause(Duration{travel()});
  if (!world_.healed && world_.rng.chance(k_torn_pushes * world_.options.torn_transfer))
    return make_error(Code::host_unreachable, "the connection broke");
  if (world_.hosts[static_cast<std::size_t>(SimNetwork::host_of(host.provider.name))]->disk_full)
    return make_error(Code::no_space, "the host's disk is full");
  return std::uint64_t{1000};
}

Result<control::Pulled> SimFreight::pull(const control::HostReach& host, const JobId& job, Epoch epoch,
                                         const wire::HostCheckpoint& checkpoint, const std::optional<Digest>&) {
  const BootTime began = run_.clock().boot();
  TRY_ASSIGN(const Fate fate, pass(Point::freight_pull, job.value));
  TRY_ASSIGN(const transfer::BulkLink link, reach(host, control::k_reach_patience));
  const bool torn = !world_.healed && world_.rng.chance(world_.options.torn_transfer);
  const BootTime patience = run_.clock().boot() + control::k_reach_patience + Duration{world_.options.transfer_time};
  const wire::CheckpointRef wanted{job, epoch, checkpoint.number};
  const int from = SimNetwork::host_of(host.provider.name);
  TRY_ASSIGN(const Digest read, net_.ask<Digest>(
                                    from, patience,
                                    [this, wanted](Host& there) { return there.read_snapshot(laptop_, wanted); },
                                    travel()));
  if (torn) return make_error(Code::host_unreachable, "the connection broke");
  world_.heard(laptop_, from);
  if (host.life != nullptr) host.life->heard(run_.clock().boot());
  if (read != checkpoint.root) return make_error(Code::checkpoint_damaged, "it hashes to something else");
  if (disk_full_) return make_error(Code::no_space, "the laptop's disk is full");
  world_.truth->stored(laptop_, checkpoint.root);
  if (fate == Fate::lost) return make_error(Code::io, "the disk fails at the end");
  control::Pulled pulled;
  pulled.from = checkpoint;
  pulled.bytes = checkpoint.bytes;
  pulled.stored_bytes = checkpoint.bytes;
  pulled.files = checkpoint.files;
  pulled.took = run_.clock().boot() - began;
  return pulled;
}

// Members of a gang save at the same steps: the newest that all have.
Result<control::MergedParts> SimFreight::merge(const std::vector<std::vector<control::CheckpointPart>>& members) {
  TRY_ASSIGN(const Fate fate, pass(Point::freight_merge, "merge"));
  run_.pause(Duration{travel()});
  if (disk_full_) return make_error(Code::no_space, "the laptop's disk is full");
  const auto at = [this](const std::vector<control::CheckpointPart>& parts, Nanos step) {
    return std::find_if(parts.begin(), parts.end(), [&](const control::CheckpointPart& part) {
      const Content* content = world_.truth->content(part.root);
      return content != nullptr && content->step == step;
    });
  };
  control::MergedParts out;
  // What was left at the end: of each member what there is.
  if (members.front().front().as_left) {
    Content whole;
    whole.parts = static_cast<int>(members.size());
    whole.as_left = true;
    std::optional<Nanos> step;
    for (const auto& parts : members) {
      const Content* content = parts.front().nothing ? nullptr : world_.truth->content(parts.front().root);
      out.numbers.push_back(parts.front().number);
      if (content == nullptr) continue;
      whole.job = content->job, whole.epoch = content->epoch, whole.host = content->host;
      whole.torn = whole.torn || content->torn;
      step = std::min(step.value_or(content->step), content->step);
    }
    whole.step = step.value_or(0);
    out.root = world_.truth->make_content(whole);
    world_.truth->stored(laptop_, out.root);
    out.bytes = 1000 * members.size();
    out.files = members.size();
    if (fate == Fate::lost) return make_error(Code::io, "the disk fails at the end");
    return out;
  }
  for (auto newest = members.front().rbegin(); newest != members.front().rend(); ++newest) {
    const Content* content = world_.truth->content(newest->root);
    const auto has = [&](const auto& parts) { return at(parts, content->step) != parts.end(); };
    if (content == nullptr || !std::all_of(members.begin(), members.end(), has)) continue;
    for (const auto& parts : members) out.numbers.push_back(at(parts, content->step)->number);
    Content whole = *content;
    whole.parts = static_cast<int>(members.size());
    out.root = world_.truth->make_content(whole);
    world_.truth->stored(laptop_, out.root);
    out.bytes = 1000 * members.size();
    out.files = members.size();
    if (fate == Fate::lost) return make_error(Code::io, "the disk fails at the end");
    return out;
  }
  out.missing = "no step has been saved by all members yet";
  return out;
}

Result<std::uint64_t> SimFreight::push_part(const control::HostReach& host, const transfer::BulkLink& link,
                                            const control::OwnPart& part) {
  TRY_ASSIGN(const Fate fate, pass(Point::freight_push_part, host.provider.name.value));
  TRY(push(host, link, part.root));
  if (fate == Fate::lost) return make_error(Code::host_unreachable, "the connection broke");
  return std::uint64_t{500};
}

Result<control::Brought> SimFreight::bring(const control::HostReach& host, const JobId& job, Epoch, const Digest& root,
                                           const std::optional<Digest>&) {
  TRY_ASSIGN(const Fate fate, pass(Point::freight_bring, job.value));
  TRY_ASSIGN(const transfer::BulkLink link, reach(host, control::k_reach_patience));
  run_.pause(Duration{travel()});
  if (disk_full_) return make_error(Code::no_space, "the laptop's disk is full");
  world_.truth->stored(laptop_, root);
  if (fate == Fate::lost) return make_error(Code::io, "the disk fails at the end");
  return control::Brought{root, 1, 100};
}

Result<std::string> SimFreight::heal(const control::CopiesOf& copies, const Digest&) {
  TRY_ASSIGN(const Fate fate, pass(Point::freight_heal, copies.job.value));
  run_.pause(Duration{travel()});
  if (fate == Fate::lost) return make_error(Code::io, "the disk fails at the end");
  return std::string("1 chunk from attic");
}

Result<control::PortProof> SimFreight::prove_port(const control::HostReach& from, const control::HostReach& to,
                                                  std::uint16_t, std::uint64_t) {
  TRY_ASSIGN(const Fate fate, pass(Point::freight_prove_port, from.provider.name.value));
  if (fate == Fate::lost) return make_error(Code::host_unreachable, "the connection broke");
  for (const control::HostReach* host : {&from, &to}) TRY(reach(*host, control::k_reach_patience));
  control::PortProof proof;
  const bool trouble = !world_.healed && world_.rng.chance(world_.options.port_trouble);
  // Many in a row are held against the job.
  const bool closed = trouble && world_.rng.chance(0.3) && unreached_++ < k_unreached_max;
  if (trouble && !closed) return make_error(Code::busy, "somebody listens there");
  proof.contact.works = !closed;
  if (closed) proof.contact.reason = "nothing comes through";
  proof.contact.address = to.provider.name.value;
  proof.rtt = std::chrono::milliseconds{1};
  proof.rate_there = proof.rate_back = 1e10;
  return proof;
}

}  // namespace gridctl::sim

// SPDX-License-Identifier: Apache-2.0
// Work with hosts as the test wrote it down: how each kind of request is answered, and what becomes of trees.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/copies/freight.hpp"

namespace gridctl::control::testing {

struct Script {
  // By the name of a request. Each is used once, the last of them again and again; none: unsupported. An error of the
  // connection breaks it, any other is the host's answer.
  std::map<std::string, std::deque<Result<std::string>>> replies;
  std::map<std::string, std::vector<wire::Frame>> more;  // frames behind the reply, on the stream of the request
  std::vector<std::string> asked;                        // names of requests, and what was done with trees
  std::map<std::string, std::string> payloads;           // the newest request of each name

  void answers(const std::string& name, Result<std::string> reply = std::string("{}")) { replies[name].push_back(std::move(reply)); }
  Result<std::string> next(const std::string& name) {
    std::deque<Result<std::string>>& queue = replies[name];
    if (queue.empty()) return make_error(Code::unsupported, "unknown operation '" + name + "'");
    Result<std::string> first = queue.front();
    if (queue.size() > 1) queue.pop_front();
    return first;
  }
};

class ScriptedLink final : public wire::Link {
 public:
  explicit ScriptedLink(Script& script) : script_(script) {}
  Result<void> send(const wire::Frame& frame, BootTime) override {
    const std::string name = wire::request_name(frame.payload);
    script_.asked.push_back(name);
    script_.payloads[name] = frame.payload;
    const Result<std::string> reply = script_.next(name);
    if (!reply && (reply.error().code == Code::host_unreachable || reply.error().code == Code::timed_out)) {
      broken_ = reply.error();
      return {};
    }
    waiting_.push_back({wire::FrameKind::reply, frame.stream, reply ? *reply : wire::error_payload(reply.error())});
    if (reply)
      for (const wire::Frame& one : script_.more[name]) waiting_.push_back({one.kind, one.stream + frame.stream, one.payload});
    return {};
  }
  Result<wire::Frame> receive(BootTime) override {
    if (broken_) return *broken_;
    if (waiting_.empty()) return make_error(Code::timed_out, "no answer in time");
    wire::Frame first = std::move(waiting_.front());
    waiting_.pop_front();
    return first;
  }

 private:
  Script& script_;
  std::deque<wire::Frame> waiting_;
  std::optional<Error> broken_;
};

// Trees are known by the first byte of their roots.
inline Digest tree(int number) {
  Digest digest;
  digest.bytes[0] = static_cast<std::byte>(number);
  return digest;
}
inline std::string name_of(const Digest& root) { return std::to_string(static_cast<int>(root.bytes[0])); }

class ScriptedFreight final : public Freight {
 public:
  [[nodiscard]] Result<transfer::BulkLink> reach(const HostReach& host, Duration) override {
    reached.push_back(host.provider.name.value);
    if (no_way) return *no_way;
    if (fails_reaching)
      if (std::optional<Error> error = fails_reaching(host)) return *error;
    return transfer::BulkLink{std::make_unique<ScriptedLink>(script)};
  }
  [[nodiscard]] Result<std::uint64_t> push(const HostReach&, const transfer::BulkLink&, const Digest& root) override {
    return done("push " + name_of(root));
  }
  [[nodiscard]] Result<std::optional<OwnPart>> part_of(const Digest&, store::RankRange ranks, std::uint32_t world) override {
    script.asked.push_back("part of " + std::to_string(world));
    (void)ranks;
    return part;
  }
  [[nodiscard]] Result<std::uint64_t> push_part(const HostReach&, const transfer::BulkLink&, const OwnPart& of) override {
    return done("push part " + name_of(of.root));
  }
  [[nodiscard]] Result<Pulled> pull(const HostReach&, const JobId&, Epoch, const wire::HostCheckpoint& checkpoint,
                                    const std::optional<Digest>& head) override {
    const Result<std::uint64_t> moved = done("pull " + std::to_string(checkpoint.number) + (head ? " after " + name_of(*head) : ""));
    if (!moved) return moved.error();
    Pulled pulled;
    pulled.from = checkpoint;
    pulled.bytes = *moved;
    pulled.took = took;
    return pulled;
  }
  [[nodiscard]] Result<MergedParts> merge(const std::vector<std::vector<CheckpointPart>>& members) override {
    parts = members;
    ++merged;
    return merges ? merges() : make_error(Code::unsupported, "nothing is merged here");
  }
  [[nodiscard]] Result<PortProof> prove_port(const HostReach& from, const HostReach& to, std::uint16_t port, std::uint64_t bytes_max) override {
    if (proves) return proves(from.provider.name.value, to.provider.name.value, port, bytes_max);
    return make_error(Code::unsupported, "no port is proven here");
  }
  [[nodiscard]] Result<Brought> bring(const HostReach&, const JobId&, Epoch, const Digest& root,
                                      const std::optional<Digest>& before) override {
    const Result<std::uint64_t> moved = done("bring " + name_of(root) + (before ? " over " + name_of(*before) : ""));
    if (!moved) return moved.error();
    return Brought{root, 4, *moved};
  }
  [[nodiscard]] Result<CopiesOf> copies_of(const JobId&, CheckpointSeq) override { return CopiesOf{}; }
  [[nodiscard]] Result<std::string> heal(const CopiesOf&, const Digest& root) override {
    script.asked.push_back("heal " + name_of(root));
    return healed;
  }

  Script script;
  std::optional<Error> no_way;
  std::function<std::optional<Error>(const HostReach&)> fails_reaching;  // of one host
  std::optional<OwnPart> part;
  Result<std::string> healed = std::string();
  std::map<std::string, std::deque<std::optional<Error>>> fails;  // what is done with trees, in turn
  std::uint64_t bytes = 1000;                                     // of each tree
  Duration took{};                                                // each of them
  std::vector<std::string> reached;                               // hosts, each time
  std::function<Result<MergedParts>()> merges;
  std::vector<std::vector<CheckpointPart>> parts;  // that were to be merged last
  int merged = 0;                                  // how often
  std::function<Result<PortProof>(const std::string& from, const std::string& to, std::uint16_t port, std::uint64_t bytes)> proves;

 private:
  Result<std::uint64_t> done(const std::string& what) {
    script.asked.push_back(what);
    std::deque<std::optional<Error>>& turns = fails[what];
    if (turns.empty()) return bytes;
    const std::optional<Error> error = turns.front();
    turns.pop_front();
    if (error) return *error;
    return bytes;
  }
};

}  // namespace gridctl::control::testing

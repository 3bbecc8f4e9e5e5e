// SPDX-License-Identifier: Apache-2.0
// Moves trees of chunks between the local store and a host, as an interface. Everything except `copies_of` blocks: call
// it on threads of an os::Executor.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/copies/remotes.hpp"
#include "control/measure/network.hpp"
#include "control/reach/agent_network.hpp"
#include "control/reach/host_access.hpp"
#include "control/reach/host_chunks.hpp"
#include "control/reach/link_meter.hpp"
#include "control/reach/paths.hpp"
#include "control/reach/work_budget.hpp"
#include "registry/registry.hpp"
#include "store/local_part.hpp"
#include "wire/messages.hpp"

namespace gridctl::control {

// Describes a host as a piece of work reaches it. A value: threads get copies.
struct HostReach {
  registry::Provider provider;
  std::shared_ptr<LifeSign> life;           // hears of every answer
  std::shared_ptr<HostChunks> chunks = {};  // what it has had; without, all that is here may be reused
  // Limits the complete piece of work; without a budget, each connection has its own limit.
  std::shared_ptr<WorkBudget> budget = {};
  JobId job = {};  // whose snapshots on the host need not be sent there; empty: none
  JobId shown_for = {};  // the job whose watchers see the transfer; empty: none
};

// Lists the places that have a copy of a checkpoint that is damaged here.
struct CopiesOf {
  JobId job;
  CheckpointSeq seq;  // 0: none
  std::vector<RemoteAccess> nearest_first;
};

// Describes a checkpoint of an attempt, complete and verified in the local store.
struct Pulled {
  wire::HostCheckpoint from;
  std::uint64_t bytes = 0, stored_bytes = 0, files = 0;
  Duration took{};  // from asking for it until it was whole and verified here
};

// Describes the part that one member of a gang saved, complete in the local store.
struct CheckpointPart {
  std::string member;  // its host, for people
  std::uint32_t first_rank = 0, ranks = 1;
  Digest root;
  std::uint64_t number = 0;  // the host's
  std::optional<std::int64_t> step{};  // that the job told with it
  std::optional<BootTime> saved_at{};  // by our clock
  std::optional<Digest> base{};        // the checkpoint that its attempt began with
  // The member has saved nothing, so there is no tree; `settled` means that this is certain.
  bool nothing = false, settled = false;
  bool as_left = false;  // at the end: with one such part, those of all members are put together, whatever they are of
};
// Describes the parts of one step, merged and kept in the local store.
struct MergedParts {
  Digest root;
  std::uint64_t bytes = 0, files = 0;
  std::vector<std::uint64_t> numbers;  // the parts that it is made of, by member
  std::string missing;                 // why there is none, for people: nothing else is set then
};

// Describes the part of a checkpoint that one host gets: a tree that is not kept here.
struct OwnPart {
  Digest root;
  Bytes manifest;
  std::uint64_t bytes = 0, of_bytes = 0;  // and of the whole checkpoint
};

// Describes the files that an attempt left in its working directory, as far as they are in the local store.
struct Brought {
  Digest root;
  std::uint64_t files = 0, bytes = 0;
};

class Freight {
 public:
  virtual ~Freight() = default;
  // Returns a connection to the host that notes the host's signs of life.
  [[nodiscard]] virtual Result<transfer::BulkLink> reach(const HostReach& host, Duration patience) = 0;
  // Sends the chunks of a tree that the host lacks, and returns the tree's size in bytes. checkpoint_damaged or
  // not_found: the local store lacks part of the tree.
  [[nodiscard]] virtual Result<std::uint64_t> push(const HostReach& host, const transfer::BulkLink& link,
                                                   const Digest& root) = 0;
  // Returns the part of a checkpoint that a host with these ranks needs, out of the given number of ranks; nullopt: all
  // of it.
  [[nodiscard]] virtual Result<std::optional<OwnPart>> part_of(const Digest& /*root*/, store::RankRange /*ranks*/,
                                                               std::uint32_t /*world*/) {
    return std::optional<OwnPart>{};
  }
  [[nodiscard]] virtual Result<std::uint64_t> push_part(const HostReach&, const transfer::BulkLink&, const OwnPart&) {
    return make_error(Code::unsupported, "parts of checkpoints are not sent from here");
  }
  // `head`: the job's newest checkpoint in the local store, if any; new chunks may be stored as differences to it.
  [[nodiscard]] virtual Result<Pulled> pull(const HostReach& host, const JobId& job, Epoch epoch,
                                            const wire::HostCheckpoint& checkpoint,
                                            const std::optional<Digest>& head) = 0;
  // Merges the members' parts (oldest first) into the newest checkpoint that is complete across all members.
  [[nodiscard]] virtual Result<MergedParts> merge(const std::vector<std::vector<CheckpointPart>>& members) = 0;
  // Measures whether `from` reaches `to` on that port, and at what rate; see measure/network.hpp.
  [[nodiscard]] virtual Result<PortProof> prove_port(const HostReach& from, const HostReach& to, std::uint16_t port,
                                                     std::uint64_t bytes_max) = 0;
  // Fetches the tree that the host made of an attempt's results, merged over what earlier ones brought (`before`).
  [[nodiscard]] virtual Result<Brought> bring(const HostReach&, const JobId&, Epoch, const Digest& /*root*/,
                                              const std::optional<Digest>& /*before*/) {
    return make_error(Code::unsupported, "results are not fetched here");
  }
  // Call it on the loop's thread. Returns nothing when no place has a copy.
  [[nodiscard]] virtual Result<CopiesOf> copies_of(const JobId& job, CheckpointSeq seq) = 0;
  // Restores the damaged parts of a checkpoint here. Returns what was restored, for people; empty: nothing was damaged.
  [[nodiscard]] virtual Result<std::string> heal(const CopiesOf& copies, const Digest& root) = 0;
};

inline constexpr Duration k_reach_patience = std::chrono::seconds{20};  // login, agent upload, hello

// Implements Freight with the chunk store of a state directory.
class StoreFreight : public Freight {
 public:
  StoreFreight(AgentNetwork& network, os::Clock& clock, registry::Registry& registry, LinkMeter& meter)
      : network_(network),
        clock_(clock),
        registry_(registry),
        paths_{registry.directory()},
        meter_(meter) {}

  [[nodiscard]] Result<transfer::BulkLink> reach(const HostReach& host, Duration patience) override;
  [[nodiscard]] Result<std::uint64_t> push(const HostReach& host, const transfer::BulkLink& link,
                                           const Digest& root) override;
  [[nodiscard]] Result<std::optional<OwnPart>> part_of(const Digest& root, store::RankRange ranks,
                                                       std::uint32_t world) override;
  [[nodiscard]] Result<std::uint64_t> push_part(const HostReach& host, const transfer::BulkLink& link,
                                                const OwnPart& part) override;
  [[nodiscard]] Result<Pulled> pull(const HostReach& host, const JobId& job, Epoch epoch,
                                    const wire::HostCheckpoint& checkpoint, const std::optional<Digest>& head) override;
  [[nodiscard]] Result<MergedParts> merge(const std::vector<std::vector<CheckpointPart>>& members) override;
  [[nodiscard]] Result<PortProof> prove_port(const HostReach& from, const HostReach& to, std::uint16_t port,
                                             std::uint64_t bytes_max) override;
  [[nodiscard]] Result<Brought> bring(const HostReach& host, const JobId& job, Epoch epoch, const Digest& root,
                                      const std::optional<Digest>& before) override;
  [[nodiscard]] Result<CopiesOf> copies_of(const JobId& job, CheckpointSeq seq) override;
  [[nodiscard]] Result<std::string> heal(const CopiesOf& copies, const Digest& root) override;

 private:
  [[nodiscard]] transfer::Route route(const HostReach& host, const transfer::BulkLink& first);

  AgentNetwork& network_;
  os::Clock& clock_;
  registry::Registry& registry_;
  const Paths paths_;
  LinkMeter& meter_;
};

}  // namespace gridctl::control

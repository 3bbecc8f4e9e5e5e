// SPDX-License-Identifier: Apache-2.0
// Checkpoints between laptop and hosts: it takes time, breaks off, finds disks full and bytes damaged. Truth hears of
// what is whole here.
#pragma once

#include "control/copies/freight.hpp"
#include "network.hpp"

namespace gridctl::sim {

class SimFreight : public control::Freight {
 public:
  // `disk_full`: the laptop's.
  SimFreight(World& world, SimExecutor& run, SimNetwork& net, int laptop, const bool& disk_full)
      : world_(world), run_(run), net_(net), laptop_(laptop), disk_full_(disk_full) {}

  [[nodiscard]] Result<transfer::BulkLink> reach(const control::HostReach& host, Duration patience) override;
  [[nodiscard]] Result<std::uint64_t> push(const control::HostReach& host, const transfer::BulkLink& link,
                                           const Digest& root) override;
  [[nodiscard]] Result<control::Pulled> pull(const control::HostReach& host, const JobId& job, Epoch epoch,
                                             const wire::HostCheckpoint& checkpoint,
                                             const std::optional<Digest>& head) override;
  [[nodiscard]] Result<control::MergedParts> merge(
      const std::vector<std::vector<control::CheckpointPart>>& members) override;
  [[nodiscard]] Result<control::PortProof> prove_port(const control::HostReach& from, const control::HostReach& to,
                                                      std::uint16_t port, std::uint64_t bytes_max) override;
  // A part is the whole here: what it would leave out nobody reads.
  [[nodiscard]] Result<std::optional<control::OwnPart>> part_of(const Digest& root, store::RankRange, std::uint32_t) override {
    return std::optional(control::OwnPart{root, {}, 500, 1000});
  }
  [[nodiscard]] Result<std::uint64_t> push_part(const control::HostReach& host, const transfer::BulkLink& link,
                                                const control::OwnPart& part) override;
  [[nodiscard]] Result<control::Brought> bring(const control::HostReach& host, const JobId& job, Epoch epoch,
                                               const Digest& root, const std::optional<Digest>& before) override;
  [[nodiscard]] Result<control::CopiesOf> copies_of(const JobId& job, CheckpointSeq seq) override {
    return control::CopiesOf{job, seq, {}};
  }
  [[nodiscard]] Result<std::string> heal(const control::CopiesOf& copies, const Digest& root) override;

 private:
  [[nodiscard]] Nanos travel() const;
  // What of it does not happen; late it has become already. And whether its answer is lost, asked when it is done.
  [[nodiscard]] Result<Fate> pass(Point point, const std::string& subject);

  World& world_;
  SimExecutor& run_;
  SimNetwork& net_;
  const int laptop_;
  const bool& disk_full_;
  int unreached_ = 0;  // proofs that failed for want of a way
};

}  // namespace gridctl::sim

// SPDX-License-Identifier: Apache-2.0
// What really happens to the tasks of bags, and the rules that journals, hosts and ends are held to (B1-B10). A journal is
// read here as it grows: by the shipped reader, and beside it by rules of ours that know only what its records mean.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bag/bag.hpp"
#include "world.hpp"

namespace gridctl::control {
struct TrackedJob;
}

namespace gridctl::sim {

class BagTruth {
 public:
  explicit BagTruth(World& world) : world_(world) {}

  // On laptops.
  void appended(const JobId& leader, std::string_view records);  // to the journal, durably
  void reread(const JobId& leader, const std::string& journal);
  void printed(const JobId& leader, std::uint32_t worker, Epoch epoch, std::uint64_t offset, std::string_view bytes);
  void ends(const JobId& leader, bool well);
  void audit(Laptop& laptop);

  // On hosts.
  void ordered(int host, const JobId& job, Epoch epoch, std::uint64_t number, const wire::BagOrder& order);
  void ran(const JobId& job, Epoch epoch, const wire::TaskResult& result);
  void prints(const JobId& job, Epoch epoch, std::string_view text);
  void removes(const JobId& job, Epoch epoch, std::uint64_t results);  // and with them so many results

  [[nodiscard]] static std::pair<std::string, std::uint32_t> worker_of(const JobId& job);  // leader and number
  [[nodiscard]] const bag::Bag& read(const JobId& leader) { return bags_[leader.value].read; }
  [[nodiscard]] std::uint64_t executions(const JobId& leader) const;

 private:
  struct Seat {
    std::string host;
    bool open = true;
    std::vector<wire::BagOrder> orders;
    std::set<bag::Index> held;
    std::uint64_t told = 0;  // results that are in the journal
  };
  struct Tries {
    std::uint64_t count = 0;
    std::set<std::string> hosts;
  };
  struct Bag {
    std::string leader;
    bag::Bag read;
    std::uint64_t tasks = 0, retries = 0, twice = 0;
    std::map<bag::Worker, Seat> seats;
    std::set<bag::Index> done;
    std::map<bag::Index, Tries> tries;
    std::map<bag::Worker, Nanos> lost_since;
    Nanos hungry_since = -1;
    std::set<std::string> written;  // records
  };
  struct There {  // an attempt of a worker on its host
    std::vector<wire::TaskResult> results;
    std::string output;
  };
  void take(Bag& bag, const bag::Record& record);
  void take(Bag& bag, const bag::Ordered& record);
  void take(Bag& bag, const bag::Told& record);
  void take(Bag& bag, const bag::Worker& worker, Seat& seat, const wire::TaskResult& result);
  void check_given(Bag& bag, const bag::Worker& worker, const Seat& seat, bag::Index index);
  void check_failed(Bag& bag, bag::Index index, const std::string& host);
  void check_lost(Laptop& laptop, Bag& bag);
  void check_size(Laptop& laptop, const Bag& bag, const control::TrackedJob& leader) const;
  void check_hungry(Laptop& laptop, Bag& bag);
  [[nodiscard]] std::uint64_t held_twice(const Bag& bag) const;
  [[nodiscard]] bool lies(const Seat& seat) const;
  void must(bool holds, const char* rule, const Bag& bag, const std::string& what) const;

  World& world_;
  std::map<std::string, Bag> bags_;                                   // by leader
  std::map<std::pair<std::string, std::uint64_t>, There> there_;       // by job and epoch
};

}  // namespace gridctl::sim

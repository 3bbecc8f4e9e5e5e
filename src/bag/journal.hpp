// SPDX-License-Identifier: Apache-2.0
// Defines the journal of a bag: all decisions and observations, in the order in which they became durable. A bag is
// exactly the content of its journal: every reader of the records from the beginning reaches the same state. The file
// begins with k_magic; each record is length (4 bytes, little endian), CRC-32 (4), and as many bytes: a kind, then
// numbers of variable length. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bag/ranges.hpp"
#include "wire/bag.hpp"

namespace gridctl::bag {

inline constexpr std::string_view k_magic = "GCBAG01\n";
inline constexpr std::size_t k_record_max = 1u << 20;  // bytes; more is no record of ours
inline constexpr std::uint64_t k_tasks_most = 1ull << 32;

// Describes one attempt of one worker of the bag: the leader is number 1.
struct Worker {
  std::uint32_t number = 0;
  std::uint64_t epoch = 0;
  auto operator<=>(const Worker&) const = default;
};

struct Begun {  // first record, and again when tasks were added
  std::uint64_t tasks = 0;
  std::uint64_t retries = 1;  // of a task that failed, or whose worker died of it
  bool raises = false;        // a task that runs out of memory or disk is tried again by a worker that has more
  bool operator==(const Begun&) const = default;
};
struct Joined {
  Worker worker;
  std::uint64_t attempt = 0;  // of its job: names the files of its output
  std::string host;
  std::uint64_t level = 0;  // how often what its tasks may use was multiplied
  bool operator==(const Joined&) const = default;
};
// Orders that may be sent once this is durable: one for each range, with numbers that count from 0 over all of the
// worker.
struct Ordered {
  Worker worker;
  wire::OrderKind kind = wire::OrderKind::grant;
  std::vector<Range> ranges;
  std::uint64_t number = 0;  // of the first
  bool operator==(const Ordered&) const = default;
};
struct Told {  // results from number `from` of the worker on
  Worker worker;
  std::uint64_t from = 0;
  std::vector<wire::TaskResult> results;
  bool operator==(const Told&) const = default;
};
// Ends an attempt, whose results no longer count from here on. `suspects`: the tasks that ran when it died on its own.
struct Closed {
  Worker worker;
  std::vector<Index> suspects;
  bool operator==(const Closed&) const = default;
};
struct Resumed {  // what had failed is to be run again
  bool operator==(const Resumed&) const = default;
};
// Records about the worker were lost: its host says how many orders it has, and what it still holds counts.
struct Rebased {
  Worker worker;
  std::uint64_t orders = 0, results = 0;
  bool operator==(const Rebased&) const = default;
};
struct Capped {  // no host has what a worker of this level needs: tasks that need it have failed
  std::uint64_t level = 0;
  bool operator==(const Capped&) const = default;
};
using Record = std::variant<Begun, Joined, Ordered, Told, Closed, Resumed, Rebased, Capped>;

[[nodiscard]] std::string encode(const Record& record);  // framed

struct Scan {
  std::uint64_t records = 0;
  std::uint64_t bad_bytes = 0;    // that belong to no record
  std::uint64_t end = 0;          // behind the last good record: what follows is to be cut off
  [[nodiscard]] bool damaged() const { return bad_bytes > 0; }
};
// Reads the records in any bytes. Damaged parts are skipped up to the next complete record.
[[nodiscard]] Scan scan(std::string_view file, const std::function<void(const Record&)>& take);

}  // namespace gridctl::bag

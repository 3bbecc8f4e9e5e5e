// SPDX-License-Identifier: Apache-2.0
// Applies the query language of `provider ls` to jobs: 'state in [FAILED,CANCELLED] provider=ada cost>5 age<7d
// name=train*'. A term about a property that a job does not have never holds, even after `not`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "registry/records.hpp"

namespace gridctl::cmd {

struct ListedJob {
  registry::JobRow row;
  HostName host;  // where it is, or was last
  double cost = 0;
  WallTime now;
};

// Describes a field of a job: text in lower case, or a number (seconds, USD).
struct JobField {
  std::string_view name;
  enum class Kind : std::uint8_t { text, number, duration } kind;
  std::optional<std::string> (*text)(const ListedJob&) = nullptr;
  std::optional<double> (*number)(const ListedJob&) = nullptr;
};

class JobQuery {
 public:
  [[nodiscard]] static Result<JobQuery> parse(std::string_view text);  // usage, with the nearest field
  [[nodiscard]] bool empty() const { return terms_.empty(); }
  [[nodiscard]] bool matches(const ListedJob& job) const;

 private:
  struct Term {
    const JobField* field = nullptr;
    std::string op;                   // "=", "!=", "<", "<=", ">", ">="
    std::vector<std::string> values;  // any of them
    bool negated = false;
  };
  std::vector<Term> terms_;
};

// Parses "cost-", "state,age": FIELD- sorts in descending order. Unknown values come last.
class JobOrder {
 public:
  [[nodiscard]] static Result<JobOrder> parse(std::string_view text);
  [[nodiscard]] bool before(const ListedJob& a, const ListedJob& b) const;

 private:
  std::vector<std::pair<const JobField*, bool>> keys_;  // descending?
};

}  // namespace gridctl::cmd

// SPDX-License-Identifier: Apache-2.0
// Vast.ai's query language over what is known of hosts: `provider ls`, and `constraints` of a job. Pure.
//
//   gpu_name in [RTX_4090, "RTX 3090"] num_gpus>=2 reliability>0.98 not region in [CN,VN] gpu_ram=24GB.. A100:2..4
//
// A query is a row of terms that must all hold: FIELD OPERATOR VALUE. Operators: = == != < <= > >= in notin, and Vast's
// words for them (eq neq lt lte gt gte nin). `not` or `!` before a term turns it round; a flag may stand alone
// (`rentable`, `!datacenter`). Numbers may carry a unit (24GB, 1Gbps, 7d, 98%) and be ranges (16GB..24GB, 2.., ..8).
// Text is compared without case, '_' and '-' count as spaces. FIELD = any holds always. A term about something that is
// not known of a host does not hold, whatever its operator and also behind `not`. dstack's GPU notation may stand alone
// (`A100:2..4`, `24GB..`) or follow `gpu=`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "job/spec.hpp"
#include "sched/query/query_fields.hpp"

namespace gridctl::sched {

struct NumberRange {
  double low = 0, high = 0;  // both count
  bool operator==(const NumberRange&) const = default;
};

struct Term {
  enum class Op : std::uint8_t { equal, less, at_most, more, at_least };
  const Field* field = nullptr;
  std::string label;  // of label.KEY
  Op op = Op::equal;
  bool negated = false;
  bool always = false;  // `= any`
  // The alternatives that a field is compared with, by the kind of the field.
  std::vector<std::string> texts;  // normalised
  std::vector<NumberRange> numbers;
  std::vector<job::GpuRequest> gpus;
  std::string source;  // as it was written, for messages
};

class Query {
 public:
  // usage: names the place in the text, and the nearest field when one is unknown.
  [[nodiscard]] static Result<Query> parse(std::string_view text);

  [[nodiscard]] bool empty() const { return terms_.empty(); }
  [[nodiscard]] bool matches(const Subject& host) const;
  // The first term that does not hold, with what the host has: "gpu_ram>=24: it has 12". nullopt when all hold.
  struct Refusal {
    std::string text;
    bool passing = false;  // it speaks of something that changes by itself
  };
  [[nodiscard]] std::optional<Refusal> refusal(const Subject& host) const;
  // Does any term speak of a field of this source?
  [[nodiscard]] bool asks(FieldSource source) const;
  // Words that a field of text ("region", "gpu_name") may be, lower case; to find those that nobody can be.
  [[nodiscard]] std::vector<std::string> words_for(std::string_view field) const;

 private:
  void order_by_cost();

  std::vector<Term> terms_;                  // as written
  std::vector<std::size_t> cheapest_first_;  // the same by place
};

// "price", "price-" (descending), "num_gpus-,price": several, the first counts most. What is not known comes last.
class Order {
 public:
  [[nodiscard]] static Result<Order> parse(std::string_view text);
  [[nodiscard]] bool before(const Subject& a, const Subject& b) const;
  [[nodiscard]] bool asks(FieldSource source) const;

 private:
  struct Key {
    const Field* field = nullptr;
    std::string label;
    bool descending = false;
  };
  std::vector<Key> keys_;
};

}  // namespace gridctl::sched

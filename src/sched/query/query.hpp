// SPDX-License-Identifier: Apache-2.0
// Implements Vast.ai's query language over the known facts of hosts: `provider ls`, and `constraints` of a job. Pure.
//
//   gpu_name in [RTX_4090, "RTX 3090"] num_gpus>=2 reliability>0.98 not region in [CN,VN] gpu_ram=24GB.. A100:2..4
//
// A query is a sequence of terms that must all hold: FIELD OPERATOR VALUE. Operators: = == != < <= > >= in notin, and
// Vast's words for them (eq neq lt lte gt gte nin). `not` or `!` before a term negates it; a flag may stand alone
// (`rentable`, `!datacenter`). Numbers may have a unit (24GB, 1Gbps, 7d, 98%) and be ranges (16GB..24GB, 2.., ..8).
// Text is compared without case, '_' and '-' count as spaces. FIELD = any always holds. A term about an unknown fact of
// a
// host does not hold, whatever its operator, and even after `not`. dstack's GPU notation may stand alone
// (`A100:2..4`, `24GB..`) or follow `gpu=`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
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
  // Alternatives that a field is compared with, by the kind of the field.
  std::vector<std::string> texts;  // normalised
  std::vector<NumberRange> numbers;
  std::vector<job::GpuRequest> gpus;
  std::string source;  // as it was written, for messages
};

class Query {
 public:
  // Fails with usage, which names the place in the text, and the nearest field if one is unknown.
  [[nodiscard]] static Result<Query> parse(std::string_view text);

  [[nodiscard]] bool empty() const { return terms_.empty(); }
  [[nodiscard]] bool matches(const Subject& host) const;
  // Holds the first term that does not hold, with the host's value: "gpu_ram>=24: it has 12". nullopt if all hold.
  struct Refusal {
    std::string text;
    bool passing = false;  // it speaks of something that changes by itself
  };
  [[nodiscard]] std::optional<Refusal> refusal(const Subject& host) const;
  // Returns whether any term uses a field from this source.
  [[nodiscard]] bool asks(FieldSource source) const;
  // Returns the words that a text field ("region", "gpu_name") may be, in lower case; to find words that match nothing.
  [[nodiscard]] std::vector<std::string> words_for(std::string_view field) const;

 private:
  void order_by_cost();

  std::vector<Term> terms_;                  // as written
  std::vector<std::size_t> cheapest_first_;  // the same by place
};

// Parses "price", "price-" (descending), "num_gpus-,price": the first of several counts most. Unknown values come last.
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

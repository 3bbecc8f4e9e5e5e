// SPDX-License-Identifier: Apache-2.0
// Reads the output of Python's pickle as values: nothing is imported, nothing is called. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace gridctl::store {

inline constexpr std::size_t k_pickle_values_max = 4'000'000;  // about 400 MB of memory

struct PickleValue {
  enum class Kind : std::uint8_t { none, integer, real, text, list, dictionary, object };
  Kind kind = Kind::none;
  std::int64_t integer = 0;  // true is 1
  std::string text;          // also bytes; of objects "module.Class"
  // Items of lists, tuples and sets; key, value, key, value… of dictionaries; arguments of an object's constructor.
  std::vector<const PickleValue*> items;
  const PickleValue* state = nullptr;  // of objects: their fields, if they have any

  [[nodiscard]] bool is(std::string_view class_name) const;  // an object of a class of that name, in any module
  // Finds a field of an object, or of a dictionary with texts as keys; nullptr: there is no field with that name.
  [[nodiscard]] const PickleValue* field(std::string_view name) const;
};

class Pickle {
 public:
  // Fails with unsupported if it uses an unknown feature, or is not a pickle.
  [[nodiscard]] static Result<Pickle> parse(ByteView bytes);
  [[nodiscard]] const PickleValue& root() const { return *root_; }

 private:
  friend class Unpickler;
  std::deque<PickleValue> values_;  // never move
  const PickleValue* root_ = nullptr;
};

}  // namespace gridctl::store

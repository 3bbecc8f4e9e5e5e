// SPDX-License-Identifier: Apache-2.0
// Reads JSON members from strangers within bounds. Members with a wrong type or out of range throw BadField; absent
// ones and null are the unknown value. For .cpp files that know nlohmann's json.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace gridctl {

struct BadField : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr std::size_t k_field_text_max = 4096;  // bytes: paths are the longest texts

class JsonFields {
 public:
  // Throws unless it is an object. Does not own it.
  explicit JsonFields(const nlohmann::json& object);
  [[nodiscard]] std::string text(std::string_view name) const;  // empty when absent
  [[nodiscard]] bool flag(std::string_view name) const;         // false when absent
  [[nodiscard]] std::optional<bool> maybe_flag(std::string_view name) const;
  [[nodiscard]] std::optional<std::int64_t> whole(std::string_view name, std::int64_t min, std::int64_t max) const;
  [[nodiscard]] std::optional<double> real(std::string_view name, double min, double max) const;
  [[nodiscard]] bool has(std::string_view name) const;  // present and not null

  // Reads a whole number into any integer type of the caller, within its range.
  template <class Integer>
  [[nodiscard]] std::optional<Integer> small(std::string_view name, std::int64_t max, std::int64_t min = 0) const {
    const auto value = whole(name, min, max);
    return value ? std::optional<Integer>(static_cast<Integer>(*value)) : std::nullopt;
  }

 private:
  [[nodiscard]] const nlohmann::json* find(std::string_view name) const;
  const nlohmann::json* object_;
};

}  // namespace gridctl

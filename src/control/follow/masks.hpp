// SPDX-License-Identifier: Apache-2.0
// Secrets of a job, found in what it prints: gridctl-security(7), "SECRETS". Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gridctl::control {

inline constexpr std::size_t k_masked_least = 6;  // characters; what is shorter would hide parts of common words

class Masks {
 public:
  Masks() = default;
  Masks(Masks&&) noexcept = default;
  Masks& operator=(Masks&&) noexcept = default;
  Masks(const Masks&) = delete;
  Masks& operator=(const Masks&) = delete;
  // Each value as it is, its lines, and what base64 makes of it wherever it stands in what was encoded.
  explicit Masks(const std::map<std::string, std::string>& secrets);

  // Each byte of a secret becomes a '*': offsets stay those of the host, so that a secret that is cut by two pieces is
  // masked in the first one, too.
  void mask(std::string& text) const;
  // Bytes at the end of the text that may be the beginning of a secret.
  [[nodiscard]] std::size_t held(std::string_view text) const;
  // Of the longest; what ends within the first so many bytes of a piece may have begun before it.
  [[nodiscard]] std::size_t longest() const { return longest_; }
  [[nodiscard]] bool empty() const { return forms_.empty(); }

 private:
  void add(std::string_view form);
  std::vector<std::string> forms_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> by_start_;  // of k_masked_least bytes, longest first
  std::size_t longest_ = 0;
};

}  // namespace gridctl::control

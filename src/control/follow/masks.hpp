// SPDX-License-Identifier: Apache-2.0
// Finds the secrets of a job in its output: gridctl-security(7), "SECRETS". Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace gridctl::control {

inline constexpr std::size_t k_masked_least = 6;  // characters; what is shorter would hide parts of common words

// Searches for many texts at once, however many there are.
class Forms {
 public:
  void add(const std::string& form);  // not one of fewer than k_masked_least characters
  // Calls found(at, size) for the longest match at each place; matches may overlap.
  template <class Found>
  void find(std::string_view text, const Found& found) const;
  // Returns the longest end of `text` that is the beginning of a form, and the longest beginning that is the end of one
  // (k_masked_least or more characters); never a complete form.
  [[nodiscard]] std::size_t begun_at_end(std::string_view text) const;
  [[nodiscard]] std::size_t ended_at_begin(std::string_view text) const;
  [[nodiscard]] std::size_t longest() const { return longest_; }

 private:
  using Index = std::unordered_map<std::string, std::vector<std::string>>;  // by k_masked_least bytes, longest first
  Index by_start_, by_end_;
  std::unordered_set<std::string> starts_;  // of fewer bytes
  std::size_t longest_ = 0;
};

class Masks {
 public:
  Masks() = default;
  Masks(Masks&&) noexcept = default;
  Masks& operator=(Masks&&) noexcept = default;
  Masks(const Masks&) = delete;
  Masks& operator=(const Masks&) = delete;
  // Includes each value as it is and as it is read (legible.hpp), its lines, and its base64 and hexadecimal encodings
  // at any position of an encoded text.
  explicit Masks(const std::map<std::string, std::string>& secrets);
  void add(const std::string& value);

  // Replaces each byte of a secret, except line breaks, with '*': offsets stay those of the host, so that a secret
  // split across two pieces is masked in the first one too.
  void mask(std::string& text) const;
  // Masks a text that may have been cut: also masks six or more characters of a secret at either end.
  void mask_cut(std::string& text) const;
  // Returns the number of bytes at the end of the text that may be the beginning of a secret.
  [[nodiscard]] std::size_t held(std::string_view text) const;
  // A secret that ends within the first reach() bytes of a piece of a log may have begun before it.
  [[nodiscard]] std::size_t reach() const;
  [[nodiscard]] bool empty() const { return exact_.longest() == 0; }

 private:
  Forms exact_, legible_;
};

}  // namespace gridctl::control

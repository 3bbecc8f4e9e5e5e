// SPDX-License-Identifier: Apache-2.0
// Defines Result<T>: a value or an Error. Member names follow std::expected, so that a later move to it is mechanical.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "base/error.hpp"

namespace gridctl {

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  Result(T value) : data_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit by design
  Result(Error error) : data_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  [[nodiscard]] bool has_value() const { return data_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  // REQUIRES: has_value()
  T& value() & {
    GRIDCTL_CHECK(has_value());
    return std::get<0>(data_);
  }
  const T& value() const& {
    GRIDCTL_CHECK(has_value());
    return std::get<0>(data_);
  }
  T&& value() && {
    GRIDCTL_CHECK(has_value());
    return std::get<0>(std::move(data_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  template <class U>
  T value_or(U&& fallback) && {
    return has_value() ? std::get<0>(std::move(data_)) : T(std::forward<U>(fallback));
  }

  // REQUIRES: !has_value()
  Error& error() & {
    GRIDCTL_CHECK(!has_value());
    return std::get<1>(data_);
  }
  const Error& error() const& {
    GRIDCTL_CHECK(!has_value());
    return std::get<1>(data_);
  }
  Error&& error() && {
    GRIDCTL_CHECK(!has_value());
    return std::get<1>(std::move(data_));
  }

  // Adds a line of context if this is an error.
  Result&& context(std::string line) && {
    if (!has_value()) std::get<1>(data_).context.push_back(std::move(line));
    return std::move(*this);
  }

 private:
  std::variant<T, Error> data_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT
  [[nodiscard]] bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  void value() const { GRIDCTL_CHECK(has_value()); }
  Error& error() & {
    GRIDCTL_CHECK(!has_value());
    return *error_;
  }
  const Error& error() const& {
    GRIDCTL_CHECK(!has_value());
    return *error_;
  }
  Error&& error() && {
    GRIDCTL_CHECK(!has_value());
    return *std::move(error_);
  }
  Result&& context(std::string line) && {
    if (error_) error_->context.push_back(std::move(line));
    return std::move(*this);
  }

 private:
  std::optional<Error> error_;
};

}  // namespace gridctl

#define GRIDCTL_CONCAT_(a, b) a##b
#define GRIDCTL_CONCAT(a, b) GRIDCTL_CONCAT_(a, b)
// TRY(expr): returns the error of a Result<void> (or any Result whose value is not wanted).
#define TRY(expr)                                                                          \
  do {                                                                                     \
    if (auto gridctl_try_ = (expr); !gridctl_try_) return std::move(gridctl_try_).error(); \
  } while (false)
// TRY_ASSIGN(auto x, expr): declares or assigns from the value, or returns the error.
#define TRY_ASSIGN(target, expr) GRIDCTL_TRY_ASSIGN_(GRIDCTL_CONCAT(gridctl_result_, __COUNTER__), target, expr)
#define GRIDCTL_TRY_ASSIGN_(tmp, target, expr) \
  auto tmp = (expr);                           \
  if (!tmp) return std::move(tmp).error();     \
  target = std::move(tmp).value()

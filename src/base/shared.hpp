// SPDX-License-Identifier: Apache-2.0
// Holds a value that its copies share until one of them is changed: a placement asks about every host many times, and
// an inventory is some kilobytes of small strings. Copies may be in several threads, each edited by its own.
#pragma once

#include <memory>
#include <utility>

namespace gridctl {

template <class T>
class Shared {
 public:
  Shared() : value_(blank()) {}
  Shared(T value) : value_(std::make_shared<T>(std::move(value))) {}  // NOLINT: it is that value

  Shared(const Shared&) = default;  // moving copies, too: there is always a value
  Shared& operator=(const Shared&) = default;
  ~Shared() = default;

  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }
  operator const T&() const { return *value_; }  // NOLINT: see above

  // Changes this copy only. The reference is valid until another copy is made of it and it is edited again.
  T& edit() {
    if (value_.use_count() > 1) value_ = std::make_shared<T>(*value_);
    return *value_;
  }

  bool operator==(const Shared& other) const { return value_ == other.value_ || *value_ == *other.value_; }

 private:
  static const std::shared_ptr<T>& blank() {
    static const auto none = std::make_shared<T>();
    return none;
  }
  std::shared_ptr<T> value_;
};

}  // namespace gridctl

// SPDX-License-Identifier: Apache-2.0
// Logs what went wrong and what was being done.
#pragma once

#include <string>

#include "base/result.hpp"
#include "os/log.hpp"

namespace gridctl::control {

inline void report(const Error& error, const std::string& doing) {
  os::log(os::LogLevel::warn, doing + ": " + error.one_line());
}

// Logs nothing of a success.
template <class T>
void report(const Result<T>& outcome, const std::string& doing) {
  if (!outcome) report(outcome.error(), doing);
}

}  // namespace gridctl::control

// SPDX-License-Identifier: Apache-2.0
// The controller as a service of the user's systemd: it starts with the session, or with the machine where the user
// lingers.
#pragma once

#include <string>

#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::control {

struct UserUnit {
  std::string name;  // "gridctl.service"; with a mark of its own for a state directory that is not the usual one
  os::Path file;     // where it lies
};
[[nodiscard]] Result<UserUnit> unit_of(const os::Path& state_directory);
// The unit's text. Pure.
[[nodiscard]] std::string unit_text(const os::Path& program, const os::Path& state_directory);

struct Installed {
  UserUnit unit;
  bool lingers = false;     // it goes on after the last logout, and starts with the machine
  std::string not_started;  // why systemd could not be told to start it now; empty: it runs
};
// Writes the unit, enables and starts it; a controller that runs already makes room for it.
[[nodiscard]] Result<Installed> install_unit(const os::Path& state_directory);
// Stops and removes it; false when there was none.
[[nodiscard]] Result<bool> remove_unit(const os::Path& state_directory);
[[nodiscard]] bool is_installed(const os::Path& state_directory);
// This machine runs systemd.
[[nodiscard]] bool has_systemd();

}  // namespace gridctl::control

// SPDX-License-Identifier: Apache-2.0
// Runs the controller as a service of the user's systemd: it starts with the session, or at boot if the user lingers.
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
// Returns the unit's text. Pure.
[[nodiscard]] std::string unit_text(const os::Path& program, const os::Path& state_directory);

struct Installed {
  UserUnit unit;
  bool lingers = false;     // it goes on after the last logout, and starts with the machine
  std::string not_started;  // why systemd could not be told to start it now; empty: it runs
};
// Writes, enables and starts the unit; a controller that is already running makes room for it.
[[nodiscard]] Result<Installed> install_unit(const os::Path& state_directory);
// Stops and removes the unit; returns false if there was none.
[[nodiscard]] Result<bool> remove_unit(const os::Path& state_directory);
[[nodiscard]] bool is_installed(const os::Path& state_directory);
// Returns true if this machine runs systemd.
[[nodiscard]] bool has_systemd();

}  // namespace gridctl::control

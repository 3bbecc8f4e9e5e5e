// SPDX-License-Identifier: Apache-2.0
// Images for the jobs of guests: from registries that the owner of a lent machine lists, and with nobody's login.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/owner_terms.hpp"
#include "base/result.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

// Returns the full name, "docker.io/library/debian:12" for "debian:12". refused: no name of an image (a transport of
// podman's, a path, an option), or of a registry that the owner does not list.
[[nodiscard]] Result<std::string> guest_image_name(const wire::GuestTerms& terms, std::string_view image);
[[nodiscard]] std::string_view registry_of(std::string_view full_name);

// refused: the registry's name leads to an address of the owner's network or of this machine. A name that cannot be
// looked up is left to the engine, which will not find it either.
[[nodiscard]] Result<void> check_registry_address(std::string_view registry, os::Clock& clock);

// Which images guests have got on this machine: an image of the owner's under the same name is another one.
class GuestImages {
 public:
  // `agent`: the program that gives a pull its network; empty: the pull has that of this machine.
  explicit GuestImages(os::Path folder, os::Path agent = {}) : folder_(std::move(folder)), agent_(std::move(agent)) {}

  [[nodiscard]] bool knows(const std::string& name, const std::string& id) const;
  void add(const std::string& name, const std::string& id) const;
  // The newest id that guests have got under the name; empty: none.
  [[nodiscard]] std::string id_of(const std::string& name) const;
  // A file or folder of settings without a login, for podman and docker.
  [[nodiscard]] Result<os::Path> no_login() const;
  // The command before podman's own: what it starts reaches public addresses only.
  [[nodiscard]] std::vector<std::string> gate() const;
  // One archive is loaded at a time: the names in the engine are put back afterwards.
  [[nodiscard]] Result<os::FileLock> lock() const;
  [[nodiscard]] os::Path names_file() const { return folder_ / "names_before"; }

 private:
  os::Path folder_, agent_;
};

}  // namespace gridctl::agent

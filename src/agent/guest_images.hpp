// SPDX-License-Identifier: Apache-2.0
// Images for the jobs of guests: from registries that the owner of a lent machine lists, and with nobody's login.
#pragma once

#include <string>
#include <string_view>

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
  explicit GuestImages(os::Path folder) : folder_(std::move(folder)) {}

  [[nodiscard]] bool knows(const std::string& name, const std::string& id) const;
  void add(const std::string& name, const std::string& id) const;
  // A file or folder of settings without a login, for podman and docker.
  [[nodiscard]] Result<os::Path> no_login() const;

 private:
  os::Path folder_;
};

}  // namespace gridctl::agent

// SPDX-License-Identifier: Apache-2.0
// Manages folders for the secrets of attempts, on a tmpfs that all users of the host may share: another user may take
// our name there, and must neither receive a secret nor keep one from its job.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

// Returns /dev/shm and /run/user/UID, if they are a tmpfs that we can write to.
[[nodiscard]] std::vector<os::Path> secret_bases();
// Returns our folders in `bases`, which nobody else can open: gridctl-UID, or gridctl-UID.RANDOM if that name was
// taken.
[[nodiscard]] std::vector<os::Path> secret_folders(const std::vector<os::Path>& bases = secret_bases());
// Returns where the secrets `name` are: in the folder that has them, otherwise in the first. A folder to be made has a
// name that nobody has taken. unsupported: there is no tmpfs.
[[nodiscard]] Result<os::Path> secrets_at(const std::string& name, const std::vector<os::Path>& bases = secret_bases());
// Makes the folder around `secrets`; busy if another user was faster.
[[nodiscard]] Result<void> make_secret_folder(const os::Path& secrets);

}  // namespace gridctl::agent

// SPDX-License-Identifier: Apache-2.0
// Finds credentials and region where the AWS tools look for them: the environment, ~/.aws/credentials, ~/.aws/config.
// It neither asks a server for them nor runs a program.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "os/files.hpp"
#include "transfer/s3.hpp"
#include "transfer/s3_sign.hpp"

namespace gridctl::transfer {

struct S3Login {
  S3Credentials credentials;
  std::string region;  // the remote's, or what stands in the environment or the profile, or us-east-1
};

// Holds the surroundings of a lookup; the real ones are os::environment and the files in the home directory.
struct S3Surroundings {
  std::function<std::optional<std::string>(std::string_view)> environment;
  os::Path home;
};
[[nodiscard]] S3Surroundings s3_surroundings();

// Fails with auth_refused, and a command that helps, if there are none. No error contains a byte of them.
[[nodiscard]] Result<S3Login> find_s3_login(const S3Remote& remote, const S3Surroundings& around);

// Maps sections of such a file: "[name]", in config files "[profile name]" too. Indented lines below a setting belong
// to it and are skipped. Pure; tolerant, because people write these files.
using S3Profiles = std::map<std::string, std::map<std::string, std::string>>;
[[nodiscard]] S3Profiles parse_s3_profiles(std::string_view text);

}  // namespace gridctl::transfer

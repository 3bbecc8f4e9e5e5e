// SPDX-License-Identifier: Apache-2.0
#include "control/follow/secrets.hpp"

#include "os/entries.hpp"

namespace gridctl::control {

namespace {
constexpr std::uint64_t k_secret_bytes_max = 64 * 1024;  // as the protocol's text fields
}

Result<void> write_secrets(const os::Path& directory, const std::map<std::string, std::string>& secrets) {
  if (secrets.empty()) return {};
  TRY(os::make_directories(directory, 0700));
  for (const auto& [name, value] : secrets) TRY(os::write_file_durably(directory / name, value, 0600));
  return {};
}

Result<std::map<std::string, std::string>> read_secrets(const os::Path& directory,
                                                        const std::vector<std::string>& names) {
  std::map<std::string, std::string> secrets;
  for (const std::string& name : names) {
    Result<std::string> value = os::read_file(directory / name, k_secret_bytes_max);
    if (!value)
      return make_error(Code::not_found, "the value of secret " + name + " is missing from the state directory (" +
                                             value.error().message + "); submit the job again");
    secrets.emplace(name, std::move(*value));
  }
  return secrets;
}

Result<std::map<std::string, std::string>> read_secrets(const os::Path& directory) {
  if (!os::exists(directory)) return std::map<std::string, std::string>{};
  TRY_ASSIGN(const std::vector<std::string> names, os::list_directory(directory));
  return read_secrets(directory, names);
}

}  // namespace gridctl::control

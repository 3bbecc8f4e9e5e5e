// SPDX-License-Identifier: Apache-2.0
#include "cmd/empty_directory.hpp"

#include "os/entries.hpp"
#include "store/copy_out.hpp"

namespace gridctl::cmd {

Result<void> check_empty(const os::Path& directory, std::string_view what) {
  if (!os::exists(directory)) return {};
  TRY_ASSIGN(const std::optional<os::FileStatus> status, os::status_of(directory));
  if (status && status->kind != os::FileKind::directory)
    return make_error(Code::exists, directory.string() + " exists and is no directory");
  TRY_ASSIGN(const std::vector<std::string> names, os::list_directory(directory));
  if (names.empty() || os::exists(directory / store::k_partial_mark)) return {};
  return make_error(Code::exists, directory.string() + " is not empty: " + std::string(what) +
                                      " copied into a new directory only");
}

}  // namespace gridctl::cmd

// SPDX-License-Identifier: Apache-2.0
// Files that streams read and write inside a job. Paths are as the job sees them; relative ones begin in its working
// directory.
#pragma once

#include <string>

#include "base/result.hpp"
#include "os/files.hpp"
#include "wire/stream.hpp"

namespace gridctl::agent {

// A file in memory with a line for the entry at `path`, and for each one below it if `deep`. Links below are not followed.
[[nodiscard]] Result<os::Fd> list_entries(const os::Path& path, bool deep);

struct ReadFile {
  os::Fd fd;  // at the offset asked for
  std::uint64_t bytes = 0;
};
// `refused` if the bytes before the offset are not those of the digest: the file has changed.
[[nodiscard]] Result<ReadFile> open_to_read(const os::Path& path, const wire::StreamOpen& request);

// A file is written under a name of its own and takes its place when it is whole. What was written of it stays for a
// later try. A path that ends with "/" makes a directory.
[[nodiscard]] os::Path part_of(const os::Path& path);
[[nodiscard]] Result<os::Fd> open_to_write(const os::Path& path, const wire::StreamOpen& request);
[[nodiscard]] Result<void> complete_write(const os::Path& path, unsigned mode);

}  // namespace gridctl::agent

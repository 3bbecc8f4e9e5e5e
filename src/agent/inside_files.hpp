// SPDX-License-Identifier: Apache-2.0
// Reads and writes files for streams inside a job. Paths are as the job sees them; relative ones start in its working
// directory.
#pragma once

#include "base/result.hpp"
#include "os/files.hpp"
#include "wire/stream.hpp"

namespace gridctl::agent {

// Returns a file in memory with a line for the entry at `path`, and for each one below it if `deep`. Links below are
// not followed.
[[nodiscard]] Result<os::Fd> list_entries(const os::Path& path, bool deep);

struct ReadFile {
  os::Fd fd;  // at the offset asked for
  std::uint64_t bytes = 0;
};
// `refused` if the bytes before the offset do not match the digest: the file has changed.
[[nodiscard]] Result<ReadFile> open_to_read(const os::Path& path, const wire::StreamOpen& request);

// A file is written under a temporary name and gets its own when it is complete. The part written so far stays for a
// later try. A path that ends with "/" creates a directory.
[[nodiscard]] os::Path part_of(const os::Path& path);
[[nodiscard]] Result<os::Fd> open_to_write(const os::Path& path, const wire::StreamOpen& request);
[[nodiscard]] Result<void> complete_write(const os::Path& path, unsigned mode);

}  // namespace gridctl::agent

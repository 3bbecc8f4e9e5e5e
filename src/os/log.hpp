// SPDX-License-Identifier: Apache-2.0
// Writes the diagnostic log (not the event log), to a file of the daemon or to stderr with --verbose. It never contains
// secrets.
#pragma once

#include <cstdint>
#include <string_view>

#include "os/files.hpp"

namespace gridctl::os {

enum class LogLevel { debug, info, warn, error };
// Rotates the log at `bytes_max`; two old ones are kept as PATH.1 and PATH.2.
void log_to_file(const Path& path, LogLevel level, std::uint64_t bytes_max = 16ull << 20);
void log_to_stderr(LogLevel level);
void log(LogLevel level, std::string_view line);  // before either call: dropped
[[nodiscard]] bool log_enabled(LogLevel level);

}  // namespace gridctl::os

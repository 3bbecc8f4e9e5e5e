// SPDX-License-Identifier: Apache-2.0
// The diagnostic log (not the event log): to a file of the daemon or to stderr with --verbose. Never secrets.
#pragma once

#include <string>
#include <string_view>

#include "os/files.hpp"

namespace gridctl::os {

enum class LogLevel { debug, info, warn, error };
void log_to_file(const Path& path, LogLevel level);  // rotated at 16 MiB, two old ones kept
void log_to_stderr(LogLevel level);
void log(LogLevel level, std::string_view line);  // before either call: dropped
[[nodiscard]] bool log_enabled(LogLevel level);

}  // namespace gridctl::os

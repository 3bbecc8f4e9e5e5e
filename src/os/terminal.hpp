// SPDX-License-Identifier: Apache-2.0
// Handles the terminal of a person at the keyboard, and the three standard streams.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace gridctl::os {

// Opens /dev/null for closed descriptors 0 to 2: otherwise the next opened file would receive the printed text.
void open_standard_streams();
[[nodiscard]] bool is_terminal(int fd);
// Returns the columns of the terminal behind `fd`, otherwise $COLUMNS, otherwise 80; at least 20.
[[nodiscard]] int terminal_columns(int fd);

enum class WriteEnd { written, reader_gone };
// Writes everything to a standard stream; `reader_gone` if its reader has closed it (EPIPE).
[[nodiscard]] Result<WriteEnd> write_stream(int fd, std::string_view bytes);
// Reads one line typed by the person, without the newline; interrupted at end of input.
[[nodiscard]] Result<std::string> read_typed_line();
// Reads everything on standard input, at most `bytes_max`.
[[nodiscard]] Result<std::string> read_standard_input(std::size_t bytes_max);

}  // namespace gridctl::os

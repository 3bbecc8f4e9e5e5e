// SPDX-License-Identifier: Apache-2.0
// Reads small files of /proc, /sys and /etc beneath a root that tests replace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "os/files.hpp"

namespace gridctl::probe {

class HostFiles {
 public:
  explicit HostFiles(os::Path root = "/") : root_(std::move(root)) {}
  // Returns the complete content, at most 1 MiB; nullopt if it cannot be read. `path` is absolute.
  [[nodiscard]] std::optional<std::string> read(std::string_view path) const;
  // Reads without blanks and line ends around the content.
  [[nodiscard]] std::string read_line(std::string_view path) const;
  [[nodiscard]] std::optional<std::uint64_t> read_number(std::string_view path) const;
  // Returns the names in a directory, sorted; empty if there is none.
  [[nodiscard]] std::vector<std::string> list(std::string_view path) const;
  [[nodiscard]] bool exists(std::string_view path) const;
  [[nodiscard]] os::Path at(std::string_view path) const;

 private:
  os::Path root_;
};

}  // namespace gridctl::probe

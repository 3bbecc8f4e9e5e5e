// SPDX-License-Identifier: Apache-2.0
#include "probe/host_files.hpp"

#include <algorithm>
#include <system_error>

#include "base/text.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe {
namespace {
constexpr std::uint64_t k_file_max = 1u << 20;  // bytes; the longest we read is mountinfo of a busy container host
constexpr std::size_t k_names_max = 4096;       // a directory with more is not one we understand
}  // namespace

os::Path HostFiles::at(std::string_view path) const { return root_ / os::Path(path).relative_path(); }

std::optional<std::string> HostFiles::read(std::string_view path) const {
  auto content = os::read_file(at(path), k_file_max);
  if (!content) return std::nullopt;
  return std::move(content).value();
}

std::string HostFiles::read_line(std::string_view path) const {
  const auto content = read(path);
  return content ? std::string(trim(*content)) : std::string();
}

std::optional<std::uint64_t> HostFiles::read_number(std::string_view path) const {
  return whole_number(read_line(path));
}

std::vector<std::string> HostFiles::list(std::string_view path) const {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(at(path), error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
    if (names.size() >= k_names_max) break;
  }
  std::ranges::sort(names);
  return names;
}

bool HostFiles::exists(std::string_view path) const {
  std::error_code error;
  return std::filesystem::exists(at(path), error);
}

}  // namespace gridctl::probe

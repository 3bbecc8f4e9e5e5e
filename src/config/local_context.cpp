// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include "config/job_file.hpp"

namespace gridctl::config {

Context local_context(std::string base_directory, Overrides overrides) {
  Context context;
  context.base_directory = std::move(base_directory);
  context.environment = [](std::string_view name) { return os::environment(name); };
  context.path_kind = [](const std::string& path) {
    if (os::open_file(path, O_RDONLY | O_DIRECTORY)) return PathKind::directory;
    return os::open_file(path, O_RDONLY | O_NONBLOCK) ? PathKind::file : PathKind::missing;
  };
  context.overrides = std::move(overrides);
  return context;
}

Result<ParsedJob> load_job_file(const os::Path& path, Overrides overrides, std::vector<std::string> known_providers) {
  constexpr std::uint64_t k_bytes_max = 1 << 20;  // parse_job_file names the real limit with a place
  auto text = os::read_file(path, k_bytes_max);
  if (!text)
    return make_error(Code::bad_job_file, "cannot read the job file '" + path.string() + "': " + text.error().message);
  Context context = local_context(std::filesystem::absolute(path).parent_path().string(), std::move(overrides));
  context.known_providers = std::move(known_providers);
  return parse_job_file(*text, path.string(), context);
}

}  // namespace gridctl::config

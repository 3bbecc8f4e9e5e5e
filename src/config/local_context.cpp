// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <filesystem>
#include <system_error>

#include "base/text.hpp"
#include "config/job_file.hpp"
#include "config/job_parts.hpp"

namespace gridctl::config {

Context local_context(std::string base_directory, Overrides overrides) {
  Context context;
  context.base_directory = std::move(base_directory);
  context.environment = [](std::string_view name) { return os::environment(name); };
  context.path_kind = [](const std::string& path) {
    if (os::open_file(path, O_RDONLY | O_DIRECTORY)) return PathKind::directory;
    return os::open_file(path, O_RDONLY | O_NONBLOCK) ? PathKind::file : PathKind::missing;
  };
  std::error_code failed;
  context.caller_directory = std::filesystem::current_path(failed).string();
  context.overrides = std::move(overrides);
  return context;
}

namespace {
// Returns "; did you mean 'train.yaml'?" if a job file with a similar name is beside it.
std::string file_meant(const os::Path& path) {
  std::vector<std::string> names;
  std::error_code failed;
  const os::Path folder = path.has_parent_path() ? path.parent_path() : os::Path(".");
  for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    if (const std::string name = at->path().filename().string(); name.ends_with(".yaml") || name.ends_with(".yml"))
      names.push_back(name);
  const std::string near = nearest(path.filename().string(), names);
  return near.empty() || near == path.filename().string() ? "" : "; did you mean '" + near + "'?";
}
}  // namespace

Result<ParsedJob> load_job_file(const os::Path& path, Overrides overrides, std::vector<std::string> known_providers) {
  constexpr std::uint64_t k_bytes_max = 1 << 20;  // parse_job_file names the real limit with a place
  auto text = os::read_file(path, k_bytes_max);
  if (!text)
    return make_error(Code::bad_job_file, "cannot read the job file '" + path.string() + "': " + text.error().message +
                                              file_meant(path));
  if (text->starts_with("#!") && !is_sbatch(*text))
    return make_error(Code::bad_job_file, "'" + path.string() + "' is a program, not a job file",
                      "gridctl job submit -- " + std::string(text->find("python") < text->find('\n') ? "python3 " : "bash ") +
                          shell_quote(path.string()));
  if (text->find("apiVersion:") != std::string::npos && text->find("kind:") != std::string::npos)
    return make_error(Code::bad_job_file, "'" + path.string() + "' is a manifest of Kubernetes, not a job file",
                      "gridctl template ls");
  Context context = local_context(std::filesystem::absolute(path).parent_path().string(), std::move(overrides));
  context.known_providers = std::move(known_providers);
  return parse_job_file(*text, path.string(), context);
}

}  // namespace gridctl::config

// SPDX-License-Identifier: Apache-2.0
#include "agent/job_view.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "agent/bag_files.hpp"
#include "agent/ranks.hpp"
#include "base/text.hpp"
#include "os/address.hpp"
#include "os/process.hpp"

namespace gridctl::agent {
namespace {

constexpr std::size_t k_script_bytes_max = 256 * 1024;
constexpr std::size_t k_variables_max = 1024;
constexpr std::size_t k_variable_bytes_max = 128 * 1024;   // the kernel's limit for one string
constexpr std::size_t k_variables_bytes_max = 512 * 1024;  // together; the kernel allows a quarter of the stack
constexpr std::uint64_t k_spec_memory_max = 1ull << 50;         // as in a lease: sums of several stay numbers
constexpr double k_cpus_least = 0.01;  // engines take less for no limit
constexpr std::size_t k_list_max = 256;                    // mounts, GPUs
constexpr Duration k_grace_max = std::chrono::hours{24};

Error refuse(std::string why) {
  return make_error(Code::refused, "the attempt's specification is refused: " + std::move(why));
}

// Accepts a path that is safe in a mount argument and does not lead elsewhere.
bool is_plain_path(std::string_view path) {
  if (path.empty() || path.size() > 1024) return false;
  for (const char c : path)
    if (static_cast<unsigned char>(c) < ' ' || c == ',' || c == '"' || c == '\\' || c == 0x7f) return false;
  const auto parts = split(path, '/');
  return std::ranges::none_of(parts, [](const std::string& part) { return part == ".." || part == "."; });
}

Result<void> check_variables(const std::map<std::string, std::string>& variables, std::string_view what) {
  if (variables.size() > k_variables_max) return refuse("too many " + std::string(what));
  std::size_t total = 0;
  for (const auto& [name, value] : variables) {
    if (!is_variable_name(name))
      return refuse("bad name among the " + std::string(what) + ": '" + sanitize(name.substr(0, 64)) + "'");
    if (value.find('\0') != std::string::npos || value.size() > k_variable_bytes_max)
      return refuse("the value of " + name);
    total += name.size() + value.size() + 2;
  }
  if (total > k_variables_bytes_max) return refuse("the " + std::string(what) + " are larger than 512 KiB");
  return {};
}

bool is_root(std::string_view path) { return path.find_first_not_of('/') == std::string_view::npos; }

bool beneath_work(const std::string& path) { return path.starts_with("/work/") && path.size() > 6; }

}  // namespace

Result<void> check_spec(const wire::AttemptSpec& spec) {
  TRY(check_component("the job id", spec.job.value));
  TRY(check_variables(spec.envs, "variables"));
  if (spec.setup.size() > k_script_bytes_max || spec.run.size() > k_script_bytes_max)
    return refuse("a script is larger than 256 KiB");
  if (spec.run.empty()) return refuse("there is no command to run");
  if (spec.mounts.size() > k_list_max || spec.gpu_uuids.size() > k_list_max)
    return refuse("more than 256 mounts or GPUs");
  for (const auto& mount : spec.mounts)
    if (!is_plain_path(mount.target) || is_root(mount.target)) return refuse("bad mount target '" + sanitize(mount.target.substr(0, 200)) + "'");
  if (!spec.checkpoint_path.empty() && (!is_plain_path(spec.checkpoint_path) || is_root(spec.checkpoint_path)))
    return refuse("bad checkpoint path '" + sanitize(spec.checkpoint_path.substr(0, 200)) + "'");
  for (const std::string& gpu : spec.gpu_uuids)
    if (gpu.empty() || gpu.size() > 60 || !is_plain_path(gpu) || gpu.find('=') != std::string::npos)
      return refuse("bad gpu id");
  const bool container = spec.engine != EngineKind::process;
  if (container && !spec.image_archive && (spec.image.empty() || spec.image[0] == '-' || spec.image.size() > 512))
    return refuse("bad image reference");
  const bool too_few = spec.cpus > 0 && spec.cpus < k_cpus_least;
  if (!(spec.cpus >= 0) || spec.cpus > 65536 || too_few) return refuse("bad number of CPUs");
  if (spec.memory_bytes > k_spec_memory_max) return refuse("more memory than any machine has");
  TRY(check_gang(spec));
  if (spec.bag && spec.gang) return refuse("a worker of a bag cannot be a member of a gang");
  if (spec.stop_grace < Duration{} || spec.stop_grace > k_grace_max) return refuse("bad stop grace");
  return {};
}

Result<void> check_secrets(const wire::AttemptSpec& spec, const std::map<std::string, std::string>& secrets) {
  TRY(check_variables(secrets, "secrets"));
  for (const std::string& name : spec.secret_names)
    if (!secrets.contains(name)) return refuse("the value of secret " + sanitize(name.substr(0, 64)) + " is missing");
  if (secrets.size() != spec.secret_names.size()) return refuse("a secret has a value but is not declared");
  return {};
}

bool has_own_home(const wire::AttemptSpec& spec) {
  return std::ranges::any_of(spec.mounts, [](const wire::TreeRef& one) { return one.target.starts_with("~/"); });
}

JobView view_of(const AttemptDir& attempt, const wire::AttemptSpec& spec, unsigned launch) {
  const bool container = spec.engine != EngineKind::process;
  JobView view;
  view.work = container ? Path("/work") : attempt.work();
  view.run = container ? Path(k_run_in_container) : attempt.run(launch);
  view.control = container ? Path("/gridctl/ctl") : attempt.control();
  if (container) view.home = "/gridctl/home";
  else if (has_own_home(spec)) view.home = attempt.home();
  if (!spec.secret_names.empty()) {
    if (container) view.secrets = "/run/secrets";
    else if (auto folder = attempt.secrets()) view.secrets = *folder;
  }
  if (!container)
    view.confinement =
        confinement_of(os::home_directory(), attempt.agent_home(), attempt.path, view.secrets, Path{});
  const std::string& path = spec.checkpoint_path;
  const bool relative = !path.empty() && (path[0] != '/' || (container && beneath_work(path)));
  if (relative) {
    view.checkpoint_base = attempt.work();
    view.checkpoint_relative = Path(path[0] == '/' ? path.substr(6) : path).lexically_normal().string();
    while (view.checkpoint_relative.ends_with('/')) view.checkpoint_relative.pop_back();
    view.checkpoints = view.work / view.checkpoint_relative;
  } else {
    view.checkpoint_base = attempt.path;
    view.checkpoint_relative = attempt.checkpoints().filename().string();
    view.checkpoints = !path.empty() ? Path(path) : container ? Path("/ckpt") : attempt.checkpoints();
  }
  return view;
}

Result<os::Fd> open_checkpoint_directory(const JobView& view, bool make) {
  TRY_ASSIGN(const os::Fd base, os::open_file(view.checkpoint_base, O_RDONLY | O_DIRECTORY));
  if (make) TRY(os::make_directories_beneath(base.get(), view.checkpoint_relative, 0755));
  auto opened = os::open_beneath(base.get(), view.checkpoint_relative, O_RDONLY | O_DIRECTORY);
  if (opened || make) return opened;
  std::error_code failed;
  if (!std::filesystem::is_symlink(view.checkpoint_base / view.checkpoint_relative, failed)) return opened;
  const Path real = std::filesystem::canonical(view.checkpoint_base / view.checkpoint_relative, failed);
  const bool other = failed || real == view.checkpoint_base.lexically_normal() / view.checkpoint_relative;
  if (other || !view.confinement) return opened;
  if (is_hidden(*view.confinement, real))
    return make_error(Code::refused, "the checkpoint directory is a link to " + quoted_path(real.native()) +
                                         ", which the job may not read");
  // A link is not followed again, because the job may have placed one there in the meantime.
  TRY_ASSIGN(const os::Fd root, os::open_file("/", O_RDONLY | O_DIRECTORY));
  return os::open_beneath(root.get(), real.relative_path().native(), O_RDONLY | O_DIRECTORY);
}

std::vector<std::string> names_of_checkpoints(const JobView& view) {
  std::vector<std::string> names{view.checkpoints.lexically_normal().native(),
                                 (view.checkpoint_base / view.checkpoint_relative).lexically_normal().native()};
  std::error_code failed;
  const Path real = std::filesystem::canonical(names.back(), failed);
  if (!failed && view.confinement) names.push_back(real.native());
  return names;
}

std::string job_environment(const wire::AttemptSpec& spec, const JobView& view, const std::vector<Gpu>& gpus) {
  std::map<std::string, std::string> variables = spec.envs;
  variables.try_emplace("GRIDCTL_RESUME_FROM", spec.restore ? spec.restore_name : "");
  variables["GRIDCTL_CKPT_DIR"] = view.checkpoints.string();
  variables["GRIDCTL_METRICS"] = (view.run / "metrics").string();
  variables["GRIDCTL_NOTICE_FILE"] = (view.run / k_notice_file).string();
  variables["GRIDCTL_CKPT_INTERVAL_FILE"] = (view.run / k_interval_file).string();
  if (spec.gang)
    for (auto& [name, value] : gang_variables(spec, view, os::interface_of(spec.gang->here().address))) {
      if (name.starts_with("GRIDCTL_") || name.starts_with("SKYPILOT_")) variables[name] = value;
      else variables.try_emplace(name, value);
    }
  if (!view.home.empty()) {
    variables.try_emplace("HOME", view.home.string());
    if (spec.engine != EngineKind::process)
      for (const char* name : {"USER", "LOGNAME"}) variables.try_emplace(name, "job");  // for those who ask who they are
  }
  if (spec.engine == EngineKind::process)
    for (auto& [name, value] : gpu_variables(gpus)) variables[name] = value;
  std::string text;
  for (const auto& [name, value] : variables) text += name + "=" + value + std::string(1, '\0');
  return text;
}

Result<void> tell_interval(const AttemptDir& attempt, unsigned launch, const std::string& seconds) {
  return os::write_file_atomically(attempt.run(launch) / k_interval_file, seconds + "\n", 0644);
}

Result<void> tell_notice(const AttemptDir& attempt, unsigned launch, std::string_view reason, Duration left, WallTime now) {
  const auto whole_seconds = [](std::int64_t ms) { return std::to_string(std::max<std::int64_t>(ms, 0) / 1000); };
  const std::string text = R"({"seconds": )" + whole_seconds(std::chrono::duration_cast<std::chrono::milliseconds>(left).count()) +
                           R"(, "reason": ")" + std::string(reason) + R"(", "time": )" + whole_seconds(now.ms) + "}\n";
  return os::write_file_atomically(attempt.run(launch) / k_notice_file, text, 0644);
}

Result<void> make_run_folder(const AttemptDir& attempt, const wire::AttemptSpec& spec, const JobView& view,
                             unsigned launch, const std::vector<Gpu>& gpus) {
  const Path run = attempt.run(launch);
  TRY(os::make_directories(run));
  TRY(os::write_file_atomically(run / "env", job_environment(spec, view, gpus)));
  if (!spec.setup.empty()) TRY(os::write_file_atomically(run / "setup.sh", spec.setup + "\n"));
  TRY(os::write_file_atomically(run / "run.sh", spec.run + "\n"));
  if (spec.bag) TRY(os::write_file_atomically(run / k_bag_file, wire::encode(*spec.bag)));
  const bool container = spec.engine != EngineKind::process;
  TRY_ASSIGN(const Path agent, os::executable_path());
  TRY(make_rank_files(run, spec, view, gpus, container ? "/gridctl/agent" : agent.string()));
  if (const auto told = spec.envs.find("GRIDCTL_CKPT_INTERVAL"); told != spec.envs.end())
    TRY(tell_interval(attempt, launch, told->second));
  if (::mkfifo((run / "log").c_str(), 0600) != 0)
    return errno_error(errno, "cannot make the log pipe in " + run.string());
  return {};
}

}  // namespace gridctl::agent

// SPDX-License-Identifier: Apache-2.0
#include "integration/engine_here.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/text.hpp"
#include "os/process.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::testing {

namespace {
std::string limit_text(int resource, rlim_t most) {
  rlimit limit{};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  const auto value = std::to_string(std::min(limit.rlim_max, most));
  return value + ":" + value;
}

Result<void> make_image(const os::Path& folder, const std::string& engine,
                        const std::map<std::string, std::string>& env) {
  const os::Path bin = folder / "root/bin";
  TRY(os::make_directories(bin, 0755));
  os::RunOptions options;
  options.timeout = std::chrono::seconds{60};
  options.environment_extra = env;
  const std::string script = "cp \"$(command -v busybox)\" " + bin.string() +
                             "/busybox && for a in sh sleep echo cat ls seq dd id ps true kill mkdir "
                             "mv rm env sync yes head tail setsid touch printf awk; do ln -sf busybox " +
                             bin.string() + "/$a; done && tar -C " + (folder / "root").string() + " -cf - . | " +
                             engine + " import - gridctl-test:1 && " + engine + " run --rm gridctl-test:1 true";
  TRY_ASSIGN(const auto outcome, os::run({"sh", "-c", script}, options));
  if (!outcome.status.success()) return make_error(Code::engine, sanitize(outcome.err));
  return {};
}
}  // namespace

const EngineHere& engine_here(EngineKind kind) {
  static std::map<EngineKind, EngineHere> known;
  static TempDir folder;
  if (const auto found = known.find(kind); found != known.end()) return found->second;
  EngineHere& host = known[kind];
  if (kind == EngineKind::process) return host;
  const std::string program(engine_name(kind));
  if (!os::find_program(program) || !os::find_program("busybox")) {
    host.problem = program + " or busybox is not installed";
    return host;
  }
  if (kind == EngineKind::podman) {
    const os::Path base = folder / "podman";
    std::filesystem::create_directories(base);
    std::ofstream(base / "storage.conf") << "[storage]\ndriver = \"overlay\"\nrunroot = \"" << (base / "run").string()
                                         << "\"\ngraphroot = \"" << (base / "graph").string() << "\"\n";
    std::ofstream(base / "containers.conf")
        << "[containers]\ndefault_ulimits = [\"nofile=" << limit_text(RLIMIT_NOFILE, 4096)
        << "\", \"nproc=" << limit_text(RLIMIT_NPROC, 4096) << "\"]\n[engine]\nruntime = \"runc\"\n"
        << "cgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n[network]\nnetwork_backend = \"netavark\"\n";
    host.environment = {{"CONTAINERS_STORAGE_CONF", (base / "storage.conf").string()},
                        {"CONTAINERS_CONF", (base / "containers.conf").string()}};
  }
  if (const auto made = make_image(folder / program, program, host.environment); !made)
    host.problem = program + " cannot run a container here: " + made.error().message;
  return host;
}

}  // namespace gridctl::testing

// SPDX-License-Identifier: Apache-2.0
#include "probe/preflight.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/bytes.hpp"
#include "base/text.hpp"

namespace gridctl::probe {
namespace {

constexpr std::uint64_t k_disk_free_min = 1ull << 30;         // the agent, a work folder and one small checkpoint
constexpr std::uint64_t k_shm_min = 64ull << 20;              // data loaders share batches there
constexpr std::int64_t k_clock_off_max_ms = 5 * 60 * 1000;    // certificates and tokens allow about five minutes
constexpr std::int64_t k_clock_floor_ms = 1'704'067'200'000;  // 2024-01-01: before this program was written

std::string user_of(const Inventory& inventory) {
  return inventory.facts.user.empty() ? "$USER" : shell_quote(inventory.facts.user);
}

Finding home_finding(const Inventory& inventory) {
  const HostFacts& facts = inventory.facts;
  const std::string home = shell_quote(facts.home_path);
  if (!facts.home_writable)
    return {"home", false,
            facts.home_path + " cannot be written" + (facts.home_problem.empty() ? "" : ": " + facts.home_problem),
            "sudo mkdir -p " + home + " && sudo chown " + user_of(inventory) + " " + home};
  if (facts.home_noexec)
    return {"home", false, facts.home_path + " is on a file system mounted noexec, but the agent runs from there",
            "sudo mount -o remount,exec \"$(findmnt -n -o TARGET -T " + home + ")\""};
  return {"home", true, facts.home_path + " is writable (" + facts.home_file_system + ")", ""};
}

Finding disk_finding(const Inventory& inventory) {
  const std::string free =
      format_size(inventory.disk_free_bytes) + " free of " + format_size(inventory.disk_total_bytes);
  if (inventory.disk_free_bytes >= k_disk_free_min) return {"disk", true, free, ""};
  return {
      "disk", false, free + ", at least " + format_size(k_disk_free_min) + " is needed",
      "sudo du -xh --max-depth=2 " + shell_quote(inventory.facts.home_path) + " / 2>/dev/null | sort -h | tail -20"};
}

const Engine* engine_of(const Inventory& inventory, EngineKind kind) {
  for (const Engine& engine : inventory.engines)
    if (engine.kind == kind) return &engine;
  return nullptr;
}

bool is_missing(const Engine& engine) { return engine.problem.find("not installed") != std::string::npos; }

// Returns the command that fixes an engine's problem; problems that engines.cpp knows end in one.
std::string engine_fix(const Engine& engine) {
  const std::size_t command = engine.problem.find("sudo ");
  if (command != std::string::npos) return engine.problem.substr(command);
  const std::string name(engine_name(engine.kind));
  if (is_missing(engine))
    return "sudo apt-get install " + (engine.kind == EngineKind::docker ? std::string("docker.io") : name);
  return name + " info";
}

Finding engine_finding(const Inventory& inventory, std::optional<EngineKind> wanted) {
  if (const Engine* engine = choose_engine(inventory, wanted))
    return {"engine", true,
            std::string(engine_name(engine->kind)) + (engine->version.empty() ? "" : " " + engine->version) +
                (engine->rootless ? ", rootless" : ""),
            ""};
  std::vector<std::string> problems;
  std::string fix;
  // An installed engine that does not work is closer to working than one that must be installed.
  bool installed = false;
  for (const Engine& engine : inventory.engines) {
    if (wanted && engine.kind != *wanted) continue;
    problems.push_back(engine.problem);
    if (fix.empty() || (!installed && !is_missing(engine))) fix = engine_fix(engine);
    installed = installed || !is_missing(engine);
  }
  if (problems.empty()) problems.emplace_back("no engine was checked");
  return {"engine", false, join(problems, "; "), fix};
}

Finding limits_finding(const Inventory& inventory, const Engine& engine) {
  const std::string name(engine_name(engine.kind));
  if (engine.limits_enforced) return {"limits", true, name + " enforces memory and CPU limits", "", false};
  if (engine.kind == EngineKind::process) {
    const std::string plain = "plain processes of an ordinary user have no limits on memory and CPU";
    for (const Engine& other : inventory.engines)
      if (!other.problem.empty() && !is_missing(other))
        return {"limits", false, plain + "; " + other.problem, engine_fix(other), false};
    return {"limits", false, plain, "sudo apt-get install podman uidmap", false};
  }
  if (inventory.facts.cgroup_version == 1 && engine.rootless)
    return {"limits", false, "rootless " + name + " cannot limit memory and CPU on cgroup v1",
            "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&systemd.unified_cgroup_hierarchy=1 /' /etc/default/grub && sudo "
            "update-grub && sudo reboot",
            false};
  return {"limits", false, name + " cannot limit memory and CPU: the controllers are not delegated to the user",
          "sudo mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu cpuset io memory "
          "pids\\n' | sudo tee /etc/systemd/system/user@.service.d/delegate.conf && sudo systemctl daemon-reload",
          false};
}

// Warns people who lend this machine, or run others' jobs there, about something that no other tool reports.
Finding isolation_finding(const Inventory& inventory, const Engine& engine, std::optional<EngineKind> wanted) {
  if (engine.kind != EngineKind::process && wanted)
    return {"isolation", true, "jobs run in containers", "", false};
  if (engine.kind != EngineKind::process)
    return {"isolation", true, "jobs with an image run in containers; jobs without one are not isolated", "", false};
  const std::string who = inventory.facts.user.empty() ? "the login's user" : inventory.facts.user;
  return {"isolation", false,
          "plain processes are not isolated: a job can do what " + who +
              " can; run jobs that you do not trust in containers (man 7 gridctl-security)",
          "sudo apt-get install podman uidmap", false};
}

Finding subuid_finding(const Inventory& inventory) {
  const HostFacts& facts = inventory.facts;
  if (!facts.newuidmap)
    return {"subuid", false, "newuidmap is not installed: images whose files belong to several users do not unpack",
            "sudo apt-get install uidmap", false};
  if (!facts.subuid)
    return {
        "subuid", false,
        user_of(inventory) +
            " has no ranges in /etc/subuid and /etc/subgid: images whose files belong to several users do not unpack",
        "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 " + user_of(inventory) +
            " && podman system migrate",
        false};
  return {"subuid", true, "subordinate ids are set", "", false};
}

Finding clock_finding(const Inventory& inventory, std::optional<WallTime> now) {
  const std::int64_t host = inventory.facts.clock_wall_ms;
  const std::string fix = "sudo timedatectl set-ntp true";
  if (now) {
    const std::int64_t off = host - now->ms;
    if (std::abs(off) > k_clock_off_max_ms)
      return {"clock", false,
              "the host's clock is " + format_duration(std::chrono::seconds{std::abs(off) / 1000}) +
                  (off > 0 ? " ahead of" : " behind") +
                  " this machine's: one of them is wrong, and programs that use TLS will fail there",
              fix, false};
  }
  if (host < k_clock_floor_ms) return {"clock", false, "the host's clock says " + format_rfc3339({host}), fix, false};
  return {"clock", true, format_rfc3339({host}), "", false};
}

Finding shm_finding(const Inventory& inventory) {
  const std::uint64_t bytes = inventory.facts.shm_bytes;
  if (bytes >= k_shm_min) return {"shm", true, "/dev/shm has " + format_size(bytes), "", false};
  return {"shm", false, bytes == 0 ? std::string("/dev/shm is not there") : "/dev/shm has only " + format_size(bytes),
          bytes == 0 ? "sudo mkdir -p /dev/shm && sudo mount -t tmpfs -o size=50% tmpfs /dev/shm"
                     : "sudo mount -o remount,size=50% /dev/shm",
          false};
}

// Notes GPUs that exist and cannot be used.
std::optional<Finding> gpu_finding(const Inventory& inventory) {
  for (const std::string& note : inventory.notes) {
    const bool about_gpus = note.starts_with("nvidia") || note.starts_with("amd") || note.starts_with("rocm-smi") ||
                            note.starts_with("intel") || note.starts_with("xpu-smi");
    if (!about_gpus) continue;
    const std::size_t command = note.find("sudo ");
    std::string fix = command != std::string::npos ? note.substr(command) : "";
    if (fix.empty())
      fix = note.find("reboot needed") != std::string::npos ? "sudo reboot" : note.substr(0, note.find(':'));
    return Finding{"gpu", false, note, fix, false};
  }
  if (inventory.gpus.empty()) return std::nullopt;
  return Finding{"gpu", true, std::to_string(inventory.gpus.size()) + " x " + inventory.gpus.front().name, "", false};
}

}  // namespace

const Engine* choose_engine(const Inventory& inventory, std::optional<EngineKind> wanted) {
  for (const EngineKind kind : {EngineKind::docker, EngineKind::podman, EngineKind::process}) {
    if (wanted && kind != *wanted) continue;
    const Engine* engine = engine_of(inventory, kind);
    if (engine && engine->problem.empty()) return engine;
  }
  return nullptr;
}

std::vector<Finding> preflight(const Inventory& inventory, std::optional<EngineKind> wanted,
                               std::optional<WallTime> now) {
  std::vector<Finding> findings;
  findings.push_back(engine_finding(inventory, wanted));
  const Engine* engine = choose_engine(inventory, wanted);
  if (!inventory.facts.home_path.empty()) findings.push_back(home_finding(inventory));
  findings.push_back(disk_finding(inventory));
  if (engine) findings.push_back(limits_finding(inventory, *engine));
  if (engine) findings.push_back(isolation_finding(inventory, *engine, wanted));
  if (!inventory.facts.home_path.empty()) {
    if (engine && engine->kind == EngineKind::podman && engine->rootless) findings.push_back(subuid_finding(inventory));
    findings.push_back(clock_finding(inventory, now));
    findings.push_back(shm_finding(inventory));
  }
  if (auto gpu = gpu_finding(inventory)) findings.push_back(std::move(*gpu));
  return findings;
}

std::string unfit_reason(const Inventory& inventory) {
  const HostFacts& facts = inventory.facts;
  if (facts.home_path.empty()) return {};  // it was not looked at
  if (!facts.home_writable || facts.home_noexec) return home_finding(inventory).detail;
  if (inventory.disk_free_bytes < k_disk_free_min) return "its disk has " + disk_finding(inventory).detail;
  return {};
}

bool passed(const std::vector<Finding>& findings) {
  return std::ranges::all_of(findings, [](const Finding& f) { return f.ok || !f.required; });
}

}  // namespace gridctl::probe

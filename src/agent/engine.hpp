// SPDX-License-Identifier: Apache-2.0
// Runs a job: docker, podman, or a plain process. An engine launches and cleans up; whether the job is alive follows
// from init's lock, pid and start time, never from the engine's word.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/attempt_dir.hpp"
#include "agent/init.hpp"
#include "base/inventory.hpp"
#include "base/result.hpp"
#include "os/process.hpp"
#include "wire/messages.hpp"

namespace gridctl::agent {

class GuestImages;

struct Bind {
  Path host;
  std::string target;
  bool read_only = false;
};

inline constexpr std::uint64_t k_processes_max = 4096;  // of one container

struct LaunchPlan {
  std::string name;  // gridctl-JOB-eEPOCH
  ControllerId controller;
  Path agent;     // our own binary
  InitPlan init;  // paths as the job sees them
  Path host_run;  // init's run folder as the host sees it
  std::string image;
  std::vector<Bind> binds;
  std::vector<Gpu> gpus;
  std::vector<std::string> network;  // arguments for the engine that narrow what the job reaches
  std::uint64_t processes_max = k_processes_max;  // and threads: a fork bomb stays inside
};

class Engine {
 public:
  virtual ~Engine() = default;
  // Makes the spec's image available; `archive` is a file to load. Returns the reference to launch with.
  [[nodiscard]] virtual Result<std::string> ensure_image(const wire::AttemptSpec& spec, const Path& archive) = 0;
  // Makes the image of a guest available, by the full name of a registry that its owner allows. Returns the id to
  // launch with. An image in the owner's engine is used only if guests have pulled it before; otherwise it is pulled,
  // without a login.
  [[nodiscard]] virtual Result<std::string> ensure_guest_image(const std::string& name, const GuestImages& /*images*/) {
    return make_error(Code::refused, "an engine without images cannot run " + name);
  }
  // Makes the image of a guest available from an archive. Returns the id to launch with; no name in the engine refers
  // to another image afterwards.
  [[nodiscard]] virtual Result<std::string> ensure_guest_archive(const wire::AttemptSpec& /*spec*/, const Path& archive, const GuestImages& /*images*/) {
    return make_error(Code::refused, "an engine without images cannot load " + archive.string());
  }
  // Starts init. Success means only that the engine said so.
  [[nodiscard]] virtual Result<void> launch(const wire::AttemptSpec& spec, const LaunchPlan& plan) = 0;
  // Returns true if the launched process has ended, as far as is known: an init that has not started by now never will.
  [[nodiscard]] virtual bool is_gone(const std::string& name) = 0;
  // Returns every live process of the attempt, as far as the engine's kind can find them; init included.
  [[nodiscard]] virtual std::vector<os::ProcessId> members(const std::string& name, const Path& host_run) = 0;
  // Stops all processes of the attempt from running, or lets them run again, by the kernel's or the engine's own means.
  // Returns false if neither is available, or they failed.
  [[nodiscard]] virtual bool set_frozen(const std::string& name, bool frozen) = 0;
  // Removes what the engine keeps under the name, in any state. Missing is success.
  [[nodiscard]] virtual Result<void> remove(const std::string& name) = 0;
};

[[nodiscard]] std::unique_ptr<Engine> make_engine(EngineKind kind);
// Make the two kinds: docker or podman through their command lines; none at all, where init is a child of the
// supervisor and limits apply if the host lets us make control groups.
[[nodiscard]] std::unique_ptr<Engine> make_container_engine(EngineKind kind);
[[nodiscard]] std::unique_ptr<Engine> make_process_engine();
[[nodiscard]] std::string attempt_name(const JobId& job, Epoch epoch, const Path& agent_home);

// Holds the arguments of `docker|podman run` after the program's name. The user owns the job's files, with the ids that
// the container uses: in a rootless one, 0 is the user who runs it.
struct ContainerUser {
  unsigned uid = 0, gid = 0;
};
[[nodiscard]] std::vector<std::string> container_arguments(EngineKind kind, const wire::AttemptSpec& spec,
                                                           const LaunchPlan& plan, const ContainerUser& user);
// Returns the device arguments for the leased GPUs.
[[nodiscard]] std::vector<std::string> gpu_arguments(EngineKind kind, const std::vector<Gpu>& gpus);
// Returns the only node, if the kernel does not say which node belongs to which device. With several, one could be
// another job's.
[[nodiscard]] std::vector<std::string> only_render_node(const Path& folder = "/dev/dri");
// Returns the variables with which a plain process gets its GPUs.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> gpu_variables(const std::vector<Gpu>& gpus);
// Returns the name that docker pulls: "docker.io/library/debian:12" for "debian:12". A name with a registry stays as it is.
[[nodiscard]] std::string full_image_name(std::string_view image);
// Returns the image named in the output of `docker|podman load`; empty if none is.
[[nodiscard]] std::string loaded_image(std::string_view output);

}  // namespace gridctl::agent

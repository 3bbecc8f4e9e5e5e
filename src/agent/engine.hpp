// SPDX-License-Identifier: Apache-2.0
// An engine runs a job: docker, podman, or a plain process. It is asked to launch and to clean up; whether the job is
// alive is decided by init's lock, pid and start time, never by the engine's word.
#pragma once

#include <memory>
#include <optional>
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
};

class Engine {
 public:
  virtual ~Engine() = default;
  // Makes the image of the spec present; `archive` is a file to load. The reference to launch with.
  [[nodiscard]] virtual Result<std::string> ensure_image(const wire::AttemptSpec& spec, const Path& archive) = 0;
  // The image of a guest, by the full name of a registry that its owner allows. Returns the id to launch with. One that
  // the owner's engine holds serves only if guests have got it before; else it is pulled, without a login.
  [[nodiscard]] virtual Result<std::string> ensure_guest_image(const std::string& name, const GuestImages& /*images*/) {
    return make_error(Code::refused, "an engine without images cannot run " + name);
  }
  // The image of a guest that comes as an archive. Returns the id to launch with; no name in the engine is another
  // image's afterwards.
  [[nodiscard]] virtual Result<std::string> ensure_guest_archive(const wire::AttemptSpec& /*spec*/, const Path& archive, const GuestImages& /*images*/) {
    return make_error(Code::refused, "an engine without images cannot load " + archive.string());
  }
  // Starts init. Success means only that the engine said so.
  [[nodiscard]] virtual Result<void> launch(const wire::AttemptSpec& spec, const LaunchPlan& plan) = 0;
  // The launched process has ended, as far as is known: an init that has not begun by now never will.
  [[nodiscard]] virtual bool is_gone(const std::string& name) = 0;
  // Every process of the attempt that lives, as far as the engine's kind lets us know; init included.
  [[nodiscard]] virtual std::vector<os::ProcessId> members(const std::string& name, const Path& host_run) = 0;
  // Stops all processes of the attempt from running, or lets them run again, by the kernel's or the engine's own means.
  // False: there are none here, or they failed.
  [[nodiscard]] virtual bool set_frozen(const std::string& name, bool frozen) = 0;
  // Removes what the engine keeps under the name, whatever its state. Missing is success.
  [[nodiscard]] virtual Result<void> remove(const std::string& name) = 0;
};

[[nodiscard]] std::unique_ptr<Engine> make_engine(EngineKind kind);
[[nodiscard]] std::string attempt_name(const JobId& job, Epoch epoch, const Path& agent_home);

// Arguments of `docker|podman run` behind the program's name. The user owns the job's files: as the container counts
// ids, which in a rootless one is 0 for the user who runs it.
struct ContainerUser {
  unsigned uid = 0, gid = 0;
};
[[nodiscard]] std::vector<std::string> container_arguments(EngineKind kind, const wire::AttemptSpec& spec,
                                                           const LaunchPlan& plan, const ContainerUser& user);
// Device arguments for the leased GPUs.
[[nodiscard]] std::vector<std::string> gpu_arguments(EngineKind kind, const std::vector<Gpu>& gpus);
// Where the kernel does not tell which node is whose: the only one there is. Among several, one would be another job's.
[[nodiscard]] std::vector<std::string> only_render_node(const Path& folder = "/dev/dri");
// The variables with which a plain process gets its GPUs.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> gpu_variables(const std::vector<Gpu>& gpus);
// Returns the name that docker pulls: "docker.io/library/debian:12" for "debian:12". A name with a registry stays as it is.
[[nodiscard]] std::string full_image_name(std::string_view image);
// The image named in the output of `docker|podman load`; empty when none is.
[[nodiscard]] std::string loaded_image(std::string_view output);

}  // namespace gridctl::agent

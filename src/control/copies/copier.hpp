// SPDX-License-Identifier: Apache-2.0
// Runs the daemon's copies: copies what the jobs' checkpoint.copies ask for to remotes in the background, newest first.
// Trouble with a remote is reported once and retried; it neither stops nor delays a job.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "control/copies/host_uploads.hpp"
#include "control/copies/remotes.hpp"
#include "control/reach/paths.hpp"
#include "os/clock.hpp"
#include "os/loop.hpp"
#include "registry/registry.hpp"

namespace gridctl::control {

// Remembers the state of one remote between rounds. One thread uses it at a time.
struct RemoteMemory {
  std::set<std::string> told;                  // "JOB CODE": who has heard of its trouble
  std::set<registry::CheckpointRef> hopeless;  // damaged here, and told
  std::set<std::string> refused;               // "JOB why": told, or known to have been
  BootTime next_prune{};
  std::shared_ptr<UploadMemory> uploads = std::make_shared<UploadMemory>();
  OpenRemote open = open_marked_remote;  // tests put faults between
};

struct CopyRound {
  std::uint64_t copied = 0;
  bool is_due = false;  // something is left to do
  bool busy = false;    // another process is at it
  std::optional<Error> trouble;
};
// Copies the checkpoints that are due at this remote, and removes there what was removed here. Blocks.
[[nodiscard]] CopyRound copy_what_is_due(const Paths& paths, AgentNetwork& net, const std::string& remote,
                                         os::Clock& clock, RemoteMemory& memory);

class Copier {
 public:
  Copier(os::Loop& loop, os::Clock& clock, Paths paths, AgentNetwork& net);
  ~Copier();

  // Returns true if no copy is under way and every due copy waits for a remote that has not answered for long.
  [[nodiscard]] bool is_idle() const;

 private:
  struct AtRemote;
  void tick();
  void serve(const std::string& name, AtRemote& at);
  void done(const std::string& name, const CopyRound& round);

  os::Loop& loop_;
  os::Clock& clock_;
  Paths paths_;
  AgentNetwork& net_;
  std::unique_ptr<registry::Registry> registry_;  // of the loop's thread
  std::int64_t seen_version_ = -1;
  std::map<std::string, std::shared_ptr<AtRemote>> remotes_;
  os::Loop::Timer timer_;
  std::unique_ptr<os::Pool> pool_;  // last: waits for work that refers to those above
};

}  // namespace gridctl::control

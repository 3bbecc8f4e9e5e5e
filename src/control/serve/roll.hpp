// SPDX-License-Identifier: Apache-2.0
// Replaces a running service with a new version. First, one additional replica gets the new version, which proves that
// it can be placed and becomes ready; then each replica is drained, stopped and started with it, one after another;
// then the additional one ends. Replicas know their version, so the next roll finishes an interrupted one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/serve/balancer_text.hpp"
#include "control/serve/gateway_files.hpp"
#include "registry/records.hpp"

namespace gridctl::control {

struct NewVersion {
  JobId service;
  registry::Job leader;  // as it was when the roll began
  job::Spec spec;        // of the file
  std::vector<registry::Input> inputs;
};

// Gives a roll what it needs: the registry, the gateway, and time. Errors end the roll.
class RollDesk {
 public:
  virtual ~RollDesk() = default;
  [[nodiscard]] virtual Result<registry::Job> job(const JobId& id) = 0;
  [[nodiscard]] virtual Result<std::vector<registry::Input>> inputs(const JobId& id) = 0;
  [[nodiscard]] virtual Result<void> submit(const JobId& id, const job::Spec& spec,
                                            const std::vector<registry::Input>& inputs) = 0;
  [[nodiscard]] virtual Result<void> replace(const JobId& id, const job::Spec& spec,
                                             const std::vector<registry::Input>& inputs, const job::Event& what) = 0;
  [[nodiscard]] virtual Result<void> apply(const JobId& id, const job::Event& what) = 0;
  // Stores the secrets of the new version for the replica.
  [[nodiscard]] virtual Result<void> keep_secrets(const JobId& id) = 0;
  // Tells the daemon that something was written that it should act on.
  [[nodiscard]] virtual Result<void> committed() = 0;
  [[nodiscard]] virtual bool are_same(const job::Spec& spec, const std::vector<registry::Input>& one,
                                      const std::vector<registry::Input>& other) = 0;

  [[nodiscard]] virtual bool gateway_lives() = 0;
  [[nodiscard]] virtual std::optional<GatewayInfo> told() = 0;
  // Returns nullopt if the gateway does not answer now.
  [[nodiscard]] virtual std::optional<ServerLine> line(int replica) = 0;
  [[nodiscard]] virtual Result<void> let_leave(int replica) = 0;
  virtual void let_stay(int replica) = 0;

  [[nodiscard]] virtual BootTime now() = 0;
  virtual void pause(Duration time) = 0;
  virtual void note(const std::string& text) = 0;
};

// Returns true if nothing is left to do, including for an interrupted roll.
[[nodiscard]] Result<bool> is_rolled(RollDesk& desk, const NewVersion& version);
[[nodiscard]] Result<void> roll(RollDesk& desk, const NewVersion& version);

}  // namespace gridctl::control

// SPDX-License-Identifier: Apache-2.0
// A shell script that behaves like the agent, started by a local shell instead of SSH.
#pragma once

#include <string>

#include "control/reach/deploy.hpp"
#include "os/files.hpp"

namespace gridctl::test {

class FakeHost {
 public:
  FakeHost();
  ~FakeHost();
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  // Runs commands here. `before` is put in front of each, as a login shell's start-up files would be.
  [[nodiscard]] control::Connector connector(std::string before = {}) const;
  // Puts a program of this name before all others on the host's PATH.
  void replace_program(const std::string& name, const std::string& script);
  [[nodiscard]] control::AgentCall call() const;  // valid until set_agent  // valid until set_agent

  void set_agent(const std::string& script);  // what it does on `connect`, instead of the one that answers hello and
                                              // then echoes frames
  [[nodiscard]] os::Path installed() const;   // where the agent must end up
  [[nodiscard]] os::Path path(const std::string& name) const { return root_ / name; }
  [[nodiscard]] int commands() const { return *commands_; }
  static ControllerId controller() { return {"testcontroller"}; }

 private:
  os::Path root_;
  std::string script_;
  std::string hash_, arch_;
  std::shared_ptr<int> commands_ = std::make_shared<int>(0);
};

}  // namespace gridctl::test

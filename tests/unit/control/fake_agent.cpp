// SPDX-License-Identifier: Apache-2.0
#include "fake_agent.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "crypto/sha256.hpp"
#include "os/process.hpp"
#include "os/random.hpp"
#include "ssh/process_channel.hpp"

namespace gridctl::test {
namespace {

const char* const k_self_hash = R"sh(#!/bin/sh
if [ "$1" = --self-hash ]; then
  sha256sum "$0" | cut -d ' ' -f 1
  exit
fi
)sh";

const char* const k_echoing_agent = R"sh(printf '\nGRIDCTL-AGENT/1\n'
head -c "$(cat "$GRIDCTL_AGENT_HOME/hello_size")" >/dev/null
cat "$GRIDCTL_AGENT_HOME/reply"
exec cat
)sh";

void write_program(const os::Path& path, const std::string& text) {
  EXPECT_TRUE(os::write_file_atomically(path, text, 0755).has_value());
}

}  // namespace

FakeHost::FakeHost() : root_(os::temporary_directory() / ("gridctl-host-" + os::random_id(12))) {
  EXPECT_TRUE(os::make_directories(root_ / "path").has_value());
  EXPECT_TRUE(os::make_directories(root_ / "home").has_value());
  wire::ControllerHello hello;
  hello.controller = controller();
  hello.nonce.emplace();
  const std::size_t size = wire::encode(wire::Frame{wire::FrameKind::request, 1, wire::encode(hello)}).size();
  wire::AgentHello agent;
  agent.machine_id = "machine";
  agent.boot_id = "boot";
  agent.build = std::string(64, 'a');
  agent.host_time = {123};
  const std::string reply = wire::encode(wire::Frame{wire::FrameKind::reply, 1, wire::encode(agent)});
  EXPECT_TRUE(os::write_file_atomically(root_ / "home/hello_size", std::to_string(size)).has_value());
  EXPECT_TRUE(os::write_file_atomically(root_ / "home/reply", reply).has_value());
  arch_ = std::string{trim(os::run({"uname", "-m"}).value().out)};
  set_agent(k_echoing_agent);
}

FakeHost::~FakeHost() { (void)os::remove_tree(root_); }

void FakeHost::set_agent(const std::string& script) {
  script_ = k_self_hash + script;
  hash_ = to_hex(crypto::sha256(as_bytes(script_)));
}

control::AgentCall FakeHost::call() const { return {{{arch_, script_, hash_}}, controller(), {}}; }

os::Path FakeHost::installed() const { return root_ / "home/bin" / hash_ / "gridctl-agent"; }

void FakeHost::replace_program(const std::string& name, const std::string& script) {
  write_program(root_ / "path" / name, "#!/bin/sh\n" + script + "\n");
}

control::Connector FakeHost::connector(std::string before) const {
  return [before, root = root_, count = commands_](const std::string& command,
                                                   BootTime) -> Result<std::unique_ptr<ssh::Channel>> {
    ++*count;
    const std::string environment = "GRIDCTL_AGENT_HOME=" + shell_quote((root / "home").native()) +
                                    " PATH=" + shell_quote((root / "path").native()) + ":$PATH; " +
                                    "export GRIDCTL_AGENT_HOME PATH; ";
    ssh::ProcessChannelOptions options;
    options.peer = "worker@fake:22";
    TRY_ASSIGN(auto channel, ssh::ProcessChannel::open({"/bin/sh", "-c", environment + before + command},
                                                       std::move(options), os::system_clock()));
    return std::unique_ptr<ssh::Channel>{std::move(channel)};
  };
}

}  // namespace gridctl::test

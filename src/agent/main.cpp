// SPDX-License-Identifier: Apache-2.0
// Runs gridctl-agent, the host's side of gridctl; gridctl-agent(7).
#include <unistd.h>

#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "agent/bag_runner.hpp"
#include "agent/companion.hpp"
#include "agent/connect.hpp"
#include "agent/egress.hpp"
#include "agent/guest.hpp"
#include "agent/init.hpp"
#include "agent/inside.hpp"
#include "agent/pull_gate.hpp"
#include "agent/relay.hpp"
#include "agent/self.hpp"
#include "agent/supervise.hpp"
#include "agent/surroundings.hpp"
#include "agent/up_watch.hpp"
#include "os/clock.hpp"

namespace {

constexpr std::string_view k_inside = "inside", k_become = "become", k_relay = "relay", k_guest = "guest", k_hook = "egress-hook",
                           k_as_guest = "--guest", k_connect = "connect",
                           k_supervise = "supervise", k_init = "init", k_gang_run = "gang-run",
                           k_gang_serve = "gang-serve", k_gang_end = "gang-end", k_gang_node = "gang-node",
                           k_self_hash = "--self-hash", k_version_option = "--version";

int usage() {
  std::fputs(
      "gridctl-agent connect            serve one controller over stdin and stdout\n"
      "gridctl-agent supervise DIR      follow the attempt in DIR to its end\n"
      "gridctl-agent init RUN CONTROL WORK SECRETS|- GRACE_NS [GROUP...]\n"
      "gridctl-agent tasks ...          run the tasks of a bag, as a process of a job; called as init is\n"
      "gridctl-agent inside [...]       serve streams on a socket, as a process of a job\n"
      "gridctl-agent become [--terminal] -- COMMAND...   start a program for a stream\n"
      "gridctl-agent gang-serve         take calls of the first host of this gang\n"
      "gridctl-agent gang-run HOST COMMAND...   run a command on another host of this gang\n"
      "gridctl-agent gang-end STATUS    tell the other hosts that the gang's program has ended\n"
      "gridctl-agent gang-node COMMAND...       run this host's command of a gang\n"
      "gridctl-agent guest CONTROLLER list|gpus|end GRACE_MS [REASON [fresh]]|remove   jobs of somebody whom this machine is lent to\n"
      "gridctl-agent egress-hook [BYTES [open]]   close the ways of a container to the networks of this machine, and hold what it\n"
      "                                 sends to so many bytes a second; an OCI hook\n"
      "gridctl-agent shape PID BYTES    hold what the container of a process sends\n"
      "gridctl-agent gated COMMAND...   run an engine that pulls a guest's image; public addresses only\n"
      "gridctl-agent relay ...          a meeting point for lent hosts and their users; gridctl-lend(7)\n"
      "gridctl-agent --self-hash        print the SHA-256 of this binary\n"
      "gridctl-agent --version\n",
      stderr);
  return 2;
}

int run_planned(std::span<char* const> arguments, int (*run)(const gridctl::agent::InitPlan&)) {
  const auto plan = gridctl::agent::parse_init(arguments);
  if (plan) return run(*plan);
  std::fprintf(stderr, "gridctl-agent: %s\n", plan.error().message.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char* const> arguments(argv, static_cast<std::size_t>(argc));
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == k_connect || command == k_supervise) gridctl::agent::complete_environment();
  if (command == k_connect && argc == 2)
    return gridctl::agent::run_connect(STDIN_FILENO, STDOUT_FILENO, gridctl::os::system_clock());
  if (command == k_connect && argc == 4 && argv[2] == k_as_guest)
    return gridctl::agent::run_connect(STDIN_FILENO, STDOUT_FILENO, gridctl::os::system_clock(), argv[3]);
  if (command == k_supervise && argc == 3) return gridctl::agent::run_supervisor(argv[2], gridctl::os::system_clock());
  if (command == k_inside) return gridctl::agent::run_inside(arguments.subspan(2));
  if (command == k_become) return gridctl::agent::become(arguments.subspan(2));
  if (command == k_init) return run_planned(arguments.subspan(2), gridctl::agent::run_init);
  if (command == gridctl::agent::k_tasks_command) return run_planned(arguments.subspan(2), gridctl::agent::run_bag);
  gridctl::os::Clock& clock = gridctl::os::system_clock();
  // Launchers accept one executable without arguments as a replacement for ssh.
  const std::string_view name = argv[0];
  if (name == k_gang_run || name.ends_with("/" + std::string(k_gang_run))) return gridctl::agent::gang_run(arguments.subspan(1), clock);
  if (command == k_gang_serve && argc == 2) return gridctl::agent::gang_serve(clock);
  if (command == k_gang_run) return gridctl::agent::gang_run(arguments.subspan(2), clock);
  if (command == k_gang_end) return gridctl::agent::gang_end(arguments.subspan(2), clock);
  if (command == k_gang_node) return gridctl::agent::gang_node(arguments.subspan(2), clock);
  if (command == k_hook) return gridctl::agent::egress_hook(arguments.subspan(2));
  if (command == gridctl::agent::k_shape_command) return gridctl::agent::shape_command(arguments.subspan(2));
  if (command == gridctl::agent::k_gated_command) return gridctl::agent::run_gated(arguments.subspan(2), clock);
  if (command == k_guest) return gridctl::agent::guest_command(arguments.subspan(2), clock);
  if (command == k_relay) return gridctl::agent::relay_command(arguments.subspan(2), clock);
  if (command == k_self_hash) return std::puts(gridctl::agent::self_hash().c_str()) < 0 ? 1 : 0;
  if (command == k_version_option) return std::puts("gridctl-agent " GRIDCTL_VERSION) < 0 ? 1 : 0;
  return usage();
}

// SPDX-License-Identifier: Apache-2.0
// This program plays three parts: the tests; the daemon that they start; and an agent that says what it was told to.
#include <gmock/gmock.h>

#include <cstdio>
#include <string_view>

#include "control/daemon/daemon.hpp"
#include "ssh_hosts.hpp"

int main(int argc, char** argv) {
  const std::string_view part = argc > 1 ? argv[1] : "";
  if (part == "agent" && argc == 3) return gridctl::test::play_agent(argv[2]);
  if (part == "daemon" && argc >= 5) {
    const auto ran = gridctl::control::run_daemon(argv[4], argc > 5 && std::string_view(argv[5]) == "--exit-when-idle");
    if (!ran) std::fprintf(stderr, "%s\n", ran.error().one_line().c_str());
    return 1;
  }
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}

// SPDX-License-Identifier: Apache-2.0
// Agents of two controllers, and one GPU.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <fstream>
#include <thread>

#include "integration/agent_client.hpp"
#include "os/files.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::testing::race_test {
namespace {

using wire::EndReason;

// Two researchers on one machine; the job itself notices a second holder.
TEST(AgentRace, GivesOneGpuToOneOfTwoControllersAThousandTimes) {
  const TempDir folder;
  std::filesystem::create_directories(folder / "bin");
  std::ofstream(folder / "bin/nvidia-smi")
      << "#!/bin/sh\ncase \"$*\" in *query-gpu*) "
         "echo '0, NVIDIA A100-SXM4-80GB, GPU-11112222-3333-4444-5555-666677778888, 81920, "
         "550.54.15, 00000000:07:00.0';; esac\n";
  std::filesystem::permissions(folder / "bin/nvidia-smi", std::filesystem::perms::owner_all);
  AgentHost host;
  host.home = folder / "home";
  host.leases = folder / "leases";
  host.environment["PATH"] = (folder / "bin").string() + ":" + os::environment("PATH").value_or("/usr/bin:/bin");
  constexpr std::uint64_t k_races = 1000;
  std::atomic<int> won = 0, refused = 0, failed = 0;
  std::barrier line(2);
  const auto compete = [&](const std::string& name) {
    AgentClient agent(host, ControllerId{name});
    wire::AttemptSpec job;
    job.job = {"job-" + name};
    job.gpu_uuids = {"GPU-11112222-3333-4444-5555-666677778888"};
    job.checkpoints = false;
    job.run = "mkdir " + (folder / "held").string() + " && rmdir " + (folder / "held").string();
    for (std::uint64_t epoch = 1; epoch <= k_races; ++epoch) {
      job.epoch = Epoch{epoch};
      line.arrive_and_wait();  // both ask at the same moment, a thousand times
      if (const auto started = agent.start(job); !started) {
        ++(started.error().code == Code::busy ? refused : failed);
        continue;
      }
      const auto status = agent.await_end(job);
      ++(status.end == EndReason::exited && status.exit_code == 0 ? won : failed);
      if (!agent.clean(job)) ++failed;
    }
  };
  std::thread other([&] { compete("bob"); });
  compete("ada");
  other.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(won + refused, 2 * static_cast<int>(k_races));
  EXPECT_GT(won, 0);
  RecordProperty("won", won);
}

}  // namespace
}  // namespace gridctl::testing::race_test

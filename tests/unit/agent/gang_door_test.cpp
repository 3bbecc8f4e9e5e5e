// SPDX-License-Identifier: Apache-2.0
// Red team: somebody on the network, without the token of a gang, at the port where its members meet.
#include "agent/gang_door.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "crypto/sha256.hpp"
#include "os/process.hpp"
#include "support/results.hpp"

namespace gridctl::agent::gang_door_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;

class StrangerAtTheDoor : public ::testing::Test {
 protected:
  StrangerAtTheDoor() {
    auto listener = PeerListener::open().value();
    port_ = listener.port();
    door_.emplace(std::move(listener), token_, clock_);
  }
  [[nodiscard]] PeerStream connect(const char* address = "127.0.0.1") const {
    auto made = connect_numeric(address, port_, clock_.boot() + 10s, clock_).value();
    return {std::move(made.socket), address, clock_.boot() + 10s, clock_};
  }

  const os::Clock& clock_ = os::system_clock();
  const Digest token_ = crypto::sha256(as_bytes("token"));
  std::uint16_t port_ = 0;
  std::optional<GangDoor> door_;
};

TEST_F(StrangerAtTheDoor, CannotKeepAMemberOut) {
  std::vector<PeerStream> strangers;
  std::atomic<bool> over = false;
  std::thread flood([&] {
    for (int i = 0; i < 300; ++i) strangers.push_back(connect());
    over = true;
  });
  std::size_t most = 0;
  while (!over) {
    EXPECT_FALSE(door_->next(clock_.boot() + 20ms).value());
    most = std::max(most, door_->strangers());
  }
  flood.join();
  EXPECT_LE(most, 128u);
  Result<void> proved;
  std::thread member([&] {
    PeerStream own = connect("127.0.0.2");
    proved = prove_as_connector(own, token_);
  });
  const BootTime began = clock_.boot();
  const auto found = door_->next(began + 5s);
  member.join();
  ASSERT_THAT(found, IsOk());
  EXPECT_TRUE(*found);
  EXPECT_THAT(proved, IsOk());
  EXPECT_LT(clock_.boot() - began, 3s);
}

TEST_F(StrangerAtTheDoor, CannotCostAProcess) {
  std::vector<PeerStream> strangers;
  for (int i = 0; i < 20; ++i) strangers.push_back(connect());
  EXPECT_FALSE(door_->next(clock_.boot() + 200ms).value());
  EXPECT_EQ(os::descendants(::getpid()).size(), 0u);
}

TEST_F(StrangerAtTheDoor, CannotStayWithoutTheToken) {
  PeerStream silent = connect(), rude = connect(), guesser = connect();
  ASSERT_THAT(rude.write(as_bytes("GET / HTTP/1.1\r\n")), IsOk());
  Result<void> guessed;
  std::thread guessing([&] { guessed = prove_as_connector(guesser, crypto::sha256(as_bytes("guess"))); });
  EXPECT_FALSE(door_->next(clock_.boot() + 500ms).value());
  guessing.join();
  EXPECT_FALSE(guessed);
  EXPECT_FALSE(door_->next(clock_.boot() + 6s).value());
  EXPECT_EQ(door_->strangers(), 0u);
}

}  // namespace
}  // namespace gridctl::agent::gang_door_test

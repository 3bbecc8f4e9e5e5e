// SPDX-License-Identifier: Apache-2.0
#include "agent/guest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "os/files.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"
#include "wire/network.hpp"
#include "wire/remote.hpp"
#include "wire/stream.hpp"
#include "wire/upload.hpp"

namespace gridctl::agent {
namespace {

using testing::FailsWith;
using testing::IsOk;

std::string start_of(EngineKind engine) {
  wire::StartRequest request;
  request.op = {"op"};
  request.boot_id = "boot";
  request.spec.job = {"job"};
  request.spec.epoch = Epoch{1};
  request.spec.engine = engine;
  request.spec.image = engine == EngineKind::process ? "" : "image";
  request.spec.run = "true";
  return wire::encode(request);
}

class GuestTest : public ::testing::Test {
 protected:
  GuestTest() {
    terms_.controller = {"alice"};
    terms_.who = "alice@laptop";
    write(terms_);
  }
  void write(const wire::GuestTerms& terms) { ASSERT_THAT(os::write_file_durably(file_, wire::encode(terms)), IsOk()); }

  const testing::TempDir folder_;
  const os::Path file_ = folder_ / "terms.json";
  wire::GuestTerms terms_;
  Guest guest_{file_, os::system_clock()};
};

TEST_F(GuestTest, LetsInTheControllerThatWasInvitedAndNoOther) {
  EXPECT_THAT(guest_.check_controller({"alice"}), IsOk());
  EXPECT_THAT(guest_.check_controller({"mallory"}), FailsWith(Code::refused));
  ASSERT_THAT(os::remove_tree(file_), IsOk());
  EXPECT_THAT(guest_.check_controller({"alice"}), FailsWith(Code::refused));
  EXPECT_THAT(guest_.check("start", start_of(EngineKind::podman)), FailsWith(Code::refused));
}

TEST_F(GuestTest, HasTheJobsOfItsOwnInvitationOnly) {
  const os::Path home = folder_ / "home";
  EXPECT_THAT(guest_.check_jobs(home, {"alice"}), FailsWith(Code::refused)) << "jobs of a gridctl that reaches it by itself";
  ASSERT_THAT(os::make_directories(home / "guests"), IsOk());
  ASSERT_THAT(os::write_file_durably(home / "guests" / "alice", "another\n"), IsOk());
  EXPECT_THAT(guest_.check_jobs(home, {"alice"}), FailsWith(Code::refused));
  ASSERT_THAT(os::write_file_durably(home / "guests" / "alice", folder_.path().filename().string() + "\n"), IsOk());
  EXPECT_THAT(guest_.check_jobs(home, {"alice"}), IsOk());
}

TEST_F(GuestTest, TellsItsOwnerOnceOfEachKindOfRefusal) {
  ASSERT_THAT(os::write_file_durably(folder_ / "log", ""), IsOk());
  for (int i = 0; i < 3; ++i) guest_.note_refusal("start", make_error(Code::refused, "no\x1b[1m way"));
  guest_.note_refusal("enter", make_error(Code::refused, "no shell"));
  const std::string log = os::read_file(folder_ / "log").value_or("");
  EXPECT_EQ(std::ranges::count(log, '\n'), 2) << log;
  EXPECT_EQ(log.find('\x1b'), std::string::npos);
}

TEST_F(GuestTest, BeginsNothingWhileItsOwnerHasPaused) {
  terms_.paused_until_ms = wire::k_until_resumed;
  write(terms_);
  for (const char* operation : {"prepare", "standby", "put", "seal"})
    EXPECT_THAT(guest_.check(operation, "{}"), FailsWith(Code::refused)) << operation;
  for (const char* operation : {"poll", "log", "get", "stop"}) EXPECT_THAT(guest_.check(operation, "{}"), IsOk()) << operation;
}

TEST_F(GuestTest, MayStartContainersOnly) {
  EXPECT_THAT(guest_.check("start", start_of(EngineKind::podman)), IsOk());
  EXPECT_THAT(guest_.check("start", start_of(EngineKind::process)), FailsWith(Code::refused));
  EXPECT_THAT(guest_.check("start", start_of(EngineKind::docker)), FailsWith(Code::refused));  // nothing filters it
  terms_.egress = wire::Egress::open;
  write(terms_);
  EXPECT_THAT(guest_.check("start", start_of(EngineKind::docker)), IsOk());
  EXPECT_THAT(guest_.check("start", start_of(EngineKind::process)), FailsWith(Code::refused));
  EXPECT_FALSE(guest_.check("start", "no request"));
}

TEST_F(GuestTest, GetsNoShellNoFilesAndNoConnectionsToOtherHosts) {
  EXPECT_THAT(guest_.check(wire::k_enter_operation, wire::encode(wire::EnterRequest{})), FailsWith(Code::refused));
  EXPECT_THAT(guest_.check(wire::k_enter_operation, wire::encode(wire::EnterRequest{JobId{"job"}, Epoch{1}})), IsOk());
  for (const char* operation : {"place_make", "place_list", "upload", "link_connect", "link_listen", "link_reach"})
    EXPECT_THAT(guest_.check(operation, "{}"), FailsWith(Code::refused)) << operation;
  for (const char* operation : {"link_ping", "poll", "stop", "clean", "have", "put", "log"})
    EXPECT_THAT(guest_.check(operation, "{}"), IsOk()) << operation;
}

TEST_F(GuestTest, StartsNothingWhileTheOwnerHasPaused) {
  terms_.paused_until_ms = wire::k_until_resumed;
  write(terms_);
  EXPECT_THAT(guest_.check("prepare", "{}"), FailsWith(Code::refused));
  EXPECT_THAT(guest_.check("start", start_of(EngineKind::podman)), FailsWith(Code::refused));
  EXPECT_THAT(guest_.check("poll", "{}"), IsOk());
  terms_.paused_until_ms = os::system_clock().wall().ms - 1;
  write(terms_);
  EXPECT_THAT(guest_.check("start", start_of(EngineKind::podman)), IsOk());
}

}  // namespace
}  // namespace gridctl::agent

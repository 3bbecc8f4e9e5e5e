// SPDX-License-Identifier: Apache-2.0
#include "agent/guest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "agent/attempt_dir.hpp"
#include "agent/guest_disk.hpp"
#include "agent/ledger.hpp"
#include "os/files.hpp"
#include "os/process.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"
#include "wire/network.hpp"
#include "wire/receipts.hpp"
#include "wire/remote.hpp"
#include "wire/stream.hpp"
#include "wire/upload.hpp"

namespace gridctl::agent::guest_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

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

  // HOME/lend/ID: the agent's home is known by it.
  const gridctl::testing::TempDir home_;
  const os::Path folder_ = [&] {
    const os::Path folder = home_ / "lend" / "id";
    EXPECT_THAT(os::make_directories(folder), IsOk());
    return folder;
  }();
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
  ASSERT_THAT(os::write_file_durably(home / "guests" / "alice", folder_.filename().string() + "\n"), IsOk());
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

TEST_F(GuestTest, StartsNothingWhileTheMachinesStateKeepsJobsAwayAndSaysNoDetailOfIt) {
  const std::int64_t now = os::system_clock().wall().ms;
  const auto close = [&](std::int64_t until_ms, wire::ClosedBy by) {
    ASSERT_THAT(os::write_file_durably(folder_ / wire::k_closed_file, wire::encode(wire::Closed{{until_ms}, {now}, by, "input at pts/3"})), IsOk());
  };
  for (const auto& [by, words] : {std::pair{wire::ClosedBy::owner, "the owner of this machine uses it"}, std::pair{wire::ClosedBy::battery, "battery"},
                                  std::pair{wire::ClosedBy::heat, "hotter"}}) {
    close(now + 60'000, by);
    const Result<void> told = guest_.check("start", start_of(EngineKind::podman));
    ASSERT_THAT(told, FailsWith(Code::refused));
    EXPECT_NE(told.error().message.find(words), std::string::npos) << told.error().message;
    EXPECT_EQ(told.error().message.find("pts/3"), std::string::npos);
    EXPECT_THAT(guest_.check("prepare", "{}"), FailsWith(Code::refused));
    EXPECT_THAT(guest_.check("poll", "{}"), IsOk());
  }
  close(now - 1, wire::ClosedBy::owner);
  EXPECT_THAT(guest_.check("start", start_of(EngineKind::podman)), IsOk()) << "whoever wrote it has died";
}

TEST_F(GuestTest, IsNotKeptAwayForYearsByAClockThatWasSetBack) {
  const std::int64_t now = os::system_clock().wall().ms;
  const auto started = [&] { return guest_.check("start", start_of(EngineKind::podman)); };
  constexpr std::int64_t k_year = 365LL * 24 * 3600 * 1000;
  for (const auto& [left_ms, open] : {std::pair{std::int64_t{60'000}, false}, {k_year, true}, {-k_year, true}}) {
    ASSERT_THAT(os::write_file_durably(folder_ / wire::k_reclaimed_file, std::to_string(now + left_ms)), IsOk());
    EXPECT_EQ(started().has_value(), open) << left_ms;
  }
  for (const auto& [left_ms, open] : {std::pair{std::int64_t{30'000}, false}, {k_year, true}, {-k_year, true}}) {
    const wire::Closed closed{{now + left_ms}, {now}, wire::ClosedBy::heat, "GPU 0 has 90 C"};
    ASSERT_THAT(os::write_file_durably(folder_ / wire::k_closed_file, wire::encode(closed)), IsOk());
    EXPECT_EQ(started().has_value(), open) << left_ms;
  }
}

TEST_F(GuestTest, IsNotToldWhatItsOwnersProgramsAreCalled) {
  wire::HealthReply reply;
  wire::HealthReport& report = reply.report.emplace();
  report.gpus.resize(1);
  report.gpus[0].processes = {{{4711, "blender", 1 << 30, false, wire::ProcessOwner::foreign}, {4712, "python3", 1 << 20, false, wire::ProcessOwner::leased}}};
  report.events = {{"oom", 0, "", "Out of memory: Killed process 4711 (thunderbird)", 1, 0, 1},
                   {"xid", 31, "0000:3b:00.0", "Xid (PCI:0000:3b:00): 31, pid=4711, name=blender, Ch 00000008", 2, 0, 1},
                   {"disk_error", 0, "", "nvme0n1: I/O error", 3, 0, 1}};
  const wire::HealthReply told = Guest::limited(reply);
  const std::vector<wire::GpuProcess>& seen = *told.report->gpus[0].processes;
  EXPECT_EQ(seen[0].name, "a program of its owner");
  EXPECT_EQ(seen[0].pid, 0);
  EXPECT_EQ(seen[0].memory_bytes, 1u << 30) << "how much of the GPU is free is his business";
  EXPECT_EQ(seen[1].name, "python3") << "his own";
  EXPECT_EQ(told.report->events[0].text, "oom");
  EXPECT_EQ(told.report->events[1].text, "Xid (PCI:0000:3b:00): 31,");
  EXPECT_EQ(told.report->events[2].text, "nvme0n1: I/O error");
  EXPECT_FALSE(Guest::limited({}).report);
}

TEST_F(GuestTest, RunsSoManyAtOnceAndNoMore) {
  EXPECT_EQ(guest_attempts_most(4), 32u);
  EXPECT_EQ(guest_attempts_most(48), 96u);
  EXPECT_EQ(guest_attempts_most(1000), 128u);
  // All of them together leave the machine's owner half of the kernel's processes.
  EXPECT_EQ(guest_processes_most(127'000, 32), 1984u);
  EXPECT_EQ(guest_processes_most(1u << 22, 32), 4096u);
  EXPECT_EQ(guest_processes_most(32'768, 32), 512u);
  ::setenv("GRIDCTL_LEASE_DIR", (home_ / "leases").c_str(), 1);
  Ledger ledger(lease_directory(), Machine::real(), os::system_clock());
  const auto run = [&](const char* whose, std::size_t number) {
    Lease lease = our_lease({whose}, {"job" + std::to_string(number)}, Epoch{1});  // it says that it takes nothing
    lease.supervisor = os::identify(::getpid()).value();
    lease.deadline = os::system_clock().boot() + std::chrono::seconds{60};
    ASSERT_THAT(ledger.take(lease, {}), IsOk());
  };
  const std::size_t most = guest_attempts_most(std::thread::hardware_concurrency());
  for (std::size_t number = 0; number < most - 1; ++number) run("alice", number);
  for (std::size_t number = 0; number < 3; ++number) run("carol", number);
  EXPECT_THAT(guest_.check("start", start_of(EngineKind::podman)), IsOk());
  run("alice", most);
  const Result<void> told = guest_.check("start", start_of(EngineKind::podman));
  ASSERT_THAT(told, FailsWith(Code::busy));
  EXPECT_NE(told.error().message.find("as many as it does at once"), std::string::npos) << told.error().message;
  ::unsetenv("GRIDCTL_LEASE_DIR");
}

TEST_F(GuestTest, AStartThatIsRefusedLeavesNoAccount) {
  const wire::AttemptSpec spec = wire::parse_start(start_of(EngineKind::podman))->spec;
  const os::Path account = folder_ / wire::k_receipts_folder / wire::k_receipts_uses / "job.1";
  ASSERT_THAT(guest_.open_account(spec), IsOk());
  EXPECT_TRUE(os::exists(account));
  EXPECT_THAT(guest_.settled(home_.path(), spec, wire::StartReply{}), IsOk());
  EXPECT_TRUE(os::exists(account));
  EXPECT_THAT(guest_.settled(home_.path(), spec, make_error(Code::busy, "no GPU is free")), FailsWith(Code::busy));
  EXPECT_FALSE(os::exists(account));
  ASSERT_THAT(guest_.open_account(spec), IsOk());
  ASSERT_THAT(os::make_directories(home_ / "jobs/alice/job/1"), IsOk());
  EXPECT_THAT(guest_.settled(home_.path(), spec, make_error(Code::busy, "no GPU is free")), FailsWith(Code::busy));
  EXPECT_TRUE(os::exists(account)) << "it is here";
}

TEST_F(GuestTest, GetsPodmanOnlyWhereWhatItSendsIsHeld) {
  terms_.egress = wire::Egress::open;
  terms_.up_bits = 20'000'000;
  write(terms_);
  EXPECT_THAT(guest_.check("start", start_of(EngineKind::podman)), IsOk());
  EXPECT_THAT(guest_.check("start", start_of(EngineKind::docker)), FailsWith(Code::refused));
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

wire::StartRequest job_of(double cpus, std::uint64_t memory, const std::string& image = "docker.io/library/debian:12") {
  wire::StartRequest request = *wire::parse_start(start_of(EngineKind::podman));
  request.spec.cpus = cpus;
  request.spec.memory_bytes = memory;
  request.spec.image = image;
  return request;
}

TEST_F(GuestTest, AgreesOnAKeyUntilOneHasBeenUsed) {
  wire::RekeyRequest request;
  request.part.bytes.fill(std::byte{7});
  const auto first = guest_.rekey(request), second = guest_.rekey(request);
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk()) << "the answer may have been lost";
  EXPECT_NE(first->part, second->part);
  EXPECT_EQ(os::read_file(folder_ / wire::k_session_file).value_or(""), to_hex(request.part) + " " + to_hex(second->part) + "\n");
  ASSERT_THAT(os::write_file_durably(folder_ / wire::k_session_proven_file, ""), IsOk());
  EXPECT_THAT(guest_.rekey(request), FailsWith(Code::refused));
}

TEST_F(GuestTest, StartsNothingThatTakesMoreThanTheOwnerLends) {
  terms_.cpus = 2;
  terms_.memory_bytes = 1 << 20;
  terms_.disk_bytes = 64 << 20;
  write(terms_);
  EXPECT_THAT(guest_.check("start", wire::encode(job_of(2, 1 << 20))), IsOk());
  EXPECT_THAT(guest_.check("start", wire::encode(job_of(2.5, 0))), FailsWith(Code::refused));
  EXPECT_THAT(guest_.check("start", wire::encode(job_of(1, 2 << 20))), FailsWith(Code::refused));
  wire::StartRequest unsaid = job_of(0, 0);
  unsaid.spec.root_writable = true;
  guest_.limit(unsaid);
  EXPECT_EQ(unsaid.spec.cpus, 2);
  EXPECT_EQ(unsaid.spec.memory_bytes, 1u << 20);
  EXPECT_FALSE(unsaid.spec.root_writable) << "nobody counts what lies there";
  Inventory machine;
  machine.cpus = 8;
  machine.memory_bytes = 4 << 20;
  machine.disk_free_bytes = 1ull << 40;
  guest_.limit(machine);
  EXPECT_EQ(machine.cpus, 2);
  EXPECT_EQ(machine.memory_bytes, 1u << 20);
  EXPECT_EQ(machine.disk_free_bytes, 64u << 20);
}

TEST_F(GuestTest, GetsNoMoreFilesThanFitIntoTheDiskThatIsLent) {
  terms_.disk_bytes = 1 << 20;
  write(terms_);
  const auto put = [&](std::uint32_t bytes) { return guest_.check("put", wire::encode(wire::PutRequest{{}, bytes})); };
  EXPECT_THAT(put(1 << 10), IsOk());
  ASSERT_THAT(os::make_directories(home_ / "cache"), IsOk());
  ASSERT_THAT(os::write_file_durably(home_ / "cache" / "pack", std::string(2 << 20, 'x')), IsOk());
  const Result<void> start = guest_.check("start", wire::encode(job_of(1, 0)));
  ASSERT_THAT(start, FailsWith(Code::no_space));
  EXPECT_THAT(start.error().message, ::testing::HasSubstr("the owner of this machine lends 1.0 MiB of disk"));
  EXPECT_THAT(guest_.check("standby", "{}"), FailsWith(Code::no_space));
  Guest other(file_, os::system_clock());
  EXPECT_THAT(other.check("put", wire::encode(wire::PutRequest{{}, 1 << 10})), FailsWith(Code::no_space));
}

TEST_F(GuestTest, RunsImagesOfTheOwnersRegistriesOnly) {
  const auto named = [&](const std::string& image) { return guest_.check("start", wire::encode(job_of(1, 0, image))); };
  for (const char* image : {"debian:12", "pytorch/pytorch", "ghcr.io/a/b@sha256:00", "nvcr.io/nvidia/pytorch:24.01-py3"})
    EXPECT_THAT(named(image), IsOk()) << image;
  for (const char* image : {"localhost/mine:1", "10.0.0.5:5000/a", "registry.home/a:1", "docker-archive:/home/bob/a.tar", "dir:/home/bob", "oci:/x",
                            "docker://ghcr.io/a/b", "--authfile=/home/bob/x", "ghcr.io:5000/a", "a.b@ghcr.io/a"})
    EXPECT_THAT(named(image), FailsWith(Code::refused)) << image;
  EXPECT_THAT(named("localhost/mine:1").error().message, ::testing::HasSubstr("only this machine's owner has"));
  terms_.registries = {"registry.home", "localhost"};
  write(terms_);
  EXPECT_THAT(named("registry.home/a:1"), IsOk());
  EXPECT_THAT(named("localhost/mine:1"), IsOk());
  EXPECT_THAT(named("debian:12"), FailsWith(Code::refused));
}

TEST(Registries, AreHosts) {
  for (const char* good : {"docker.io", "ghcr.io:443", "localhost", "public.ecr.aws"}) EXPECT_THAT(wire::check_registry(good), IsOk()) << good;
  for (const char* bad : {"", "docker", "localhost:5000", "a.b/c", "-a.b", "a.b:", "a.b:70000", "http://a.b", "a b.c"})
    EXPECT_THAT(wire::check_registry(bad), FailsWith(Code::usage)) << bad;
}

TEST_F(GuestTest, WhatEndedJobsLeftGivesWayToNewOnes) {
  terms_.disk_bytes = 4 << 20;
  write(terms_);
  ASSERT_THAT(os::make_directories(home_ / "guests"), IsOk());
  ASSERT_THAT(os::write_file_durably(home_ / "guests" / "alice", "id\n"), IsOk());
  const std::string megabytes(3 << 20, 'x');
  for (const char* kept : {"kept/alice.job.1/work", "kept/own.job.1/work", "snapshots/alice.job.1"}) {
    ASSERT_THAT(os::make_directories(home_ / kept), IsOk());
    ASSERT_THAT(os::write_file_durably(home_ / kept / "file", std::string_view(kept).starts_with("kept/own") ? "x" : megabytes), IsOk());
  }
  EXPECT_THAT(guest_.check("start", wire::encode(job_of(1, 0))), IsOk());
  EXPECT_FALSE(os::exists(home_ / "kept" / "alice.job.1"));
  EXPECT_TRUE(os::exists(home_ / "kept" / "own.job.1")) << "it is the owner's own";
  EXPECT_TRUE(os::exists(home_ / "snapshots" / "alice.job.1")) << "worth more, and there is room";
}

TEST(DiskCases, TheLargestThatRunsEnds) {
  DiskCase now{100, 90, 60, 0, 30, 0};
  EXPECT_FALSE(has_to_end(now)) << "it fits";
  now.total = 110;
  EXPECT_TRUE(has_to_end(now));
  now.largest_running = 70;
  EXPECT_FALSE(has_to_end(now)) << "another is larger";
  now.largest_running = 0;
  now.largest_ended = 70;
  now.allowed = 65;
  EXPECT_FALSE(has_to_end(now)) << "a larger one is about to be fetched";
  now.own = 66;
  EXPECT_TRUE(has_to_end(now)) << "it grows meanwhile";
}

TEST(Disk, CountsWhatGuestsTakeAndNamesWhatItCannotRead) {
  const gridctl::testing::TempDir home;
  for (const char* folder : {"guests", "jobs/alice/job/1/work", "jobs/own/job/1", "cache", "bin"})
    ASSERT_THAT(os::make_directories(home / folder), IsOk());
  ASSERT_THAT(os::write_file_durably(home / "guests" / "alice", "id\n"), IsOk());
  const std::string megabyte(1 << 20, 'x');
  for (const char* file : {"jobs/alice/job/1/work/a", "jobs/own/job/1/a", "cache/a", "bin/a"})
    ASSERT_THAT(os::write_file_durably(home / file, megabyte), IsOk());
  std::filesystem::create_hard_link(home / "jobs/alice/job/1/work/a", home / "jobs/alice/job/1/work/b");
  const DiskUse use = measure_disk(home.path());
  EXPECT_GE(use.bytes, 2u << 20);
  EXPECT_LT(use.bytes, 3u << 20) << "neither the owner's own jobs, nor a second name";
  EXPECT_GE(use.attempts.at(home / "jobs" / "alice" / "job" / "1"), 1u << 20);
  EXPECT_TRUE(use.hidden.empty());
  std::filesystem::create_directories(home / "jobs/alice/job/1/work/empty");
  for (int number = 0; number < 300; ++number)
    ASSERT_THAT(os::write_file_atomically(home / "jobs/alice/job/1/work/empty" / std::to_string(number), ""), IsOk());
  EXPECT_GE(measure_disk(home.path()).bytes, use.bytes + 300 * 4096) << "empty files use up the disk's inodes";
  const os::Path nameless = home / "nameless";
  const os::Fd file = *os::open_file(nameless, O_RDWR | O_CREAT);
  ASSERT_THAT(os::write_all(file.get(), as_bytes(megabyte)), IsOk());
  EXPECT_LT(nameless_bytes({{os::process_id(), 0}}, home.path()), 1u << 20) << "other tests may have files open";
  std::filesystem::remove(nameless);
  EXPECT_GE(nameless_bytes({{os::process_id(), 0}}, home.path()), 1u << 20);
  if (::geteuid() == 0) return;  // who reads everything
  std::filesystem::permissions(home / "jobs/alice/job/1/work", std::filesystem::perms::none);
  EXPECT_EQ(measure_disk(home.path()).hidden.at(home / "jobs" / "alice" / "job" / "1"), home / "jobs/alice/job/1/work");
  std::filesystem::permissions(home / "jobs/alice/job/1/work", std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace gridctl::agent::guest_test

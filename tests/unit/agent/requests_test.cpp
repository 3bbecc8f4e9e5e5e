// SPDX-License-Identifier: Apache-2.0
// Decisions of the agent that need no process: verdicts, clocks, what requests may name.
#include "agent/requests.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "agent/attempt_dir.hpp"
#include "agent/cgroup.hpp"
#include "agent/companion.hpp"
#include "agent/folder_watch.hpp"
#include "agent/foreign_files.hpp"
#include "agent/helper_process.hpp"
#include "agent/init_environment.hpp"
#include "agent/process_tree.hpp"
#include "agent/stop_clock.hpp"
#include "agent/verdict.hpp"
#include "os/entries.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::requests_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;
using wire::EndReason;

BootTime at(std::int64_t s) { return {s * 1'000'000'000}; }

// --- verdicts -------------------------------------------------------------------------------------------------------

wire::AttemptStatus judged(const Evidence& evidence) {
  wire::AttemptStatus status;
  judge_end(evidence, status);
  return status;
}

ExitRecord exited(int code) {
  ExitRecord record;
  record.phase = "run";
  record.code = code;
  return record;
}

ExitRecord signalled(int signal) {
  ExitRecord record;
  record.phase = "run";
  record.signal = signal;
  return record;
}

TEST(Verdict, IsWhatTheRecordSays) {
  EXPECT_EQ(judged({exited(0)}).end, EndReason::exited);
  EXPECT_EQ(judged({exited(7)}).exit_code, 7);
  EXPECT_EQ(judged({exited(7)}).detail, "");
  const auto killed = judged({signalled(11)});
  EXPECT_EQ(killed.end, EndReason::signalled);
  EXPECT_EQ(killed.signal, 11);
  ExitRecord late = exited(3);
  late.lease_passed = true;
  EXPECT_EQ(judged({late}).end, EndReason::lease_expired);
  ExitRecord unready = exited(3);
  unready.phase = "setup";
  unready.first = "rank 1";
  EXPECT_EQ(judged({unready}).detail, "setup failed");
  ExitRecord rank = exited(3);
  rank.first = "rank 1";
  EXPECT_EQ(judged({rank}).detail, "rank 1 failed first");
}

TEST(Verdict, NamesTheMemoryOnlyOfAJobThatDiedOfIt) {
  ExitRecord record = exited(0);
  record.oom_kills = 1;
  EXPECT_EQ(judged({record}).end, EndReason::exited);
  EXPECT_EQ(judged({record}).detail, "the memory limit killed a process of the job; the job continued");
  record.code = 1;
  EXPECT_EQ(judged({record}).end, EndReason::oom);
  EXPECT_EQ(judged({record}).detail, "out of memory");
  record.memory_peak = 3u << 30;
  Evidence evidence{record};
  evidence.memory_limit = 4ull << 30;
  EXPECT_EQ(judged(evidence).detail, "out of memory: used 3.0 GiB of 4.0 GiB");
  ExitRecord by_signal = signalled(9);
  by_signal.oom_kills = 1;
  EXPECT_EQ(judged({by_signal}).end, EndReason::oom);
  record.oom_kills = 0;
  EXPECT_EQ(judged({record}).end, EndReason::exited);
  ExitRecord neither = exited(-1);
  neither.oom_kills = 1;
  EXPECT_EQ(judged({neither}).end, EndReason::exited) << "how it ended is not known";
}

TEST(Verdict, OfAnOrderedEndIsTheOrder) {
  Evidence evidence;
  evidence.stop_reason = EndReason::stopped;
  EXPECT_EQ(judged(evidence).end, EndReason::stopped);
  EXPECT_EQ(judged(evidence).exit_code, -1);
  ExitRecord record = exited(5);
  record.term_received = true;
  evidence.record = record;
  EXPECT_EQ(judged(evidence).end, EndReason::stopped);
  EXPECT_EQ(judged(evidence).exit_code, 5) << "told all the same";
  evidence.record->term_received = false;
  EXPECT_EQ(judged(evidence).end, EndReason::exited) << "it had ended before it heard of the order";
  evidence.stop_reason = EndReason::none;
  evidence.record->term_received = true;
  EXPECT_EQ(judged(evidence).end, EndReason::exited) << "that TERM was not ours";
}

TEST(Verdict, WithoutARecordSomebodyElseHasKilled) {
  EXPECT_EQ(judged({}).end, EndReason::vanished);
  Evidence evidence;
  evidence.oom_killed = true;
  EXPECT_EQ(judged(evidence).end, EndReason::oom);
  EXPECT_THAT(judged(evidence).detail, ::testing::HasSubstr("first process was killed"));
}

TEST(Verdict, AContainerKilledFromOutsideHasVanished) {
  Evidence evidence{signalled(9)};
  EXPECT_EQ(judged(evidence).end, EndReason::signalled) << "a plain process";
  evidence.engine = EngineKind::podman;
  EXPECT_EQ(judged(evidence).end, EndReason::vanished);
  evidence.record = signalled(11);
  EXPECT_EQ(judged(evidence).end, EndReason::signalled);
  evidence.record = exited(9);
  EXPECT_EQ(judged(evidence).end, EndReason::exited);
}

TEST(Verdict, ThatStandsIsNotChanged) {
  wire::AttemptStatus status;
  status.end = EndReason::image_failed;
  judge_end({exited(0)}, status);
  EXPECT_EQ(status.end, EndReason::image_failed);
}

TEST(Verdict, OfAnotherBootIsItsRecordOrTheBoot) {
  wire::AttemptStatus status;
  status.phase = wire::AttemptPhase::running;
  status.doing = "setup";
  judge_other_boot({}, status);
  EXPECT_EQ(status.phase, wire::AttemptPhase::ended);
  EXPECT_EQ(status.doing, "");
  EXPECT_EQ(status.ended_ms_ago, 0);
  EXPECT_EQ(status.end, EndReason::host_rebooted);
  judge_other_boot(exited(4), status);
  EXPECT_EQ(status.phase, wire::AttemptPhase::stopping) << "its last checkpoint is still to be taken";
  EXPECT_EQ(status.end, EndReason::exited);
  EXPECT_EQ(status.exit_code, 4);
}

// --- the clock of an attempt's end ----------------------------------------------------------------------------------

TEST(StopOrder, TheFirstReasonStandsAndAShorterGraceShortens) {
  StopClock clock;
  clock.set_deadline(at(1000));
  EXPECT_FALSE(clock.is_stopping());
  EXPECT_EQ(clock.order(EndReason::stopped, 30s, at(10)), StopStep::terminate);
  EXPECT_EQ(clock.due(at(10)), at(40));
  EXPECT_EQ(clock.order(EndReason::limit, 60s, at(11)), StopStep::none);
  EXPECT_EQ(clock.due(at(11)), at(40)) << "a longer grace changes nothing";
  EXPECT_EQ(clock.order(EndReason::limit, 5s, at(12)), StopStep::none);
  EXPECT_EQ(clock.due(at(12)), at(17));
  EXPECT_EQ(clock.reason(), EndReason::stopped);
  EXPECT_FALSE(clock.kill_now(at(16)));
  EXPECT_TRUE(clock.kill_now(at(17)));
  EXPECT_EQ(clock.due(at(17)), at(18)) << "once more a second later";
  EXPECT_FALSE(clock.kill_now(at(17)));
  EXPECT_TRUE(clock.kill_now(at(18)));
}

TEST(StopOrder, WithoutGraceKillsAtOnce) {
  StopClock clock;
  clock.set_deadline(at(1000));
  EXPECT_FALSE(clock.kill_now(at(2000))) << "nobody has ordered anything";
  EXPECT_EQ(clock.order(EndReason::stopped, 0s, at(10)), StopStep::wait);
  EXPECT_TRUE(clock.kill_now(at(10)));
}

TEST(StopOrder, ALeaseEndsAtItsDeadlineAndTheGraceRunsFromThere) {
  StopClock clock;
  clock.set_deadline(at(100));
  EXPECT_EQ(clock.due(at(0)), at(100));
  EXPECT_EQ(clock.expire(30s, at(99)), StopStep::none);
  EXPECT_EQ(clock.expire(30s, at(100)), StopStep::terminate);
  EXPECT_EQ(clock.reason(), EndReason::lease_expired);
  EXPECT_EQ(clock.due(at(100)), at(130));
  EXPECT_EQ(clock.expire(30s, at(101)), StopStep::none) << "it is under way";
  StopClock slept;
  slept.set_deadline(at(100));
  EXPECT_EQ(slept.expire(30s, at(120)), StopStep::terminate);
  EXPECT_EQ(slept.due(at(120)), at(130));
  StopClock overslept;
  overslept.set_deadline(at(100));
  EXPECT_EQ(overslept.expire(30s, at(130)), StopStep::wait) << "the grace is over, too";
  EXPECT_TRUE(overslept.kill_now(at(130)));
}

TEST(StopOrder, ADeadlineMovesOnlyForward) {
  StopClock clock;
  clock.set_deadline(at(100));
  EXPECT_FALSE(clock.renew(at(100)));
  EXPECT_FALSE(clock.renew(at(99)));
  EXPECT_TRUE(clock.renew(at(101)));
  EXPECT_EQ(clock.deadline(), at(101));
}

TEST(StopOrder, ALimitCountsFromTheInstantItIsReached) {
  StopClock clock;
  clock.set_deadline(at(1000));
  EXPECT_EQ(clock.exhaust(30s, at(2000)), StopStep::none) << "it has none";
  clock.set_limit(at(50));
  EXPECT_EQ(clock.limit(), at(50));
  EXPECT_EQ(clock.exhaust(30s, at(50)), StopStep::terminate);
  EXPECT_EQ(clock.exhaust(30s, at(51)), StopStep::none);
}

TEST(StopOrder, TheLastLineIsBehindDeadlineAndGrace) {
  EXPECT_TRUE(lease_lasts(at(10), at(9)));
  EXPECT_FALSE(lease_lasts(at(10), at(10)));
  EXPECT_EQ(last_line(at(10), 30s), at(10) + 30s + k_init_slack);
}

// --- requests -------------------------------------------------------------------------------------------------------

class RequestsTest : public ::testing::Test {
 protected:
  RequestsTest() { ::setenv("GRIDCTL_LEASE_DIR", (dir_ / "leases").c_str(), 1); }
  ~RequestsTest() override { ::unsetenv("GRIDCTL_LEASE_DIR"); }
  TempDir dir_;
  Requests requests_{dir_ / "home", {"controller"}, os::system_clock()};
};

TEST_F(RequestsTest, NameNothingOutsideTheirFolder) {
  const JobId bad{"../other"};
  EXPECT_THAT(requests_.prepare({{"op"}, bad, Epoch{1}}), FailsWith(Code::refused));
  EXPECT_THAT(requests_.stop({{"op"}, bad, Epoch{1}, {}}), FailsWith(Code::refused));
  EXPECT_THAT(requests_.clean({{"op"}, bad, Epoch{1}}), FailsWith(Code::refused));
  wire::PollRequest poll;
  poll.attempts.push_back({bad, Epoch{1}});
  EXPECT_THAT(requests_.poll(poll), FailsWith(Code::refused));
  wire::StartRequest start;
  start.spec.job = bad;
  EXPECT_THAT(requests_.start(start), FailsWith(Code::refused));
  EXPECT_THAT(requests_.attempt(bad, Epoch{1}), FailsWith(Code::refused));
  EXPECT_EQ(requests_.report(bad, Epoch{1}), std::nullopt);
  EXPECT_FALSE(os::exists(dir_ / "home/jobs"));
}

TEST_F(RequestsTest, RaiseNoFenceThatCannotBeReadAgain) {
  // An order to end the job reads it; its host's owner gives one, too.
  const JobId job{"job"};
  for (const std::uint64_t number : {std::uint64_t{1} << 63, UINT64_MAX}) {
    EXPECT_THAT(requests_.prepare({{"op"}, job, Epoch{number}}), FailsWith(Code::refused));
    EXPECT_THAT(requests_.stop({{"op"}, job, Epoch{number}, {}}), FailsWith(Code::refused));
    EXPECT_THAT(requests_.clean({{"op"}, job, Epoch{number}}), FailsWith(Code::refused));
    wire::PollRequest poll;
    poll.attempts.push_back({job, Epoch{number}});
    EXPECT_THAT(requests_.poll(poll), FailsWith(Code::refused));
    wire::StartRequest start;
    start.spec.job = job;
    start.spec.epoch = Epoch{number};
    EXPECT_THAT(requests_.start(start), FailsWith(Code::refused));
  }
  ASSERT_THAT(requests_.stop({{"op"}, job, Epoch{INT64_MAX}, {}}), IsOk());
  EXPECT_THAT(requests_.stop({{"op"}, job, Epoch{1}, {}}), IsOk()) << "the fence is read";
}

TEST_F(RequestsTest, ReportAnAttemptWithItsFence) {
  EXPECT_EQ(requests_.report({"job"}, Epoch{1}), std::nullopt);
  const AttemptDir attempt = requests_.attempt({"job"}, Epoch{1}).value();
  EXPECT_EQ(attempt.path, dir_ / "home/jobs/controller/job/1");
  ASSERT_TRUE(os::make_directories(attempt.path));
  wire::AttemptStatus status;
  status.job = {"job"};
  status.epoch = Epoch{1};
  status.phase = wire::AttemptPhase::ended;
  ASSERT_THAT(write_status(attempt, status, os::system_clock(), false), IsOk());
  ASSERT_THAT(requests_.stop({{"op"}, {"job"}, Epoch{4}, {}}), IsOk());
  const auto report = requests_.report({"job"}, Epoch{1});
  ASSERT_TRUE(report);
  ASSERT_EQ(report->attempts.size(), 1u);
  EXPECT_EQ(report->attempts[0].phase, wire::AttemptPhase::ended);
  EXPECT_EQ(report->attempts[0].max_epoch, Epoch{4});
  EXPECT_EQ(report->boot_id, os::boot_id());
  EXPECT_GT(report->disk_free_bytes, 0u);
  ASSERT_TRUE(report->held);
  EXPECT_TRUE(report->held->empty());
}

TEST_F(RequestsTest, FinishRemovalsThatWereCutShort) {
  const Path job = dir_ / "home/jobs/controller/job";
  ASSERT_TRUE(os::make_directories(job / ".old-1/work"));
  ASSERT_TRUE(os::make_directories(job / "2"));
  requests_.finish_removals();
  EXPECT_FALSE(os::exists(job / ".old-1"));
  EXPECT_TRUE(os::exists(job / "2"));
}

TEST_F(RequestsTest, TellOrdersAndTimesByFiles) {
  HostFolders host(dir_ / "home", {"controller"}, os::system_clock());
  const AttemptKey key{{"job"}, Epoch{1}};
  ASSERT_TRUE(os::make_directories(host.attempt(key).control()));
  EXPECT_EQ(host.stop_order(key).value(), std::nullopt);
  ASSERT_THAT(host.order_stop(key, 5), IsOk());
  EXPECT_EQ(host.stop_order(key).value(), 5);
  ASSERT_THAT(host.set_deadline(key, at(7)), IsOk());
  EXPECT_EQ(host.deadline(key).value(), at(7).ns);
  ASSERT_THAT(host.set_kept_from(key, 3), IsOk());
  EXPECT_EQ(host.kept_from(key).value(), 3);
  EXPECT_TRUE(host.exists(key));
  EXPECT_FALSE(host.exists({{"job"}, Epoch{2}}));
  EXPECT_EQ(host.accepted_by(key), std::nullopt);
  ASSERT_THAT(os::write_file_atomically(host.attempt(key).op_file(), "the-op\n"), IsOk());
  EXPECT_EQ(host.accepted_by(key), OpId{"the-op"});
  ASSERT_THAT(host.set_tempo(key, {{}, 4500ms}), IsOk());
  EXPECT_FALSE(os::exists(host.attempt(key).interval_file())) << "zero: as it was told before";
  EXPECT_EQ(os::read_file(host.attempt(key).pause_file()).value(), "4500\n");
  ASSERT_THAT(host.set_tempo(key, {9s, {}}), IsOk());
  EXPECT_EQ(os::read_file(host.attempt(key).interval_file()).value(), "9000\n");
  const auto inode = [&] { return os::status_of(host.attempt(key).interval_file())->value().inode; };
  const std::uint64_t written = inode();
  ASSERT_THAT(host.set_tempo(key, {9s, {}}), IsOk());
  EXPECT_EQ(inode(), written) << "what was told is not told again";
  HostLimits limits;
  limits.run_until = at(50);
  limits.run_limit = "budget";
  ASSERT_THAT(host.set_limits(key, limits), IsOk());
  EXPECT_EQ(parse_limits(os::read_file(host.attempt(key).limits_file()).value()), limits);
}

TEST_F(RequestsTest, ListJobsAndNoOtherFolders) {
  HostFolders host(dir_ / "home", {"controller"}, os::system_clock());
  EXPECT_TRUE(host.jobs().empty());
  for (const char* name : {"job-a", "notify", ".hidden", "Odd"})
    ASSERT_TRUE(os::make_directories(dir_ / "home/jobs/controller" / name));
  ASSERT_EQ(host.jobs().size(), 1u);
  EXPECT_EQ(host.jobs()[0].value, "job-a");
}

// --- small parts ----------------------------------------------------------------------------------------------------

TEST(MemoryGroups, TellKillsAndPeakOfEitherVersion) {
  const TempDir dir;
  EXPECT_FALSE(memory_events_in({}));
  EXPECT_FALSE(memory_events_in(dir.path()));
  ASSERT_THAT(os::write_file_atomically(dir / "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
              IsOk());
  ASSERT_THAT(os::write_file_atomically(dir / "memory.max_usage_in_bytes", "4096\n"), IsOk());
  EXPECT_EQ(memory_events_in(dir.path())->oom_kills, 2u);
  EXPECT_EQ(memory_events_in(dir.path())->peak_bytes, 4096u);
  ASSERT_THAT(os::write_file_atomically(dir / "memory.events", "low 0\noom 9\noom_kill 3\noom_kill_x 7\n"), IsOk());
  ASSERT_THAT(os::write_file_atomically(dir / "memory.peak", "8192\n"), IsOk());
  EXPECT_EQ(memory_events_in(dir.path())->oom_kills, 3u);
  EXPECT_EQ(memory_events_in(dir.path())->peak_bytes, 8192u);
}

TEST(FolderWatch, TellsOfFilesMadeOrRenamedIntoIt) {
  const TempDir dir;
  FolderWatch watch;
  watch.add(dir.path());
  if (watch.fd() < 0) GTEST_SKIP() << "no inotify instance is left";
  EXPECT_EQ(watch.patience_ms(), -1);
  EXPECT_FALSE(watch.drain());
  ASSERT_THAT(os::write_file_atomically(dir / "new", "x"), IsOk());
  EXPECT_TRUE(watch.drain());
  EXPECT_FALSE(watch.drain()) << "once";
  watch.add(dir / "missing");
  EXPECT_EQ(watch.fd(), -1);
  EXPECT_EQ(watch.patience_ms(), k_blind_look_ms);
  EXPECT_TRUE(watch.drain()) << "without the kernel's help there may always be news";
  EXPECT_EQ(watch.fd(), -1);
  ASSERT_TRUE(os::make_directories(dir / "missing"));
  EXPECT_TRUE(watch.drain());
  EXPECT_GE(watch.fd(), 0);
  ASSERT_THAT(os::write_file_atomically(dir / "missing/file", "x"), IsOk());
  EXPECT_TRUE(watch.drain());
  EXPECT_FALSE(watch.drain());
}

TEST(ProcessTree, FindsWhoHoldsALockAndWhoIsMarked) {
  const TempDir dir;
  const Path lock = dir / "lock";
  EXPECT_FALSE(lock_holder(lock));
  const std::optional<os::FileLock> held = os::FileLock::try_acquire(lock).value();
  ASSERT_TRUE(held);
  EXPECT_EQ(lock_holder(lock), os::identify(::getpid()));
  ASSERT_THAT(os::write_file_atomically(dir / "free", ""), IsOk());
  EXPECT_FALSE(lock_holder(dir / "free"));
  os::SpawnOptions options;
  const std::string mark = "mark-" + dir.path().filename().string();
  options.environment = {{"MARK", mark}, {"PATH", "/usr/bin:/bin"}};
  const int pid = os::spawn({"sleep", "77.5"}, options).value();
  const os::ProcessId process = os::identify(pid).value();
  EXPECT_EQ(marked_processes(mark), std::vector{process});
  EXPECT_THAT(processes_called_with({"77.5"}), ::testing::Contains(process));
  EXPECT_TRUE(processes_called_with({"7.5"}).empty()) << "whole arguments only";
  std::vector<os::ProcessId> all{process};
  merge(all, {process, *os::identify(::getpid())});
  EXPECT_EQ(all.size(), 2u);
  signal_each_catching({process}, SIGTERM);
  EXPECT_TRUE(os::is_alive(process)) << "it has no handler";
  signal_each({{pid, process.start_ticks + 1}}, SIGKILL);
  EXPECT_TRUE(os::is_alive(process)) << "another process had this pid";
  signal_each({process}, SIGTERM);
  EXPECT_EQ(os::wait(pid)->signal, SIGTERM);
}

TEST(ProcessTree, ReachesWhoHasAHandler) {
  const auto ends = os::make_pipe().value();
  os::SpawnOptions options;
  options.stdout_fd = ends.second.get();
  const int pid = os::spawn({"sh", "-c", "trap 'exit 7' USR1; echo up; while :; do sleep 0.01; done"}, options).value();
  char byte = 0;
  ASSERT_EQ(::read(ends.first.get(), &byte, 1), 1);
  signal_each_catching({*os::identify(pid)}, SIGUSR1);
  EXPECT_EQ(os::wait(pid)->code, 7);
}

TEST(GangFile, IsReadWholeOrNotAtAll) {
  const std::string token(64, 'a');
  const auto file = parse_gang_file(token + "\n29999\n1\n10.0.0.1\n10.0.0.2\n");
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(to_hex(file->token), token);
  EXPECT_EQ(file->port, 29999);
  EXPECT_EQ(file->node_rank, 1u);
  EXPECT_EQ(file->addresses, (std::vector<std::string>{"10.0.0.1", "10.0.0.2"}));
  EXPECT_THAT(parse_gang_file(token + "\n29999\n0\n"), FailsWith(Code::state_unreadable));
  EXPECT_THAT(parse_gang_file(token + "\n29999\n1\n10.0.0.1\n"), FailsWith(Code::state_unreadable));
  EXPECT_THAT(parse_gang_file(token + "\n29999\n0\n10.0.0.1\n"), IsOk());
  for (const std::string& odd :
       {std::string("short\n1\n0\nx\n"), token + "\nx\n0\nx\n", token + "\n70000\n0\nx\n", token + "\n1\n0x\nx\n"})
    EXPECT_FALSE(parse_gang_file(odd)) << odd;
}

TEST(Helper, SpeaksInLinesOfThreeKinds) {
  wire::BenchStage stage;
  for (const char* line : {"number fp16 12.5", "number zero 0", "number minus -1", "number huge 1e301", "number none x",
                           "text name a \x1b[31mred GPU", "text empty", "words sums 1 2 3", "song la la", "number",
                           "number  5", "text  x"})
    take_line(stage, line);
  EXPECT_EQ(stage.numbers, (std::map<std::string, double>{{"fp16", 12.5}, {"zero", 0}}));
  EXPECT_EQ(stage.texts.size(), 2u);
  EXPECT_EQ(stage.texts["name"], "a ^[[31mred GPU");
  EXPECT_EQ(stage.texts["empty"], "");
  EXPECT_EQ(stage.words, (std::map<std::string, std::string>{{"sums", "1 2 3"}}));
}

TEST(Helper, SaysNoMoreThanFits) {
  wire::BenchStage stage;
  take_line(stage, "number " + std::string(64, 'n') + " 1");
  take_line(stage, "number " + std::string(65, 'n') + " 1");
  EXPECT_EQ(stage.numbers.size(), 1u);
  take_line(stage, "words a " + std::string(wire::k_bench_words_max, '1'));
  take_line(stage, "words b 1");
  EXPECT_EQ(stage.words.size(), 1u) << "together they are too long";
  wire::BenchStage fresh;
  take_line(fresh, "words a " + std::string(wire::k_bench_words_max + 1, '1'));
  EXPECT_TRUE(fresh.words.empty());
  for (std::size_t i = 0; i < wire::k_bench_values_max + 5; ++i) {
    take_line(fresh, "number n" + std::to_string(i) + " 1");
    take_line(fresh, "text t" + std::to_string(i) + " x");
    take_line(fresh, "words w" + std::to_string(i) + " 1");
  }
  EXPECT_EQ(fresh.numbers.size(), wire::k_bench_values_max);
  EXPECT_EQ(fresh.texts.size(), wire::k_bench_values_max);
  EXPECT_EQ(fresh.words.size(), wire::k_bench_values_max);
}

TEST(Helper, NamesItsErrors) {
  const Error known = error_of_line("error unsupported no such GPU");
  EXPECT_EQ(known.code, Code::unsupported);
  EXPECT_EQ(known.message, "no such GPU");
  EXPECT_EQ(error_of_line("error no_space x").code, Code::no_space);
  const Error other = error_of_line("error internal x");
  EXPECT_EQ(other.code, Code::io) << "what it may not say";
  EXPECT_EQ(other.message, "error internal x");
  EXPECT_EQ(error_of_line("error").code, Code::io);
  EXPECT_EQ(error_of_line("error usage").message, "");
}

TEST(Helper, IsSpokenWithInLinesUntilItsDeadline) {
  os::Clock& clock = os::system_clock();
  const BootTime soon = clock.boot() + 20s;
  auto helper =
      HelperProcess::start({"sh", "-c", "read word; echo \"got $word\"; printf 'two\\nthree\\n'; read more; exit"});
  ASSERT_THAT(helper, IsOk());
  EXPECT_THAT((*helper)->receive(clock.boot(), clock), FailsWith(Code::timed_out));
  ASSERT_THAT((*helper)->send("hello"), IsOk());
  for (const char* line : {"got hello", "two", "three"}) EXPECT_EQ((*helper)->receive(soon, clock).value(), line);
  ASSERT_THAT((*helper)->send("end"), IsOk());
  EXPECT_THAT((*helper)->receive(soon, clock), FailsWith(Code::io)) << "it has ended";
  auto endless = HelperProcess::start({"sh", "-c", "exec tr '\\0' x < /dev/zero"});
  ASSERT_THAT(endless, IsOk());
  EXPECT_THAT((*endless)->receive(soon, clock), FailsWith(Code::protocol_violation));
  EXPECT_FALSE(HelperProcess::start({"/no/such/helper"}));
}

TEST(Helper, DiesWithAllItStarted) {
  const TempDir dir;
  const std::string mark = "helper-" + dir.path().filename().string();
  {
    auto helper = HelperProcess::start({"sh", "-c", "MARK=" + mark + " sleep 77 & echo up; wait"});
    ASSERT_THAT(helper, IsOk());
    ASSERT_EQ((*helper)->receive(os::system_clock().boot() + 20s, os::system_clock()).value(), "up");
  }
  const BootTime patience = os::system_clock().boot() + 40s;
  while (!marked_processes(mark).empty() && os::system_clock().boot() < patience) os::pause_for(5ms);
  EXPECT_TRUE(marked_processes(mark).empty());
}

TEST(Helper, IsPutBesideTheAgentOnce) {
  const TempDir home;
  const auto path = install_gpubench(home.path());
  ASSERT_THAT(path, IsOk());
  EXPECT_EQ(os::read_file(*path).value(), embedded_gpubench());
  const auto before = os::status_of(*path)->value();
  EXPECT_EQ(before.mode, 0700u);
  ASSERT_THAT(install_gpubench(home.path()), IsOk());
  EXPECT_EQ(os::status_of(*path)->value(), before) << "it was there";
  ASSERT_THAT(os::write_file_atomically(*path, "another"), IsOk());
  ASSERT_THAT(install_gpubench(home.path()), IsOk());
  EXPECT_EQ(os::read_file(*path).value(), embedded_gpubench());
}

TEST(JobFiles, AreRemovedWithTheirFolder) {
  const TempDir dir;
  ASSERT_TRUE(os::make_directories(dir / "work/below"));
  EXPECT_THAT(remove_job_files(dir / "work"), IsOk());
  EXPECT_FALSE(os::exists(dir / "work"));
  EXPECT_THAT(remove_job_files(dir / "work"), IsOk());
}

TEST(InitEnvironment, LaterAssignmentsWinAndSecretsAreLast) {
  const TempDir dir;
  ASSERT_TRUE(os::make_directories(dir / "run"));
  ASSERT_TRUE(os::make_directories(dir / "secrets"));
  using namespace std::string_literals;
  ASSERT_THAT(os::write_file_atomically(dir / "run/env", "HOME=/job\0A=1\0TOKEN=no\0broken\0A=2\0"s), IsOk());
  ASSERT_THAT(os::write_file_atomically(dir / "run/env.1", "TOKEN=rank\0RANK=1\0A=3\0"s), IsOk());
  ASSERT_THAT(os::write_file_atomically(dir / "secrets/TOKEN", "secret"), IsOk());
  InitPlan plan{dir / "run", {}, {}, dir / "secrets", {}, {}};
  const auto has = [](const std::vector<std::string>& environment, const std::string& assignment) {
    const std::string name = assignment.substr(0, assignment.find('=') + 1);
    EXPECT_EQ(std::count_if(environment.begin(), environment.end(),
                            [&](const std::string& one) { return one.starts_with(name); }),
              1)
        << assignment;
    return std::find(environment.begin(), environment.end(), assignment) != environment.end();
  };
  const auto all = load_environment(plan);
  for (const char* assignment : {"HOME=/job", "A=2", "TOKEN=secret", "PYTHONUNBUFFERED=1"})
    EXPECT_TRUE(has(all, assignment)) << assignment;
  EXPECT_THAT(all, ::testing::Not(::testing::Contains("broken")));
  const auto rank = rank_environment(plan, all, 1);
  for (const char* assignment : {"RANK=1", "A=3", "TOKEN=secret"}) EXPECT_TRUE(has(rank, assignment)) << assignment;
  EXPECT_EQ(rank_environment(plan, all, 0), all) << "it has none of its own";
  plan.secrets.clear();
  ASSERT_THAT(os::write_file_atomically(dir / "run/env", "PYTHONUNBUFFERED=\0"s), IsOk());
  const auto bare = load_environment(plan);
  EXPECT_TRUE(has(bare, "PYTHONUNBUFFERED=")) << "the user's choice";
  EXPECT_TRUE(has(rank_environment(plan, bare, 1), "TOKEN=rank"));
  EXPECT_TRUE(rank_labels(plan).empty());
  ASSERT_THAT(os::write_file_atomically(dir / "run/ranks", "rank 0\nrank 1\n"), IsOk());
  EXPECT_EQ(rank_labels(plan), (std::vector<std::string>{"rank 0", "rank 1"}));
}

}  // namespace
}  // namespace gridctl::agent::requests_test

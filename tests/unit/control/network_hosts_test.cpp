// SPDX-License-Identifier: Apache-2.0
// Links are measured with real agents where one host is enough, and with hosts that play a part where two must meet.
#include <gmock/gmock.h>

#include "control/measure/network.hpp"
#include "control/measure/network_watch.hpp"
#include "registry/registry.hpp"
#include "ssh_hosts.hpp"
#include "support/results.hpp"
#include "wire/messages.hpp"

namespace gridctl::control::network_hosts_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using wire::FrameKind;

const GiveWay k_never = [] { return false; };

class Measuring : public ::testing::Test {
 protected:
  // A host listens as agents do, and tells what it measured of whoever came.
  void listens(const std::string& name, int count, const std::vector<std::string>& addresses, const wire::LinkResult& met,
               const std::vector<std::string>& interfaces = {}) {
    const wire::ListenReply reply{4711, addresses, interfaces, 32768};
    const std::string data = wire::encode(met);
    hosts.play(name, "link_listen", count,
               {{FrameKind::reply, wire::encode(reply)},
                {FrameKind::data, data},
                {FrameKind::end, wire::encode(wire::EndRecord{data.size(), std::nullopt})}});
  }
  void connects(const std::string& name, int count, const wire::LinkResult& result) {
    hosts.play(name, "link_connect", count, {{FrameKind::reply, wire::encode(result)}});
  }
  static wire::LinkResult met(const std::string& address, Duration rtt, std::optional<double> rate, std::uint64_t sent) {
    wire::LinkResult result;
    result.connected = true;
    result.address = address;
    result.rtt = rtt;
    result.bits_per_second = rate;
    result.bytes_sent = sent;
    return result;
  }
  static wire::LinkResult in_vain(const std::string& address, const std::string& reason) {
    wire::LinkResult result;
    result.failures = {{address, reason}};
    return result;
  }

  test::SshHosts hosts;
};

TEST_F(Measuring, ALinkFromHereIsTimedBothWays) {
  const registry::Provider ada = hosts.add_pinned("ada");
  const auto found = measure_here(hosts.access(ada), k_never, 4 << 20);
  ASSERT_THAT(found, IsOk());
  EXPECT_GT(found->rtt, 0ns);
  EXPECT_LT(found->rtt, 5s);
  ASSERT_TRUE(found->to_host && found->from_host);
  EXPECT_GT(*found->to_host, 0);
  EXPECT_GT(*found->from_host, 0);
  EXPECT_GT(found->bytes, 0u);
  EXPECT_LE(found->bytes, 2u * (4 << 20)) << "each way";
}

TEST_F(Measuring, ALinkWithoutBytesHasItsRoundTripAlone) {
  const auto found = measure_here(hosts.access(hosts.add_pinned("ada")), k_never, 0);
  ASSERT_THAT(found, IsOk());
  EXPECT_FALSE(found->to_host);
  EXPECT_EQ(found->bytes, 0u);
}

TEST_F(Measuring, GivesWayToATransfer) {
  int asked = 0;
  const registry::Provider ada = hosts.add_pinned("ada");
  const GiveWay soon = [&] { return ++asked == 2; };
  EXPECT_THAT(measure_here(hosts.access(ada), soon, 4 << 20), FailsWith(Code::cancelled));
  EXPECT_EQ(asked, 2);
}

TEST_F(Measuring, BelievesNoHostThatAnswersAnotherPing) {
  const registry::Provider liar = hosts.add_pinned("liar");
  hosts.play("liar", "link_ping", 1, {{FrameKind::reply, wire::encode_pong({1})}});
  const auto found = measure_here(hosts.access(liar), k_never, 1 << 20);
  ASSERT_THAT(found, FailsWith(Code::protocol_violation));
  EXPECT_THAT(found.error().message, HasSubstr("another ping"));
}

TEST_F(Measuring, TwoHostsAreSentToEachOtherBothWays) {
  const registry::Provider ada = hosts.add_pinned("ada"), bob = hosts.add_pinned("bob");
  listens("bob", 1, {"10.0.0.2", "8.8.8.8"}, met("10.0.0.1", 3ms, 2e8, 500));
  connects("ada", 1, met("10.0.0.2", 4ms, 1e8, 700));
  listens("ada", 1, {"10.0.0.1"}, met("10.0.0.2", 2ms, {}, 10));
  connects("bob", 1, met("10.0.0.1", 5ms, {}, 20));
  const auto found = measure_pair(hosts.access(ada), hosts.access(bob), 1'000'000);
  ASSERT_THAT(found, IsOk());
  EXPECT_TRUE(found->a_to_b.works);
  EXPECT_EQ(found->a_to_b.address, "10.0.0.2");
  EXPECT_TRUE(found->b_to_a.works);
  EXPECT_EQ(found->b_to_a.address, "10.0.0.1");
  EXPECT_EQ(found->rtt_a, Duration{2ms}) << "the shorter of both ways";
  EXPECT_EQ(found->rtt_b, Duration{3ms});
  EXPECT_EQ(found->rate_ab, 1e8);
  EXPECT_EQ(found->rate_ba, 2e8);
  EXPECT_EQ(found->bytes, 1230u);
  const auto listen = wire::parse_listen(hosts.asked("bob").at(0));
  const auto connect = wire::parse_connect(hosts.asked("ada").at(0));
  ASSERT_TRUE(listen && connect);
  EXPECT_EQ(connect->token, listen->token);
  EXPECT_EQ(connect->port, 4711);
  EXPECT_THAT(connect->addresses, ElementsAre("10.0.0.2")) << "no address of the internet on its word alone";
  EXPECT_EQ(listen->bytes_max, 1'000'000u);
  EXPECT_EQ(connect->bytes_max, 1'000'000u);
  EXPECT_EQ(listen->port, 0);
  EXPECT_EQ(wire::parse_listen(hosts.asked("ada").at(1))->bytes_max, 0u) << "the rates are known by then";
  EXPECT_NE(wire::parse_listen(hosts.asked("ada").at(1))->token, listen->token);
}

TEST_F(Measuring, TheWayBackTellsTheRatesWhereTheWayThereIsClosed) {
  const registry::Provider ada = hosts.add_pinned("ada"), bob = hosts.add_pinned("bob");
  listens("bob", 1, {"10.0.0.2"}, {});
  connects("ada", 1, in_vain("10.0.0.2", "connection refused"));
  listens("ada", 1, {"10.0.0.1"}, met("10.0.0.2", 2ms, 1e8, 10));
  connects("bob", 1, met("10.0.0.1", 5ms, 2e8, 20));
  const auto found = measure_pair(hosts.access(ada), hosts.access(bob), 1000);
  ASSERT_THAT(found, IsOk());
  EXPECT_FALSE(found->a_to_b.works);
  EXPECT_EQ(found->a_to_b.reason, "10.0.0.2: connection refused");
  EXPECT_TRUE(found->b_to_a.works);
  EXPECT_EQ(found->rate_ab, 1e8);
  EXPECT_EQ(found->rate_ba, 2e8);
  EXPECT_EQ(found->bytes, 30u);
  EXPECT_EQ(wire::parse_listen(hosts.asked("ada").at(1))->bytes_max, 1000u);
}

TEST_F(Measuring, AContactNeedsBothOfThemToSayThatItWorked) {
  const registry::Provider ada = hosts.add_pinned("ada"), bob = hosts.add_pinned("bob");
  listens("bob", 1, {"10.0.0.2"}, {});
  connects("ada", 1, met("10.0.0.2", 4ms, 1e8, 700));
  listens("ada", 1, {}, {});
  connects("bob", 1, {});
  const auto found = measure_pair(hosts.access(ada), hosts.access(bob), 1000);
  ASSERT_THAT(found, IsOk());
  EXPECT_FALSE(found->a_to_b.works);
  EXPECT_FALSE(found->rtt_a);
  EXPECT_FALSE(found->rate_ab);
  EXPECT_EQ(found->bytes, 0u);
  EXPECT_EQ(found->b_to_a.reason, "no known address to connect to");
}

TEST_F(Measuring, APortIsProvenFromTheHostThatWillUseIt) {
  const registry::Provider ada = hosts.add_pinned("ada"), bob = hosts.add_pinned("bob");
  listens("bob", 1, {"10.0.0.2", "10.0.9.9"}, met("10.0.0.1", 3ms, 2e8, 500), {"eth0", "ib0"});
  connects("ada", 1, met("10.0.9.9", 4ms, 1e8, 700));
  const auto proof = prove_port(hosts.access(ada), hosts.access(bob), 4711, 1000);
  ASSERT_THAT(proof, IsOk());
  EXPECT_TRUE(proof->contact.works);
  EXPECT_EQ(proof->rtt, Duration{4ms});
  EXPECT_EQ(proof->rate_there, 1e8);
  EXPECT_EQ(proof->rate_back, 2e8);
  EXPECT_EQ(proof->interface, "ib0");
  EXPECT_EQ(proof->ephemeral_first, 32768);
  EXPECT_EQ(wire::parse_listen(hosts.asked("bob").at(0))->port, 4711);
  listens("bob", 2, {"10.0.0.2"}, met("10.0.0.1", 3ms, 2e8, 500));
  connects("ada", 2, met("10.0.9.9", 4ms, 1e8, 700));
  EXPECT_EQ(prove_port(hosts.access(ada), hosts.access(bob), 0, 1000)->interface, "") << "nobody told which";
  listens("bob", 3, {"10.0.0.2"}, {});
  connects("ada", 3, in_vain("10.0.0.2", "timed out"));
  const auto closed = prove_port(hosts.access(ada), hosts.access(bob), 4711, 1000);
  EXPECT_FALSE(closed->contact.works);
  EXPECT_EQ(closed->contact.reason, "10.0.0.2: timed out");
  EXPECT_EQ(closed->ephemeral_first, 32768);
  EXPECT_FALSE(closed->rtt);
  listens("bob", 4, {"10.0.0.2"}, {});
  connects("ada", 4, {});
  EXPECT_THAT(prove_port(hosts.access(ada), hosts.access(bob), 5000, 1000), FailsWith(Code::unsupported));
}

TEST_F(Measuring, LandmarksAreAskedOfTheHost) {
  const registry::Provider ada = hosts.add_pinned("ada");
  hosts.play("ada", "link_reach", 1,
             {{FrameKind::reply, wire::encode(wire::ReachReply{{{9ms, ""}, {{}, "refused\x1b[31m"}}})}});
  const auto found = measure_landmarks(hosts.access(ada), {{"192.0.2.1", 443}, {"192.0.2.2", 80}});
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->targets[0].rtt, Duration{9ms});
  EXPECT_EQ(found->targets[1].problem.find('\x1b'), std::string::npos) << "it is foreign text";
  EXPECT_EQ(wire::parse_reach(hosts.asked("ada").at(0))->tries, 3u);
  hosts.play("ada", "link_reach", 2, {{FrameKind::reply, wire::encode(wire::ReachReply{{{9ms, ""}}})}});
  EXPECT_THAT(measure_landmarks(hosts.access(ada), {{"192.0.2.1", 443}, {"192.0.2.2", 80}}),
              FailsWith(Code::protocol_violation));
}

class MeasuringAll : public Measuring {
 protected:
  registry::Provider provider(const std::string& name) {
    registry::Provider one = hosts.add_pinned(name);
    one.registered_at = clock.wall();
    EXPECT_THAT(registry.add_provider(one), IsOk());
    return one;
  }
  Result<void> measure(const std::string& only = "", bool even_fresh = false) {
    told.clear();
    MeasureAll wanted{only, even_fresh, [this](const sched::LinkTask& task, const Result<void>* outcome) {
                        told.push_back(task.a + (task.b.empty() ? "" : "-" + task.b) +
                                       (outcome == nullptr ? "" : *outcome ? ": done" : ": failed"));
                      }};
    return measure_now(registry, hosts.paths, hosts.net, clock, wanted);
  }
  NetworkPicture picture() { return *network_picture(registry, hosts.paths); }

  os::Clock& clock = os::system_clock();
  registry::Registry registry = *registry::Registry::open(hosts.paths.root);
  std::vector<std::string> told;
};

TEST_F(MeasuringAll, MeasuresWhatIsDueAndRecordsIt) {
  provider("ada");
  ASSERT_THAT(measure(), IsOk());
  EXPECT_THAT(told, ElementsAre("ada", "ada: done"));
  EXPECT_TRUE(networks_of(picture().links)["ada"].up_bits_per_second);
  EXPECT_TRUE(networks_of(picture().links)["ada"].latency);
  EXPECT_GT(picture().reports.at("ada").spent_today(clock.wall()), 0u);
  ASSERT_THAT(measure(), IsOk());
  EXPECT_THAT(told, IsEmpty()) << "it is fresh";
  ASSERT_THAT(measure("", true), IsOk());
  EXPECT_THAT(told, ElementsAre("ada", "ada: done"));
}

TEST_F(MeasuringAll, MeasuresTheHostThatWasAskedForAndNoneThatIsLost) {
  provider("ada"), provider("bob"), provider("cay");
  ASSERT_THAT(registry.set_liveness({"bob"}, "lost", std::nullopt), IsOk());
  ASSERT_THAT(registry.set_liveness({"cay"}, "unreachable", std::nullopt), IsOk());
  ASSERT_THAT(measure("ada"), IsOk());
  EXPECT_THAT(told, ElementsAre("ada", "ada: done"));
  ASSERT_THAT(measure("bob"), IsOk());
  ASSERT_THAT(measure("cay"), IsOk());
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(MeasuringAll, TellsWhatCouldNotBeMeasuredAndGoesOn) {
  provider("ada"), provider("bob");
  hosts.take_down("ada");
  ASSERT_THAT(measure(), IsOk());
  EXPECT_THAT(told, Contains("ada: failed"));
  EXPECT_THAT(told, Contains("bob: done"));
}

TEST_F(MeasuringAll, AsksHostsForLandmarks) {
  ASSERT_THAT(write_landmarks(hosts.paths, {{{"far", {50.1, 8.7}, "DE"}, "192.0.2.1:443"}, {{"me", {50.1, 8.7}, "DE"}, "@here"}}), IsOk());
  provider("ada");
  hosts.play("ada", "link_reach", 1, {{FrameKind::reply, wire::encode(wire::ReachReply{{{9ms, ""}}})}});
  ASSERT_THAT(measure(), IsOk());
  EXPECT_EQ(picture().reports.at("ada").landmarks.at("far").rtt, Duration{9ms});
  EXPECT_FALSE(picture().reports.at("ada").landmarks.contains("me"));
  std::vector<std::string> reached;
  for (const std::string& line : hosts.asked("ada"))
    if (wire::request_name(line) == "link_reach") reached.push_back(wire::parse_reach(line)->targets.at(0).address);
  EXPECT_THAT(reached, ElementsAre("192.0.2.1"));
}

TEST_F(MeasuringAll, RecordsAPair) {
  for (const char* name : {"ada", "bob"}) {
    registry::Provider one = provider(name);
    one.site = "lab";
    ASSERT_THAT(registry.update_provider(one), IsOk());
    ASSERT_THAT((NetworkRecorder{registry, hosts.paths}.here(one, {5ms, 1e8, 2e8, 4000}, clock.wall())), IsOk());
  }
  listens("bob", 1, {"10.0.0.2"}, met("10.0.0.1", 3ms, 2e8, 500));
  connects("ada", 1, met("10.0.0.2", 4ms, 1e8, 700));
  listens("ada", 1, {"10.0.0.1"}, met("10.0.0.2", 3ms, {}, 10));
  connects("bob", 1, met("10.0.0.1", 5ms, {}, 20));
  ASSERT_THAT(measure(), IsOk());
  EXPECT_THAT(told, ElementsAre("ada-bob", "ada-bob: done"));
  EXPECT_EQ(picture().reports.at("bob").contacts.at("ada").reason, "");
  ASSERT_THAT(hosts.asked("bob"), SizeIs(2));
  EXPECT_EQ(wire::parse_listen(hosts.asked("bob").front())->bytes_max, wire::k_link_exchange_max) << "a person asks";
}

// The daemon's own care for links, in a loop that ends when what is waited for has come.
class Watching : public MeasuringAll {
 protected:
  Watching() { ada = provider("ada"); }
  NetworkWatch& watch() {
    if (!watch_)
      watch_.emplace(
          loop, clock, registry, hosts.paths, meter,
          [this](const HostName& name) -> std::optional<HostAccess> {
            ++places;
            return name == ada.name ? std::optional(hosts.access(ada)) : std::nullopt;
          },
          [this](const std::string&) { return up; });
    return *watch_;
  }
  // Until it is true, at most a minute; ticks as the daemon does.
  bool until(const std::function<bool()>& done, Duration ahead = {}) {
    const BootTime end = clock.boot() + 60s;
    bool met = false;
    const auto timer = loop.every(20ms, [&] {
      watch().tick(clock.boot() + ahead);
      met = done();
      if (met || clock.boot() > end) loop.stop();
    });
    loop.run();
    return met;
  }
  bool measured() { return networks_of(picture().links)["ada"].up_bits_per_second.has_value(); }

  os::Loop loop;
  LinkMeter meter;
  registry::Provider ada;
  bool up = true;
  int places = 0;

 private:
  std::optional<NetworkWatch> watch_;
};

TEST_F(Watching, MeasuresWhatIsDue) {
  EXPECT_TRUE(until([&] { return measured(); }));
  EXPECT_TRUE(until([&] { return !picture().reports.at("ada").verdict.empty(); })) << "and judges it";
}

TEST_F(Watching, MeasuresNothingWhileATransferIsUnderWay) {
  auto transfer = std::make_unique<LinkMeter::Transfer>(&meter, HostName{"ada"}, true, clock);
  watch().tick(clock.boot());
  watch().tick(clock.boot() + 1h);
  EXPECT_EQ(places, 0);
  transfer.reset();
  watch().tick(clock.boot() + 2h);
  EXPECT_EQ(places, 1);
}

TEST_F(Watching, LeavesAHostThatDoesNotAnswerAndOneThatACommandMeasures) {
  up = false;
  watch().tick(clock.boot());
  EXPECT_EQ(places, 0);
  up = true;
  auto lock = os::FileLock::try_acquire(hosts.paths.root / "network.lock");
  ASSERT_TRUE(lock && *lock);
  watch().tick(clock.boot() + 1min);
  EXPECT_EQ(places, 1);
  lock = std::optional<os::FileLock>{};
  EXPECT_TRUE(until([&] { return measured(); }, 2min)) << "then it is its turn";
}

TEST_F(Watching, TriesWhatFailedNotAgainForTenMinutes) {
  hosts.take_down("ada");
  watch().tick(clock.boot());
  EXPECT_EQ(places, 1);
  const auto ended = [&] {
    auto lock = os::FileLock::try_acquire(hosts.paths.root / "network.lock");
    return lock && lock->has_value();
  };
  const BootTime end = clock.boot() + 60s;
  const auto timer = loop.every(20ms, [&] {
    if (ended() || clock.boot() > end) loop.post([&] { loop.stop(); });
  });
  loop.run();
  watch().tick(clock.boot() + 9min);
  EXPECT_EQ(places, 1);
  watch().tick(clock.boot() + 11min);
  EXPECT_EQ(places, 2);
}

TEST_F(Watching, RecordsRoundTripsAndTransfers) {
  up = false;
  watch().pinged({"ada"}, 7ms);
  watch().pinged({"ada"}, 5ms);
  watch().pinged({"gone"}, 1ms);
  {
    LinkMeter::Transfer transfer(&meter, {"ada"}, true, clock);
    transfer.moved(k_telling_bytes);
  }
  watch().tick(clock.boot());
  EXPECT_EQ(picture().reports.at("ada").rtt_min, Duration{5ms});
  EXPECT_EQ(picture().reports.at("ada").rtt_samples, 2u);
  EXPECT_TRUE(networks_of(picture().links)["ada"].down_bits_per_second);
  watch().pinged({"ada"}, 3ms);
  watch().tick(clock.boot() + 5s);
  EXPECT_EQ(picture().reports.at("ada").rtt_min, Duration{5ms}) << "written down together, later";
  watch().tick(clock.boot() + 21s);
  EXPECT_EQ(picture().reports.at("ada").rtt_min, Duration{3ms});
  EXPECT_EQ(picture().reports.at("ada").rtt_samples, 3u);
}

}  // namespace
}  // namespace gridctl::control::network_hosts_test

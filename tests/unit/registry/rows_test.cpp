// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "db/database.hpp"
#include "registry/change_provider.hpp"
#include "registry/listing.hpp"
#include "registry/registry.hpp"
#include "registry/schema.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::registry::rows_test {
namespace {
using ::gridctl::testing::IsOk;
using ::testing::ElementsAre;

Provider a_provider(const std::string& name, int gpus = 2) {
  Provider p;
  p.name = {name};
  p.address = "ssh://me@" + name;
  p.transport = "libssh2";
  p.price_per_hour = 0.1;
  p.region = "DE";
  p.labels = {{"rack", "7"}, {"odd", "a\x1f b"}};
  p.registered_at = {1234567890123};
  p.inventory.edit().kernel = "6.1.0";
  p.inventory.edit().arch = "x86_64";
  p.inventory.edit().cpu.features = {"avx2", "avx512f"};
  p.inventory.edit().cpus = 7.5;
  p.inventory.edit().memory_bytes = 64ull << 30;
  for (int i = 0; i < gpus; ++i) {
    Gpu gpu;
    gpu.vendor = Vendor::amd;
    gpu.name = "AMD Instinct MI300X";
    gpu.uuid = "uuid-" + std::to_string(i);
    gpu.memory_bytes = 192ull << 30;
    if (i != 1) gpu.power.cap_watts = 750;
    if (i > 0) gpu.ecc = true;
    p.inventory.edit().gpus.push_back(gpu);
  }
  if (gpus > 1) p.inventory.edit().links = {{0, 1, LinkKind::xgmi, 1, 512e9}};
  return p;
}

std::vector<std::string> names(const Result<std::vector<Provider>>& rows) {
  std::vector<std::string> out;
  for (const Provider& p : *rows) out.push_back(p.name.value);
  return out;
}
bool all(const Provider&) { return true; }

class Rows : public ::testing::Test {
 protected:
  Registry open() { return *Registry::open(dir.path()); }
  gridctl::testing::TempDir dir;
};

TEST(Listing, KeepsWhatQueriesAndTablesNeed) {
  const Provider before = a_provider("ada", 4);
  Provider after;
  after.labels["old"] = "goes";
  after.inventory.edit().gpus.resize(9);
  ASSERT_TRUE(read_listing(listing_of(before), after));
  EXPECT_EQ(after.address, before.address);
  EXPECT_EQ(after.price_per_hour, 0.1);
  EXPECT_EQ(after.registered_at, before.registered_at);
  EXPECT_EQ(after.labels.at("rack"), "7");
  EXPECT_EQ(after.labels.at("odd"), "a  b");  // the separator cannot be smuggled in
  EXPECT_EQ(after.inventory->cpus, 7.5);
  EXPECT_THAT(after.inventory->cpu.features, ElementsAre("avx2", "avx512f"));
  EXPECT_EQ(after.inventory->gpus, before.inventory->gpus);
  ASSERT_EQ(after.inventory->links.size(), 1u);
  EXPECT_EQ(after.inventory->links[0].bits_per_second, 512e9);
}

TEST(Listing, TellsGpusApartThatDifferInOneThing) {
  using Change = void (*)(Gpu&);
  for (const Change change : {
           Change{[](Gpu& gpu) { gpu.vendor = Vendor::nvidia; }}, Change{[](Gpu& gpu) { gpu.name += " NVL"; }},
           Change{[](Gpu& gpu) { gpu.memory_bytes -= 1; }}, Change{[](Gpu& gpu) { gpu.driver += ".1"; }},
           Change{[](Gpu& gpu) { gpu.arch += "a"; }}, Change{[](Gpu& gpu) { gpu.ecc = !gpu.ecc.value_or(false); }},
           Change{[](Gpu& gpu) { gpu.power.cap_watts = 123; }}, Change{[](Gpu& gpu) { gpu.heat.slowdown_c = 77; }},
           Change{[](Gpu& gpu) { gpu.pcie.generation_max = 2; }}, Change{[](Gpu& gpu) { gpu.pcie.width = 4; }}}) {
    Provider before = a_provider("ada", 4), after;
    change(before.inventory.edit().gpus[3]);
    ASSERT_NE(before.inventory->gpus[3], a_provider("ada", 4).inventory->gpus[3]);
    ASSERT_TRUE(read_listing(listing_of(before), after));
    EXPECT_EQ(after.inventory->gpus, before.inventory->gpus);
  }
}

TEST(Listing, RefusesWhatIsNotOne) {
  const std::string line = listing_of(a_provider("ada"));
  Provider into;
  for (std::size_t i = 0; i < line.size(); ++i) EXPECT_FALSE(read_listing(line.substr(0, i), into)) << i;
  EXPECT_FALSE(read_listing(line + "x", into));
  for (std::size_t i = 0; i < line.size(); ++i)
    for (const char c : {'\x1f', '9', '-', 'x'}) {
      std::string changed = line;
      changed[i] = c;
      (void)read_listing(changed, into);  // whatever it says, it ends and stays within its limits
    }
}

TEST(Figures, SurviveTheirText) {
  Figures figures{{"mtbf", 91.5}, {"rtt", 1e-3}, {"bench_drift", -0.25}}, back{{"old", 1}};
  read_figures(figures_text(figures), back);
  EXPECT_EQ(back, figures);
  read_figures("a=1 b= c=x =2 d=nan e=3", back);
  EXPECT_EQ(back, (Figures{{"", 2}, {"a", 1}, {"e", 3}}));
}

TEST_F(Rows, ShowOnlyThoseWanted) {
  Registry registry = open();
  for (const char* name : {"cyd", "ada", "bob"}) ASSERT_THAT(registry.add_provider(a_provider(name)), IsOk());
  ASSERT_THAT(registry.set_liveness({"bob"}, "lost", WallTime{5}), IsOk());
  EXPECT_THAT(names(registry.rows(all)), ElementsAre("ada", "bob", "cyd"));
  const auto lost = *registry.rows([](const Provider& p) { return p.liveness == "lost"; });
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].name.value, "bob");
  EXPECT_EQ(lost[0].last_seen_at, WallTime{5});
  EXPECT_EQ(lost[0].inventory->gpus.size(), 2u);
}

TEST_F(Rows, FollowEveryChangeOfAProvider) {
  Registry registry = open();
  Provider p = a_provider("ada");
  ASSERT_THAT(registry.add_provider(p), IsOk());
  p.price_per_hour = 3;
  p.drained = true;
  p.inventory.edit().gpus.pop_back();
  ASSERT_THAT(registry.update_provider(p), IsOk());
  const Provider row = registry.rows(all)->front();
  EXPECT_EQ(row.price_per_hour, 3);
  EXPECT_TRUE(row.drained);
  EXPECT_EQ(row.inventory->gpus.size(), 1u);
  p.name = {"nobody"};
  ASSERT_THAT(registry.update_provider(p), IsOk());
  EXPECT_EQ(registry.rows(all)->size(), 1u);
}

// The daemon writes what it has found at the same time as a command writes what its user says.
TEST_F(Rows, KeepBothOfTwoChangesAtOnce) {
  Registry daemon = open(), command = open();
  ASSERT_THAT(daemon.add_provider(a_provider("ada")), IsOk());
  std::jthread other;
  std::promise<void> other_done;
  const Result<Provider> changed = change_provider(daemon, {"ada"}, [&](Provider& row) -> Result<void> {
    other = std::jthread([&] {
      EXPECT_THAT(change_provider(command, {"ada"}, [](Provider& same) -> Result<void> {
                    same.region = "FI";
                    return {};
                  }),
                  IsOk());
      other_done.set_value();
    });
    // If it could write now, it would be done long before this.
    EXPECT_EQ(other_done.get_future().wait_for(std::chrono::milliseconds{300}), std::future_status::timeout);
    row.price_per_hour = 7;
    return {};
  });
  ASSERT_THAT(changed, IsOk());
  other.join();
  const Result<Provider> row = daemon.provider({"ada"});
  EXPECT_EQ(row->price_per_hour, 7);
  EXPECT_EQ(row->region, "FI");
}

TEST_F(Rows, AreNotWrittenWhenAChangeIsRefused) {
  Registry registry = open();
  ASSERT_THAT(registry.add_provider(a_provider("ada")), IsOk());
  const auto refused = change_provider(registry, {"ada"}, [&](Provider& row) -> Result<void> {
    row.price_per_hour = 7;
    EXPECT_THAT(registry.add_host_event({0, row.name, {}, "price", "7"}), IsOk());
    return make_error(Code::usage, "no");
  });
  EXPECT_FALSE(refused);
  EXPECT_NE(registry.provider({"ada"})->price_per_hour, 7);
  EXPECT_TRUE(registry.host_events({"ada"}, 0)->empty());
}

// A daemon asks again and again, while others write.
TEST_F(Rows, AreWhatStandsThereNowHoweverOftenHostsAreListed) {
  Registry daemon = open(), other = open();
  for (const char* name : {"ada", "bob", "cyd"}) ASSERT_THAT(other.add_provider(a_provider(name)), IsOk());
  for (int i = 0; i < 3; ++i) EXPECT_THAT(names(daemon.providers()), ElementsAre("ada", "bob", "cyd"));
  Provider ada = a_provider("ada", 1);
  ada.price_per_hour = 7;
  ASSERT_THAT(other.update_provider(ada), IsOk());
  ASSERT_THAT(other.save_figures({"bob"}, {{"mtbf", 12.0}}), IsOk());
  ASSERT_THAT(other.set_liveness({"cyd"}, "lost", WallTime{99}), IsOk());
  const auto now = daemon.providers();
  EXPECT_EQ(now->at(0).price_per_hour, 7);
  EXPECT_EQ(now->at(0).inventory->gpus.size(), 1u);
  EXPECT_EQ(now->at(1).figures, (Figures{{"mtbf", 12}}));
  EXPECT_EQ(now->at(2).liveness, "lost");
  EXPECT_EQ(now->at(2).last_seen_at, WallTime{99});
  ASSERT_THAT(other.save_figures({"bob"}, {{"mtbf", std::nullopt}}), IsOk());
  ASSERT_THAT(other.remove_provider({"ada"}), IsOk());
  EXPECT_THAT(names(daemon.providers()), ElementsAre("bob", "cyd"));
  EXPECT_TRUE(daemon.providers()->at(0).figures.empty());
  ASSERT_THAT(other.add_provider(a_provider("ada", 4)), IsOk());
  EXPECT_EQ(daemon.providers()->at(0).inventory->gpus.size(), 4u);
}

TEST_F(Rows, BringTheFiguresAlong) {
  Registry registry = open();
  ASSERT_THAT(registry.add_provider(a_provider("ada")), IsOk());
  ASSERT_THAT(registry.add_provider(a_provider("bob")), IsOk());
  ASSERT_THAT(registry.save_figures({"bob"}, {{"mtbf", 12.0}, {"rtt", 3.0}}), IsOk());
  ASSERT_THAT(registry.save_figures({"bob"}, {{"rtt", std::nullopt}, {"failures", 2.0}}), IsOk());
  const Figures wanted{{"failures", 2}, {"mtbf", 12}};
  EXPECT_EQ(registry.rows(all)->at(1).figures, wanted);
  EXPECT_EQ(registry.provider({"bob"})->figures, wanted);
  EXPECT_EQ(registry.providers()->at(1).figures, wanted);
  EXPECT_TRUE(registry.rows(all)->at(0).figures.empty());
  ASSERT_THAT(registry.remove_provider({"bob"}), IsOk());
  ASSERT_THAT(registry.add_provider(a_provider("bob")), IsOk());
  EXPECT_TRUE(registry.rows(all)->at(1).figures.empty());
}

TEST_F(Rows, AreMadeAnewWhenAnotherVersionWroteThem) {
  Registry registry = open();
  for (const char* name : {"ada", "bob", "cyd"}) ASSERT_THAT(registry.add_provider(a_provider(name)), IsOk());
  Result<db::Database> raw = db::Database::open(dir.path() / "state.db");
  ASSERT_TRUE(raw);
  ASSERT_THAT(raw->execute("UPDATE listings SET format = 0 WHERE provider = 'ada'"), IsOk());
  ASSERT_THAT(raw->execute("UPDATE listings SET line = 'broken' WHERE provider = 'bob'"), IsOk());
  ASSERT_THAT(raw->execute("DELETE FROM listings WHERE provider = 'cyd'"), IsOk());
  EXPECT_THAT(names(registry.rows(all)), ElementsAre("ada", "bob", "cyd"));
  db::Statement count = raw->prepare("SELECT count(*) FROM listings WHERE format = ?");
  ASSERT_TRUE(*count.bind(k_listing_format).next());
  EXPECT_EQ(count.integer(0), 3);
}

TEST_F(Rows, AreMadeForAStateOfTheSecondSchema) {
  {
    Registry registry = open();
    ASSERT_THAT(registry.add_provider(a_provider("ada")), IsOk());
  }
  {
    Result<db::Database> raw = db::Database::open(dir.path() / "state.db");
    ASSERT_TRUE(raw);
    for (const char* sql : {"UPDATE providers SET facts = json_set(facts, '$.address', 'me@ada:22', '$.user', 'me', '$.host', 'ada', "
                            "'$.port', 2222, '$.identities', json('[\"/key\"]'), '$.jump', 'gate', '$.alias', 'a', '$.transport', 'ssh')",
                            "DROP TABLE ways",
                            "DROP TABLE receipts",
                            "DROP TABLE accepted_rates",
                            "DROP TABLE receipt_chains",
                            "DROP TABLE pauses",
                            "DROP TABLE price_changes",
                            "DROP TABLE budgets",
                            "DROP INDEX jobs_by_owner",
                            "ALTER TABLE jobs DROP COLUMN owner",
                            "DROP TABLE places",
                            "DROP TABLE copies",
                            "DROP TABLE drills",
                            "DROP TABLE listings",
                            "DROP TABLE figures",
                            "DROP INDEX providers_by_state",
                            "ALTER TABLE checkpoints DROP COLUMN stall_ms",
                            "ALTER TABLE checkpoints DROP COLUMN upload_ms",
                            "ALTER TABLE checkpoints DROP COLUMN metrics",
                            "DROP TABLE members",
                            "ALTER TABLE checkpoints DROP COLUMN provisional",
                            "DROP TABLE results",
                            "DROP INDEX jobs_listed",
                            "DROP TRIGGER job_added",
                            "DROP TRIGGER job_changed",
                            "DROP INDEX jobs_by_revision",
                            "ALTER TABLE jobs DROP COLUMN revision"})
      ASSERT_THAT(raw->execute(sql), IsOk());
    ASSERT_THAT(raw->set_user_version(2), IsOk());
  }
  Registry registry = open();
  EXPECT_THAT(names(registry.rows(all)), ElementsAre("ada"));
  EXPECT_EQ(registry.rows(all)->front().inventory->gpus.size(), 2u);
  const registry::Provider ada = *registry.provider({"ada"});
  EXPECT_EQ(ada.address, "me@ada:22");
  EXPECT_EQ(ada.user + " " + ada.host + " " + std::to_string(ada.port), "me ada 2222");
  EXPECT_THAT(ada.identities, ElementsAre("/key"));
  EXPECT_EQ(ada.jump + " " + ada.alias + " " + ada.transport, "gate a ssh");
  EXPECT_TRUE(ada.more_ways.empty());
}

// A way is a row of its own, and the rows come and go with their provider.
TEST_F(Rows, AreMadeOfEachWayToAHost) {
  Registry registry = open();
  Provider ada = a_provider("ada");
  ada.address = "me@ada";
  Way lan;
  lan.address = "me@192.168.1.7";
  lan.identities = {"/a \"key\"", "/b"};
  lan.port = 2222;
  lan.jump = "gate";
  ada.more_ways = {lan};
  ASSERT_THAT(registry.add_provider(ada), IsOk());
  Provider bob = a_provider("bob");
  bob.address = "lent:abc";
  ASSERT_THAT(registry.add_provider(bob), IsOk());
  EXPECT_EQ(registry.provider({"ada"})->ways(), ada.ways());
  ada.set_ways({lan, ada.ways().front()});
  ASSERT_THAT(registry.update_provider(ada), IsOk());
  EXPECT_EQ(registry.provider({"ada"})->address, "me@192.168.1.7");
  for (int asked = 0; asked < 3; ++asked) {  // what was read before is remembered
    const auto read = registry.providers();
    ASSERT_TRUE(read);
    EXPECT_EQ(read->at(0).ways(), ada.ways());
    EXPECT_EQ(read->at(1).ways(), bob.ways());
    EXPECT_EQ(read->at(1).kind(), "relay");
    if (asked != 1) continue;
    ada.more_ways.clear();
    ASSERT_THAT(registry.update_provider(ada), IsOk());
  }
  ASSERT_THAT(registry.remove_provider({"ada"}), IsOk());
  ASSERT_THAT(registry.add_provider(a_provider("ada")), IsOk());
  EXPECT_TRUE(registry.provider({"ada"})->more_ways.empty());
}

}  // namespace
}  // namespace gridctl::registry::rows_test

// SPDX-License-Identifier: Apache-2.0
// Each change at a remote, and each row about it here, fails once, or is made without our being told. What the registry
// calls a copy can always be had, and the next rounds make good what is left.
#include "control/copies/copier.hpp"
#include "db/database.hpp"
#include "remotes_fixture.hpp"
#include "support/faulty_remote.hpp"

namespace gridctl::control::copies_faults_test {
namespace {

using namespace store::testing;
using gridctl::testing::Fate, gridctl::testing::IsOk, gridctl::testing::RemoteFault;

struct CopiesAmidFaults : WithRemotes {
  void SetUp() override {
    WithRemotes::SetUp();
    add("nas");
    memory.open = [this](const RemoteAccess& access, AgentNetwork& where, os::Clock& now) -> Result<std::unique_ptr<store::Backend>> {
      TRY_ASSIGN(auto backend, open_remote(access, where, now));
      return std::unique_ptr<store::Backend>(std::make_unique<gridctl::testing::FaultyRemote>(std::move(backend), fault));
    };
  }
  CopyRound round() { return copy_what_is_due(paths, net, "nas", clock, memory); }
  void save_two() {
    for (const int number : {1, 2}) {
      files[number] = {{"a", noise(5000, static_cast<std::uint32_t>(number))}, {"both", noise(3000, 9)}};
      saved[number] = save_checkpoint(files[number]);
    }
  }
  // Rows that the daemon writes about copies: while `what` stands, none is written.
  void rows_fail(const std::string& change) {
    db::Database database = *db::Database::open(paths.root / "state.db");
    ASSERT_THAT(database.execute("CREATE TRIGGER fails BEFORE " + change + " ON copies BEGIN SELECT RAISE(ABORT, 'the disk fails'); END"), IsOk());
  }
  void rows_are_written() {
    db::Database database = *db::Database::open(paths.root / "state.db");
    ASSERT_THAT(database.execute("DROP TRIGGER IF EXISTS fails"), IsOk());
  }
  // What is said to be there can be read from there, byte for byte.
  void expect_told_is_there(const std::string& when) {
    const auto key = load_key(paths);
    const auto remote = store::open_dir_remote(there / "nas", store::k_mark_name);
    for (const auto copies = *registry.copies(); const registry::Copy& copy : copies) {
      if (!registry.checkpoint(copy.job, copy.seq)) continue;  // it is to be forgotten there
      const auto found = load_from(*remote, **key, {copy.job, copy.seq});
      ASSERT_THAT(found, IsOk()) << when << ": checkpoint " << copy.seq.value;
      for (const auto& [number, one] : saved)
        EXPECT_TRUE(one.seq != copy.seq || *found == files[number]) << when;
    }
  }
  void expect_settled(const std::string& when, const std::vector<store::RecordName>& records) {
    for (int i = 0; i < 3; ++i) (void)round();
    EXPECT_FALSE(round().is_due) << when;
    expect_told_is_there(when);
    const auto remote = store::open_dir_remote(there / "nas", store::k_mark_name);
    const auto left = store::list_remote(*remote);
    ASSERT_THAT(left, IsOk());
    EXPECT_EQ(left->records, records) << when;
    std::vector<store::RecordName> told;
    for (const auto copies = *registry.copies(); const registry::Copy& copy : copies) told.push_back({copy.job, copy.seq});
    EXPECT_EQ(told, records) << when;
    EXPECT_EQ(registry.remote("nas")->trouble, "") << when;
  }

  RemoteFault fault;
  RemoteMemory memory;
  std::map<int, Files> files;
  std::map<int, registry::Checkpoint> saved;
};

struct Strike {
  int at = 0;
  Fate fate = Fate::fails;
  std::string row = {};  // instead: this change of a row fails
};
std::vector<Strike> strikes() {
  std::vector<Strike> all{{0, Fate::fails, "INSERT"}, {0, Fate::fails, "DELETE"}};
  for (int at = 1; at <= 6; ++at)
    for (const Fate fate : {Fate::fails, Fate::lost}) all.push_back({at, fate, {}});
  return all;
}
std::string words(const Strike& strike) {
  if (!strike.row.empty()) return strike.row + " fails";
  return "change " + std::to_string(strike.at) + (strike.fate == Fate::lost ? " loses its answer" : " fails");
}

struct EachStrike : CopiesAmidFaults, ::testing::WithParamInterface<Strike> {
  void strike() {
    fault.changes = 0;
    fault.at = GetParam().at;
    fault.fate = GetParam().fate;
    if (!GetParam().row.empty()) rows_fail(GetParam().row);
  }
  void relent() {
    fault.at = 0;
    rows_are_written();
  }
};

TEST_P(EachStrike, WhileCopiesAreMade) {
  save_two();
  strike();
  const CopyRound struck = round();
  expect_told_is_there(words(GetParam()));
  EXPECT_TRUE(!struck.trouble || struck.is_due) << "else nobody tries again";
  relent();
  expect_settled(words(GetParam()), {{id, saved[1].seq}, {id, saved[2].seq}});
}

TEST_P(EachStrike, WhileCopiesOfWhatIsRemovedHereAreForgotten) {
  save_two();
  ASSERT_EQ(round().copied, 2u);
  ASSERT_THAT(registry.remove_checkpoint(id, saved[1].seq), IsOk());
  strike();
  const CopyRound struck = round();
  expect_told_is_there(words(GetParam()));
  EXPECT_TRUE(!struck.trouble || struck.is_due);
  relent();
  expect_settled(words(GetParam()), {{id, saved[2].seq}});
  auto work = RemoteWork::open(paths, net, registry, *registry.remote("nas"), clock, true);
  ASSERT_THAT(work->prune(), IsOk());
  expect_told_is_there("what both need stays");
  EXPECT_EQ(work->listing().packs.size(), 2u) << "the first one's own pack goes";
}

TEST_P(EachStrike, WhileADamagedCopyIsMadeAnew) {
  save_two();
  ASSERT_EQ(round().copied, 2u);
  for (const auto& pack : std::filesystem::directory_iterator(there / "nas/packs")) {
    std::string text = slurp(pack.path());
    text[1000] ^= 1;
    write(pack.path(), text);
  }
  const auto mend = [&] {
    auto work = RemoteWork::open(paths, net, registry, *registry.remote("nas"), clock, true, {}, memory.open);
    ASSERT_THAT(work, IsOk());
    const auto found = work->check(1);
    ASSERT_THAT(found, IsOk());
    const auto mended = work->repair(*found);
    if (!mended) return;
    expect_told_is_there(words(GetParam()));
  };
  strike();
  mend();
  relent();
  mend();
  expect_settled(words(GetParam()), {{id, saved[1].seq}, {id, saved[2].seq}});
}

INSTANTIATE_TEST_SUITE_P(Copies, EachStrike, ::testing::ValuesIn(strikes()),
                         [](const auto& one) { return one.param.row.empty() ? (one.param.fate == Fate::lost ? "Lost" : "Fails") + std::to_string(one.param.at) : one.param.row; });

}  // namespace
}  // namespace gridctl::control::copies_faults_test

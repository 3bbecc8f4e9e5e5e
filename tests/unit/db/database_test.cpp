// SPDX-License-Identifier: Apache-2.0
#include "db/database.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::db {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;

class Opened : public ::testing::Test {
 protected:
  Opened() : db_(Database::open(dir_ / "state.db").value()) {
    EXPECT_THAT(db_.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, weight REAL) STRICT"), IsOk());
  }
  Result<void> insert(std::int64_t id, std::string_view name) {
    return db_.prepare("INSERT INTO t(id, name) VALUES(?, ?)").bind(id).bind(name).run();
  }
  std::int64_t count() {
    Statement statement = db_.prepare("SELECT count(*) FROM t");
    EXPECT_TRUE(statement.next().value());
    return statement.integer(0);
  }
  TempDir dir_;
  Database db_;
};

TEST_F(Opened, IsForItsOwnerAlone) {
  struct stat info {};
  ASSERT_EQ(::stat((dir_ / "state.db").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
}

TEST_F(Opened, UsesARollbackJournalAndTheStrictestSync) {
  for (const auto& [pragma, want] :
       {std::pair{"PRAGMA journal_mode", "truncate"}, {"PRAGMA synchronous", "3"}, {"PRAGMA foreign_keys", "1"}}) {
    Statement statement = db_.prepare(pragma);
    ASSERT_TRUE(statement.next().value());
    EXPECT_EQ(statement.text(0), want) << pragma;
  }
}

TEST_F(Opened, BindsAndReadsEveryType) {
  const std::string odd("a\0b'\"", 5);
  ASSERT_THAT(db_.prepare("INSERT INTO t VALUES(?, ?, ?)").bind(INT64_MIN).bind(odd).bind(0.1).run(), IsOk());
  ASSERT_THAT(db_.prepare("INSERT INTO t VALUES(?, ?, ?)").bind(7).bind_null().bind(std::optional<double>{}).run(),
              IsOk());
  EXPECT_EQ(db_.last_row_id(), 7);
  EXPECT_EQ(db_.changes(), 1);
  Statement rows = db_.prepare("SELECT id, name, weight FROM t ORDER BY id");
  ASSERT_TRUE(rows.next().value());
  EXPECT_EQ(rows.integer(0), INT64_MIN);
  EXPECT_EQ(rows.text(1), odd);
  EXPECT_DOUBLE_EQ(rows.real(2), 0.1);
  ASSERT_TRUE(rows.next().value());
  EXPECT_TRUE(rows.is_null(1));
  EXPECT_TRUE(rows.is_null(2));
  EXPECT_FALSE(rows.next().value());
}

TEST_F(Opened, AnEmptyTextIsNotNull) {
  ASSERT_THAT(insert(1, std::string_view{}), IsOk());
  Statement rows = db_.prepare("SELECT name FROM t");
  ASSERT_TRUE(rows.next().value());
  EXPECT_FALSE(rows.is_null(0));
}

TEST_F(Opened, StrictTablesRefuseAWrongType) {
  EXPECT_FALSE(db_.prepare("INSERT INTO t(id, weight) VALUES(1, ?)").bind("heavy").run());
}

TEST_F(Opened, PreparedStatementsAreResetForTheirNextUse) {
  ASSERT_THAT(insert(1, "one"), IsOk());
  ASSERT_THAT(insert(2, "two"), IsOk());
  for (int round = 0; round < 3; ++round) {
    Statement statement = db_.prepare("SELECT name FROM t WHERE id >= ? ORDER BY id");
    statement.bind(round == 0 ? 2 : 1);
    ASSERT_TRUE(statement.next().value());
    EXPECT_EQ(statement.text(0), round == 0 ? "two" : "one");
  }
  EXPECT_FALSE(db_.prepare("SELECT name FROM t WHERE id = ?").next().value()) << "an old binding was still there";
}

TEST_F(Opened, AStatementUsedInsideItselfIsOurBug) {
  ASSERT_THAT(insert(1, "one"), IsOk());
  Statement outer = db_.prepare("SELECT id FROM t");
  ASSERT_TRUE(outer.next().value());
  EXPECT_THAT(db_.prepare("SELECT id FROM t").next(), FailsWith(Code::internal));
}

TEST_F(Opened, ErrorsOfPreparingAndBindingComeWithTheStep) {
  EXPECT_THAT(db_.prepare("SELEKT 1").bind(1).next(), FailsWith(Code::internal));
  EXPECT_THAT(db_.prepare("SELECT 1").bind(1).next(), FailsWith(Code::internal));
}

TEST_F(Opened, ATransactionInsideAnotherIsAPartOfIt) {
  const auto count = [&] {
    Statement query = db_.prepare("SELECT count(*) FROM inside");
    EXPECT_TRUE(query.next());
    return query.integer(0);
  };
  ASSERT_THAT(db_.execute("CREATE TABLE inside(x)"), IsOk());
  {
    Result<Transaction> outer = Transaction::begin(db_);
    ASSERT_THAT(outer, IsOk());
    ASSERT_THAT(db_.execute("INSERT INTO inside VALUES(1)"), IsOk());
    {
      Result<Transaction> undone = Transaction::begin(db_);
      ASSERT_THAT(undone, IsOk());
      ASSERT_THAT(db_.execute("INSERT INTO inside VALUES(2)"), IsOk());
    }
    EXPECT_EQ(count(), 1);
    Result<Transaction> kept = Transaction::begin(db_);
    ASSERT_THAT(db_.execute("INSERT INTO inside VALUES(3)"), IsOk());
    ASSERT_THAT(kept->commit(), IsOk());
    EXPECT_EQ(count(), 2);
  }
  EXPECT_EQ(count(), 0) << "the whole was not committed";
  EXPECT_FALSE(db_.in_transaction());
}

TEST_F(Opened, ATransactionIsUndoneUnlessCommitted) {
  {
    Result<Transaction> transaction = Transaction::begin(db_);
    ASSERT_THAT(transaction, IsOk());
    ASSERT_THAT(insert(1, "undone"), IsOk());
  }
  EXPECT_EQ(count(), 0);
  Result<Transaction> transaction = Transaction::begin(db_);
  ASSERT_THAT(transaction, IsOk());
  ASSERT_THAT(insert(2, "kept"), IsOk());
  ASSERT_THAT(transaction->commit(), IsOk());
  EXPECT_EQ(count(), 1);
}

TEST_F(Opened, ForeignKeysHold) {
  ASSERT_THAT(db_.execute("CREATE TABLE child(t INTEGER NOT NULL REFERENCES t(id)) STRICT"), IsOk());
  EXPECT_FALSE(db_.execute("INSERT INTO child VALUES(99)"));
}

TEST_F(Opened, AnotherConnectionsCommitIsNoticed) {
  Database other = Database::open(dir_ / "state.db").value();
  const std::int64_t before = db_.data_version().value();
  EXPECT_EQ(db_.data_version().value(), before);
  ASSERT_THAT(other.execute("INSERT INTO t(id) VALUES(1)"), IsOk());
  EXPECT_NE(db_.data_version().value(), before);
}

TEST_F(Opened, ReadingAfterACommitWritesNothing) {
  Database other = Database::open(dir_ / "state.db").value();
  {
    Transaction transaction = Transaction::begin(db_).value();
    ASSERT_THAT(db_.execute("INSERT INTO t(id) VALUES(1)"), IsOk());
    ASSERT_THAT(transaction.commit(), IsOk());
  }
  const std::int64_t before = other.data_version().value();
  EXPECT_EQ(db_.prepare("SELECT count(*) FROM t").next().value(), true);
  EXPECT_EQ(other.data_version().value(), before) << "only a commit that failed leaves something to be settled";
}

TEST_F(Opened, KeepsItsUserVersion) {
  EXPECT_EQ(db_.user_version().value(), 0);
  ASSERT_THAT(db_.set_user_version(3), IsOk());
  EXPECT_EQ(Database::open(dir_ / "state.db").value().user_version().value(), 3);
}

TEST_F(Opened, AFullDiskIsNoSpace) {
  ASSERT_THAT(db_.execute("PRAGMA max_page_count=4"), IsOk());
  Result<void> inserted;
  for (int i = 0; i < 100 && inserted; ++i) inserted = insert(i, std::string(1000, 'x'));
  EXPECT_THAT(inserted, FailsWith(Code::no_space));
}

TEST_F(Opened, AHeldLockIsStateInUse) {
  Database other = Database::open(dir_ / "state.db").value();
  ASSERT_THAT(other.execute("PRAGMA busy_timeout=10"), IsOk());
  const Result<Transaction> holder = Transaction::begin(db_);
  ASSERT_THAT(holder, IsOk());
  EXPECT_THAT(Transaction::begin(other), FailsWith(Code::state_in_use));
}

TEST_F(Opened, BacksUpToAFileThatIsWhole) {
  ASSERT_THAT(insert(1, "one"), IsOk());
  ASSERT_THAT(db_.back_up_to(dir_ / "copy.db"), IsOk());
  Database copy = Database::open(dir_ / "copy.db").value();
  EXPECT_THAT(copy.quick_check(), IsOk());
  Statement rows = copy.prepare("SELECT name FROM t");
  ASSERT_TRUE(rows.next().value());
  EXPECT_EQ(rows.text(0), "one");
}

TEST(Database, AFileThatIsNoneIsStateUnreadable) {
  const TempDir dir;
  ASSERT_THAT(os::write_file_atomically(dir / "state.db", std::string(8192, 'x')), IsOk());
  EXPECT_THAT(Database::open(dir / "state.db"), FailsWith(Code::state_unreadable));
  EXPECT_FALSE(Database::open(dir / "no/such/folder/state.db"));
}

// The journal cannot be opened: that passes, and is no damage.
TEST_F(Opened, WantOfDescriptorsIsOfTheSystem) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  Database fresh = std::move(db_);
  const Result<void> refused = [&]() -> Result<void> {
    TRY(fresh.execute("PRAGMA journal_mode=DELETE"));
    return fresh.prepare("INSERT INTO t(id, name) VALUES(1, 'one')").run();
  }();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(refused, FailsWith(Code::io));
}

TEST(Database, FindsDamage) {
  const TempDir dir;
  {
    Database db = Database::open(dir / "state.db").value();
    ASSERT_THAT(db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT) STRICT"), IsOk());
    Result<Transaction> transaction = Transaction::begin(db);
    ASSERT_THAT(transaction, IsOk());
    for (int i = 0; i < 200; ++i)
      ASSERT_THAT(db.prepare("INSERT INTO t VALUES(?, ?)").bind(i).bind(std::string(200, 'x')).run(), IsOk());
    ASSERT_THAT(transaction->commit(), IsOk());
  }
  std::string content = os::read_file(dir / "state.db").value();
  ASSERT_GT(content.size(), 5 * 4096u);
  content.replace(3 * 4096, 4096, std::string(4096, '\x77'));
  ASSERT_THAT(os::write_file_atomically(dir / "state.db", content), IsOk());
  Database db = Database::open(dir / "state.db").value();
  EXPECT_THAT(db.quick_check(), FailsWith(Code::state_unreadable));
}

TEST(Database, InMemoryNeedsNoFile) {
  Database db = Database::open(":memory:").value();
  EXPECT_THAT(db.execute("CREATE TABLE t(id INTEGER)"), IsOk());
  EXPECT_FALSE(os::exists(":memory:"));
}

}  // namespace
}  // namespace gridctl::db

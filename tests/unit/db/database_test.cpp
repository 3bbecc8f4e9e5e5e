// SPDX-License-Identifier: Apache-2.0
#include "db/database.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::db::database_test {
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
  for (const auto& [pragma, want] : {std::pair{"PRAGMA journal_mode", "truncate"},
                                     {"PRAGMA synchronous", "3"},
                                     {"PRAGMA foreign_keys", "1"},
                                     {"PRAGMA trusted_schema", "0"},
                                     {"PRAGMA cell_size_check", "1"},
                                     {"PRAGMA cache_size", "-8192"},
                                     {"PRAGMA busy_timeout", "5000"}}) {
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
  EXPECT_THAT(db_.prepare("SELECT ?").bind(1).bind("two").next(), FailsWith(Code::internal));
  EXPECT_THAT(db_.prepare("SELECT ?").bind(1).bind(0.5).next(), FailsWith(Code::internal));
  EXPECT_THAT(db_.prepare("SELECT ?").bind(1).bind_null().next(), FailsWith(Code::internal));
  EXPECT_THAT(db_.prepare("").next(), FailsWith(Code::internal)) << "there is no statement";
  EXPECT_THAT(db_.prepare("SELEKT 1").run().error().message, ::testing::HasSubstr("cannot prepare"));
  EXPECT_THAT(db_.prepare("SELECT 1").bind(1).run().error().message, ::testing::HasSubstr("cannot bind"));
}

TEST_F(Opened, AStatementKeepsItsBindingsWhereItIsMoved) {
  Statement first = db_.prepare("SELECT ?, ?");
  first.bind("one");
  {
    Statement second = std::move(first);
    second.bind("two");
    ASSERT_TRUE(second.next().value());
    EXPECT_EQ(second.text(0), "one");
    EXPECT_EQ(second.text(1), "two");
  }
  Statement again = db_.prepare("SELECT ?, ?");
  ASSERT_TRUE(again.next().value()) << "it is free once the moved one is gone";
  EXPECT_TRUE(again.is_null(0));
  EXPECT_TRUE(again.view(0).empty());
}

TEST_F(Opened, ErrorsOfTheEngineAreToldApart) {
  ASSERT_THAT(insert(1, "one"), IsOk());
  {
    Statement reading = db_.prepare("SELECT id FROM t");
    ASSERT_TRUE(reading.next().value());
    EXPECT_THAT(db_.execute("DROP TABLE t"), FailsWith(Code::state_in_use)) << "locked by this very connection";
  }
  EXPECT_THAT(insert(1, "again"), FailsWith(Code::io)) << "a broken constraint is of no other kind";
  ASSERT_THAT(db_.execute("PRAGMA query_only=ON"), IsOk());
  EXPECT_THAT(insert(2, "two"), FailsWith(Code::state_unreadable));
  const Result<void> refused = db_.execute("nonsense");
  ASSERT_THAT(refused, FailsWith(Code::internal));
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr((dir_ / "state.db").native()));
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("syntax error"));
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

// A disk that takes no byte more, for as long as this lives.
class NoRoom {
 public:
  explicit NoRoom(rlim_t bytes = 0) {
    old_ = std::signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit none{bytes, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  }
  NoRoom(const NoRoom&) = delete;
  ~NoRoom() {
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before_), 0);
    std::signal(SIGXFSZ, old_);
  }

 private:
  rlimit before_{};
  void (*old_)(int) = nullptr;
};

class FailedCommit : public Opened {
 protected:
  // Whether the next read of db_ first commits something.
  bool settles() {
    const std::int64_t before = other_.data_version().value();
    EXPECT_THAT(db_.prepare("SELECT count(*) FROM t").next(), IsOk());
    return other_.data_version().value() != before;
  }
  Database other_ = Database::open(dir_ / "state.db").value();
};

TEST_F(FailedCommit, IsSettledByAnotherCommitBeforeAnythingIsRead) {
  {
    Transaction transaction = Transaction::begin(db_).value();
    ASSERT_THAT(insert(1, "one"), IsOk());
    const NoRoom none;
    ASSERT_THAT(transaction.commit(), FailsWith(Code::io));
  }
  EXPECT_FALSE(db_.in_transaction());
  EXPECT_TRUE(settles());
  EXPECT_FALSE(settles()) << "once is enough";
}

TEST_F(FailedCommit, KeepsReadersAndWritersOutUntilOneSucceeds) {
  ASSERT_THAT(db_.set_user_version(7), IsOk());
  {
    std::optional<Transaction> transaction = Transaction::begin(db_).value();
    ASSERT_THAT(insert(1, "one"), IsOk());
    const NoRoom none;
    ASSERT_THAT(transaction->commit(), FailsWith(Code::io));
    transaction.reset();
    for (int round = 0; round < 2; ++round) {
      EXPECT_THAT(db_.prepare("SELECT count(*) FROM t").next(), FailsWith(Code::io));
      EXPECT_THAT(Transaction::begin(db_), FailsWith(Code::io));
    }
  }
  {
    const std::int64_t before = other_.data_version().value();
    const Result<Transaction> next = Transaction::begin(db_);
    ASSERT_THAT(next, IsOk());
    EXPECT_NE(other_.data_version().value(), before) << "a transaction settles first, too";
  }
  EXPECT_FALSE(settles());
  EXPECT_EQ(count(), 0);
  EXPECT_EQ(db_.user_version().value(), 7) << "what is written stood there";
}

TEST_F(FailedCommit, OfAStatementAloneIsSettledToo) {
  {
    const NoRoom none;
    ASSERT_THAT(insert(1, "one"), FailsWith(Code::io));
  }
  EXPECT_TRUE(settles());
  ASSERT_THAT(insert(2, "two"), IsOk());
  EXPECT_FALSE(insert(2, "again"));
  EXPECT_FALSE(settles()) << "the disk had no part in this failure";
}

TEST_F(FailedCommit, ForALockIsTriedAgainAndLeavesNothingToSettle) {
  ASSERT_THAT(insert(1, "one"), IsOk());
  ASSERT_THAT(db_.execute("PRAGMA busy_timeout=1"), IsOk());
  Transaction transaction = Transaction::begin(db_).value();
  ASSERT_THAT(insert(2, "two"), IsOk());
  {
    Statement reader = other_.prepare("SELECT id FROM t");
    ASSERT_TRUE(reader.next().value());
    ASSERT_THAT(transaction.commit(), FailsWith(Code::state_in_use));
    EXPECT_TRUE(db_.in_transaction());
  }
  ASSERT_THAT(transaction.commit(), IsOk());
  EXPECT_FALSE(settles());
  EXPECT_EQ(count(), 2);
}

TEST_F(FailedCommit, OfAPartIsNoneOfTheWhole) {
  Transaction outer = Transaction::begin(db_).value();
  Transaction inner = Transaction::begin(db_).value();
  ASSERT_THAT(db_.execute("RELEASE inner_part"), IsOk());
  EXPECT_FALSE(inner.commit()) << "it is over";
  ASSERT_THAT(outer.commit(), IsOk());
  EXPECT_FALSE(settles());
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
  Statement check = copy.prepare("PRAGMA quick_check(1)");
  ASSERT_TRUE(check.next().value());
  EXPECT_EQ(check.text(0), "ok");
  Statement rows = copy.prepare("SELECT name FROM t");
  ASSERT_TRUE(rows.next().value());
  EXPECT_EQ(rows.text(0), "one");
}

TEST_F(Opened, SaysThatABackupFailed) {
  for (int i = 0; i < 20; ++i) ASSERT_THAT(insert(i, std::string(1000, 'x')), IsOk());
  {
    const NoRoom after{4096};
    const Result<void> failed = db_.back_up_to(dir_ / "copy.db");
    ASSERT_THAT(failed, FailsWith(Code::io));
    EXPECT_THAT(failed.error().message, ::testing::HasSubstr((dir_ / "copy.db").native()));
  }
  EXPECT_THAT(db_.back_up_to(dir_ / "no/such/folder/copy.db"), FailsWith(Code::not_found));
  EXPECT_EQ(count(), 20);
}

TEST_F(Opened, OpeningAgainLeavesWhatIsThere) {
  ASSERT_THAT(insert(1, "one"), IsOk());
  db_ = Database::open(dir_ / "state.db").value();
  EXPECT_EQ(count(), 1);
}

TEST(Database, AFileThatIsNoneIsStateUnreadable) {
  const TempDir dir;
  ASSERT_THAT(os::write_file_atomically(dir / "state.db", std::string(8192, 'x')), IsOk());
  EXPECT_THAT(Database::open(dir / "state.db"), FailsWith(Code::state_unreadable));
  EXPECT_THAT(Database::open(dir / "no/such/folder/state.db"), FailsWith(Code::not_found));
  const Result<Database> folder = Database::open(dir.path());
  ASSERT_THAT(folder, FailsWith(Code::state_unreadable));
  EXPECT_THAT(folder.error().message, ::testing::HasSubstr(dir.path().native()));
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
  Statement rows = db.prepare("SELECT sum(length(name)) FROM t");
  EXPECT_THAT(rows.next(), FailsWith(Code::state_unreadable));
}

TEST(Database, NamesTheEngineInUse) {
  Database db = Database::open(":memory:").value();
  Statement version = db.prepare("SELECT sqlite_version()");
  ASSERT_TRUE(version.next().value());
  EXPECT_EQ(version.text(0), sqlite_in_use());
}

TEST(Database, InMemoryNeedsNoFile) {
  Database db = Database::open(":memory:").value();
  EXPECT_THAT(db.execute("CREATE TABLE t(id INTEGER)"), IsOk());
  EXPECT_FALSE(os::exists(":memory:"));
}

}  // namespace
}  // namespace gridctl::db::database_test

// SPDX-License-Identifier: Apache-2.0
#include "db/database.hpp"

#include <fcntl.h>
#include <sqlite3.h>

#include <map>
#include <utility>

namespace gridctl::db {

namespace {

constexpr int k_busy_timeout_ms = 5000;  // as long as a command may wait for another's commit

Error sqlite_error(sqlite3* db, int code, const std::string& what) {
  const int primary = code & 0xFF;
  Code mapped = Code::io;
  if (primary == SQLITE_FULL) mapped = Code::no_space;
  if (primary == SQLITE_BUSY || primary == SQLITE_LOCKED) mapped = Code::state_in_use;
  if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB) mapped = Code::state_unreadable;
  if (primary == SQLITE_READONLY) mapped = Code::state_unreadable;
  if (primary == SQLITE_MISUSE || primary == SQLITE_RANGE || primary == SQLITE_ERROR) mapped = Code::internal;
  return make_error(mapped, what + ": " + (db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code)));
}

bool is_of_disk(int code) { return (code & 0xFF) == SQLITE_IOERR || (code & 0xFF) == SQLITE_FULL; }

}  // namespace

struct Database::Impl {
  sqlite3* db = nullptr;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements;
  std::string path;
  bool in_doubt = false;  // a commit failed

  ~Impl() {
    for (auto& [sql, statement] : statements) sqlite3_finalize(statement);
    sqlite3_close(db);
  }
};

Statement::Statement(sqlite3* db, sqlite3_stmt* statement, bool* in_doubt, Result<void> problem)
    : db_(db), statement_(statement), in_doubt_(in_doubt), problem_(std::move(problem)) {}

Statement::Statement(Statement&& other) noexcept
    : db_(other.db_),
      statement_(std::exchange(other.statement_, nullptr)),
      in_doubt_(other.in_doubt_),
      bound_(other.bound_),
      problem_(std::move(other.problem_)) {}

Statement::~Statement() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

namespace {
void keep_first(Result<void>& problem, sqlite3* db, int code) {
  if (code != SQLITE_OK && problem) problem = sqlite_error(db, code, "cannot bind a value");
}
}  // namespace

Statement& Statement::bind(std::int64_t value) {
  if (statement_ != nullptr) keep_first(problem_, db_, sqlite3_bind_int64(statement_, ++bound_, value));
  return *this;
}

Statement& Statement::bind(double value) {
  if (statement_ != nullptr) keep_first(problem_, db_, sqlite3_bind_double(statement_, ++bound_, value));
  return *this;
}

Statement& Statement::bind(std::string_view text) {
  if (statement_ != nullptr)
    keep_first(problem_, db_,
               sqlite3_bind_text64(statement_, ++bound_, text.data() != nullptr ? text.data() : "", text.size(),
                                   SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind_null() {
  if (statement_ != nullptr) keep_first(problem_, db_, sqlite3_bind_null(statement_, ++bound_));
  return *this;
}

Result<bool> Statement::next() {
  if (!problem_) return problem_.error();
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  // Outside of a transaction, the statement commits automatically.
  if (sqlite3_stmt_readonly(statement_) == 0 && is_of_disk(code)) *in_doubt_ = true;
  return sqlite_error(db_, code, "the state database refused a statement");
}

Result<void> Statement::run() {
  TRY(next());
  return {};
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }
double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }
bool Statement::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

std::string Statement::text(int column) const { return std::string(view(column)); }

std::string_view Statement::view(int column) const {
  const unsigned char* bytes = sqlite3_column_text(statement_, column);
  if (bytes == nullptr) return {};
  return {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

Result<Transaction> Transaction::begin(Database& db) {
  const bool inner = db.in_transaction();
  if (!inner) TRY(db.settle());
  TRY(db.execute(inner ? "SAVEPOINT inner_part" : "BEGIN IMMEDIATE"));
  return Transaction(db, inner);
}

Transaction::~Transaction() {
  // A rollback that fails (because the engine has already rolled back) leaves nothing to do.
  if (db_ != nullptr)
    static_cast<void>(db_->execute(inner_ ? "ROLLBACK TO inner_part; RELEASE inner_part" : "ROLLBACK"));
}

Result<void> Transaction::commit() {
  Database* db = db_;
  const Result<void> done = db->execute(inner_ ? "RELEASE inner_part" : "COMMIT");
  if (!done && !inner_ && done.error().code != Code::state_in_use) db->impl_->in_doubt = true;
  if (done) db_ = nullptr;
  return done;
}

Database::Database(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

Result<Database> Database::open(const os::Path& path) {
  const bool in_memory = path == ":memory:";
  // Creates the file with O_EXCL and never opens an existing one: closing a second descriptor would drop SQLite's POSIX
  // locks.
  if (!in_memory && !os::exists(path)) {
    const Result<os::Fd> made = os::open_file(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (!made && !os::exists(path)) return made.error();
  }
  return open_file(path, nullptr);
}

Result<Database> Database::open_on(const os::Path& path, const std::string& vfs) {
  return open_file(path, vfs.c_str());
}

Result<Database> Database::open_file(const os::Path& path, const char* vfs) {
  auto impl = std::make_unique<Impl>();
  impl->path = path.string();
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(impl->path.c_str(), &impl->db, flags, vfs);
  if (code != SQLITE_OK) {
    Error error = sqlite_error(impl->db, code, "cannot open " + impl->path);
    // With an open database, the cause is the journal, for lack of descriptors or memory, and passes.
    if ((code & 0xFF) == SQLITE_CANTOPEN) error.code = Code::state_unreadable;
    return error;
  }
  sqlite3_busy_timeout(impl->db, k_busy_timeout_ms);
  Database db(std::move(impl));
  TRY(
      db.execute("PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=EXTRA; PRAGMA foreign_keys=ON; "
                 "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA cache_size=-8192"));
  return db;
}

Result<void> Database::execute(const std::string& sql) {
  const int code = sqlite3_exec(impl_->db, sql.c_str(), nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) return {};
  return sqlite_error(impl_->db, code, "the state database " + impl_->path + " refused a statement");
}

Result<void> Database::settle() {
  if (!impl_->in_doubt || in_transaction()) return {};
  impl_->in_doubt = false;
  const auto write_something = [this]() -> Result<void> {
    TRY_ASSIGN(Transaction transaction, Transaction::begin(*this));
    TRY_ASSIGN(const std::int64_t version, user_version());
    TRY(set_user_version(version));  // writes the first page, whatever stands there
    return transaction.commit();
  };
  Result<void> settled = write_something();
  if (!settled) impl_->in_doubt = true;
  return settled;
}

Statement Database::prepare(std::string_view sql) {
  if (Result<void> settled = settle(); !settled) return Statement(impl_->db, nullptr, nullptr, std::move(settled));
  auto found = impl_->statements.find(sql);
  if (found == impl_->statements.end()) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(impl_->db, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                        &statement, nullptr);
    if (code != SQLITE_OK)
      return Statement(impl_->db, nullptr, nullptr, sqlite_error(impl_->db, code, "cannot prepare a statement"));
    found = impl_->statements.emplace(std::string(sql), statement).first;
  }
  if (sqlite3_stmt_busy(found->second) != 0)
    return Statement(impl_->db, nullptr, nullptr, make_error(Code::internal, "a statement is used inside itself"));
  return Statement(impl_->db, found->second, &impl_->in_doubt, {});
}

bool Database::in_transaction() const { return sqlite3_get_autocommit(impl_->db) == 0; }

std::int64_t Database::changes() const { return sqlite3_changes64(impl_->db); }

namespace {
Result<std::int64_t> pragma_integer(Database& db, std::string_view sql) {
  Statement statement = db.prepare(sql);
  TRY_ASSIGN(const bool row, statement.next());
  return row ? statement.integer(0) : 0;
}
}  // namespace

Result<std::int64_t> Database::data_version() { return pragma_integer(*this, "PRAGMA data_version"); }
Result<std::int64_t> Database::user_version() { return pragma_integer(*this, "PRAGMA user_version"); }

Result<void> Database::set_user_version(std::int64_t version) {
  return execute("PRAGMA user_version=" + std::to_string(version));
}

Result<void> Database::back_up_to(const os::Path& path) {
  TRY_ASSIGN(Database copy, Database::open(path));
  sqlite3_backup* backup = sqlite3_backup_init(copy.impl_->db, "main", impl_->db, "main");
  if (backup == nullptr) return sqlite_error(copy.impl_->db, sqlite3_errcode(copy.impl_->db), "cannot back up");
  sqlite3_backup_step(backup, -1);
  const int code = sqlite3_backup_finish(backup);
  if (code != SQLITE_OK) return sqlite_error(copy.impl_->db, code, "cannot back up to " + path.string());
  return {};
}

std::string sqlite_in_use() { return ::sqlite3_libversion(); }

}  // namespace gridctl::db

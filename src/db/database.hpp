// SPDX-License-Identifier: Apache-2.0
// Wraps SQLite thinly. Rollback journal (TRUNCATE), synchronous EXTRA: Debian 12's SQLite 3.40.1 is in the range of the
// WAL-reset corruption bug. Use one Database per thread. Errors: no_space (SQLITE_FULL), state_in_use (busy for over 5
// s), state_unreadable (corrupt, not a database), io.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.hpp"
#include "os/files.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace gridctl::db {

class Database;

// Represents a prepared statement in use. Binding and stepping continue until it is destroyed, which resets it for the
// next use. Bind errors are kept and returned by the next step.
class Statement {
 public:
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  // Binds the next parameter, in order.
  Statement& bind(std::int64_t value);
  Statement& bind(int value) { return bind(static_cast<std::int64_t>(value)); }
  Statement& bind(std::uint64_t value) { return bind(static_cast<std::int64_t>(value)); }
  Statement& bind(bool value) { return bind(static_cast<std::int64_t>(value)); }
  Statement& bind(double value);
  Statement& bind(std::string_view text);
  Statement& bind(const char* text) { return bind(std::string_view{text}); }
  Statement& bind(const std::string& text) { return bind(std::string_view{text}); }
  Statement& bind_null();
  template <class T>
  Statement& bind(const std::optional<T>& value) {
    return value ? bind(*value) : bind_null();
  }
  template <class... Values>
  requires(sizeof...(Values) > 1) Statement& bind(const Values&... values) {
    (bind(values), ...);
    return *this;
  }

  [[nodiscard]] Result<bool> next();  // true: a row is there
  [[nodiscard]] Result<void> run();   // for statements without rows
  // Gives `take` each remaining row; an error of `take` ends that.
  template <class Take>
  [[nodiscard]] Result<void> each(Take take) {
    for (;;) {
      TRY_ASSIGN(const bool row, next());
      if (!row) return {};
      if constexpr (std::is_void_v<decltype(take(*this))>) take(*this);
      else TRY(take(*this));
    }
  }
  // Returns the results of `read` for the remaining rows.
  template <class Read>
  [[nodiscard]] auto all(Read read) -> Result<std::vector<decltype(read(*this))>> {
    std::vector<decltype(read(*this))> rows;
    TRY(each([&](const Statement& row) { rows.push_back(read(row)); }));
    return rows;
  }

  // Read columns of the current row, from 0. REQUIRES: next() gave true.
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] std::uint64_t count(int column) const { return static_cast<std::uint64_t>(integer(column)); }
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::string_view view(int column) const;  // of a text; until the next step
  [[nodiscard]] bool is_null(int column) const;

 private:
  friend class Database;
  Statement(sqlite3* db, sqlite3_stmt* statement, bool* in_doubt, Result<void> problem);
  sqlite3* db_;
  sqlite3_stmt* statement_;
  bool* in_doubt_;
  int bound_ = 0;
  Result<void> problem_;
};

// Wraps BEGIN IMMEDIATE … COMMIT; rolls back unless committed. A transaction inside another is a part of it: it is
// undone alone, and committed with the outer one.
class Transaction {
 public:
  [[nodiscard]] static Result<Transaction> begin(Database& db);
  Transaction(Transaction&& other) noexcept : db_(other.db_), inner_(other.inner_) { other.db_ = nullptr; }
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  [[nodiscard]] Result<void> commit();

 private:
  Transaction(Database& db, bool inner) : db_(&db), inner_(inner) {}
  Database* db_;
  bool inner_;
};

// After a commit whose last sync failed, its changes may be seen although a power cut can still undo them. So the next
// transaction or statement first commits something else, which makes both durable, or fails.
class Database {
 public:
  // Opens the database, and creates it (0600) if it is missing. ":memory:" is a private one in memory.
  [[nodiscard]] static Result<Database> open(const os::Path& path);
  // Opens it on its own file system, registered with SQLite under this name: the simulator's, which forgets and fails.
  [[nodiscard]] static Result<Database> open_on(const os::Path& path, const std::string& vfs);
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  // Executes one or more statements without parameters or rows.
  [[nodiscard]] Result<void> execute(const std::string& sql);
  [[nodiscard]] bool in_transaction() const;
  // Returns a statement that is prepared once per text and kept. `sql` needs to outlive only the call.
  [[nodiscard]] Statement prepare(std::string_view sql);
  [[nodiscard]] std::int64_t changes() const;  // rows of the last INSERT, UPDATE or DELETE
  [[nodiscard]] Result<std::int64_t> data_version();  // changes when another connection commits
  [[nodiscard]] Result<std::int64_t> user_version();
  [[nodiscard]] Result<void> set_user_version(std::int64_t version);
  [[nodiscard]] Result<void> back_up_to(const os::Path& path);

 private:
  struct Impl;
  explicit Database(std::unique_ptr<Impl> impl);
  friend class Transaction;
  [[nodiscard]] static Result<Database> open_file(const os::Path& path, const char* vfs);
  [[nodiscard]] Result<void> settle();  // what is in doubt
  std::unique_ptr<Impl> impl_;
};

[[nodiscard]] std::string sqlite_in_use();  // "3.40.1": of the library that was loaded, not of the one built with

}  // namespace gridctl::db

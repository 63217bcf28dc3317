// SQLite with errors as exceptions and handles that close themselves.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace warmleg::store {

class Sqlite {
 public:
  Sqlite(const std::filesystem::path& file, bool create);

  void Exec(const char* sql);
  int64_t Integer(const char* sql);
  std::string Text(const char* sql);
  int64_t Changes() const { return sqlite3_changes(db_.get()); }
  // vt::InputError for a file that is no database or a corrupt one, else vt::EnvironmentError.
  [[noreturn]] void Fail(int code) const;
  sqlite3* get() const { return db_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
  };
  std::string file_;
  std::unique_ptr<sqlite3, Close> db_;
};

class Statement {
 public:
  Statement(Sqlite& db, const char* sql);

  // Parameters are numbered from 1, in the order of the calls.
  Statement& Bind(std::string_view text);
  Statement& Bind(int64_t value);
  Statement& Bind(const std::optional<double>& value);
  bool Step();  // false: done
  std::string Text(int column) const;
  int64_t Integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  std::optional<double> Real(int column) const;
  std::optional<std::string> MayText(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  Sqlite& db_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int next_ = 1;
};

// Takes the write lock at once, so that two writers queue instead of failing half-way; rolls back unless
// committed.
class Transaction {
 public:
  explicit Transaction(Sqlite& db) : db_(db) { db_.Exec("BEGIN IMMEDIATE"); }
  ~Transaction() {
    if (!done_) sqlite3_exec(db_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void Commit() {
    db_.Exec("COMMIT");
    done_ = true;
  }

 private:
  Sqlite& db_;
  bool done_ = false;
};

}  // namespace warmleg::store

#include "harness/store/sqlite.h"

#include <fmt/format.h>

#include "backend/vt/error.h"

namespace warmleg::store {

namespace {
constexpr int kBusyTimeoutMs = 30000;  // adding a folder of results on a slow disk takes seconds
}

Sqlite::Sqlite(const std::filesystem::path& file, bool create) : file_(file.string()) {
  sqlite3* db = nullptr;
  const int code =
      sqlite3_open_v2(file_.c_str(), &db, SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0), nullptr);
  db_.reset(db);
  if (code != SQLITE_OK) Fail(code);
  sqlite3_extended_result_codes(db, 0);
  sqlite3_busy_timeout(db, kBusyTimeoutMs);
}

void Sqlite::Fail(int code) const {
  const char* text = db_ ? sqlite3_errmsg(db_.get()) : sqlite3_errstr(code);
  code &= 0xff;
  if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
    throw vt::InputError(
        fmt::format("{}: not a history, or a corrupt one: {}; move it away and add the result files "
                    "again",
                    file_, text));
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
    throw vt::EnvironmentError(
        fmt::format("{}: another process has held it for {} s: {}", file_, kBusyTimeoutMs / 1000, text));
  throw vt::EnvironmentError(fmt::format("{}: {}", file_, text));
}

void Sqlite::Exec(const char* sql) {
  if (const int code = sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr); code != SQLITE_OK) Fail(code);
}

int64_t Sqlite::Integer(const char* sql) {
  Statement s(*this, sql);
  return s.Step() ? s.Integer(0) : 0;
}

std::string Sqlite::Text(const char* sql) {
  Statement s(*this, sql);
  return s.Step() ? s.Text(0) : "";
}

Statement::Statement(Sqlite& db, const char* sql) : db_(db) {
  sqlite3_stmt* s = nullptr;
  if (const int code = sqlite3_prepare_v2(db.get(), sql, -1, &s, nullptr); code != SQLITE_OK) db.Fail(code);
  statement_.reset(s);
}

Statement& Statement::Bind(std::string_view text) {
  const auto size = static_cast<int>(text.size());
  if (const int code = sqlite3_bind_text(statement_.get(), next_++, text.data(), size, SQLITE_TRANSIENT);
      code != SQLITE_OK)
    db_.Fail(code);
  return *this;
}

Statement& Statement::Bind(int64_t value) {
  if (const int code = sqlite3_bind_int64(statement_.get(), next_++, value); code != SQLITE_OK)
    db_.Fail(code);
  return *this;
}

Statement& Statement::Bind(const std::optional<double>& value) {
  const int code = value ? sqlite3_bind_double(statement_.get(), next_, *value)
                         : sqlite3_bind_null(statement_.get(), next_);
  ++next_;
  if (code != SQLITE_OK) db_.Fail(code);
  return *this;
}

bool Statement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) db_.Fail(code);
  return false;
}

std::string Statement::Text(int column) const { return MayText(column).value_or(""); }

std::optional<double> Statement::Real(int column) const {
  if (sqlite3_column_type(statement_.get(), column) == SQLITE_NULL) return std::nullopt;
  return sqlite3_column_double(statement_.get(), column);
}

std::optional<std::string> Statement::MayText(int column) const {
  if (sqlite3_column_type(statement_.get(), column) == SQLITE_NULL) return std::nullopt;
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column)));
}

}  // namespace warmleg::store

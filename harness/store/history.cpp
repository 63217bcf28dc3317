#include "harness/store/history.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <system_error>

#include "backend/vt/error.h"
#include "harness/judge/stats.h"
#include "harness/record/json.h"
#include "harness/store/sqlite.h"

namespace warmleg::store {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kApplicationId = 0x77726d6c;  // "wrml", in SQLite's file header

// Step i brings user_version i to i + 1. Never edit one that has shipped: append.
constexpr std::array<const char*, 2> kMigrations = {
    "CREATE TABLE results (sha256 TEXT PRIMARY KEY, file TEXT NOT NULL, added TEXT NOT NULL, created TEXT "
    "NOT NULL,"
    " name TEXT NOT NULL, verdict TEXT NOT NULL, complete INTEGER NOT NULL, rocm TEXT NOT NULL, board TEXT "
    "NOT NULL,"
    " git TEXT NOT NULL, workload TEXT NOT NULL, plain_tok_s REAL, drafting_tok_s REAL, prefill_tok_s REAL,"
    " measured TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX results_group ON results (name, workload, board, created);",
    "CREATE TABLE strikes (sha256 TEXT PRIMARY KEY REFERENCES results (sha256), reason TEXT NOT NULL,"
    " struck TEXT NOT NULL) WITHOUT ROWID;",
};

constexpr const char* kEntryColumns =
    "SELECT r.sha256, file, added, created, name, verdict, rocm, board, git, complete, plain_tok_s, "
    "drafting_tok_s,"
    " prefill_tok_s, reason FROM results r LEFT JOIN strikes s ON s.sha256 = r.sha256 ";

std::string Now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

std::string Field(const judge::Measured& m, const std::string& component, const std::string& field) {
  for (const judge::Component& c : m.components)
    if (c.name == component)
      if (const auto it = c.fields.find(field); it != c.fields.end()) return it->second;
  return "";
}

// What must agree before results of different days belong into one trend.
std::string Board(const judge::Measured& m) {
  const std::string gpu = Field(m, "board", "gpu.name");
  return gpu.empty() ? "cpu " + Field(m, "cpu", "cpu")
                     : fmt::format("{} {}", gpu, Field(m, "board", "gpu.gfx"));
}

std::optional<double> Rate(const judge::Measured& m, size_t endpoint) {
  const auto it = m.endpoints.find(judge::EndpointNames(m.drafting_arm)[endpoint]);
  if (it == m.endpoints.end()) return std::nullopt;
  std::vector<double> values;
  for (const auto& process : it->second.processes) values.push_back(process.value);
  return judge::GeometricMean(values).value;
}

HistoryEntry ToEntry(const Statement& s) {
  HistoryEntry e;
  e.sha256 = s.Text(0), e.file = s.Text(1), e.added = s.Text(2), e.created = s.Text(3), e.name = s.Text(4);
  e.verdict = s.Text(5), e.rocm = s.Text(6), e.board = s.Text(7), e.git = s.Text(8),
  e.complete = s.Integer(9) != 0;
  e.plain_tok_s = s.Real(10), e.drafting_tok_s = s.Real(11), e.prefill_tok_s = s.Real(12);
  e.struck = s.MayText(13);
  return e;
}

Sqlite Open(const fs::path& file, bool create) {
  std::error_code error;
  if (!create && !fs::exists(file, error))
    throw vt::InputError(fmt::format("{}: no such history; warmleg history add makes one", file.string()));
  if (create && file.has_parent_path()) fs::create_directories(file.parent_path(), error);
  return {file, create};
}

void Migrate(Sqlite& db, const std::string& file) {
  const auto newest = static_cast<int64_t>(kMigrations.size());
  const auto check = [&] {
    const int64_t version = db.Integer("PRAGMA user_version");
    const int64_t tables = db.Integer("SELECT count(*) FROM sqlite_master");
    if (tables > 0 && db.Integer("PRAGMA application_id") != kApplicationId)
      throw vt::InputError(fmt::format("{}: a database of another program, not a history", file));
    if (version > newest)
      throw vt::InputError(
          fmt::format("{}: written by a newer warmleg (version {}, this build knows {}); use that build",
                      file, version, newest));
    return version;
  };
  if (check() == newest) return;
  Transaction transaction(db);
  // Another process may have done it while this one waited for the lock.
  for (int64_t version = check(); version < newest; ++version) {
    db.Exec(kMigrations[static_cast<size_t>(version)]);
    db.Exec(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplicationId, version + 1)
                .c_str());
  }
  transaction.Commit();
}

}  // namespace

struct History::Impl {
  Sqlite db;
  std::string file;
};

History::History(const fs::path& file, bool create)
    : impl_(new Impl{.db = Open(file, create), .file = file.string()}) {
  Sqlite& db = impl_->db;
  if (const std::string state = db.Text("PRAGMA quick_check(1)"); state != "ok")
    throw vt::InputError(fmt::format("{}: a corrupt history: {}; move it away and add the result files again",
                                     impl_->file, state));
  Migrate(db, impl_->file);
  // In WAL mode NORMAL cannot corrupt; a power cut may lose the last adds, which adding again repairs.
  db.Exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
  db.Exec("PRAGMA foreign_keys = ON");
}

History::~History() = default;

bool History::Contains(const std::string& sha256) {
  Statement s(impl_->db, "SELECT 1 FROM results WHERE sha256 = ?");
  return s.Bind(sha256).Step();
}

bool History::Add(const judge::Measured& m) {
  Statement s(impl_->db,
              "INSERT INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
              " ON CONFLICT (sha256) DO NOTHING");
  s.Bind(m.sha256).Bind(m.file).Bind(Now()).Bind(m.created).Bind(m.name);
  s.Bind(record::Name(m.verdict)).Bind(static_cast<int64_t>(m.complete));
  s.Bind(Field(m, "rocm", "rocm.loaded")).Bind(Board(m)).Bind(Field(m, "warmleg", "git"));
  s.Bind(m.workload.dump()).Bind(Rate(m, 0)).Bind(Rate(m, 1)).Bind(Rate(m, 2));
  s.Bind(judge::ToJson(m).dump());
  s.Step();
  return impl_->db.Changes() == 1;
}

HistoryEntry History::Find(const std::string& key) {
  constexpr size_t kShortest = 8;
  const std::string sql = std::string(kEntryColumns) +
                          "WHERE r.sha256 = ?1 OR file = ?1 OR (length(?1) >= ?2 AND " +
                          "substr(r.sha256, 1, length(?1)) = ?1) LIMIT 2";
  Statement s(impl_->db, sql.c_str());
  s.Bind(key).Bind(static_cast<int64_t>(kShortest));
  if (!s.Step())
    throw vt::InputError(fmt::format("{}: no entry has this hash or file; see warmleg history list", key));
  HistoryEntry entry = ToEntry(s);
  if (s.Step()) throw vt::InputError(fmt::format("{}: several entries match; give more of the hash", key));
  return entry;
}

void History::Strike(const std::string& key, const std::string& reason) {
  Transaction transaction(impl_->db);
  const HistoryEntry entry = Find(key);
  if (entry.struck)
    throw vt::InputError(fmt::format("{}: struck already: {}", entry.sha256.substr(0, 12), *entry.struck));
  Statement s(impl_->db, "INSERT INTO strikes VALUES (?, ?, ?)");
  s.Bind(entry.sha256).Bind(reason).Bind(Now()).Step();
  transaction.Commit();
}

void History::ForEach(const std::function<void(const HistoryEntry&)>& take) {
  Statement s(impl_->db, (std::string(kEntryColumns) + "ORDER BY created, r.sha256").c_str());
  while (s.Step()) take(ToEntry(s));
}

void History::ForEachGroup(const std::function<void(std::vector<judge::Measured>)>& take) {
  Statement s(
      impl_->db,
      "SELECT name || char(10) || workload || char(10) || board, measured FROM results"
      " WHERE sha256 NOT IN (SELECT sha256 FROM strikes) ORDER BY name, workload, board, created, sha256");
  std::string current;
  std::vector<judge::Measured> group;
  while (s.Step()) {
    if (std::string key = s.Text(0); key != current) {
      if (!group.empty()) take(std::move(group));
      group.clear();
      current = std::move(key);
    }
    group.push_back(judge::MeasuredFromJson(record::Json::parse(s.Text(1))));
  }
  if (!group.empty()) take(std::move(group));
}

}  // namespace warmleg::store

// Result files on disk: a strict reader and an atomic writer.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "harness/record/result.h"
#include "harness/record/watch.h"

namespace warmleg::store {

// vt::InputError, one line: not there, torn, not JSON, a key twice, NaN or 1e999 (with the line), schema
// missing, of another kind or newer, and every wrong field at once. A UTF-8 byte order mark is accepted and
// dropped.
record::Result ReadResult(const std::filesystem::path& file);

// Whether its head names the schema warmleg.watch; false also for what cannot be read.
bool IsWatch(const std::filesystem::path& file);
// As ReadResult, for what `warmleg watch` wrote.
record::Watch ReadWatch(const std::filesystem::path& file);

// Writes the whole file or leaves what was there: a temporary file of its own name in the same folder, fsync,
// rename, fsync of the folder. `force` false: an existing file is refused (vt::InputError) before and at the
// rename. Everything the system refuses (full disk, read-only, target is a folder) is a vt::EnvironmentError,
// and no temporary file stays.
void WriteAtomically(const std::filesystem::path& file, std::string_view bytes, bool force);

void WriteResult(const std::filesystem::path& file, const record::Result& result, bool force);

// SHA-256 of the file's bytes, in hex. vt::InputError when it cannot be read.
std::string FileSha256(const std::filesystem::path& file);

// The file's bytes. vt::InputError when it cannot be read.
std::string ReadBytes(const std::filesystem::path& file);

}  // namespace warmleg::store

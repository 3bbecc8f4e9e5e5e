// SPDX-License-Identifier: Apache-2.0
#include "vfs.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace gridctl::sim {

namespace {

constexpr std::size_t k_sector = 512;
constexpr double k_error_rate = 0.02;  // of single calls while there is trouble

struct Handle {
  sqlite3_file base;
  FaultyDisk* disk;
  FaultyDisk::File* file;
};

Handle& handle(sqlite3_file* file) { return *reinterpret_cast<Handle*>(file); }
FaultyDisk& disk_of(sqlite3_vfs* vfs) { return *static_cast<FaultyDisk*>(vfs->pAppData); }

int x_close(sqlite3_file*) { return SQLITE_OK; }

int x_read(sqlite3_file* file, void* into, int count, sqlite3_int64 offset) {
  Handle& mine = handle(file);
  if (!mine.disk->readable()) return SQLITE_IOERR_READ;
  const std::string& data = mine.file->now;
  const auto from = static_cast<std::size_t>(offset), want = static_cast<std::size_t>(count);
  const std::size_t have = from < data.size() ? std::min(want, data.size() - from) : 0;
  std::memcpy(into, data.data() + (have > 0 ? from : 0), have);
  if (have == want) return SQLITE_OK;
  std::memset(static_cast<char*>(into) + have, 0, want - have);
  return SQLITE_IOERR_SHORT_READ;
}

int x_write(sqlite3_file* file, const void* from, int count, sqlite3_int64 offset) {
  Handle& mine = handle(file);
  if (mine.disk->is_full()) return SQLITE_FULL;
  const std::string bytes(static_cast<const char*>(from), static_cast<std::size_t>(count));
  return mine.disk->change(*mine.file, {static_cast<std::uint64_t>(offset), bytes, false}) ? SQLITE_OK
                                                                                           : SQLITE_IOERR_WRITE;
}

int x_truncate(sqlite3_file* file, sqlite3_int64 size) {
  Handle& mine = handle(file);
  return mine.disk->change(*mine.file, {static_cast<std::uint64_t>(size), {}, true}) ? SQLITE_OK
                                                                                     : SQLITE_IOERR_TRUNCATE;
}

int x_sync(sqlite3_file* file, int) {
  return handle(file).disk->sync(*handle(file).file) ? SQLITE_OK : SQLITE_IOERR_FSYNC;
}

int x_size(sqlite3_file* file, sqlite3_int64* size) {
  *size = static_cast<sqlite3_int64>(handle(file).file->now.size());
  return SQLITE_OK;
}

int x_lock(sqlite3_file*, int) { return SQLITE_OK; }
int x_reserved(sqlite3_file*, int* held) { return *held = 0, SQLITE_OK; }
int x_control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int x_sector(sqlite3_file*) { return static_cast<int>(k_sector); }
int x_character(sqlite3_file*) { return 0; }

const sqlite3_io_methods k_methods{1,       x_close, x_read,     x_write,   x_truncate, x_sync,      x_size,
                                   x_lock,  x_lock,  x_reserved, x_control, x_sector,   x_character, nullptr,
                                   nullptr, nullptr, nullptr,    nullptr,   nullptr};

int x_open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  FaultyDisk& disk = disk_of(vfs);
  file->pMethods = nullptr;
  if (!disk.readable()) return SQLITE_CANTOPEN;
  const std::string path = name == nullptr ? "/temporary" : name;
  auto found = disk.files.find(path);
  if (found == disk.files.end() || !found->second.there) {
    if ((flags & SQLITE_OPEN_CREATE) == 0 || !disk.alive()) return SQLITE_CANTOPEN;
    found = disk.files.try_emplace(path).first;
    found->second.there = true;
    found->second.now.clear();
  }
  handle(file).disk = &disk;
  handle(file).file = &found->second;
  file->pMethods = &k_methods;
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}

int x_delete(sqlite3_vfs* vfs, const char* name, int sync_directory) {
  FaultyDisk& disk = disk_of(vfs);
  const auto found = disk.files.find(name);
  if (found == disk.files.end() || !found->second.there) return SQLITE_IOERR_DELETE_NOENT;
  if (!disk.alive()) return SQLITE_IOERR_DELETE;
  found->second.there = false;
  if (sync_directory != 0) found->second.there_synced = false;
  return SQLITE_OK;
}

int x_access(sqlite3_vfs* vfs, const char* name, int, int* result) {
  FaultyDisk& disk = disk_of(vfs);
  const auto found = disk.files.find(name);
  *result = found != disk.files.end() && found->second.there ? 1 : 0;
  return SQLITE_OK;
}

int x_full_path(sqlite3_vfs*, const char* name, int room, char* out) {
  sqlite3_snprintf(room, out, "%s", name);
  return SQLITE_OK;
}

int x_randomness(sqlite3_vfs* vfs, int count, char* out) {
  for (int i = 0; i < count; ++i) out[i] = static_cast<char>(disk_of(vfs).random().below(256));
  return count;
}

int x_sleep(sqlite3_vfs*, int microseconds) { return microseconds; }
int x_time(sqlite3_vfs*, double* days) { return *days = 2461000.5, SQLITE_OK; }
int x_last_error(sqlite3_vfs*, int, char*) { return 0; }

}  // namespace

FaultyDisk::FaultyDisk(Random& random) : random_(random), vfs_(std::make_unique<sqlite3_vfs>()) {
  static std::uint64_t next = 0;
  name_ = "gridctl-sim-" + std::to_string(next++);
  *vfs_ = {};
  vfs_->iVersion = 1;
  vfs_->szOsFile = sizeof(Handle);
  vfs_->mxPathname = 256;
  vfs_->zName = name_.c_str();
  vfs_->pAppData = this;
  vfs_->xOpen = x_open;
  vfs_->xDelete = x_delete;
  vfs_->xAccess = x_access;
  vfs_->xFullPathname = x_full_path;
  vfs_->xRandomness = x_randomness;
  vfs_->xSleep = x_sleep;
  vfs_->xCurrentTime = x_time;
  vfs_->xGetLastError = x_last_error;
  sqlite3_vfs_register(vfs_.get(), 0);
}

FaultyDisk::~FaultyDisk() { sqlite3_vfs_unregister(vfs_.get()); }

bool FaultyDisk::readable() const { return !killed_ && !(errors_ && random_.chance(k_error_rate)); }

bool FaultyDisk::alive() {
  ++calls_;
  if (killed_) return false;
  if (kill_after_ > 0 && --kill_after_ == 0) killed_ = true;
  return !killed_ && !(errors_ && random_.chance(k_error_rate));
}

bool FaultyDisk::change(File& file, Change change) {
  const bool was_alive = !killed_;
  const bool done = alive();
  // Whoever is killed inside a write leaves a part of it.
  if (!done && !(was_alive && killed_)) return false;
  if (!done && !change.truncates) change.bytes.resize(random_.below(change.bytes.size() + 1));
  if (change.truncates) {
    file.now.resize(std::min<std::size_t>(file.now.size(), change.offset));
  } else {
    if (file.now.size() < change.offset + change.bytes.size()) file.now.resize(change.offset + change.bytes.size());
    std::copy(change.bytes.begin(), change.bytes.end(), file.now.begin() + static_cast<std::ptrdiff_t>(change.offset));
  }
  file.changes.push_back(std::move(change));
  return done;
}

bool FaultyDisk::sync(File& file) {
  if (!alive()) return false;
  file.synced = file.now;
  file.changes.clear();
  file.there_synced = file.there;  // file systems that sync a file keep its name too
  return true;
}

std::string FaultyDisk::damage(const std::string& path) {
  const bool errors = std::exchange(errors_, false);
  std::string found;
  sqlite3* db = nullptr;
  sqlite3_stmt* look = nullptr;
  int code = sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE, name_.c_str());
  if (code == SQLITE_OK) code = sqlite3_prepare_v2(db, "PRAGMA integrity_check(1)", -1, &look, nullptr);
  if (code == SQLITE_OK) code = sqlite3_step(look);
  if (code == SQLITE_ROW) found = reinterpret_cast<const char*>(sqlite3_column_text(look, 0));
  else if (code != SQLITE_OK && code != SQLITE_DONE) found = sqlite3_errstr(code);
  sqlite3_finalize(look);
  sqlite3_close(db);
  errors_ = errors;
  return found == "ok" ? "" : found;
}

void FaultyDisk::lose_power() {
  for (auto& [path, file] : files) {
    std::string disk = file.synced;
    for (const Change& change : file.changes) {
      if (change.truncates) {
        if (random_.chance(0.5)) disk.resize(std::min<std::size_t>(disk.size(), change.offset));
        continue;
      }
      for (std::size_t at = 0; at < change.bytes.size();) {
        const std::size_t to_sector = k_sector - (change.offset + at) % k_sector;
        std::size_t piece = std::min(to_sector, change.bytes.size() - at);
        const std::size_t step = piece;
        if (random_.chance(0.1)) piece = random_.below(piece + 1);  // torn
        if (random_.chance(0.5)) {
          const std::size_t begin = change.offset + at;
          if (disk.size() < begin + piece) disk.resize(begin + piece);
          std::copy_n(change.bytes.begin() + static_cast<std::ptrdiff_t>(at), piece,
                      disk.begin() + static_cast<std::ptrdiff_t>(begin));
        }
        at += step;
      }
    }
    if (file.there != file.there_synced) file.there = random_.chance(0.5);
    file.there_synced = file.there;
    file.now = file.synced = file.there ? disk : std::string{};
    file.changes.clear();
  }
}

}  // namespace gridctl::sim

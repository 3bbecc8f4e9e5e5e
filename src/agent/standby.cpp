// SPDX-License-Identifier: Apache-2.0
#include "agent/standby.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <optional>

#include "agent/attempt_dir.hpp"
#include "agent/guest_disk.hpp"
#include "agent/owner_terms.hpp"
#include "crypto/sha256.hpp"
#include "os/entries.hpp"
#include "os/files.hpp"
#include "os/process.hpp"
#include "store/materialise.hpp"

namespace gridctl::agent {

namespace {

constexpr std::uint64_t k_spare_bytes = 1ull << 30;  // left free beside twice the checkpoint
constexpr const char* k_draft = ".draft-";           // then the process that makes it

Path tree_of(const Path& standby) { return standby / "tree"; }
Path ready_file(const Path& standby) { return standby / "ready"; }

// Hashes everything that a change of a file, its name or its mode would change; reads no content. The kernel sets a
// ctime.
Result<void> add_stamps(int directory, const std::string& prefix, crypto::Sha256& into) {
  TRY_ASSIGN(const std::vector<std::string> names, os::list_directory(directory));
  for (const std::string& name : names) {
    TRY_ASSIGN(const std::optional<os::FileStatus> status, os::status_at(directory, name));
    if (!status) return make_error(Code::io, prefix + name + " vanished");
    std::string line = prefix + name;
    line.push_back('\0');
    for (const std::uint64_t part :
         {static_cast<std::uint64_t>(status->kind), std::uint64_t{status->mode}, status->size,
          static_cast<std::uint64_t>(status->mtime_ns), static_cast<std::uint64_t>(status->ctime_ns), status->inode})
      line += std::to_string(part) + " ";
    into.update(as_bytes(line));
    if (status->kind != os::FileKind::directory) continue;
    TRY_ASSIGN(const os::Fd below, os::open_beneath(directory, name, O_RDONLY | O_DIRECTORY));
    TRY(add_stamps(below.get(), prefix + name + "/", into));
  }
  return {};
}

// Returns the content of `ready` for a complete tree with that root, as it was left in this boot.
Result<std::string> ready_text(const Path& standby, const Digest& root) {
  TRY_ASSIGN(const os::Fd tree, os::open_file(tree_of(standby), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  crypto::Sha256 stamps;
  TRY(add_stamps(tree.get(), "", stamps));
  return "root " + to_hex(root) + "\nboot " + os::boot_id() + "\nstamps " + to_hex(stamps.finish()) + "\n";
}

bool is_ready(const Path& standby, const Digest& root) {
  const Result<std::string> said = os::read_file(ready_file(standby), 4096);
  if (!said) return false;
  const Result<std::string> is = ready_text(standby, root);
  return is && *is == *said;
}

}  // namespace

Standby::Standby(Path home, ControllerId controller)
    : all_(std::move(home) / "standby"), controller_(std::move(controller)) {}

Result<Path> Standby::folder(const JobId& job) const {
  TRY(check_component("the job id", job.value));
  return all_ / (controller_.value + "." + job.value);
}

Result<void> Standby::make(const JobId& job, const Digest& root, store::ChunkReader& chunks) {
  TRY_ASSIGN(const Path mine, folder(job));
  if (is_ready(mine, root)) {
    TRY(os::touch_file(ready_file(mine)));
    return {};
  }
  TRY(os::make_directories(all_));
  TRY_ASSIGN(const Bytes manifest, chunks.read(root));
  TRY_ASSIGN(const store::Tree tree, store::parse_manifest(manifest));
  TRY(drop(job));  // its place may be what the new one needs
  TRY_ASSIGN(const std::uint64_t free, os::free_bytes(all_));
  const std::uint64_t bytes = tree.total_bytes();
  if (free < k_spare_bytes || (free - k_spare_bytes) / 2 < bytes)
    return make_error(Code::no_space, "keeping " + format_size(bytes) + " ready would leave too little of the " +
                                          format_size(free) + " of free space");
  const Path draft = mine.string() + k_draft + std::to_string(::getpid());
  TRY(os::remove_tree(draft));
  TRY(os::make_directories(draft));
  TRY_ASSIGN(const std::optional<os::DirectoryLock> lock, os::DirectoryLock::try_acquire(draft));
  if (!lock) return make_error(Code::busy, "another process is already keeping this job's checkpoint ready");
  const auto fill = [&]() -> Result<void> {
    store::MaterialiseOptions options;
    options.room = [this](std::uint64_t more) { return room_for(more); };
    TRY(store::materialise(tree, chunks, tree_of(draft), options).context("while making a checkpoint ready"));
    TRY_ASSIGN(const std::string text, ready_text(draft, root));
    TRY(os::write_file_atomically(ready_file(draft), text));
    return os::rename_path(draft, mine);
  };
  Result<void> filled = fill();
  if (!filled) (void)os::remove_tree(draft);
  return filled;
}

// A tree may name one chunk a million times: what its chunks took when they came says nothing of what it takes as files.
Result<void> Standby::room_for(std::uint64_t more) const {
  const Path home = all_.parent_path();
  TRY_ASSIGN(const auto owner, owner_terms(home, controller_));
  return owner ? room_for_guest(home, owner->terms, more) : Result<void>{};
}

Result<void> Standby::drop(const JobId& job) {
  TRY_ASSIGN(const Path mine, folder(job));
  return os::remove_tree(mine);
}

Result<bool> Standby::take(const JobId& job, const Digest& root, const Path& scratch, const Path& into) {
  TRY_ASSIGN(const Path mine, folder(job));
  if (!os::exists(mine)) return false;
  TRY(os::remove_tree(scratch));
  TRY(os::rename_path(mine, scratch));  // from now on nobody else's
  bool taken = false;
  if (is_ready(scratch, root)) taken = os::rename_path(tree_of(scratch), into).has_value();
  TRY(os::remove_tree(scratch));
  return taken;
}

void Standby::sweep(WallTime now) {
  const Result<std::vector<std::string>> names = os::list_directory(all_);
  if (!names) return;
  for (const std::string& name : *names) {
    const Path standby = all_ / name;
    if (name.find(k_draft) != std::string::npos) {
      const auto lock = os::DirectoryLock::try_acquire(standby);
      if (lock && *lock) (void)os::remove_tree(standby);
      continue;
    }
    const auto ready = os::status_of(ready_file(standby));
    const std::int64_t life_ns = std::chrono::nanoseconds{k_standby_life}.count();
    if (ready && (!*ready || (*ready)->mtime_ns < now.ms * 1'000'000 - life_ns)) (void)os::remove_tree(standby);
  }
}

}  // namespace gridctl::agent

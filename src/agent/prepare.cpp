// SPDX-License-Identifier: Apache-2.0
#include "agent/prepare.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <span>

#include "agent/foreign_files.hpp"
#include "agent/guest_disk.hpp"
#include "agent/outside.hpp"
#include "agent/owner_terms.hpp"
#include "agent/own_snapshots.hpp"
#include "agent/standby.hpp"
#include "base/bytes.hpp"
#include "base/text.hpp"
#include "os/entries.hpp"
#include "store/chunk_store.hpp"
#include "store/file_workers.hpp"
#include "store/materialise.hpp"

namespace gridctl::agent {
namespace {

constexpr std::uint64_t k_links_bytes_max = 1u << 20;
constexpr std::size_t k_home_names_max = 4096;  // shown of one folder of the user's home

Path cache_of(const AttemptDir& attempt) { return attempt.agent_home() / "cache"; }
Path links_file(const AttemptDir& attempt) { return attempt.path / "links"; }

Result<store::Tree> load_tree(store::ChunkReader& cache, const Digest& root, const std::string& what) {
  auto manifest = cache.read(root);
  if (!manifest) return std::move(manifest).error().with_context("while reading the tree of " + what);
  return store::parse_manifest(*manifest);
}

// One chunk may appear in a foreign tree a million times: such a tree is refused before the host's disk is full.
// Snapshots of other jobs, kept for their next attempts, are removed first.
std::function<Result<void>(std::uint64_t)> room_in(const Path& folder, const AttemptDir& attempt) {
  return [there = folder.parent_path(), attempt](std::uint64_t more) -> Result<void> {
    TRY_ASSIGN(const auto owner, owner_terms(attempt.agent_home(), attempt.controller()));
    if (owner) TRY(room_for_guest(attempt.agent_home(), owner->terms, more));
    TRY_ASSIGN(std::uint64_t free, os::free_bytes(there));
    if (more <= free) return {};
    OwnSnapshots(attempt.agent_home(), attempt.controller()).make_room(more, attempt.job());
    TRY_ASSIGN(free, os::free_bytes(there));
    if (more <= free) return {};
    return make_error(Code::no_space, "it takes " + format_size(more) + ", and " + format_size(free) + " are free");
  };
}

class Preparation {
 public:
  Preparation(const AttemptDir& attempt, const wire::AttemptSpec& spec, store::ChunkStore cache)
      : attempt_(attempt), spec_(spec), view_(view_of(attempt, spec, 1)), cache_(std::move(cache)) {}

  Result<Prepared> run(const std::function<void(const std::string&)>& doing) {
    doing("workdir");
    TRY(clear());
    TRY(fill_work());
    for (std::size_t i = 0; i < spec_.mounts.size(); ++i) TRY(mount(spec_.mounts[i], i));
    if (!container() && has_own_home(spec_)) show_home();
    if (spec_.restore) doing("restore");
    TRY(restore());
    if (spec_.image_archive && container()) TRY(unpack_image());
    if (spec_.engine == EngineKind::podman && spec_.root_writable) TRY(give_own_tmp());
    return std::move(prepared_);
  }

 private:
  [[nodiscard]] bool container() const { return spec_.engine != EngineKind::process; }

  Result<void> clear() {
    remove_links(attempt_);
    for (const Path& folder : {attempt_.work(), attempt_.mounts(), attempt_.checkpoints(), attempt_.home()})
      TRY(remove_job_files(folder));
    for (const Path& folder : {attempt_.work(), attempt_.mounts(), attempt_.checkpoints(), attempt_.home()})
      TRY(os::make_directories(folder));
    return {};
  }

  Result<void> fill(const Digest& root, const Path& folder, const std::string& what) {
    TRY_ASSIGN(const store::Tree tree, load_tree(cache_, root, what));
    store::MaterialiseOptions options;
    options.links_stay_inside = false;
    options.room = room_in(folder, attempt_);
    options.threads = store::threads_here();
    return store::materialise(tree, cache_, folder, options).context("while filling " + what);
  }

  Result<void> fill_work() {
    if (!spec_.workdir) return {};
    return fill(*spec_.workdir, attempt_.work(), "the working directory");
  }

  Result<void> mount(const wire::TreeRef& wanted, std::size_t index) {
    std::string target = wanted.target;
    const bool at_home = target.starts_with("~/");
    if (at_home && container()) target = view_.home.string() + target.substr(1);
    const bool absolute = target[0] == '/';
    const Path folder = attempt_.mounts() / std::to_string(index);
    TRY(fill(wanted.root, folder, "the mount " + sanitize(target)));
    TRY_ASSIGN(const Path source, mounted_part(folder, target));
    while (target.size() > 1 && target.ends_with('/')) target.pop_back();
    if (at_home && !container()) return move_into(attempt_.home(), source, target.substr(2), "home");
    if (!absolute) return move_into(attempt_.work(), source, target, "working directory");
    if (container()) {
      prepared_.binds.push_back({source, target, false});
      return {};
    }
    return link(target, source);
  }

  // Returns the folder, or the single file in it that is named as the target.
  [[nodiscard]] static Result<Path> mounted_part(const Path& folder, const std::string& target) {
    if (target.ends_with('/')) return folder;
    TRY_ASSIGN(const auto names, os::list_directory(folder));
    const std::string last = Path(target).filename().string();
    if (names.size() != 1 || names[0] != last) return folder;
    TRY_ASSIGN(const auto status, os::status_of(folder / last));
    return status && status->kind == os::FileKind::regular ? folder / last : folder;
  }

  static Result<void> move_into(const Path& folder, const Path& source, const std::string& target, const char* what) {
    TRY_ASSIGN(const os::Fd base, os::open_file(folder, O_RDONLY | O_DIRECTORY));
    const Path relative = Path(target).lexically_normal();
    os::Fd parent;
    if (relative.has_parent_path()) {
      TRY(os::make_directories_beneath(base.get(), relative.parent_path().string(), 0755));
      TRY_ASSIGN(parent, os::open_beneath(base.get(), relative.parent_path().string(), O_RDONLY | O_DIRECTORY));
    }
    const int at = parent.valid() ? parent.get() : base.get();
    if (::renameat(AT_FDCWD, source.c_str(), at, relative.filename().c_str()) != 0)
      return errno_error(errno, "cannot put the mount " + sanitize(target) + " into the " + what);
    return {};
  }

  // Other files of the user's home appear in the job's own home as links, beside the mounts.
  void show_home() {
    std::set<Path> folders;
    for (const wire::TreeRef& one : spec_.mounts)
      if (one.target.starts_with("~/"))
        for (Path part = Path(one.target.substr(2)).parent_path();; part = part.parent_path()) {
          folders.insert(part);
          if (part.empty()) break;
        }
    for (const Path& folder : folders)
      if (const auto names = os::list_directory(os::home_directory() / folder))
        for (const std::string& name : std::span(*names).first(std::min(names->size(), k_home_names_max)))
          (void)::symlink((os::home_directory() / folder / name).c_str(), (attempt_.home() / folder / name).c_str());
  }

  // A plain process sees the host's own file system: an absolute path becomes a link, if nothing is there.
  Result<void> link(const std::string& at, const Path& to) {
    TRY(check_link_outside(at, attempt_.agent_home()));  // the reason that also holds on other hosts is told first
    if (os::exists(at))
      return make_error(Code::refused, at + " exists on this host, so a plain process cannot use that path");
    std::string known;
    if (auto text = os::read_file(links_file(attempt_), k_links_bytes_max)) known = *text;
    TRY(os::write_file_atomically(links_file(attempt_), known + at + "\n"));  // first, so that it is never left behind
    return make_link_outside(at, to, attempt_.agent_home());
  }

  Result<void> restore() {
    const bool elsewhere = !spec_.checkpoint_path.empty() && view_.checkpoint_base == attempt_.path;
    if (spec_.restore) {
      TRY_ASSIGN(const os::Fd base, os::open_file(view_.checkpoint_base, O_RDONLY | O_DIRECTORY));
      const Path relative = view_.checkpoint_relative;
      if (relative.has_parent_path())
        TRY(os::make_directories_beneath(base.get(), relative.parent_path().string(), 0755));
      const Path folder = view_.checkpoint_base / relative;
      // The parents were just made or checked not to be links, and no process of the job exists yet.
      TRY(os::remove_tree(folder));
      TRY(fill_checkpoint(folder).context("while restoring " + sanitize(spec_.restore_name)));
    }
    if (spec_.checkpoint_late && !spec_.restore && view_.checkpoint_base == attempt_.work()) return {};
    TRY_ASSIGN(const os::Fd made, open_checkpoint_directory(view_, true));
    if (!elsewhere) {
      if (container() && view_.checkpoint_base == attempt_.path)
        prepared_.binds.push_back({attempt_.checkpoints(), "/ckpt", false});
      return {};
    }
    if (!container()) return link(spec_.checkpoint_path, attempt_.checkpoints());
    prepared_.binds.push_back({attempt_.checkpoints(), spec_.checkpoint_path, false});
    return {};
  }

  Result<void> fill_checkpoint(const Path& folder) {
    Standby standby(attempt_.agent_home(), attempt_.controller());
    const Result<bool> was_ready = standby.take(attempt_.job(), *spec_.restore, attempt_.path / "standby", folder);
    if (was_ready && *was_ready) return {};
    TRY_ASSIGN(const store::Tree tree, load_tree(cache_, *spec_.restore, "the checkpoint"));
    const OwnSnapshots snapshots(attempt_.agent_home(), attempt_.controller());
    TRY_ASSIGN(store::FileChunks own, snapshots.chunks_of(attempt_.job()));
    store::EitherReader chunks(own, cache_);
    store::MaterialiseOptions options;
    options.threads = store::threads_here();  // nothing of the job runs yet
    options.room = room_in(folder, attempt_);
    options.share = [&own](const store::Entry& entry, int fd) { return own.share(entry, fd); };
    const Result<void> filled = store::materialise(tree, chunks, folder, options);
    // The next attempt is sent what turned out to be damaged here.
    if (!filled && (filled.error().code == Code::checkpoint_damaged || filled.error().code == Code::not_found))
      snapshots.distrust(attempt_.job());
    return filled;
  }

  Result<void> unpack_image() {
    const Path folder = attempt_.path / "image";
    TRY(os::remove_tree(folder));
    TRY(fill(*spec_.image_archive, folder, "the image archive"));
    TRY_ASSIGN(const auto names, os::list_directory(folder));
    if (names.size() != 1)
      return make_error(Code::refused, "the image archive's tree does not contain exactly one file");
    prepared_.image_archive = folder / names[0];
    return {};
  }

  // An image in a store that users share belongs to users unknown to a rootless container: nobody can create a file in
  // its /tmp. The job gets its own folder there, on the host's disk.
  Result<void> give_own_tmp() {
    const Path tmp("/tmp");
    for (const wire::TreeRef& mount : spec_.mounts)
      if (Path(mount.target).lexically_normal() == tmp) return {};
    const Path folder = attempt_.home() / ".tmp";
    TRY(os::make_directories(folder));
    if (::chmod(folder.c_str(), 01777) != 0)
      return errno_error(errno, "cannot open " + folder.string() + " to all users");
    prepared_.binds.push_back({folder, tmp.string(), false});
    return {};
  }

  const AttemptDir& attempt_;
  const wire::AttemptSpec& spec_;
  JobView view_;
  store::ChunkStore cache_;
  Prepared prepared_;
};

}  // namespace

Result<Prepared> prepare_folders(const AttemptDir& attempt, const wire::AttemptSpec& spec,
                                 const std::function<void(const std::string&)>& doing) {
  TRY_ASSIGN(store::ChunkStore cache, store::ChunkStore::open(cache_of(attempt)));
  return Preparation(attempt, spec, std::move(cache)).run(doing);
}

void remove_links(const AttemptDir& attempt) {
  const auto text = os::read_file(links_file(attempt), k_links_bytes_max);
  if (!text) return;
  for (const std::string& line : split_lines(*text)) {
    std::error_code failed;
    const Path to = std::filesystem::read_symlink(line, failed);
    if (!failed && to.string().starts_with(attempt.path.string() + "/")) ::unlink(line.c_str());
  }
  ::unlink(links_file(attempt).c_str());
}

}  // namespace gridctl::agent

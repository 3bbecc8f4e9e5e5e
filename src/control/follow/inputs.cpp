// SPDX-License-Identifier: Apache-2.0
#include "control/follow/inputs.hpp"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "os/entries.hpp"
#include "os/process.hpp"
#include "store/file_workers.hpp"
#include "store/scan.hpp"
#include "store/stored_tree.hpp"

namespace gridctl::control {

namespace {

constexpr std::size_t k_ignored_told = 20;

Result<registry::Input> keep(store::ChunkStore& store, const store::Tree& tree, std::string role, std::string target) {
  TRY_ASSIGN(const Digest root, store::put_tree(store, tree));
  return registry::Input{std::move(role), std::move(target), root, tree.total_bytes()};
}

// Leaves out state directories of gridctl: a host that had the key could read every checkpoint.
store::ScanOptions without_state() {
  store::ScanOptions options;
  options.skip_folders_with = {"state.db", "store.key"};
  return options;
}

// A job file may name such a directory, something in it, or a link that leads there.
Result<void> refuse_state(const os::Path& source) {
  std::error_code failed;
  os::Path real = std::filesystem::canonical(source, failed);
  if (failed) return {};  // reading it says why
  for (os::Path at = real;; at = at.parent_path()) {
    if (os::exists(at / "state.db") && os::exists(at / "store.key"))
      return make_error(Code::bad_job_file, source.string() + (at == real ? " is" : " lies in") + " a state directory of gridctl, " +
                                                "whose keys are never sent to a host");
    if (at == at.parent_path()) return {};
  }
}

store::ScanOptions into(store::ChunkStore& store) {
  store::ScanOptions options = without_state();
  options.threads = store::threads_here();
  options.on_chunk = [&store](const Digest& digest, ByteView bytes) { return store.put_hashed(digest, bytes); };
  return options;
}

// Makes a tree with one file under a given name.
Result<store::Tree> single_file(store::ChunkStore& store, const os::Path& path, const std::string& name) {
  TRY(refuse_state(path));
  TRY_ASSIGN(store::Entry entry, store::scan_file(path, name, into(store)));
  return store::make_tree({std::move(entry)});
}

// Returns the name that tells the host that a tree with one file is a mount of that file: gridctl-agent(7).
std::string name_in(const job::Mount& mount) {
  const bool into_folder = mount.target.ends_with('/');
  return os::Path(into_folder ? mount.source : mount.target).filename().string();
}

Result<store::Scan> directory(store::ChunkStore& store, const os::Path& path, bool ignore_files) {
  TRY(refuse_state(path));
  store::ScanOptions options = into(store);
  options.ignore_files = ignore_files;
  return store::scan(path, options).context("while reading " + path.string());
}

}  // namespace

namespace {

// Returns files that git tracks although .gitignore names them: their author expects them to be sent.
std::vector<std::string> tracked_and_ignored(const os::Path& directory) {
  if (!os::exists(directory / ".git")) return {};
  const auto listed = os::run({"git", "-C", directory.native(), "-c", "core.fsmonitor=false", "ls-files", "-z", "-c", "-i",
                               "--exclude-standard"});
  std::vector<std::string> notes;
  if (!listed || !listed->status.success()) return notes;
  for (const std::string& path : split(listed->out, '\0'))
    if (!path.empty() && notes.size() < k_ignored_told)
      notes.push_back(path + ": .gitignore names this file, although git tracks it");
  return notes;
}

}  // namespace

bool is_like_a_key(std::string_view path) {
  const std::string name = lower(path.substr(path.rfind('/') + 1));
  for (const std::string_view whole : {".env", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials", "credentials.json",
                                       "service-account.json", "secrets.yaml", "secrets.yml", "secrets.json", "kubeconfig"})
    if (name == whole) return true;
  const bool example = name.find("example") != name.npos || name.find("sample") != name.npos || name.ends_with(".pub");
  if (example) return false;
  return name.starts_with(".env.") || name.starts_with("id_rsa") || name.starts_with("id_ed25519") ||
         name.starts_with("id_ecdsa") || name.ends_with(".pem") || name.ends_with(".p12") || name.ends_with(".key");
}

Result<ImportedInputs> import_inputs(const job::Spec& spec, store::ChunkStore& store) {
  ImportedInputs out;
  const auto add_directory = [&](const os::Path& path, bool ignore, std::string role,
                                 std::string target) -> Result<void> {
    TRY_ASSIGN(store::Scan scan, directory(store, path, ignore));
    for (const store::Entry& entry : scan.tree.entries)
      if (ignore && entry.kind == store::EntryKind::file && is_like_a_key(entry.path)) out.keys.push_back(entry.path);
    TRY_ASSIGN(registry::Input input, keep(store, scan.tree, std::move(role), std::move(target)));
    out.inputs.push_back(std::move(input));
    std::move(scan.notes.begin(), scan.notes.end(), std::back_inserter(out.notes));
    if (ignore) std::ranges::move(tracked_and_ignored(path), std::back_inserter(out.notes));
    return {};
  };
  const auto add_file = [&](const os::Path& path, const std::string& name, std::string role,
                            std::string target) -> Result<void> {
    TRY_ASSIGN(const store::Tree tree, single_file(store, path, name));
    TRY_ASSIGN(registry::Input input, keep(store, tree, std::move(role), std::move(target)));
    out.inputs.push_back(std::move(input));
    return {};
  };
  if (!spec.workdir.empty()) TRY(add_directory(spec.workdir, true, std::string(registry::k_workdir_role), ""));
  for (const job::Mount& mount : spec.file_mounts) {
    TRY_ASSIGN(const auto status, os::status_of(os::Path(mount.source)));
    const bool is_directory = status && status->kind == os::FileKind::directory;
    TRY(is_directory ? add_directory(mount.source, false, std::string(registry::k_mount_role), mount.target)
                     : add_file(mount.source, name_in(mount), std::string(registry::k_mount_role), mount.target));
  }
  if (spec.image_is_archive && spec.variants.empty()) TRY(add_file(spec.image, k_image_file, std::string(registry::k_image_role), ""));
  for (const job::Variant& variant : spec.variants)
    if (variant.image_is_archive) TRY(add_file(variant.image, k_image_file, std::string(registry::k_image_role), variant.kind));
  TRY(store.seal());
  return out;
}

namespace {

Result<InputListing> list_one(const os::Path& path, bool ignore_files) {
  InputListing out;
  const auto add = [&out](const std::string& name, std::uint64_t bytes) {
    ++out.files;
    out.bytes += bytes;
    out.largest.push_back({name, bytes});
    if (is_like_a_key(name)) out.keys.push_back(name);
  };
  TRY(refuse_state(path));
  TRY_ASSIGN(const os::Fd opened, os::open_file(path, O_RDONLY | O_NONBLOCK));
  TRY_ASSIGN(const os::FileStatus status, os::status_of(opened.get()));
  if (status.kind == os::FileKind::directory) {
    store::ScanOptions options = without_state();
    options.ignore_files = ignore_files;
    TRY_ASSIGN(const std::vector<store::Seen> seen,
               store::walk(opened.get(), options, out.notes).context("while listing " + path.string()));
    if (ignore_files) std::ranges::move(tracked_and_ignored(path), std::back_inserter(out.notes));
    for (const store::Seen& one : seen)
      if (one.status.kind == os::FileKind::regular) add(one.path, one.status.size);
  } else {
    add(path.filename().string(), status.size);
  }
  std::stable_sort(out.largest.begin(), out.largest.end(),
                   [](const InputListing::File& a, const InputListing::File& b) { return a.bytes > b.bytes; });
  if (out.largest.size() > k_largest_listed) out.largest.resize(k_largest_listed);
  return out;
}

}  // namespace

Result<std::vector<InputListing>> list_inputs(const job::Spec& spec) {
  std::vector<InputListing> all;
  const auto add = [&all](const std::string& role, const std::string& source,
                          const std::string& target) -> Result<void> {
    TRY_ASSIGN(InputListing one, list_one(source, role == registry::k_workdir_role));
    one.role = role, one.source = source, one.target = target;
    all.push_back(std::move(one));
    return {};
  };
  if (!spec.workdir.empty()) TRY(add(std::string(registry::k_workdir_role), spec.workdir, ""));
  for (const job::Mount& mount : spec.file_mounts) TRY(add(std::string(registry::k_mount_role), mount.source, mount.target));
  if (spec.image_is_archive && spec.variants.empty()) TRY(add(std::string(registry::k_image_role), spec.image, ""));
  for (const job::Variant& variant : spec.variants)
    if (variant.image_is_archive) TRY(add(std::string(registry::k_image_role), variant.image, variant.kind));
  return all;
}

}  // namespace gridctl::control

// SPDX-License-Identifier: Apache-2.0
// This machine.
#include <algorithm>
#include <array>
#include <set>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "cmd/doctor.hpp"
#include "db/database.hpp"
#include "os/entries.hpp"
#include "os/process.hpp"
#include "probe/health_packages.hpp"
#include "ssh/target.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::uint64_t k_disk_min = 1ull << 30;  // bytes: less than this and checkpoints soon fail
constexpr std::int64_t k_key_old_days = 730;      // two years: NIST SP 800-57's cryptoperiod of a private signing key
constexpr std::size_t k_rsa_blob_min = 400;       // bytes of the blob of an RSA key of 3072 bits

// Folders that a program synchronises with other machines while we write: it copies half a database.
constexpr std::array<std::string_view, 9> k_synced{"Dropbox",     "OneDrive", "Google Drive",
                                                   "GoogleDrive", "iCloud",   "iCloudDrive",
                                                   "Nextcloud",   "ownCloud", "Mobile Documents"};

Diagnosis ok(std::string point, std::string detail) {
  return {"", std::move(point), Severity::ok, std::move(detail), "", 0};
}

Diagnosis examine_ssh() {
  const std::optional<os::Path> program = os::find_program("ssh");
  if (!program)
    return {"", "ssh", Severity::warning, "no ssh program: ~/.ssh/config and hosts behind jump hosts cannot be used",
            "sudo apt-get install openssh-client", 0};
  const Result<os::RunOutcome> outcome = os::run({"ssh", "-V"});
  const std::string version = outcome ? std::string(trim(outcome->err)) : std::string{};
  return ok("ssh", program->string() + (version.empty() ? "" : ", " + version));
}

std::string synced_by(const os::Path& path) {
  for (const os::Path& part : path)
    for (const std::string_view name : k_synced)
      if (part == name) return std::string(name);
  for (os::Path at = path; at.has_relative_path(); at = at.parent_path())
    if (os::exists(at / ".stfolder")) return "Syncthing";
  return {};
}

void examine_directory(const os::Path& state, Diagnoses& all) {
  if (!os::exists(state)) return all.push_back(ok("state", state.string() + " does not exist yet"));
  const Result<std::optional<os::FileStatus>> status = os::status_of(state);
  const std::string quoted = shell_quote(state.string());
  if (!status || !*status || (*status)->kind != os::FileKind::directory)
    return all.push_back(error_here("state", state.string() + " is not a readable directory", "ls -ld " + quoted));
  if (((*status)->mode & 077) != 0)
    all.push_back(error_here("state", state.string() + " is open to other users", "chmod 700 " + quoted));
  else all.push_back(ok("state", state.string()));
  const std::string kind = os::file_system_kind(state);
  if (kind == "nfs" || kind == "nfs4" || kind == "cifs" || kind == "smb2" || kind == "9p" || kind == "fuse.sshfs")
    all.push_back(error_here("state", "it is on " + kind + ", where locks are not reliable",
                             "gridctl --state DIR … with a DIR on a local disk"));
  if (const std::string by = synced_by(state); !by.empty())
    all.push_back(error_here("state", "it is in a folder that " + by + " copies while gridctl writes it",
                             "gridctl --state DIR … with a DIR outside that folder"));
  if (os::exists(state / "state.db-wal"))
    all.push_back(error_here("database", "something switched it to WAL mode, in which this SQLite may damage it",
                             "sqlite3 " + shell_quote((state / "state.db").string()) +
                                 " 'PRAGMA journal_mode=TRUNCATE'"));
  const Result<std::uint64_t> space = os::free_bytes(state);
  if (space && *space < k_disk_min)
    all.push_back(error_here("disk", "only " + format_size(*space) + " free for checkpoints", "df -h " + quoted));
  else if (space) all.push_back(ok("disk", format_size(*space) + " free"));
}

// sqlite.org/wal.html, "The WAL-reset bug": 3.7.0 to 3.51.2, also fixed in 3.50.7 and 3.44.6.
bool has_wal_reset_bug(const std::string& version) {
  const auto below = [&](std::string_view other) { return probe::compare_debian(version, other) < 0; };
  if (below("3.7.0") || !below("3.51.3")) return false;
  if (version.starts_with("3.50.")) return below("3.50.7");
  return !(version.starts_with("3.44.") && !below("3.44.6"));
}

Diagnosis examine_sqlite() {
  const std::string version = db::sqlite_in_use();
  if (!has_wal_reset_bug(version)) return ok("sqlite", version);
  return ok("sqlite", version + "; its WAL-reset bug does not touch the rollback journal used here");
}

Diagnosis examine_clock() {
  const Result<os::RunOutcome> asked = os::run({"timedatectl", "show", "-p", "NTPSynchronized", "--value"});
  if (!asked || !asked->status.success()) return ok("clock", "cannot tell whether a time service keeps it right");
  if (trim(asked->out) == "yes") return ok("clock", "kept by NTP");
  return {"", "clock", Severity::note, "not kept by NTP", "sudo timedatectl set-ntp true", 0};
}

std::string age_text(std::int64_t days) {
  return days >= 730 ? std::to_string(days / 365) + " years" : std::to_string(days) + " days";
}

void examine_key(const os::Path& path, WallTime now, Diagnoses& all) {
  const Result<std::optional<os::FileStatus>> status = os::status_of(path);
  if (!status || !*status) return;
  const std::string quoted = shell_quote(path.string());
  if ((*status)->kind == os::FileKind::regular && ((*status)->mode & 077) != 0)
    all.push_back({"", "key", Severity::warning, path.string() + " is open to others: ssh does not use it",
                   "chmod 600 " + quoted, 0});
  const std::int64_t days = (now.ms - (*status)->mtime_ns / 1'000'000) / k_day_ms;
  if (days > k_key_old_days)
    all.push_back({"", "key", Severity::note, path.string() + " is " + age_text(days) + " old",
                   "ssh-keygen -t ed25519 -f " + shell_quote(path.string() + ".new"), 0});
  const Result<std::string> open = os::read_file(path.string() + ".pub", 64 * 1024);
  if (!open) return;
  const std::vector<std::string> words = split(trim(*open), ' ');
  const bool weak_rsa = words.size() > 1 && words[0] == "ssh-rsa" && words[1].size() * 3 / 4 < k_rsa_blob_min;
  if (words[0] == "ssh-dss" || weak_rsa)
    all.push_back({"", "key", Severity::warning,
                   path.string() + (weak_rsa ? " is an RSA key of less than 3072 bits" : " is a DSA key"),
                   "ssh-keygen -t ed25519 -f " + shell_quote(path.string() + ".new"), 0});
}
}  // namespace

Diagnoses examine_here(const Context& context) {
  Diagnoses all{examine_ssh()};
  probe::Toolbox toolbox;
  std::vector<wire::Package> packages =
      probe::read_packages(probe::HostFiles{}, probe::ask_tools(toolbox, probe::package_calls()));
  // Containers do not run here: only the programs that connect matter.
  std::erase_if(packages,
                [](const wire::Package& package) { return package.name != "openssh" && package.name != "libssh2"; });
  const bool packaged =
      std::ranges::any_of(packages, [](const wire::Package& package) { return package.name == "libssh2"; });
  if (!packaged) packages.push_back({"libssh2", ssh::libssh2_in_use(), false});
  all.push_back(ok("libssh2", ssh::libssh2_in_use()));
  all.push_back(examine_sqlite());
  for (Diagnosis& one : examine_packages("", packages)) all.push_back(std::move(one));
  all.push_back(examine_clock());
  examine_directory(context.state, all);
  return all;
}

Diagnoses examine_keys(const std::vector<registry::Provider>& providers, WallTime now) {
  std::set<os::Path> keys;
  const os::Path home = os::home_directory();
  for (const char* name : {"id_ed25519", "id_ecdsa", "id_rsa", "id_dsa"})
    if (!home.empty() && os::exists(home / ".ssh" / name)) keys.insert(home / ".ssh" / name);
  for (const registry::Provider& provider : providers)
    keys.insert(provider.identities.begin(), provider.identities.end());
  Diagnoses all;
  for (const os::Path& key : keys) examine_key(key, now, all);
  return all;
}

Diagnoses examine_packages(const std::string& provider, const std::vector<wire::Package>& packages) {
  Diagnoses all;
  for (const wire::Package& package : packages) {
    // Only the distributor knows which faults a distribution's packages have fixed: upstream's own packages are judged.
    std::vector<std::string> ids;
    const probe::Advisory* gravest = nullptr;
    for (const probe::Advisory& advisory : probe::advisories()) {
      if (probe::exposure(advisory, package) != probe::Exposure::likely) continue;
      ids.emplace_back(advisory.id);
      if (gravest == nullptr || (advisory.grave && !gravest->grave)) gravest = &advisory;
    }
    if (gravest == nullptr) continue;
    all.push_back({provider, package.name, gravest->grave ? Severity::warning : Severity::note,
                   package.version + " has " + join(ids, ", ") + ": " + std::string(gravest->what),
                   "sudo apt-get update && sudo apt-get install --only-upgrade " +
                       (package.name == "openssh"   ? std::string(provider.empty() ? "openssh-client" : "openssh-server")
                        : package.name == "linux"   ? "linux-image-$(dpkg --print-architecture)"
                        : package.name == "libssh2" ? "libssh2-1"
                                                    : package.name),
                   0});
  }
  return all;
}

}  // namespace gridctl::cmd

// SPDX-License-Identifier: Apache-2.0
#include "agent/attempt_dir.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "agent/log_ring.hpp"
#include "agent/secret_folders.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "crypto/sha256.hpp"
#include "os/entries.hpp"
#include "os/process.hpp"

namespace gridctl::agent {
namespace {

constexpr std::uint64_t k_small_bytes = 4096;         // a number or a record of a few lines
constexpr int k_secret_names_tried = 16;
constexpr std::uint64_t k_document_bytes = 4u << 20;  // a spec of 1 MiB may grow when it is encoded again

// Returns nullopt if there is no such file. If it appears between the two looks, it is read again.
Result<std::optional<std::string>> read_if_there(const Path& path, std::uint64_t bytes_max) {
  for (bool again = true;; again = false) {
    auto text = os::read_file(path, bytes_max);
    if (text) return std::optional{std::move(*text)};
    if (!os::exists(path)) return std::optional<std::string>{};
    if (!again) return std::move(text).error();
  }
}

}  // namespace

Path agent_home() {
  if (auto home = os::environment("GRIDCTL_AGENT_HOME"); home && !home->empty()) return *home;
  return os::home_directory() / ".gridctl";
}

std::string home_mark(const Path& home) {
  constexpr std::size_t k_digits = 8;
  if (home.lexically_normal() == (os::home_directory() / ".gridctl").lexically_normal()) return {};
  return to_hex(crypto::sha256(as_bytes(home.lexically_normal().string()))).substr(0, k_digits);
}

Path lease_directory() {
  if (auto directory = os::environment("GRIDCTL_LEASE_DIR"); directory && !directory->empty()) return *directory;
  // All users of the host must choose the same folder: the first sound one, judged by facts that are the same for all
  // users.
  for (const char* parent : {"/var/tmp", "/dev/shm"})
    if (::access(parent, W_OK | X_OK) == 0) return parent;
  return "/tmp";
}

Result<void> check_component(std::string_view what, std::string_view id) {
  const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  if (id.empty() || id.size() > 64 || id.front() == '-' || !std::ranges::all_of(id, allowed))
    return make_error(Code::refused, std::string(what) + " is not a valid id: '" + sanitize(id.substr(0, 80)) + "'");
  return {};
}

Result<JobDir> JobDir::at(const Path& home, const ControllerId& controller, const JobId& job) {
  TRY(check_component("the controller id", controller.value));
  TRY(check_component("the job id", job.value));
  if (job.value == k_notify_folder) return make_error(Code::refused, "the job id is not a valid id: '" + job.value + "' is no job's");
  return JobDir{controller, job, home / "jobs" / controller.value / job.value};
}

Result<os::FileLock> JobDir::lock() const {
  TRY(os::make_directories(path));
  return os::FileLock::acquire(path / "lock");
}

Result<std::vector<Epoch>> JobDir::epochs() const {
  std::vector<Epoch> found;
  std::error_code failed;
  std::filesystem::directory_iterator entries(path, failed);
  if (failed == std::errc::no_such_file_or_directory) return found;
  if (failed) return errno_error(failed.value(), "cannot list " + path.string());
  for (const auto& entry : entries)
    if (const auto number = parse_number<std::uint64_t>(entry.path().filename().string()))
      found.push_back(Epoch{*number});
  std::ranges::sort(found);
  return found;
}

Epoch AttemptDir::epoch() const { return Epoch{parse_number<std::uint64_t>(path.filename().string()).value_or(0)}; }
JobId AttemptDir::job() const { return {path.parent_path().filename().string()}; }
ControllerId AttemptDir::controller() const { return {path.parent_path().parent_path().filename().string()}; }
Path AttemptDir::agent_home() const { return path.parent_path().parent_path().parent_path().parent_path(); }

Result<Path> AttemptDir::secrets() const {
  const std::string mark = home_mark(agent_home());
  const std::string name = controller().value + "." + job().value + "." + std::to_string(epoch().value) +
                           (mark.empty() ? "" : "." + mark);
  return secrets_at(name);
}

namespace {

Result<void> write_secrets(const AttemptDir& attempt, const std::map<std::string, std::string>& secrets) {
  if (secrets.empty()) return {};
  // Other users may take a name between the check and the creation: the next name is different.
  Result<Path> folder = attempt.secrets();
  Result<void> made = folder ? make_secret_folder(*folder) : folder.error();
  for (int tries = 1; !made && made.error().code == Code::busy && tries < k_secret_names_tried; ++tries) {
    folder = attempt.secrets();
    made = folder ? make_secret_folder(*folder) : folder.error();
  }
  TRY(made);
  TRY(os::remove_tree(*folder));
  TRY(os::make_directories(*folder));
  for (const auto& [name, value] : secrets) TRY(os::write_file_atomically(*folder / name, value));
  return {};
}

constexpr std::string_view k_draft_prefix = ".new-";

std::vector<AttemptDir> drafts_of(const JobDir& job) {
  std::vector<AttemptDir> found;
  if (const auto names = os::list_directory(job.path))
    for (const std::string& name : *names)
      if (name.starts_with(k_draft_prefix)) found.push_back({job.path / name});
  return found;
}

// Secrets are removed first, because the draft shows that they exist.
Result<void> remove_draft(const AttemptDir& draft) {
  const AttemptDir attempt{draft.path.parent_path() / draft.path.filename().string().substr(k_draft_prefix.size())};
  if (!os::exists(attempt.path))
    if (const auto secrets = attempt.secrets()) TRY(os::remove_tree(*secrets));
  return os::remove_tree(draft.path);
}

}  // namespace

Result<void> create_attempt(const AttemptDir& attempt, const NewAttempt& content) {
  const Path parent = attempt.path.parent_path();
  const AttemptDir draft{parent / (std::string(k_draft_prefix) + attempt.path.filename().string())};
  TRY(os::remove_tree(draft.path));
  const auto settle = [&]() -> Result<void> {
    for (const Path& folder : {draft.path, draft.control(), draft.runs(), draft.log()})
      TRY(os::make_directories(folder));
    TRY(os::write_file_atomically(draft.spec_file(), wire::encode(content.spec)));
    TRY(os::write_file_atomically(draft.op_file(), content.op.value + "\n"));
    TRY(os::write_file_atomically(draft.boot_file(), content.boot_id + "\n"));
    TRY(os::write_file_atomically(draft.deadline_file(), std::to_string(content.deadline.ns) + "\n"));
    TRY(os::write_file_atomically(draft.limits_file(), to_text(content.limits)));
    TRY(write_secrets(attempt, content.secrets));
    if (::rename(draft.path.c_str(), attempt.path.c_str()) != 0)
      return errno_error(errno, "cannot make the attempt folder " + attempt.path.string());
    return {};
  };
  if (auto settled = settle(); !settled) {
    (void)remove_draft(draft);  // what is left of it goes with a later connection
    return settled;
  }
  return os::sync_directory(parent);
}

bool has_drafts(const JobDir& job) { return !drafts_of(job).empty(); }

void remove_drafts(const JobDir& job) {
  for (const AttemptDir& draft : drafts_of(job)) (void)remove_draft(draft);
}

Result<wire::AttemptSpec> read_spec(const AttemptDir& attempt) {
  TRY_ASSIGN(const std::string text, os::read_file(attempt.spec_file(), k_document_bytes));
  return wire::parse_attempt_spec(text);
}

Result<std::optional<std::int64_t>> read_number(const Path& path) {
  TRY_ASSIGN(const auto text, read_if_there(path, k_small_bytes));
  if (!text) return std::optional<std::int64_t>{};
  const auto number = parse_number<std::int64_t>(trim(*text));
  if (!number || *number < 0) return make_error(Code::io, path.string() + " does not contain a number");
  return number;
}

Result<Epoch> read_fence(const JobDir& job) {
  auto number = read_number(job.path / "fence");
  if (!number) return std::move(number).error().with_context("while reading the fence of job " + job.job.value);
  return Epoch{number->has_value() ? static_cast<std::uint64_t>(**number) : 0};
}

Result<void> write_fence(const JobDir& job, Epoch epoch) {
  return os::write_file_durably(job.path / "fence", std::to_string(epoch.value) + "\n");
}

Result<void> write_status(const AttemptDir& attempt, const wire::AttemptStatus& status, os::Clock& clock,
                          bool announce) {
  const std::string text = os::boot_id() + " " + std::to_string(clock.boot().ns) + " " +
                           std::to_string(clock.wall().ms) + "\n" + wire::encode(status) + "\n";
  if (status.phase == wire::AttemptPhase::ended) {
    TRY(os::write_file_durably(attempt.status_file(), text));
  } else {
    TRY(os::write_file_atomically(attempt.status_file(), text));
  }
  if (!announce) return {};
  const Path notify = attempt.path.parent_path().parent_path() / k_notify_folder;
  TRY(os::make_directories(notify));
  return os::write_file_atomically(notify / (status.job.value + "." + std::to_string(status.epoch.value)), "");
}

namespace {

// Parses two lines: boot id, boot clock and wall clock of the writer; the status. nullopt if it is damaged.
std::optional<StoredStatus> parse_stored(std::string_view text, os::Clock& clock) {
  const auto cut = text.find('\n');
  const auto stamps = split(text.substr(0, cut), ' ');
  if (cut == std::string_view::npos || stamps.size() != 3) return std::nullopt;
  auto status = wire::parse_attempt_status(trim(text.substr(cut + 1)));
  if (!status) return std::nullopt;
  StoredStatus stored{stamps[0], std::move(*status)};
  const bool same_boot = stored.boot_id == os::boot_id();
  const std::int64_t passed_ms = same_boot
                                     ? (clock.boot().ns - parse_number<std::int64_t>(stamps[1]).value_or(0)) / 1'000'000
                                     : clock.wall().ms - parse_number<std::int64_t>(stamps[2]).value_or(0);
  wire::make_older(stored.status, std::max<std::int64_t>(passed_ms, 0));
  return stored;
}

}  // namespace

Result<std::optional<StoredStatus>> read_stored_status(const AttemptDir& attempt, os::Clock& clock) {
  TRY_ASSIGN(const auto text, read_if_there(attempt.status_file(), k_document_bytes));
  if (text)
    if (auto stored = parse_stored(*text, clock)) return stored;
  if (!os::exists(attempt.path)) return std::optional<StoredStatus>{};
  // No status was written yet, or a power cut took what was never synced. An unknown boot is an earlier one: the
  // attempt is over, and the host continues to answer for all the others.
  StoredStatus stored;
  stored.status.job = attempt.job();
  stored.status.epoch = attempt.epoch();
  stored.status.phase = wire::AttemptPhase::starting;
  TRY_ASSIGN(const auto accepted, read_if_there(attempt.boot_file(), k_small_bytes));
  if (accepted) stored.boot_id = trim(*accepted);
  return std::optional{std::move(stored)};
}

Result<std::optional<wire::AttemptStatus>> read_status(const AttemptDir& attempt, os::Clock& clock) {
  TRY_ASSIGN(auto stored, read_stored_status(attempt, clock));
  if (!stored) return std::optional<wire::AttemptStatus>{};
  wire::AttemptStatus& status = stored->status;
  status.log_bytes = log_end(attempt.log());
  if (!stored->ended() && stored->boot_id != os::boot_id())
    judge_other_boot(read_exit_record(attempt.run(newest_launch(attempt))), status);
  return std::optional{std::move(status)};
}

// --- init's records
// ---------------------------------------------------------------------------------------------------

std::optional<HostileFile> open_hostile(const Path& directory, std::string_view name) {
  auto folder = os::open_file(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder) return std::nullopt;
  auto file = os::open_beneath(folder->get(), name, O_RDONLY | O_NONBLOCK);
  if (!file) return std::nullopt;
  struct stat info {};
  if (::fstat(file->get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return HostileFile{std::move(*file), static_cast<std::uint64_t>(info.st_size)};
}

std::optional<std::string> read_hostile(const Path& directory, std::string_view name) {
  const auto file = open_hostile(directory, name);
  if (!file) return std::nullopt;
  std::string text(k_small_bytes, '\0');
  const ssize_t got = ::read(file->fd.get(), text.data(), text.size());
  if (got < 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(got));
  return text;
}

std::string to_text(const ExitRecord& record) {
  return "phase=" + record.phase + "\ncode=" + std::to_string(record.code) +
         "\nsignal=" + std::to_string(record.signal) + "\noom_kills=" + std::to_string(record.oom_kills) +
         "\nmemory_peak=" + std::to_string(record.memory_peak) + "\nterm=" + (record.term_received ? "1" : "0") +
         (record.first.empty() ? "" : "\nfirst=" + record.first) + "\nlease=" + (record.lease_passed ? "1" : "0") + "\n";
}

namespace {
struct ExitKey {
  std::string_view key;
  void (*read)(const std::string& value, ExitRecord& record);
};
constexpr std::string_view k_last_exit_key = "lease";  // is written last: without it the record is torn
constexpr ExitKey k_exit_keys[] = {
    {"phase", [](const std::string& v, ExitRecord& r) { r.phase = v == k_setup_phase ? k_setup_phase : k_run_phase; }},
    {"code", [](const std::string& v, ExitRecord& r) { r.code = parse_number<int>(v).value_or(-1); }},
    {"signal", [](const std::string& v, ExitRecord& r) { r.signal = parse_number<int>(v).value_or(0); }},
    {"oom_kills", [](const std::string& v, ExitRecord& r) { r.oom_kills = parse_number<std::uint64_t>(v).value_or(0); }},
    {"memory_peak",
     [](const std::string& v, ExitRecord& r) { r.memory_peak = parse_number<std::uint64_t>(v).value_or(0); }},
    {"term", [](const std::string& v, ExitRecord& r) { r.term_received = v == "1"; }},
    {"first", [](const std::string& v, ExitRecord& r) { r.first = sanitize(v.substr(0, 32)); }},
    {k_last_exit_key, [](const std::string& v, ExitRecord& r) { r.lease_passed = v == "1"; }},
};
}  // namespace

std::optional<ExitRecord> parse_exit_record(std::string_view text) {
  ExitRecord record;
  bool complete = false;
  for (const std::string& line : split_lines(text)) {
    const auto cut = line.find('=');
    if (cut == std::string::npos) return std::nullopt;
    const std::string_view key = std::string_view(line).substr(0, cut);
    const auto known = std::ranges::find(k_exit_keys, key, &ExitKey::key);
    if (known != std::end(k_exit_keys)) known->read(line.substr(cut + 1), record);
    complete = complete || key == k_last_exit_key;
  }
  if (!complete || record.code < -1 || record.code > 255 || record.signal < 0 || record.signal > 64)
    return std::nullopt;
  return record;
}

std::optional<ExitRecord> read_exit_record(const Path& run) {
  const auto text = read_hostile(run, "exit");
  return text ? parse_exit_record(*text) : std::nullopt;
}

unsigned newest_launch(const AttemptDir& attempt) {
  unsigned newest = 0;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(attempt.runs(), failed))
    newest = std::max(newest, parse_number<unsigned>(entry.path().filename().string()).value_or(0));
  return newest;
}

}  // namespace gridctl::agent

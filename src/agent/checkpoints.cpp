// SPDX-License-Identifier: Apache-2.0
#include "agent/checkpoints.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/metrics.hpp"
#include "agent/own_snapshots.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/entries.hpp"
#include "os/process.hpp"
#include "store/file_workers.hpp"
#include "whole/names.hpp"

namespace gridctl::agent {
namespace {

constexpr int k_look_ms = 1000;                        // WholeWatch counts quiet time by looks, at least one a second
constexpr int k_soon_ms = 100;                         // while any moment of rest is wanted
constexpr int k_rests_per_look = 3;                    // pause after a look, as a multiple of what it took
constexpr std::size_t k_watched_folders_max = 64;      // for news at once; the others are looked at every second
constexpr int k_settle_ms = 20;                        // gathers the events of one rename storm into one look
constexpr unsigned k_hashing_threads_max = 4;          // the job wants its processors
constexpr std::size_t k_keep = 2;                      // newest snapshots that stay whatever the controller says
constexpr std::uint64_t k_bases_last = 4;              // snapshots for which it holds what was needed
constexpr std::uint64_t k_info_bytes_max = 16 * 1024;  // a line, and the metrics
constexpr std::size_t k_note_max = 300;                // bytes
constexpr std::size_t k_how_max = 120;                 // bytes; names of units are foreign
constexpr Duration k_final_wait = std::chrono::seconds{15};  // for a killed writer's files to be judged
constexpr Duration k_space_wait = std::chrono::minutes{2};   // for space: what the job has done would be lost
constexpr int k_final_look_ms = 200;

void signal_fd(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto wrote = ::write(fd, &one, sizeof one);
}

std::string info_text(const HeldSnapshot& held) {
  const auto& checkpoint = held.checkpoint;
  return os::boot_id() + " " + std::to_string(held.taken_at.ns) + " " + to_hex(checkpoint.root) + " " +
         std::to_string(checkpoint.bytes) + " " + std::to_string(checkpoint.files) + " " + checkpoint.how +
         (checkpoint.torn ? " torn" : checkpoint.as_left ? " left" : checkpoint.provisional ? " provisional" : "") + "\n" +
         (checkpoint.metrics.empty() ? "" : nlohmann::json(checkpoint.metrics).dump() + "\n");
}

// Returns one word, for a line of words.
std::string how_text(std::string_view how) {
  std::string text = sanitize(how.substr(0, k_how_max));
  std::ranges::replace_if(
      text, [](char c) { return c == ' ' || c == '\n' || c == '\t'; }, '_');
  return text.empty() ? "unknown" : text;
}

std::optional<HeldSnapshot> parse_info(std::string_view text, std::uint64_t number) {
  const auto words = split(text.substr(0, text.find('\n')), ' ');
  if (words.size() < 6 || words.size() > 7) return std::nullopt;
  HeldSnapshot held;
  held.checkpoint.number = number;
  const auto root = parse_digest(words[2]);
  if (!root) return std::nullopt;
  held.checkpoint.root = *root;
  held.taken_at.ns = leading_number<std::int64_t>(words[1]).value_or(0);
  held.checkpoint.bytes = leading_number<std::uint64_t>(words[3]).value_or(0);
  held.checkpoint.files = leading_number<std::uint64_t>(words[4]).value_or(0);
  held.checkpoint.how = words[5];
  held.checkpoint.provisional = words.size() == 7;
  const std::string mark = words.size() == 7 ? words[6] : "";
  held.checkpoint.torn = mark.starts_with("torn");
  held.checkpoint.as_left = held.checkpoint.torn || mark.starts_with("left");
  held.checkpoint.metrics = parse_metrics(text.substr(std::min(text.size(), text.find('\n') + 1)));
  return held;
}

struct Bases {
  std::uint64_t of = 0;
  std::set<std::uint64_t> numbers;
};
Bases read_bases(const AttemptDir& attempt) {
  Bases bases;
  const auto text = os::read_file(attempt.bases_file(), k_info_bytes_max);
  std::vector<std::uint64_t> numbers;
  for (const auto& word : split(text ? trim(*text) : std::string_view(), ' '))
    numbers.push_back(leading_number<std::uint64_t>(word).value_or(0));
  if (numbers.empty()) return bases;
  bases.of = numbers.front();
  bases.numbers.insert(numbers.begin() + 1, numbers.end());
  return bases;
}

}  // namespace

Result<void> note_bases(const AttemptDir& attempt, std::uint64_t of, std::set<std::uint64_t> bases) {
  Bases before = read_bases(attempt);
  if (of < before.of) return {};
  if (of == before.of) bases.merge(before.numbers);
  std::string text = std::to_string(of);
  for (const std::uint64_t number : bases) text += " " + std::to_string(number);
  return os::write_file_atomically(attempt.bases_file(), text + "\n");
}

Path snapshot_files(const AttemptDir& attempt, std::uint64_t number) {
  return attempt.snapshots() / std::to_string(number) / "files";
}
Path snapshot_manifest(const AttemptDir& attempt, std::uint64_t number) {
  return attempt.snapshots() / std::to_string(number) / "manifest";
}

std::vector<HeldSnapshot> held_snapshots(const AttemptDir& attempt, bool tidy) {
  std::vector<HeldSnapshot> held;
  const auto names = os::list_directory(attempt.snapshots());
  if (!names) return held;
  for (const std::string& name : *names) {
    const auto number = leading_number<std::uint64_t>(name).value_or(0);
    const auto text = os::read_file(attempt.snapshots() / name / "info", k_info_bytes_max);
    const auto info = text && number > 0 ? parse_info(*text, number) : std::nullopt;
    if (info) held.push_back(*info);
    else if (tidy) (void)os::remove_tree(attempt.snapshots() / name);
  }
  std::ranges::sort(
      held, [](const HeldSnapshot& a, const HeldSnapshot& b) { return a.checkpoint.number < b.checkpoint.number; });
  return held;
}

namespace {
whole::WholeRules rules_of(const wire::AttemptSpec& spec) {
  whole::WholeRules rules;
  rules.marker_expected = spec.checkpoint_by_marker;
  rules.whole_when = spec.whole_when;
  rules.of_gang = spec.gang && spec.gang->members.size() > 1;
  return rules;
}
}  // namespace

CheckpointWatch::CheckpointWatch(const AttemptDir& attempt, const wire::AttemptSpec& spec, JobView view,
                                 os::Clock& clock, int changed_fd)
    : attempt_(attempt),
      spec_(spec),
      view_(std::move(view)),
      clock_(clock),
      changed_fd_(changed_fd),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      pause_(spec.checkpoint_min_interval),
      whole_(rules_of(spec)),
      stall_(clock.boot()),
      held_(held_snapshots(attempt, true)) {
  if (!held_.empty()) next_ = held_.back().checkpoint.number + 1;
  if (const auto told = spec.envs.find("GRIDCTL_CKPT_INTERVAL"); told != spec.envs.end())
    interval_ = std::chrono::seconds{parse_number<std::uint32_t>(told->second).value_or(0)};
}

CheckpointWatch::~CheckpointWatch() {
  stop_ = true;
  signal_fd(wake_.get());
  if (thread_.joinable()) thread_.join();
}

void CheckpointWatch::restored() {
  {
    const os::MutexLock lock(mutex_);
    if (!spec_.restore || !held_.empty()) return;
  }
  if (const auto directory = open_checkpoint_directory(view_, false))
    if (const auto listing = store::list_checkpoint(directory->get()))
      whole_.restored(*listing, clock_.boot(), {store::inspect_in(directory->get()), store::read_in(directory->get())});
}

void CheckpointWatch::start() {
  if (!spec_.checkpoints || thread_.joinable()) return;
  thread_ = std::thread([this] { watch(); });
}

void CheckpointWatch::watch() {
  const os::Fd events(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  while (!stop_) {
    const BootTime began = clock_.boot();
    look(whole::Writer::running, false);
    watch_folders(events);
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.boot() - began).count();
    pollfd waiting[] = {{wake_.get(), POLLIN, 0}, {events.get(), POLLIN, 0}};
    const int patience = whole_.is_overdue() ? k_soon_ms : k_look_ms;
    if (::poll(waiting, 2, patience) <= 0 || waiting[1].revents == 0) continue;
    // A look at many files must not take the job's processor.
    ::poll(waiting, 1, static_cast<int>(std::clamp<std::int64_t>(took * k_rests_per_look, k_settle_ms, k_look_ms)));
    char drained[4096];
    while (::read(events.get(), drained, sizeof drained) > 0) continue;
  }
}

// Watches the folder and its subfolders, into which savers of some frameworks write.
void CheckpointWatch::watch_folders(const os::Fd& events) const {
  constexpr std::uint32_t mask = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_DONT_FOLLOW | IN_ONLYDIR;
  const Path top = view_.checkpoint_base / view_.checkpoint_relative;
  ::inotify_add_watch(events.get(), top.c_str(), mask);
  std::set<std::string> folders;
  for (const store::FileFact& file : listed_.files) {
    const std::size_t slash = file.path.rfind('/');
    if (slash == std::string::npos || folders.size() == k_watched_folders_max) continue;
    if (folders.insert(file.path.substr(0, slash)).second)
      ::inotify_add_watch(events.get(), (top / file.path.substr(0, slash)).c_str(), mask);
  }
}

void CheckpointWatch::finish(whole::Writer writer) {
  stop_ = true;
  signal_fd(wake_.get());
  if (thread_.joinable()) thread_.join();
  if (!spec_.checkpoints) return;
  const BootTime began = clock_.boot();
  do {
    last_verdict_ = {};
    const bool well = look(writer, true);
    if (well && last_verdict_.whole != whole::Whole::not_yet) break;
    ::poll(nullptr, 0, well ? k_final_look_ms : k_look_ms);
  } while (clock_.boot() < began + (out_of_space_ ? k_space_wait : k_final_wait));
  keep_what_is_left();
}

void CheckpointWatch::keep_what_is_left() {
  const auto directory = open_checkpoint_directory(view_, false);
  if (!directory) {
    if (directory.error().code != Code::not_found)
      set_problem("the checkpoint directory is not kept: " + directory.error().message);
    return;
  }
  const auto listing = store::list_checkpoint(directory->get());
  if (!listing) return set_problem("the checkpoint directory is not kept: " + listing.error().message);
  if (listing->files.empty() && !listing->unreadable.empty())
    return set_problem("no file in the checkpoint directory can be read: " + listing->unreadable.front());
  if (listing->files.empty() || whole_.has_all(*listing)) return;
  const auto taken = take(directory->get(), *listing, nullptr);
  if (taken) set_problem({});
  else set_problem("the final contents of the checkpoint directory are not kept: " + taken.error().one_line());
}

Result<whole::Verdict> CheckpointWatch::judge(int directory, whole::Writer writer, store::Listing& listing) {
  TRY_ASSIGN(listing, store::list_checkpoint(directory));
  listed_ = listing;
  whole_.set_interval(interval_);
  return whole_.look(listing, clock_.boot(), writer, {store::inspect_in(directory), store::read_in(directory)});
}

bool CheckpointWatch::look(whole::Writer writer, bool last) {
  auto directory = open_checkpoint_directory(view_, false);
  if (!directory) {
    // The job may have removed its own directory for a while.
    if (directory.error().code != Code::not_found) set_problem(directory.error().one_line());
    last_verdict_.whole = whole::Whole::never;
    return true;
  }
  store::Listing listing;
  auto verdict = judge(directory->get(), writer, listing);
  if (!verdict) {
    if (verdict.error().code != Code::busy) set_problem("cannot look for checkpoints: " + verdict.error().message);
    return true;
  }
  last_verdict_ = *verdict;
  // A job's reports from now on concern its next work, even while its files are still being recognised as complete.
  if (listing != saved_) {
    metrics_until_ = metrics_bytes(attempt_.run(newest_launch(attempt_)));
    saved_ = listing;
  }
  if (!verdict->is_whole()) {
    note_stall(false);
    return true;
  }
  if (!last && taken_at_ && clock_.boot() < *taken_at_ + pause_.load()) return true;
  auto taken = take(directory->get(), listing, &*verdict);
  if (!taken && taken.error().code == Code::no_space) {
    prune(1);  // the last good one stays; the next look tries again
    OwnSnapshots(attempt_.agent_home(), attempt_.controller()).make_room(UINT64_MAX, attempt_.job());
    taken = take(directory->get(), listing, &*verdict);
  }
  note_stall(taken.has_value());
  if (taken) {
    out_of_space_ = false;
    set_problem({});
  } else if (taken.error().code == Code::busy) {
    last_verdict_.whole = whole::Whole::not_yet;
  } else {
    out_of_space_ = taken.error().code == Code::no_space;
    set_problem("cannot take a checkpoint: " + taken.error().one_line());
    return !out_of_space_ && taken.error().code != Code::io;
  }
  return true;
}

std::uint64_t CheckpointWatch::next_number() const {
  const os::MutexLock lock(mutex_);
  return next_;
}

// Compares with the newest snapshot, and with the restored content, because an earlier supervisor may have seen it.
bool CheckpointWatch::is_known(const Digest& root) const {
  const os::MutexLock lock(mutex_);
  return held_.empty() ? spec_.restore == root : held_.back().checkpoint.root == root;
}

bool CheckpointWatch::any_torn(int directory, const store::Listing& listing) {
  const store::Inspect inspect = store::inspect_in(directory);
  return std::ranges::any_of(listing.files, [&](const store::FileFact& file) {
    return !whole::is_log_name(file.path) && inspect(file).state == store::FileState::torn;
  });
}

namespace {
// Returns one line each, the most important first: what was waited for.
std::vector<std::string> notes_of(const whole::Verdict* verdict, const std::vector<std::string>& left_out) {
  std::vector<std::string> notes;
  if (verdict != nullptr && verdict->provisional && !verdict->why.empty())  // the same words each time: told once
    notes.push_back("not known to be complete: " + (verdict->blame.empty() ? verdict->why
                                                                       : "waited for " + quoted_path(verdict->blame)));
  for (const std::string& one : left_out)
    if (notes.size() < wire::k_checkpoint_notes_max) notes.push_back("left out: " + one.substr(0, k_note_max));
  return notes;
}
}  // namespace

Result<void> CheckpointWatch::take(int directory, const store::Listing& listing, const whole::Verdict* verdict) {
  const bool previous_is_there = previous_ && os::exists(snapshot_files(attempt_, previous_number_));
  if (verdict != nullptr && !verdict->selection.from_previous.empty() && !previous_is_there)
    return make_error(Code::busy, "the file being rewritten is not in any snapshot of this attempt yet");
  const std::uint64_t number = next_number();
  const Path folder = attempt_.snapshots() / std::to_string(number);
  TRY(os::remove_tree(folder));
  TRY(os::make_directories(folder));
  store::SnapshotOptions options;
  options.threads = store::threads_here(k_hashing_threads_max);
  options.known_as = names_of_checkpoints(view_);
  options.as_left = verdict == nullptr || verdict->as_left;
  options.is_still = verdict == nullptr;
  if (verdict != nullptr) {
    options.bytes_max = spec_.disk_bytes_max;
    options.fingerprints = &fingerprints_;
    options.selection = verdict->selection;
  }
  if (previous_is_there) {
    options.previous = &*previous_;
    options.previous_directory = snapshot_files(attempt_, previous_number_);
  }
  const auto abandon = [&](Error error) {
    (void)os::remove_tree(folder);
    return error;
  };
  auto snapshot = store::take_snapshot(directory, listing, snapshot_files(attempt_, number), options);
  if (!snapshot) return abandon(std::move(snapshot).error());
  const Duration writing = whole_.written_for();
  if (is_known(snapshot->root)) {
    if (verdict != nullptr) whole_.taken(listing);
    return os::remove_tree(folder);
  }
  HeldSnapshot held;
  held.taken_at = clock_.boot();
  held.checkpoint = {number, snapshot->root,       snapshot->tree.total_bytes(), snapshot->tree.file_count(),
                     0,      verdict != nullptr ? how_text(verdict->how) : "left"};
  held.checkpoint.as_left = verdict == nullptr;
  held.checkpoint.torn = verdict == nullptr && any_torn(directory, listing);
  held.checkpoint.provisional = verdict == nullptr || verdict->provisional;
  held.checkpoint.notes = notes_of(verdict, snapshot->notes);
  held.checkpoint.written_ms = std::chrono::duration_cast<std::chrono::milliseconds>(writing).count();
  held.checkpoint.metrics = read_metrics(attempt_.run(newest_launch(attempt_)), metrics_until_);
  auto written = os::write_file_atomically(snapshot_manifest(attempt_, number), as_text(snapshot->manifest));
  if (written) written = os::write_file_atomically(folder / "info", info_text(held));
  if (!written) return abandon(std::move(written).error());
  if (verdict != nullptr) whole_.taken(listing);
  previous_ = std::move(*snapshot);
  previous_number_ = number;
  taken_at_ = held.taken_at;
  {
    const os::MutexLock lock(mutex_);
    held_.push_back(held);
    next_ = number + 1;
  }
  prune(k_keep);
  signal_fd(changed_fd_);
  return {};
}

std::uint64_t CheckpointWatch::held_bytes() const {
  std::uint64_t bytes = 0;
  for (const HeldSnapshot& held : held_) bytes += held.checkpoint.bytes;
  return bytes;
}

// Removes the oldest first: released snapshots, then, over the quota, unreleased ones too; never the newest
// `keep_newest`, and bases of other snapshots only if space is short.
void CheckpointWatch::prune(std::size_t keep_newest) {
  const os::MutexLock lock(mutex_);
  const Bases bases = read_bases(attempt_);
  for (std::size_t spared = 0; held_.size() > keep_newest + spared;) {
    const std::uint64_t number = held_[spared].checkpoint.number;
    const bool released = number < kept_from_;
    const bool crowded = keep_newest < k_keep || (spec_.disk_bytes_max > 0 && held_bytes() > spec_.disk_bytes_max);
    if (!released && !crowded) return;
    if (!crowded && bases.numbers.contains(number) && bases.of + k_bases_last >= held_.back().checkpoint.number) {
      ++spared;
      continue;
    }
    (void)os::remove_tree(attempt_.snapshots() / std::to_string(number));
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(spared));
  }
}

void CheckpointWatch::release(std::uint64_t kept_from) {
  {
    const os::MutexLock lock(mutex_);
    if (kept_from <= kept_from_) return;
    kept_from_ = kept_from;
  }
  prune(k_keep);
}

std::vector<wire::HostCheckpoint> CheckpointWatch::list() const {
  const os::MutexLock lock(mutex_);
  std::vector<wire::HostCheckpoint> checkpoints;
  for (const HeldSnapshot& held : held_) {
    checkpoints.push_back(held.checkpoint);
    checkpoints.back().age_ms = std::max<std::int64_t>(0, (clock_.boot() - held.taken_at).count() / 1'000'000);
  }
  return checkpoints;
}

std::string CheckpointWatch::problem() const {
  const os::MutexLock lock(mutex_);
  return problem_;
}

std::string CheckpointWatch::stalled() const {
  const os::MutexLock lock(mutex_);
  return stalled_;
}

void CheckpointWatch::note_stall(bool taken) {
  stall_.look(last_verdict_, taken, clock_.boot());
  const os::MutexLock lock(mutex_);
  if (stalled_ == stall_.message()) return;
  stalled_ = stall_.message();
  signal_fd(changed_fd_);
}

void CheckpointWatch::set_problem(std::string problem) {
  const os::MutexLock lock(mutex_);
  if (problem_ == problem) return;
  problem_ = std::move(problem);
  signal_fd(changed_fd_);
}

}  // namespace gridctl::agent

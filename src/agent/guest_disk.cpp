// SPDX-License-Identifier: Apache-2.0
#include "agent/guest_disk.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>

#include "agent/foreign_files.hpp"
#include "agent/owner_terms.hpp"
#include "agent/process_tree.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "job/state_words.hpp"
#include "os/entries.hpp"
#include "store/chunk_store.hpp"
#include "store/gc.hpp"

namespace gridctl::agent {

namespace {

constexpr std::uint64_t k_block = 512;      // bytes, of st_blocks
constexpr std::uint64_t k_file_least = 4096;  // bytes that a file counts for: empty ones use up the inodes of a disk
constexpr Duration k_look_least = std::chrono::seconds{1}, k_look_most = std::chrono::minutes{1};
constexpr int k_looks_share = 10;             // a look may take a tenth of the time
constexpr std::uint64_t k_growth_share = 20;  // of the limit, while a larger attempt is being fetched
constexpr std::string_view k_noted = "lend/disk_used";
constexpr const char* k_shared[] = {"cache", "standby", "kept", "snapshots"};

struct Closer {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

class Counter {
 public:
  // Everything below `top`, which follows no link. Returns a folder that cannot be read, if there is one.
  Path count(const Path& top, std::uint64_t& bytes) {
    Path hidden;
    std::vector<Path> open{top};
    while (!open.empty()) {
      const Path folder = std::move(open.back());
      open.pop_back();
      const std::unique_ptr<DIR, Closer> listed(::opendir(folder.c_str()));
      if (!listed && (errno == EACCES || errno == EPERM)) hidden = folder;
      while (const dirent* entry = listed ? ::readdir(listed.get()) : nullptr) {
        const std::string_view name = entry->d_name;
        if (name == "." || name == "..") continue;
        struct stat info {};
        if (::fstatat(::dirfd(listed.get()), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (S_ISDIR(info.st_mode)) open.push_back(folder / name);
        if (info.st_nlink > 1 && !S_ISDIR(info.st_mode) && !linked_.emplace(info.st_dev, info.st_ino).second) continue;
        bytes += std::max(static_cast<std::uint64_t>(info.st_blocks) * k_block, k_file_least);
      }
    }
    return hidden;
  }

 private:
  std::set<std::pair<dev_t, ino_t>> linked_;
};

std::vector<std::string> names_in(const Path& folder) {
  return os::list_directory(folder).value_or(std::vector<std::string>{});
}

void count_job(Counter& counter, const Path& job, DiskUse& use) {
  for (const std::string& epoch : names_in(job)) {
    const Path attempt = job / epoch;
    std::uint64_t bytes = 0;
    if (const Path hidden = counter.count(attempt, bytes); !hidden.empty()) use.hidden[attempt] = hidden;
    use.attempts[attempt] = bytes;
    use.bytes += bytes;
  }
}

}  // namespace

DiskUse measure_disk(const Path& agent_home) {
  DiskUse use;
  Counter counter;
  for (const std::string& controller : names_in(agent_home / wire::k_guests_folder))
    for (const std::string& job : names_in(agent_home / "jobs" / controller)) count_job(counter, agent_home / "jobs" / controller / job, use);
  for (const char* shared : k_shared) counter.count(agent_home / shared, use.bytes);
  return use;
}

void note_disk_use(const Path& agent_home, std::uint64_t bytes) {
  (void)os::write_file_atomically(agent_home / k_noted, std::to_string(bytes));
}

std::uint64_t noted_disk_use(const Path& agent_home) {
  const auto text = os::read_file(agent_home / k_noted, 64);
  return text ? parse_number<std::uint64_t>(trim(*text)).value_or(0) : 0;
}

std::uint64_t free_for(const Path& agent_home, const ControllerId& controller, std::uint64_t free) {
  const auto owner = owner_terms(agent_home, controller);
  if (!owner || !*owner || !(*owner)->terms.disk_bytes) return free;
  const std::uint64_t limit = *(*owner)->terms.disk_bytes;
  return std::min(free, limit - std::min(limit, noted_disk_use(agent_home)));
}

namespace {
struct LeftFolder {
  int worth = 0;  // to a researcher: the least goes first, then the oldest
  std::int64_t changed_ns = 0;
  Path folder;
  auto operator<=>(const LeftFolder&) const = default;
};

// Lists the folders that ended jobs of guests left here, for as long as there is room.
std::vector<LeftFolder> kept_for_guests(const Path& agent_home) {
  std::vector<LeftFolder> all;
  const std::vector<std::string> guests = names_in(agent_home / wire::k_guests_folder);
  for (int worth = 0; const char* place : {"kept", "standby", "snapshots"}) {
    for (const std::string& name : names_in(agent_home / place)) {
      const auto status = os::status_of(agent_home / place / name);
      if (std::ranges::find(guests, name.substr(0, name.find('.'))) == guests.end() || !status || !*status) continue;
      all.push_back({worth, (*status)->mtime_ns, agent_home / place / name});
    }
    ++worth;
  }
  std::ranges::sort(all);
  return all;
}

// Removes until no more than `most` bytes are used. Returns how many are then.
std::uint64_t make_guest_room(const Path& agent_home, std::uint64_t most) {
  store::GcPolicy policy;
  policy.age_min = store::k_gc_age_floor;
  if (auto cache = store::ChunkStore::open(agent_home / "cache")) (void)cache->collect({}, policy);
  std::uint64_t used = measure_disk(agent_home).bytes;
  for (const LeftFolder& one : kept_for_guests(agent_home)) {
    if (used <= most) break;
    std::uint64_t bytes = 0;
    Counter().count(one.folder, bytes);
    if (remove_job_files(one.folder)) used -= std::min(used, bytes);
  }
  return used;
}
}  // namespace

Result<void> room_for_guest(const Path& agent_home, const wire::GuestTerms& terms, std::uint64_t more) {
  if (!terms.disk_bytes) return {};
  const std::uint64_t limit = *terms.disk_bytes;
  const auto fits = [&](std::uint64_t used) { return used < limit && more <= limit - used; };
  std::uint64_t used = measure_disk(agent_home).bytes;
  // Room for a tenth besides: else the next file would come to the same.
  if (!fits(used) && more <= limit) used = make_guest_room(agent_home, std::min(limit - more, limit / 10 * 9));
  note_disk_use(agent_home, used);
  if (fits(used)) return {};
  return make_error(Code::no_space, std::string(job::k_owner_limit) + "lends " + format_size(limit) + " of disk; jobs take " + format_size(used) +
                                        (more > 0 ? ", and " + format_size(more) + " more are wanted" : ""));
}

std::uint64_t nameless_bytes(const std::vector<os::ProcessId>& processes, const Path& folder) {
  struct stat place {};
  if (::stat(folder.c_str(), &place) != 0) return 0;
  std::set<ino_t> seen;
  std::uint64_t bytes = 0;
  for (const os::ProcessId& process : processes) {
    const Path files = "/proc/" + std::to_string(process.pid) + "/fd";
    for (const std::string& name : names_in(files)) {
      struct stat info {};
      if (::stat((files / name).c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
      if (info.st_nlink == 0 && info.st_dev == place.st_dev && seen.insert(info.st_ino).second)
        bytes += static_cast<std::uint64_t>(info.st_blocks) * k_block;
    }
  }
  return bytes;
}

bool has_to_end(const DiskCase& now) {
  if (now.total <= now.limit || now.own < now.largest_running) return false;
  return now.own >= now.largest_ended || now.own > now.allowed;
}

DiskWatch::DiskWatch(AttemptDir attempt, int payload_pid, int changed, os::Clock& clock)
    : attempt_(std::move(attempt)), home_(attempt_.agent_home()), pid_(payload_pid), changed_(changed), clock_(clock) {
  thread_ = std::thread([this] { watch(); });
}

DiskWatch::~DiskWatch() {
  {
    const os::MutexLock lock(mutex_);
    ends_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

std::string DiskWatch::over() const {
  const os::MutexLock lock(mutex_);
  return over_;
}

void DiskWatch::watch() {
  for (Duration rest = k_look_least;;) {
    {
      const os::MutexLock lock(mutex_);
      if (!ends_) wake_.wait_for(mutex_, rest);
      if (ends_) return;
    }
    const BootTime began = clock_.boot();
    std::string over = look();
    rest = std::clamp((clock_.boot() - began) * k_looks_share, k_look_least, k_look_most);
    const os::MutexLock lock(mutex_);
    if (over.empty() || !over_.empty()) continue;
    over_ = std::move(over);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto wrote = ::write(changed_, &one, sizeof one);
  }
}

// The owner may change the limit at any time.
std::string DiskWatch::look() {
  const auto owner = owner_terms(home_, attempt_.controller());
  if (!owner || !*owner || !(*owner)->terms.disk_bytes) return {};
  const DiskUse use = measure_disk(home_);
  note_disk_use(home_, use.bytes);
  DiskCase now;
  now.limit = *(*owner)->terms.disk_bytes;
  std::string lends(job::k_owner_limit);
  lends += "lends " + format_size(now.limit) + " of disk";
  if (const auto hidden = use.hidden.find(attempt_.path); hidden != use.hidden.end())
    return lends + ", and the size of a folder that cannot be read is not known: " +
           hidden->second.lexically_relative(attempt_.path).string();
  std::vector<os::ProcessId> processes = os::descendants(pid_);
  merge(processes, {os::ProcessId{pid_, 0}});
  const std::uint64_t nameless = nameless_bytes(processes, attempt_.path);
  for (const auto& [folder, bytes] : use.attempts) {
    if (folder == attempt_.path) now.own = bytes + nameless;
    else if (lock_holder(AttemptDir{folder}.supervisor_lock())) now.largest_running = std::max(now.largest_running, bytes);
    else now.largest_ended = std::max(now.largest_ended, bytes);
  }
  now.total = use.bytes + nameless;
  if (now.total <= now.limit) allowed_ = 0;
  else if (allowed_ == 0) allowed_ = now.own + now.limit / k_growth_share;
  now.allowed = allowed_;
  if (!has_to_end(now)) return {};
  return lends + ", and jobs take " + format_size(now.total) + ", this one " + format_size(now.own);
}

}  // namespace gridctl::agent

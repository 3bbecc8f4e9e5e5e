// SPDX-License-Identifier: Apache-2.0
// Implements the worker that starts its command once for each task.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/bag_output.hpp"
#include "agent/bag_task.hpp"
#include "agent/bag_worker.hpp"
#include "os/entries.hpp"
#include "store/ignore.hpp"

namespace gridctl::agent {
namespace {

constexpr Duration k_task_grace = std::chrono::seconds{5};  // from TERM to KILL of a task whose time is over
constexpr int k_start_tries = 10;
constexpr std::uint64_t k_files_bytes_max = 256ull << 20;  // of one task: they are fetched before it counts
constexpr std::size_t k_entries_max = 200'000;  // of one walk: a working directory with more is not looked through
constexpr int k_depth_max = 64;
constexpr std::size_t k_pack_piece = 256 * 1024;

// Packs the files that each task of a bag leaves (`outputs`) after its output, so that they are kept and fetched
// together: for each file, a line with the length of its path, its mode in octal and its size, and then path and
// content.
class TaskFiles {
 public:
  TaskFiles(os::Path work, const std::vector<std::string>& patterns);
  [[nodiscard]] bool wanted() const { return !patterns_.empty(); }
  // Files that are in the working directory now belong to no task.
  void begin();
  // Packs the files that the patterns name in the task's folder, or otherwise those changed in the working directory
  // since the last call.
  void pack(const std::string& folder, std::uint64_t bytes_max, const os::Path& run, TaskOutput& into);

 private:
  struct Stamp {
    std::uint64_t inode = 0, size = 0;
    std::int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  using Take = std::function<void(const std::string& path, const struct stat& info)>;
  void walk(const os::Path& root, const std::string& below, bool all, int depth, const Take& take);

  os::Path work_;
  std::vector<store::IgnorePattern> patterns_;
  std::map<std::string, Stamp> seen_;
  std::size_t left_ = 0;  // entries that this walk may still look at
};

std::string below_of(const std::string& folder, const std::string& name) { return folder.empty() ? name : folder + "/" + name; }

// A file that shrinks in the meantime is padded, because its size was already written.
void pack_file(const os::Path& file, const std::string& path, const struct stat& info, std::uint64_t bytes_max,
               const os::Path& run, TaskOutput& into) {
  const auto opened = os::open_file(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (!opened) return;
  const auto size = static_cast<std::uint64_t>(info.st_size);
  std::array<char, 64> head{};
  std::snprintf(head.data(), head.size(), "%zu %o %llu\n", path.size(), static_cast<unsigned>(info.st_mode & 0777),
                static_cast<unsigned long long>(size));
  into.add(head.data() + path, bytes_max, run);
  std::string piece;
  for (std::uint64_t at = 0; at < size; at += piece.size()) {
    piece.assign(std::min<std::uint64_t>(k_pack_piece, size - at), '\0');
    (void)os::read_exactly(opened->get(), reinterpret_cast<std::byte*>(piece.data()), piece.size(), at);
    into.add(piece, bytes_max, run);
  }
}

TaskFiles::TaskFiles(os::Path work, const std::vector<std::string>& patterns) : work_(std::move(work)) {
  for (const std::string& text : patterns) {
    store::IgnorePattern pattern;
    if (store::IgnorePattern::parse(text, pattern)) patterns_.push_back(pattern);
  }
}

void TaskFiles::walk(const os::Path& root, const std::string& below, bool all, int depth, const Take& take) {
  const auto names = os::list_directory(below.empty() ? root : root / below);
  if (!names || depth > k_depth_max) return;
  for (const std::string& name : *names) {
    if (left_ == 0) return;
    --left_;
    const std::string path = below_of(below, name);
    struct stat info {};
    if (::lstat((root / path).c_str(), &info) != 0) continue;
    const bool folder = S_ISDIR(info.st_mode);
    const bool named = all || std::ranges::any_of(patterns_, [&](const auto& one) { return one.matches(path, folder); });
    if (folder) walk(root, path, named, depth + 1, take);
    else if (named && S_ISREG(info.st_mode)) take(path, info);
  }
}

void TaskFiles::begin() {
  if (!wanted()) return;
  TaskOutput none;
  pack("", 0, work_, none);
}

void TaskFiles::pack(const std::string& folder, std::uint64_t bytes_max, const os::Path& run, TaskOutput& into) {
  left_ = k_entries_max;
  const os::Path root = folder.empty() ? work_ : os::Path(folder);
  walk(root, "", false, 0, [&](const std::string& path, const struct stat& info) {
    if (folder.empty()) {
      const Stamp stamp{static_cast<std::uint64_t>(info.st_ino), static_cast<std::uint64_t>(info.st_size),
                        std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
      if (std::exchange(seen_[path], stamp) == stamp) return;
    }
    if (bytes_max > 0) pack_file(root / path, path, info, bytes_max, run, into);
  });
}

class TaskWorker final : public BagWorker {
 public:
  TaskWorker(const InitPlan& plan, const wire::BagSpec& spec, BagCommand command, ResultWriter results, Board board)
      : BagWorker(plan, spec, std::move(command), std::move(results), std::move(board)),
        input_(spec.stdin_from, true),
        files_(plan.work, spec.outputs),
        slots_(spec.slots) {
    files_.begin();
  }

 private:
  void fill() override;
  [[nodiscard]] bool is_busy() const override { return busy_ > 0; }
  void add_polls(std::vector<pollfd>& polls) const override;
  void take_output(const std::vector<int>& ready) override;
  bool take_end(pid_t pid) override;
  [[nodiscard]] std::optional<BootTime> due() const override;
  void act_on_time() override;
  void end_all(BootTime kill_at) override;

  [[nodiscard]] bool start(std::size_t slot, const BagTask& task);
  [[nodiscard]] Result<os::Fd> input_of(const BagTask& task, std::uint32_t slot) const;
  [[nodiscard]] Result<std::string> folder_of(const BagTask& task) const;

  job::TaskTemplate input_;
  TaskFiles files_;
  std::vector<std::optional<RunningTask>> slots_;
  std::size_t busy_ = 0;
  int tries_ = 0;  // to start the next one
};

void TaskWorker::fill() {
  for (std::size_t slot = 0; slot < slots_.size() && queue_.size() > 0; ++slot) {
    if (slots_[slot]) continue;
    if (!has_room(slots_.size() + 1)) return;
    const BagTask task = *queue_.next();
    if (start(slot, task)) {
      tries_ = 0;
      continue;
    }
    queue_.put_back(task);
    again_at_ = now() + k_bag_try_again;
    return;
  }
}

Result<os::Fd> TaskWorker::input_of(const BagTask& task, std::uint32_t slot) const {
  if (spec_.stdin_from.empty()) return os::Fd();
  if (spec_.stdin_from != wire::k_stdin_item) return os::open_file(input_.fill(task.index, task.item.value_or(""), slot, false), O_RDONLY | O_NOCTTY);
  TRY_ASSIGN(os::Fd file, os::open_memory());
  TRY(os::write_all(file.get(), as_bytes(task.item.value_or("") + "\n")));
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

Result<std::string> TaskWorker::folder_of(const BagTask& task) const {
  if (!spec_.folder) return std::string();
  const os::Path folder = plan_.work / "tasks" / std::to_string(task.index);
  TRY(os::make_directories(folder, 0755));
  return folder.string();
}

// Returns false if nothing can be started now.
bool TaskWorker::start(std::size_t slot, const BagTask& task) {
  const auto number = static_cast<std::uint32_t>(slot + 1);
  const auto folder = folder_of(task);
  if (!folder) return refuse(task, folder.error().one_line()), true;
  auto own = bag_variables(task, spec_, number, *folder);
  if (!own) return refuse(task, own.error().one_line()), true;
  const Result<os::Fd> input = input_of(task, number);
  if (!input) return refuse(task, input.error().one_line()), true;

  const int in = input->valid() ? input->get() : nothing_.get();
  TaskLaunch launch{command_.words(task, number), variables_with(*own), in, spec_.split};
  board_.set(slot, task.index);  // before it can kill the runner
  RunningTask running(task);
  int failed = running.start(launch, clock_);
  const bool lacks = failed == EAGAIN || failed == ENOMEM || failed == EMFILE || failed == ENFILE;
  if (failed != 0 && !lacks) {  // a shell tells best what is wrong, and runs what only a shell can
    launch.words = command_.shell_words(task, number);
    failed = running.start(launch, clock_);
  }
  if (failed != 0) board_.set(slot, std::nullopt);
  if (failed != 0 && lacks && ++tries_ < k_start_tries) return false;
  if (failed != 0) return refuse(task, std::string("cannot start the task: ") + std::strerror(failed)), true;
  slots_[slot] = std::move(running);
  ++busy_;
  return true;
}

void TaskWorker::add_polls(std::vector<pollfd>& polls) const {
  for (const auto& slot : slots_)
    if (slot) slot->add_polls(polls);
}

void TaskWorker::take_output(const std::vector<int>& ready) {
  for (auto& slot : slots_)
    if (slot && slot->is_among(ready)) slot->drain(spec_.output_bytes_max, plan_.run);
}

bool TaskWorker::take_end(pid_t pid) {
  const auto slot = std::ranges::find_if(slots_, [&](const auto& one) { return one && one->pid() == pid; });
  if (slot == slots_.end()) return false;
  wire::TaskResult result = (*slot)->finish(spec_.output_bytes_max, plan_.run, clock_);
  if (result.end == wire::TaskEnd::ended && was_out_of_memory(result)) result.end = wire::TaskEnd::oom;
  const TaskOutput& said = spec_.split ? (*slot)->errors() : (*slot)->output();
  if (result.end == wire::TaskEnd::ended && !result.succeeded() && said.tells_of_a_full_disk()) result.end = wire::TaskEnd::no_space;
  TaskOutput files;
  if (files_.wanted()) files_.pack(*folder_of((*slot)->task()), k_files_bytes_max, plan_.run, files);
  keep((*slot)->output(), spec_.split ? &(*slot)->errors() : nullptr, result, files_.wanted() ? &files : nullptr);
  record(result);
  slot->reset();
  board_.set(static_cast<std::size_t>(slot - slots_.begin()), std::nullopt);
  --busy_;
  return true;
}

std::optional<BootTime> TaskWorker::due() const {
  std::optional<BootTime> first;
  for (const auto& slot : slots_) {
    if (!slot) continue;
    std::optional<BootTime> at = slot->kill_at();
    if (!at && spec_.timeout > Duration{}) at = slot->began() + spec_.timeout;
    if (at && (!first || *at < *first)) first = at;
  }
  return first;
}

void TaskWorker::act_on_time() {
  for (auto& slot : slots_) {
    if (!slot) continue;
    if (!slot->is_ending() && spec_.timeout > Duration{} && now() >= slot->began() + spec_.timeout)
      slot->ask_to_end(wire::TaskEnd::timeout, now() + k_task_grace);
    if (slot->kill_at() && now() >= *slot->kill_at()) slot->kill(now() + k_bag_try_again);
  }
}

void TaskWorker::end_all(BootTime kill_at) {
  for (auto& slot : slots_)
    if (slot) slot->ask_to_end(wire::TaskEnd::stopped, kill_at);
}

}  // namespace

std::unique_ptr<BagWorker> make_task_worker(const InitPlan& plan, const wire::BagSpec& spec, BagCommand command,
                                            ResultWriter results, Board board) {
  return std::make_unique<TaskWorker>(plan, spec, std::move(command), std::move(results), std::move(board));
}

}  // namespace gridctl::agent

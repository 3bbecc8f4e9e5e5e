// SPDX-License-Identifier: Apache-2.0
#include "agent/ledger.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/text.hpp"
#include "wire/frame.hpp"

namespace gridctl::agent {
namespace {

constexpr std::size_t k_slot_bytes = 16 * 1024;  // 256 GPU ids of 60 bytes fit
constexpr std::size_t k_slots_max = 4096;        // attempts of one machine; bounds what a damaged file makes us read
constexpr std::size_t k_head_bytes = 12;
constexpr std::string_view k_slot_magic = "GLS1";
constexpr Duration k_void_slack = std::chrono::seconds{60};  // after deadline + grace: init's own last line has acted
constexpr Duration k_lock_wait = std::chrono::seconds{10};   // another user may hold the lock; then busy, not a hang
constexpr Duration k_glance_wait = std::chrono::milliseconds{20};  // a write takes less; heartbeats must not wait
constexpr double k_cpu_tolerance = 1e-6;

template <class Number>
bool read_number(std::string_view text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc{} && end == text.data() + text.size();
}

bool read_process(std::string_view text, os::ProcessId& into) {
  const auto cut = text.find(' ');
  return cut != std::string_view::npos && read_number(text.substr(0, cut), into.pid) &&
         read_number(text.substr(cut + 1), into.start_ticks);
}

void put_number(std::string& into, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) into.push_back(static_cast<char>(value >> shift));
}

std::uint32_t get_number(std::string_view from) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(from[static_cast<std::size_t>(i)]);
  return value;
}

std::string encode_slot(const Lease& lease) {
  const std::string text = to_text(lease);
  std::string slot(k_slot_magic);
  put_number(slot, static_cast<std::uint32_t>(text.size()));
  put_number(slot, wire::crc32(text));
  return slot + text;
}

std::optional<Lease> decode_slot(std::string_view slot) {
  if (slot.size() < k_head_bytes || slot.substr(0, 4) != k_slot_magic) return std::nullopt;
  const std::size_t length = get_number(slot.substr(4));
  if (length > slot.size() - k_head_bytes) return std::nullopt;
  const auto text = slot.substr(k_head_bytes, length);
  return get_number(slot.substr(8)) == wire::crc32(text) ? parse_lease(text) : std::nullopt;
}

std::string process_text(const os::ProcessId& process) {
  return std::to_string(process.pid) + " " + std::to_string(process.start_ticks);
}

std::string until(const Lease& lease, BootTime now) {
  const Duration left = lease.deadline - now;
  return left > Duration{} ? "at the latest in " + format_duration(std::chrono::ceil<std::chrono::seconds>(left))
                           : "when its holder has ended";
}

}  // namespace

Capacity machine_capacity() {
  Capacity capacity;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) capacity.cpus = CPU_COUNT(&set);
  struct sysinfo info {};
  if (::sysinfo(&info) == 0) capacity.memory_bytes = static_cast<std::uint64_t>(info.totalram) * info.mem_unit;
  return capacity;
}

Machine Machine::real() {
  struct stat space {};
  const bool known = ::stat("/proc/self/ns/pid", &space) == 0;
  return {os::boot_id(), known ? static_cast<std::uint64_t>(space.st_ino) : 0, [](const os::ProcessId& process) {
            if (process.pid <= 0) return false;
            if (os::is_alive(process)) return true;
            // With hidepid another user's /proc entry looks absent though the process lives.
            const bool hidden = ::access(("/proc/" + std::to_string(process.pid) + "/stat").c_str(), R_OK) != 0;
            return hidden && ::kill(process.pid, 0) != 0 && errno == EPERM;
          }};
}

bool is_void(const Lease& lease, const Machine& machine, BootTime now) {
  if (lease.boot_id != machine.boot_id) return true;
  const bool overdue = now > lease.deadline + lease.grace + k_void_slack;
  if (lease.pid_namespace != machine.pid_namespace) return overdue;  // its pids tell us nothing
  if (machine.alive(lease.supervisor) || machine.alive(lease.payload)) return false;
  return !lease.launching || overdue;
}

Result<Entry> plan_take(const std::vector<std::optional<Lease>>& slots, const Lease& lease, const Capacity& capacity,
                        const Machine& machine, BootTime now) {
  Entry entry{slots.size(), {}};
  double cpus = 0;
  std::uint64_t memory = 0;
  BootTime soonest{INT64_MAX};
  const Lease* holder = nullptr;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto& held = slots[i];
    if (held && held->same_attempt(lease)) {
      entry.replaces.push_back(i);
      continue;
    }
    if (!held || is_void(*held, machine, now)) {
      entry.slot = std::min(entry.slot, i);
      continue;
    }
    for (const std::string& gpu : lease.gpus)
      if (std::find(held->gpus.begin(), held->gpus.end(), gpu) != held->gpus.end())
        return make_error(Code::busy, "gpu " + sanitize(gpu) + " is leased; it is free " + until(*held, now));
    cpus += held->cpus;
    memory += held->memory_bytes;
    if ((held->cpus > 0 || held->memory_bytes > 0) && held->deadline < soonest)
      soonest = held->deadline, holder = &*held;
  }
  const std::string next = holder == nullptr ? "" : "; some is free " + until(*holder, now);
  if (lease.cpus > 0 && capacity.cpus > 0 && cpus + lease.cpus > capacity.cpus + k_cpu_tolerance)
    return make_error(Code::busy, "not enough CPUs are free on this host" + next);
  if (lease.memory_bytes > 0 && capacity.memory_bytes > 0 && memory + lease.memory_bytes > capacity.memory_bytes)
    return make_error(Code::busy, "not enough memory is free on this host" + next);
  if (entry.slot >= k_slots_max) return make_error(Code::busy, "the lease ledger is full");
  return entry;
}

std::string to_text(const Lease& lease) {
  char cpus[32];
  const auto printed = std::to_chars(cpus, cpus + sizeof cpus, lease.cpus, std::chars_format::fixed, 3);
  std::string text = "controller=" + lease.controller.value + "\njob=" + lease.job.value +
                     "\nepoch=" + std::to_string(lease.epoch.value) + "\nuid=" + std::to_string(lease.uid) +
                     "\nboot=" + lease.boot_id + "\npidns=" + std::to_string(lease.pid_namespace) +
                     "\nsupervisor=" + process_text(lease.supervisor) + "\npayload=" + process_text(lease.payload) +
                     "\nlaunching=" + (lease.launching ? "1" : "0") +
                     "\ndeadline=" + std::to_string(lease.deadline.ns) +
                     "\ngrace=" + std::to_string(lease.grace.count()) + "\ncpus=" + std::string(cpus, printed.ptr) +
                     "\nmemory=" + std::to_string(lease.memory_bytes) + "\n";
  for (const std::string& gpu : lease.gpus) text += "gpu=" + gpu + "\n";
  return text;
}

std::optional<Lease> parse_lease(std::string_view text) {
  Lease lease;
  std::int64_t grace = 0;
  for (const std::string& line : split_lines(text)) {
    const auto cut = line.find('=');
    if (cut == std::string::npos) return std::nullopt;
    const std::string key = line.substr(0, cut), value = line.substr(cut + 1);
    bool good = true;
    if (key == "controller") lease.controller.value = value;
    if (key == "job") lease.job.value = value;
    if (key == "boot") lease.boot_id = value;
    if (key == "gpu") lease.gpus.push_back(value);
    if (key == "launching") lease.launching = value == "1";
    if (key == "epoch") good = read_number(value, lease.epoch.value);
    if (key == "uid") good = read_number(value, lease.uid);
    if (key == "pidns") good = read_number(value, lease.pid_namespace);
    if (key == "deadline") good = read_number(value, lease.deadline.ns);
    if (key == "grace") good = read_number(value, grace);
    if (key == "cpus") good = read_number(value, lease.cpus);
    if (key == "memory") good = read_number(value, lease.memory_bytes);
    if (key == "supervisor") good = read_process(value, lease.supervisor);
    if (key == "payload") good = read_process(value, lease.payload);
    if (!good) return std::nullopt;
  }
  lease.grace = Duration{grace};
  if (lease.controller.empty() || lease.job.empty() || lease.boot_id.empty()) return std::nullopt;
  return lease;
}

// The open and locked file with what it held.
struct Ledger::Slots {
  os::Fd file;
  std::vector<std::optional<Lease>> leases;

  Result<void> write(std::size_t slot, const std::string& content) const {
    std::string padded = content;
    padded.resize(k_slot_bytes, '\0');
    const auto wrote = ::pwrite(file.get(), padded.data(), padded.size(), static_cast<off_t>(slot * k_slot_bytes));
    if (wrote != static_cast<ssize_t>(padded.size()))
      return errno_error(wrote < 0 ? errno : ENOSPC, "cannot write the lease ledger");
    return {};
  }
};

namespace {

Result<os::Fd> open_shared(const os::Path& directory) {
  const os::Path path = directory / "ledger";
  for (int tries = 0; tries < 100; ++tries) {
    // Without O_CREAT: fs.protected_regular refuses O_CREAT on another user's file in a sticky folder.
    if (const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW); fd >= 0) return os::Fd(fd);
    if (errno == ENOENT) {
      if (::mkdir(directory.c_str(), 0700) == 0 && ::chmod(directory.c_str(), 01777) != 0)
        return errno_error(errno, "cannot open up the lease folder " + directory.string());
      const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
      if (fd >= 0) {
        os::Fd made(fd);
        if (::fchmod(fd, 0666) != 0) return errno_error(errno, "cannot share the lease ledger");  // the umask took bits
        return made;
      }
      if (errno == EEXIST) continue;
    }
    // Another user may be between creating the file or folder and opening it up.
    if (errno != EACCES) break;
    const timespec moment{0, 2'000'000};
    ::nanosleep(&moment, nullptr);
  }
  return errno_error(errno, "cannot open the lease ledger " + path.string());
}

Result<void> lock_shared(int fd, Duration patience, os::Clock& clock) {
  const BootTime give_up = clock.boot() + patience;
  for (long wait_ns = 100'000; ::flock(fd, LOCK_EX | LOCK_NB) != 0; wait_ns = std::min(wait_ns * 2, 4'000'000L)) {
    if (errno != EWOULDBLOCK && errno != EINTR) return errno_error(errno, "cannot lock the lease ledger");
    if (clock.boot() > give_up)
      return make_error(Code::busy, "the lease ledger is locked by another process for " + format_duration(patience));
    const timespec moment{0, wait_ns};
    ::nanosleep(&moment, nullptr);
  }
  return {};
}

}  // namespace

Result<Ledger::Slots> Ledger::open(Duration patience) const {
  TRY_ASSIGN(os::Fd file, open_shared(directory_));
  TRY(lock_shared(file.get(), patience, clock_));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return errno_error(errno, "cannot read the lease ledger");
  const auto count = std::min(static_cast<std::size_t>(info.st_size) / k_slot_bytes, k_slots_max);
  std::string content(count * k_slot_bytes, '\0');
  TRY(os::read_exactly(file.get(), reinterpret_cast<std::byte*>(content.data()), content.size(), 0));
  Slots slots{std::move(file), {}};
  for (std::size_t i = 0; i < count; ++i)
    slots.leases.push_back(decode_slot(std::string_view(content).substr(i * k_slot_bytes, k_slot_bytes)));
  return slots;
}

Result<void> Ledger::take(const Lease& lease, const Capacity& capacity) {
  TRY_ASSIGN(const Slots slots, open(k_lock_wait));
  TRY_ASSIGN(const Entry entry, plan_take(slots.leases, lease, capacity, machine_, clock_.boot()));
  TRY(slots.write(entry.slot, encode_slot(lease)));
  for (const std::size_t slot : entry.replaces) TRY(slots.write(slot, {}));
  return {};
}

Result<void> Ledger::release(const ControllerId& controller, const JobId& job, Epoch epoch) {
  Lease key;
  key.controller = controller, key.job = job, key.epoch = epoch;
  TRY_ASSIGN(const Slots slots, open(k_lock_wait));
  for (std::size_t i = 0; i < slots.leases.size(); ++i)
    if (slots.leases[i] && slots.leases[i]->same_attempt(key)) TRY(slots.write(i, {}));
  return {};
}

Result<std::vector<Lease>> Ledger::valid() {
  TRY_ASSIGN(const Slots slots, open(k_lock_wait));
  return valid_of(slots);
}

Result<std::vector<Lease>> Ledger::glance() {
  TRY_ASSIGN(const Slots slots, open(k_glance_wait));
  return valid_of(slots);
}

std::vector<Lease> Ledger::valid_of(const Slots& slots) const {
  std::vector<Lease> found;
  for (const auto& held : slots.leases) {
    if (!held || is_void(*held, machine_, clock_.boot())) continue;
    const auto twin =
        std::find_if(found.begin(), found.end(), [&](const Lease& other) { return other.same_attempt(*held); });
    if (twin == found.end()) found.push_back(*held);
  }
  return found;
}

Result<std::optional<Lease>> Ledger::find(const ControllerId& controller, const JobId& job, Epoch epoch) {
  Lease key;
  key.controller = controller, key.job = job, key.epoch = epoch;
  TRY_ASSIGN(const Slots slots, open(k_lock_wait));
  for (const auto& held : slots.leases)
    if (held && held->same_attempt(key)) return held;
  return std::optional<Lease>{};
}

}  // namespace gridctl::agent

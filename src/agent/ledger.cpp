// SPDX-License-Identifier: Apache-2.0
#include "agent/ledger.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>

#include "agent/attempt_dir.hpp"
#include "agent/ledger_files.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/random.hpp"
#include "wire/frame.hpp"

namespace gridctl::agent {
namespace {

constexpr std::size_t k_slot_bytes = 16 * 1024;  // 256 GPU ids of 60 bytes fit
constexpr std::size_t k_slots_max = 4096;        // attempts of one machine; bounds what a damaged file makes us read
constexpr std::size_t k_head_bytes = 12;
constexpr std::string_view k_slot_magic = "GLS1";
constexpr Duration k_void_slack = std::chrono::seconds{60};  // after deadline + grace: init's own last line has acted
constexpr Duration k_lock_wait = std::chrono::seconds{10};   // our other processes hold it for a moment only
constexpr std::uint64_t k_cgroup_bytes_max = 64 * 1024;
constexpr std::array<std::string_view, 3> k_engine_groups{"docker", "libpod", "containerd"};
constexpr double k_cpu_tolerance = 1e-6;
constexpr double k_cpus_max = 1e6;                      // of one lease,
constexpr std::uint64_t k_memory_max = 1ull << 50;      // a pebibyte,
constexpr std::int64_t k_ns_max = 1'000'000'000'000'000'000;  // 31 years

bool read_process(std::string_view text, os::ProcessId& into) {
  const auto cut = text.find(' ');
  return cut != std::string_view::npos && parse_into(text.substr(0, cut), into.pid) &&
         parse_into(text.substr(cut + 1), into.start_ticks);
}

std::string encode_slot(const Lease& lease) {
  const std::string text = to_text(lease);
  std::string slot(k_slot_magic);
  append_number(slot, static_cast<std::uint32_t>(text.size()));
  append_number(slot, wire::crc32(text));
  return slot + text;
}

std::optional<Lease> decode_slot(std::string_view slot) {
  if (slot.size() < k_head_bytes || slot.substr(0, 4) != k_slot_magic) return std::nullopt;
  const std::size_t length = number_at(slot, 4);
  if (length > slot.size() - k_head_bytes) return std::nullopt;
  const auto text = slot.substr(k_head_bytes, length);
  return number_at(slot, 8) == wire::crc32(text) ? parse_lease(text) : std::nullopt;
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
            // With hidepid, another user's /proc entry looks absent although the process lives.
            const bool hidden = ::access(("/proc/" + std::to_string(process.pid) + "/stat").c_str(), R_OK) != 0;
            return hidden && ::kill(process.pid, 0) != 0 && errno == EPERM;
          },
          [](const os::ProcessId& process, unsigned user) {
            const std::string entry = "/proc/" + std::to_string(process.pid);
            struct stat owner {};
            if (user == 0 || ::stat(entry.c_str(), &owner) != 0 || owner.st_uid == user) return true;
            // Engines run containers as other users.
            const std::string group = os::read_file(entry + "/cgroup", k_cgroup_bytes_max).value_or("");
            return std::ranges::any_of(k_engine_groups,
                                       [&](std::string_view name) { return group.find(name) != std::string::npos; });
          }};
}

Lease our_lease(ControllerId controller, JobId job, Epoch epoch) {
  Machine machine = Machine::real();
  Lease lease;
  lease.controller = std::move(controller);
  lease.job = std::move(job);
  lease.epoch = epoch;
  lease.uid = ::geteuid();
  lease.boot_id = std::move(machine.boot_id);
  lease.pid_namespace = machine.pid_namespace;
  return lease;
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
    if (held && held->uid == lease.uid && held->same_attempt(lease)) {  // another user's twin replaces nothing
      entry.replaces.push_back(i);
      continue;
    }
    if (!held || is_void(*held, machine, now)) {
      entry.slot = std::min(entry.slot, i);
      continue;
    }
    for (const std::string& gpu : lease.gpus)
      if (std::ranges::find(held->gpus, gpu) != held->gpus.end())
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

namespace {
// Reads the value of one key; returns false for another key.
struct LeaseKey {
  std::string_view key;
  bool (*read)(const std::string& value, Lease& lease);
};
bool read_grace(const std::string& value, Lease& lease) {
  std::int64_t ns = 0;
  const bool good = parse_into(value, ns);
  lease.grace = Duration{ns};
  return good;
}
constexpr LeaseKey k_lease_keys[] = {
    {"controller", [](const std::string& v, Lease& l) { return l.controller.value = v, true; }},
    {"job", [](const std::string& v, Lease& l) { return l.job.value = v, true; }},
    {"boot", [](const std::string& v, Lease& l) { return l.boot_id = v, true; }},
    {"gpu", [](const std::string& v, Lease& l) { return l.gpus.push_back(v), true; }},
    {"launching", [](const std::string& v, Lease& l) { return l.launching = v == "1", true; }},
    {"epoch", [](const std::string& v, Lease& l) { return parse_into(v, l.epoch.value); }},
    {"uid", [](const std::string& v, Lease& l) { return parse_into(v, l.uid); }},
    {"pidns", [](const std::string& v, Lease& l) { return parse_into(v, l.pid_namespace); }},
    {"deadline", [](const std::string& v, Lease& l) { return parse_into(v, l.deadline.ns); }},
    {"grace", read_grace},
    {"cpus", [](const std::string& v, Lease& l) { return parse_into(v, l.cpus); }},
    {"memory", [](const std::string& v, Lease& l) { return parse_into(v, l.memory_bytes); }},
    {"supervisor", [](const std::string& v, Lease& l) { return read_process(v, l.supervisor); }},
    {"payload", [](const std::string& v, Lease& l) { return read_process(v, l.payload); }},
};
}  // namespace

std::optional<Lease> parse_lease(std::string_view text) {
  Lease lease;
  for (const std::string& line : split_lines(text)) {
    const auto cut = line.find('=');
    if (cut == std::string::npos) return std::nullopt;
    const auto known = std::ranges::find(k_lease_keys, std::string_view(line).substr(0, cut), &LeaseKey::key);
    if (known != std::end(k_lease_keys) && !known->read(line.substr(cut + 1), lease)) return std::nullopt;
  }
  // Other users write these values, so their sums must stay numbers.
  if (!std::isfinite(lease.cpus) || lease.cpus < 0 || lease.cpus > k_cpus_max || lease.memory_bytes > k_memory_max ||
      lease.deadline.ns < 0 || lease.deadline.ns > k_ns_max || lease.grace.count() < 0 || lease.grace.count() > k_ns_max)
    return std::nullopt;
  if (lease.controller.empty() || lease.job.empty() || lease.boot_id.empty()) return std::nullopt;
  return lease;
}

namespace {

std::vector<Lease> leases_in(std::string_view content) {
  std::vector<Lease> leases;
  for (std::size_t at = 0; at + k_head_bytes <= content.size() && leases.size() < k_slots_max; at += k_slot_bytes)
    if (auto lease = decode_slot(content.substr(at, k_slot_bytes))) leases.push_back(*std::move(lease));
  return leases;
}

std::string content_of(const std::vector<Lease>& leases) {
  std::string content;
  for (const Lease& lease : leases) {
    content += encode_slot(lease);
    content.resize((content.size() + k_slot_bytes - 1) / k_slot_bytes * k_slot_bytes, '\0');
  }
  return content;
}

std::vector<std::optional<Lease>> as_slots(const std::vector<Lease>& own, const std::vector<Lease>& others) {
  std::vector<std::optional<Lease>> slots(own.begin(), own.end());
  slots.insert(slots.end(), others.begin(), others.end());
  return slots;
}

// Two users who claim the same at once see each other and both withdraw; then the one that waits less comes first.
constexpr int k_claims = 6;
void wait_at_random(int before) {
  const auto most = static_cast<std::uint64_t>(std::chrono::nanoseconds{std::chrono::milliseconds{2 << before}}.count());
  os::pause_for(Duration{static_cast<std::int64_t>(os::random_u64() % most)});
}

}  // namespace

bool is_believed(const Lease& lease, unsigned owner, const Machine& machine) {
  if (lease.uid != owner) return false;
  if (!machine.owned) return true;
  return (!machine.alive(lease.supervisor) || machine.owned(lease.supervisor, owner)) &&
         (!machine.alive(lease.payload) || machine.owned(lease.payload, owner));
}

Result<std::vector<Lease>> Ledger::others(const LedgerFolder& folder) const {
  TRY_ASSIGN(const std::vector<LedgerFile> files, folder.others());
  std::vector<Lease> leases;
  for (const LedgerFile& file : files)
    for (Lease& lease : leases_in(file.content))
      if (is_believed(lease, file.owner, machine_)) leases.push_back(std::move(lease));
  return leases;
}

Result<void> Ledger::take(const Lease& lease, const Capacity& capacity) {
  TRY_ASSIGN(const LedgerFolder folder, LedgerFolder::open(directory_));
  TRY_ASSIGN(const LedgerFolder::Own own, folder.lock_own(k_lock_wait, clock_));
  TRY_ASSIGN(const std::string before, own.read());
  std::vector<Lease> ours = leases_in(before);
  std::erase_if(ours, [&](const Lease& held) { return is_void(held, machine_, clock_.boot()); });
  std::vector<Lease> claimed = ours;
  std::erase_if(claimed, [&](const Lease& held) { return held.same_attempt(lease); });
  claimed.push_back(lease);
  for (int claims = 0;; ++claims) {
    TRY_ASSIGN(std::vector<Lease> theirs, others(folder));
    const auto planned = plan_take(as_slots(ours, theirs), lease, capacity, machine_, clock_.boot());
    if (!planned) return planned.error();
    TRY(own.write(content_of(claimed)));
    // A claim made at the same moment either sees this one, or is seen now.
    TRY_ASSIGN(theirs, others(folder));
    const auto alone = plan_take(as_slots(ours, theirs), lease, capacity, machine_, clock_.boot());
    if (alone) return {};
    TRY(own.write(content_of(ours)));
    if (claims == k_claims) return alone.error();
    wait_at_random(claims);
  }
}

Result<void> Ledger::hand_over(const Lease& lease, const os::ProcessId& from) {
  TRY_ASSIGN(const LedgerFolder folder, LedgerFolder::open(directory_));
  TRY_ASSIGN(const LedgerFolder::Own own, folder.lock_own(k_lock_wait, clock_));
  TRY_ASSIGN(const std::string before, own.read());
  std::vector<Lease> ours = leases_in(before);
  const auto entry =
      std::ranges::find_if(ours, [&](const Lease& held) { return held.same_attempt(lease) && held.supervisor == from; });
  if (entry == ours.end()) return {};
  *entry = lease;
  return own.write(content_of(ours));
}

Result<void> Ledger::release(const ControllerId& controller, const JobId& job, Epoch epoch) {
  Lease key;
  key.controller = controller, key.job = job, key.epoch = epoch;
  TRY_ASSIGN(const LedgerFolder folder, LedgerFolder::open(directory_));
  TRY_ASSIGN(const LedgerFolder::Own own, folder.lock_own(k_lock_wait, clock_));
  TRY_ASSIGN(const std::string before, own.read());
  std::vector<Lease> ours = leases_in(before);
  if (std::erase_if(ours, [&](const Lease& held) { return held.same_attempt(key); }) == 0) return {};
  return own.write(content_of(ours));
}

Result<std::vector<Lease>> Ledger::valid() const {
  TRY_ASSIGN(const LedgerFolder folder, LedgerFolder::open(directory_));
  TRY_ASSIGN(const std::string own, folder.own());
  TRY_ASSIGN(const std::vector<Lease> theirs, others(folder));
  std::vector<Lease> found;
  const std::vector<Lease> ours = leases_in(own);
  for (const std::vector<Lease>* list : {&ours, &theirs})  // ours first: nobody's twin hides them
    for (const Lease& held : *list) {
      const bool again = std::ranges::any_of(
          found, [&](const Lease& other) { return other.uid == held.uid && other.same_attempt(held); });
      if (!again && !is_void(held, machine_, clock_.boot())) found.push_back(held);
    }
  return found;
}

Result<std::optional<Lease>> Ledger::find(const ControllerId& controller, const JobId& job, Epoch epoch) const {
  Lease key;
  key.controller = controller, key.job = job, key.epoch = epoch;
  TRY_ASSIGN(const LedgerFolder folder, LedgerFolder::open(directory_));
  TRY_ASSIGN(const std::string own, folder.own());
  for (const Lease& held : leases_in(own))
    if (held.same_attempt(key)) return std::optional{held};
  return std::optional<Lease>{};
}

namespace {
constexpr std::size_t k_gpu_id_max = 128;            // bytes; a UUID has 40
constexpr std::size_t k_held_bytes_max = 64 * 1024;  // of GPU ids in one reply
}  // namespace

// Every user can write the ledger, so entries that would make the reply too large or unreadable are left out.
std::optional<std::vector<wire::HeldShare>> shares_of(const std::vector<Lease>& leases, const ControllerId& asking) {
  if (leases.size() > wire::k_held_max) return std::nullopt;
  std::vector<wire::HeldShare> shares;
  std::size_t bytes = 0;
  for (const Lease& lease : leases) {
    const bool sane = std::isfinite(lease.cpus) && lease.cpus >= 0;
    wire::HeldShare share{{}, {}, {}, sane ? lease.cpus : 0, lease.memory_bytes};
    for (const std::string& gpu : lease.gpus)
      if (gpu.size() <= k_gpu_id_max) share.gpu_uuids.push_back(gpu), bytes += gpu.size();
    if (lease.controller == asking && check_component("a job", lease.job.value))
      share.job = lease.job, share.epoch = lease.epoch;
    shares.push_back(std::move(share));
  }
  if (bytes > k_held_bytes_max) return std::nullopt;
  return shares;
}

std::optional<std::vector<wire::HeldShare>> held_shares(Ledger& ledger, const ControllerId& asking) {
  const Result<std::vector<Lease>> leases = ledger.valid();
  if (!leases) return std::nullopt;
  return shares_of(*leases, asking);
}

}  // namespace gridctl::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/guest.hpp"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <thread>
#include <utility>

#include "agent/attempt_dir.hpp"
#include "agent/bench.hpp"
#include "agent/engine.hpp"
#include "agent/guest_disk.hpp"
#include "agent/guest_images.hpp"
#include "agent/guest_receipts.hpp"
#include "agent/health.hpp"
#include "agent/host_folders.hpp"
#include "agent/ledger.hpp"
#include "agent/network.hpp"
#include "agent/owner_terms.hpp"
#include "agent/process_tree.hpp"
#include "agent/ranks.hpp"
#include "agent/requests.hpp"
#include "base/formatted.hpp"
#include "base/names.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "job/state_words.hpp"
#include "os/random.hpp"
#include "wire/remote.hpp"
#include "wire/stream.hpp"
#include "wire/upload.hpp"

namespace gridctl::agent {

namespace {

constexpr std::size_t k_terms_max = 64 * 1024;
constexpr Duration k_disk_look = std::chrono::seconds{10};  // while chunks come
constexpr std::uint64_t k_disk_look_bytes = 256u << 20;     // or after so many
constexpr int k_minutes = 60;
constexpr Duration k_gpus_age = std::chrono::milliseconds{100}, k_gpus_wait = std::chrono::seconds{5};
constexpr std::int64_t k_fresh_ms = 30'000;  // a job that saved no longer ago loses less than the owner would wait for
// The operations that begin something, and those that measure the way to the researcher.
constexpr std::string_view k_gpu_notice = "gpu";
constexpr std::string_view k_standby_operation = "standby";
constexpr std::array<std::string_view, 4> k_beginnings{"prepare", k_standby_operation, k_put_operation, "seal"};
constexpr Duration k_lock_patience = std::chrono::seconds{3}, k_lock_look = std::chrono::milliseconds{50};
constexpr std::size_t k_attempts_least = 32;        // of one researcher at once
constexpr std::uint64_t k_processes_least = 512;    // of one attempt: programs with many threads begin
constexpr std::string_view k_owners_program = "a program of its owner";
constexpr std::array<std::string_view, 3> k_events_of_programs{"oom", "hung_task", "gpu_fault"};
constexpr Duration k_word_most = std::chrono::minutes{5};  // how long what keeps jobs away is said for at once: far less
constexpr std::array<std::string_view, 3> k_measures{wire::k_link_ping, wire::k_link_sink, wire::k_link_source};

bool contains(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

Error refused(std::string why) { return make_error(Code::refused, std::move(why)); }

// The kernel names the program that it ended, or that an error belongs to: "pid=4711, name=python3, Ch 00000008".
std::string without_programs(const wire::KernelEvent& event) {
  if (contains(k_events_of_programs, event.kind)) return event.kind;
  const std::size_t at = std::min(event.text.find("pid="), event.text.find("name="));
  return at == std::string::npos ? event.text : std::string(trim(std::string_view(event.text).substr(0, at)));
}

// The details are the owner's alone.
std::string closed_words(wire::ClosedBy by) {
  if (by == wire::ClosedBy::battery) return "this machine runs on its battery";
  return by == wire::ClosedBy::heat ? "this machine is hotter than its owner allows" : "the owner of this machine uses it";
}

}  // namespace

std::size_t guest_attempts_most(std::size_t processors) {
  return std::min(std::max(k_attempts_least, 2 * processors), wire::k_held_max / 2);
}

std::uint64_t guest_processes_most(std::uint64_t kernels, std::size_t attempts) {
  return std::clamp(kernels / 2 / attempts, k_processes_least, k_processes_max);
}

std::uint64_t guest_processes_here() {
  std::uint64_t kernels = UINT64_MAX;
  for (const char* file : {"/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max"})
    if (const auto text = os::read_file(file, k_terms_max))
      kernels = std::min(kernels, parse_number<std::uint64_t>(trim(*text)).value_or(UINT64_MAX));
  return guest_processes_most(kernels, guest_attempts_most(std::thread::hardware_concurrency()));
}

Result<wire::GuestTerms> Guest::terms() const {
  const Result<std::string> text = os::read_file(file_, k_terms_max);
  if (!text) return refused("the owner of this machine does not lend it to you any more");
  return wire::parse_guest_terms(*text);
}

Result<void> Guest::check_controller(const ControllerId& controller) const {
  TRY_ASSIGN(const wire::GuestTerms terms, terms());
  if (terms.controller == controller) return {};
  return refused("this machine is lent to another controller; 'provider invite' in the state directory in use makes a "
                 "token for this one");
}

// One that would hold for longer was written before the clock was set back, and nobody may be left to take it away.
bool Guest::holds_until(WallTime until) const {
  const std::int64_t left_ms = until.ms - clock_.wall().ms;
  return left_ms > 0 && left_ms <= std::chrono::duration_cast<std::chrono::milliseconds>(k_word_most).count();
}

Result<void> Guest::check_open() const {
  TRY_ASSIGN(const wire::GuestTerms terms, terms());
  if (terms.is_paused(clock_.wall())) return refused("the owner of this machine has paused lending");
  const Result<std::string> reclaimed = os::read_file(file_.parent_path() / wire::k_reclaimed_file, k_terms_max);
  if (reclaimed && holds_until(WallTime{parse_number<std::int64_t>(trim(*reclaimed)).value_or(0)}))
    return refused("a program of this machine's owner uses its GPU");
  const auto closed = wire::parse_closed(os::read_file(file_.parent_path() / wire::k_closed_file, k_terms_max).value_or(""));
  if (closed && holds_until(closed->until)) return refused(closed_words(closed->by));
  const os::LocalTime now = os::local_time(clock_.wall());
  if (!terms.is_open_at(now.hour * k_minutes + now.minute))
    return refused("the owner of this machine lends it at other hours");
  return {};
}

std::optional<Duration> Guest::ends_in() const {
  const Result<wire::GuestTerms> now = terms();
  if (!now) return std::nullopt;
  const os::LocalTime local = os::local_time(clock_.wall());
  const std::optional<int> minutes = now->minutes_left(local.hour * k_minutes + local.minute);
  if (!minutes) return std::nullopt;
  return std::chrono::minutes{*minutes} - std::chrono::seconds{local.second};
}

std::function<Result<void>()> Guest::while_open() const {
  return [own = *this]() -> Result<void> {
    const Result<void> open = own.check_open();
    if (!open) tell_owner(own.file_.parent_path(), "a benchmark ends: " + sanitize(open.error().message, 300), own.clock_.wall());
    return open;
  };
}

Result<void> Guest::check_jobs(const os::Path& home, const ControllerId& controller) const {
  const Result<std::string> id = os::read_file(home / wire::k_guests_folder / controller.value, k_terms_max);
  if (id && trim(*id) == file_.parent_path().filename().native()) return {};
  return refused("that controller's jobs on this machine belong to another invitation, or to none; its owner has to join again: "
                 "gridctl provider join TOKEN");
}

void Guest::note_refusal(std::string_view operation, const Error& why) {
  if (!noted_.emplace(operation).second) return;
  tell_owner(file_.parent_path(), "refused: " + sanitize(operation, 40) + ": " + sanitize(why.message, 300), clock_.wall());
}

bool Guest::offers(EngineKind engine) const {
  if (engine == EngineKind::process) return false;
  const Result<wire::GuestTerms> now = terms();
  return engine == EngineKind::podman || (now && now->egress != wire::Egress::filtered && !now->up_bits);
}

Result<void> Guest::check_disk(std::uint64_t more) {
  TRY_ASSIGN(const wire::GuestTerms terms, terms());
  if (!terms.disk_bytes) return {};
  put_ += more;
  if (looked_.ns != 0 && clock_.boot() - looked_ < k_disk_look && put_ < k_disk_look_bytes) return {};
  TRY(room_for_guest(home(), terms, put_));
  looked_ = clock_.boot();
  put_ = 0;
  return {};
}

Result<wire::RekeyReply> Guest::rekey(const wire::RekeyRequest& request) const {
  const os::Path folder = file_.parent_path();
  if (os::exists(folder / wire::k_session_proven_file)) return refused("this machine and its researcher have agreed on a key already");
  wire::RekeyReply reply;
  std::ranges::copy(os::random_bytes(reply.part.bytes.size()), reply.part.bytes.begin());
  TRY(os::write_file_durably(folder / wire::k_session_file, to_hex(request.part) + " " + to_hex(reply.part) + "\n"));
  return reply;
}

Result<void> Guest::open_account(const wire::AttemptSpec& spec) const {
  TRY_ASSIGN(const wire::GuestTerms now, terms());
  TRY(check_rates(file_.parent_path(), now));
  return agent::open_account(file_.parent_path(), now, spec);
}

Result<wire::StartReply> Guest::settled(const os::Path& agent_home, const wire::AttemptSpec& spec, Result<wire::StartReply> started) const {
  if (started) return started;
  const Result<wire::GuestTerms> now = terms();
  const Result<JobDir> job = now ? JobDir::at(agent_home, now->controller, spec.job) : Result<JobDir>(now.error());
  if (job && !os::exists(job->attempt(spec.epoch))) forget_account(file_.parent_path(), spec);
  return started;
}

Result<wire::ReceiptsReply> Guest::receipts(const wire::ReceiptsRequest& request) const {
  TRY_ASSIGN(const wire::GuestTerms now, terms());
  return exchange_receipts(file_.parent_path(), now, request);
}

void Guest::limit(wire::StartRequest& request) const {
  const Result<wire::GuestTerms> now = terms();
  if (!now) return;
  wire::AttemptSpec& spec = request.spec;
  if (now->cpus && spec.cpus <= 0) spec.cpus = *now->cpus;
  if (now->memory_bytes && spec.memory_bytes == 0) spec.memory_bytes = *now->memory_bytes;
  if (now->disk_bytes) spec.root_writable = false;  // its layer would lie where nobody counts
}

void Guest::limit(Inventory& inventory) const {
  const Result<wire::GuestTerms> now = terms();
  if (!now) return;
  if (now->cpus) inventory.cpus = std::min(inventory.cpus, *now->cpus);
  if (now->memory_bytes) inventory.memory_bytes = std::min(inventory.memory_bytes, *now->memory_bytes);
  if (now->memory_bytes && inventory.memory_free_bytes) inventory.memory_free_bytes = std::min(*inventory.memory_free_bytes, *now->memory_bytes);
  if (!now->disk_bytes) return;
  const std::uint64_t used = measure_disk(home()).bytes;
  note_disk_use(home(), used);
  inventory.disk_free_bytes = std::min(inventory.disk_free_bytes, *now->disk_bytes - std::min(*now->disk_bytes, used));
}

wire::HealthReply Guest::limited(wire::HealthReply reply) {
  if (!reply.report) return reply;
  for (wire::GpuHealth& gpu : reply.report->gpus) {
    if (!gpu.processes) continue;
    for (wire::GpuProcess& process : *gpu.processes)
      if (process.owner == wire::ProcessOwner::foreign) process.name = k_owners_program, process.pid = 0;
  }
  for (wire::KernelEvent& event : reply.report->events) event.text = without_programs(event);
  return reply;
}

Result<void> Guest::check(std::string_view operation, std::string_view payload) {
  const bool between_hosts = Links::serves(operation) && !contains(k_measures, operation);
  if (wire::is_remote_request(operation) || operation == wire::k_upload_operation || between_hosts)
    return refused("a lent machine gives jobs no way to its own files and network");
  if (operation == wire::k_enter_operation) {
    TRY_ASSIGN(const auto request, wire::parse_enter(payload));
    if (!request.job) return refused("a lent machine gives no shell of its own, only one inside a job");
  }
  if (contains(k_beginnings, operation) || Bench::serves(operation)) {
    TRY(check_open());
    if (operation == k_standby_operation) looked_ = {};  // a checkpoint as files: its size is not known before
    if (operation == k_standby_operation) return check_disk(0);
    if (operation != k_put_operation) return {};
    const Result<wire::PutRequest> request = wire::parse_put(payload);
    return request ? check_disk(request->bytes) : Result<void>{};  // nonsense ends the connection where it is served
  }
  return operation == k_start_operation ? check_start(payload) : Result<void>{};
}

Result<void> Guest::check_start(std::string_view payload) {
  TRY_ASSIGN(const auto request, wire::parse_start(payload));
  if (!offers(request.spec.engine))
    return refused("a lent machine runs containers only, with " +
                   std::string(offers(EngineKind::docker) ? "podman or docker" : "podman") + ": name an image");
  if (needs_host_network(request.spec))
    return refused("a lent machine gives jobs no network of its own, which the members of a gang would need");
  TRY(check_open());
  TRY_ASSIGN(const wire::GuestTerms terms, terms());
  TRY(check_rates(file_.parent_path(), terms));
  if (!request.spec.image_archive) TRY(guest_image_name(terms, request.spec.image));
  if (terms.cpus && request.spec.cpus > *terms.cpus)
    return refused(std::string(job::k_owner_limit) + "lends " + formatted("%g", *terms.cpus) + " CPUs, and the job wants " + formatted("%g", request.spec.cpus));
  if (terms.memory_bytes && request.spec.memory_bytes > *terms.memory_bytes)
    return refused(std::string(job::k_owner_limit) + "lends " + format_size(*terms.memory_bytes) + " of memory, and the job wants " +
                   format_size(request.spec.memory_bytes));
  TRY(check_count(terms.controller));
  looked_ = {};
  return check_disk(0);
}

// One that takes no processor and no memory by its own words takes processes, and the machine's engine, all the same.
Result<void> Guest::check_count(const ControllerId& controller) const {
  const auto leases = Ledger(lease_directory(), agent::Machine::real(), clock_).valid();
  if (!leases) return {};  // the start says why it cannot be read
  const auto mine = static_cast<std::size_t>(std::ranges::count(*leases, controller, &Lease::controller));
  if (mine < guest_attempts_most(std::thread::hardware_concurrency())) return {};
  return make_error(Code::busy, "this machine runs " + std::to_string(mine) + " jobs of this researcher, which is as many as it does at once");
}

namespace {

enum class GuestVerb : std::uint8_t { list, gpus, end, reclaim, remove };
constexpr Names<GuestVerb, GuestVerb::remove> k_guest_verbs{"list", "gpus", "end", "reclaim", "remove"};

struct GuestAttempt {
  AttemptKey key;
  wire::AttemptStatus status;
};

std::vector<GuestAttempt> attempts_of(HostFolders& host) {
  std::vector<GuestAttempt> all;
  for (const JobId& job : host.jobs()) {
    const Result<std::vector<Epoch>> epochs = host.epochs(job);
    if (!epochs) continue;
    for (const Epoch epoch : *epochs)
      if (const auto status = host.status({job, epoch}); status && *status) all.push_back({{job, epoch}, **status});
  }
  return all;
}

bool has_ended(const GuestAttempt& attempt) { return attempt.status.phase == wire::AttemptPhase::ended; }

// Lines are divided by tabs, and the text is a stranger's.
std::string field(std::string_view text, std::size_t most) {
  std::string clean = sanitize(text, most);
  std::ranges::replace_if(clean, [](char c) { return c == '\t' || c == '\n'; }, ' ');
  return clean;
}

int list(HostFolders& host) {
  std::vector<GuestAttempt> all = attempts_of(host);
  std::erase_if(all, has_ended);
  std::printf("%zu\n", all.size());
  for (const GuestAttempt& one : all) {
    const Result<wire::AttemptSpec> spec = read_spec(host.attempt(one.key));
    const std::string image = spec ? field(spec->image, 200) : "", name = spec ? field(spec->job_name, 100) : "";
    std::printf("%s\t%llu\t%s\t%lld\t%s\t%s\n", one.key.job.value.c_str(),
                static_cast<unsigned long long>(one.key.epoch.value),
                std::string(wire::phase_name(one.status.phase)).c_str(),
                static_cast<long long>(one.status.running_ms_ago), image.c_str(), name.c_str());
  }
  return 0;
}

// Another process may hold a job's lock for long: it removes what the job's earlier attempts left, for instance.
bool is_lock_free(HostFolders& host, const JobId& job, BootTime until, os::Clock& clock) {
  const os::Path lock = host.attempt({job, Epoch{1}}).path.parent_path() / "lock";
  for (;; os::pause_for(k_lock_look)) {
    if (const auto taken = os::FileLock::try_acquire(lock); !taken || *taken) return true;
    if (clock.boot() >= until) return false;
  }
}

// The first process of the attempt, by the ledger, which the job cannot write; all others end with it.
void kill_first_process(HostFolders& host, const ControllerId& controller, const AttemptKey& key, os::Clock& clock) {
  const auto lease = Ledger(lease_directory(), agent::Machine::real(), clock).find(controller, key.job, key.epoch);
  std::optional<os::ProcessId> first;
  if (lease && *lease && (*lease)->boot_id == os::boot_id() && os::is_alive((*lease)->payload)) first = (*lease)->payload;
  if (!first) first = lock_holder(host.attempt(key).run(newest_launch(host.attempt(key))) / "lock");
  if (first && first->pid > 1) signal_each({*first}, SIGKILL);
}

// The owner has his machine back also where the order cannot be written, as on a full disk. Then nothing is saved.
void end_attempt(HostFolders& host, Requests& requests, const ControllerId& controller, const AttemptKey& key, Duration grace, BootTime patience, os::Clock& clock) {
  Result<void> stopped = make_error(Code::busy, "another process holds its lock");
  if (is_lock_free(host, key.job, patience, clock)) stopped = requests.stop({OpId{os::random_id(16)}, key.job, key.epoch, grace});
  if (stopped) return;
  std::fprintf(stderr, "gridctl-agent: %s: %s; it is killed\n", key.job.value.c_str(), stopped.error().message.c_str());
  kill_first_process(host, controller, key, clock);
}

// The job is told why before it is ended. A word that stands there already was first.
void give_notice(HostFolders& host, const AttemptKey& key, std::string_view why) {
  const os::Path file = host.attempt(key).notice_file();
  if (!why.empty() && !os::exists(file)) (void)os::write_file_atomically(file, why);
}

// It ends at once if little is lost: the owner's seconds count for more than as many of the job's.
Duration grace_for(const GuestAttempt& attempt, Duration most) {
  const bool saved = std::ranges::any_of(attempt.status.checkpoints, [](const wire::HostCheckpoint& one) {
    return !one.provisional && !one.torn && one.age_ms <= k_fresh_ms;
  });
  return saved ? Duration::zero() : most;
}

bool holds_gpus(HostFolders& host, const GuestAttempt& one) {
  const Result<wire::AttemptSpec> spec = read_spec(host.attempt(one.key));
  return !has_ended(one) && spec && !spec->gpu_uuids.empty();
}

// Benchmarks hold GPUs without an attempt. Each ends by itself once nothing may begin here.
std::size_t benchmarks_with_gpus(const ControllerId& controller, os::Clock& clock) {
  const auto leases = Ledger(lease_directory(), agent::Machine::real(), clock).valid();
  if (!leases) return 0;
  return static_cast<std::size_t>(std::ranges::count_if(*leases, [&](const Lease& one) {
    return one.controller == controller && one.job.value.starts_with(k_bench_lease) && !one.gpus.empty();
  }));
}

int end_all(HostFolders& host, Requests& requests, const ControllerId& controller, Duration grace, std::string_view why, bool fresh_at_once, os::Clock& clock) {
  int running = 0;
  const BootTime patience = clock.boot() + k_lock_patience;  // for all of them together
  for (const GuestAttempt& one : attempts_of(host)) {
    if (has_ended(one)) continue;
    ++running;
    give_notice(host, one.key, why);
    end_attempt(host, requests, controller, one.key, fresh_at_once ? grace_for(one, grace) : grace, patience, clock);
  }
  std::printf("%d\n", running);
  return 0;
}

// The name of a program on a GPU that is no job's. Screens do not count.
std::optional<std::string> owners_program(os::Clock& clock) {
  wire::HealthRequest request;
  request.max_age = k_gpus_age;
  request.wait = k_gpus_wait;
  request.gpus = true;
  const wire::HealthReply reply = Health(agent_home(), clock).answer(request);
  if (!reply.report || !reply.report->gpus_fresh()) return std::nullopt;
  for (const wire::GpuHealth& gpu : reply.report->gpus)
    for (const wire::GpuProcess& process : gpu.processes.value_or(std::vector<wire::GpuProcess>{}))
      if (process.owner == wire::ProcessOwner::foreign && !process.draws) return field(process.name, 100);
  return std::nullopt;
}

int reclaim(HostFolders& host, Requests& requests, const ControllerId& controller, Duration grace, bool always, std::size_t benchmarks, os::Clock& clock) {
  std::vector<GuestAttempt> holding = attempts_of(host);
  std::erase_if(holding, [&](const GuestAttempt& one) { return !holds_gpus(host, one); });
  if (holding.empty() && benchmarks == 0 && !always) return std::puts("idle") < 0 ? 1 : 0;
  const std::optional<std::string> program = owners_program(clock);
  if (!program) return std::puts("free") < 0 ? 1 : 0;
  for (const GuestAttempt& one : holding) {
    give_notice(host, one.key, k_gpu_notice);
    end_attempt(host, requests, controller, one.key, grace_for(one, grace), clock.boot() + k_lock_patience, clock);  // asked again soon
  }
  return std::printf("taken\t%zu\t%s\n", holding.size() + benchmarks, program->c_str()) < 0 ? 1 : 0;
}

int remove_all(HostFolders& host, Requests& requests, const ControllerId& controller) {
  int kept = 0;
  for (const GuestAttempt& one : attempts_of(host)) {
    const Result<void> cleaned = requests.clean({OpId{os::random_id(16)}, one.key.job, one.key.epoch, {}});
    if (cleaned) continue;
    ++kept;
    std::fprintf(stderr, "gridctl-agent: %s: %s\n", one.key.job.value.c_str(), cleaned.error().message.c_str());
  }
  std::printf("%d\n", kept);
  if (kept > 0) return 1;
  return os::remove_tree(agent_home() / "jobs" / controller.value) ? 0 : 1;
}

}  // namespace

int guest_command(std::span<char* const> arguments, os::Clock& clock) {
  const auto verb = arguments.size() < 2 ? std::nullopt : k_guest_verbs.find(arguments[1]);
  if (!verb || !check_component("the controller id", arguments[0])) return 2;
  const ControllerId controller{arguments[0]};
  HostFolders host(agent_home(), controller, clock);
  Requests requests(agent_home(), controller, clock);
  requests.adopt_all();  // nobody else keeps the owner's limits while the researcher is away
  if (verb == GuestVerb::list) return list(host);
  if (verb == GuestVerb::gpus) {
    const std::vector<GuestAttempt> all = attempts_of(host);
    const auto holding = static_cast<std::size_t>(std::ranges::count_if(all, [&](const GuestAttempt& one) { return holds_gpus(host, one); }));
    return std::printf("%zu\n", holding + benchmarks_with_gpus(controller, clock)) < 0 ? 1 : 0;
  }
  if (verb == GuestVerb::remove) return remove_all(host, requests, controller);
  const auto grace = arguments.size() >= 3 ? parse_number<std::int64_t>(arguments[2]) : std::nullopt;
  if (!grace) return 2;
  const std::string_view why = arguments.size() >= 4 ? arguments[3] : "";
  if (verb == GuestVerb::end && !why.empty() && !check_component("the reason", why)) return 2;
  if (verb == GuestVerb::end) return end_all(host, requests, controller, std::chrono::milliseconds{*grace}, why, arguments.size() == 5, clock);
  return reclaim(host, requests, controller, std::chrono::milliseconds{*grace}, arguments.size() == 4, benchmarks_with_gpus(controller, clock), clock);
}

}  // namespace gridctl::agent

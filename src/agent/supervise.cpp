// SPDX-License-Identifier: Apache-2.0
// Implements the start: an earlier supervisor's leftovers, preparation, launch. The rest is in follow.cpp and
// conclude.cpp.
#include "agent/supervise.hpp"

#include "agent/egress.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "agent/cgroup.hpp"
#include "agent/guest.hpp"
#include "agent/guest_images.hpp"
#include "agent/owner_terms.hpp"
#include "agent/process_tree.hpp"
#include "base/text.hpp"
#include "os/log.hpp"
#include "os/process.hpp"
#include "probe/inventory.hpp"

namespace gridctl::agent {
namespace {

constexpr Duration k_init_wait = std::chrono::seconds{60};  // from the engine's success to init's first act
constexpr Duration k_ask_every = std::chrono::seconds{1};   // the engine, whether init is gone already
constexpr int k_watch_ms = 100;                             // beside notifications, which odd mounts may lose

void ask_to_be_spared() {
  // Only root may do this; without it, the kernel's OOM killer chooses by size, and we are small.
  const os::Fd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (score.valid()) [[maybe_unused]]
    const auto wrote = ::write(score.get(), "-500", 4);
}

void add_one(int event_fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto wrote = ::write(event_fd, &one, sizeof one);
}

}  // namespace

Result<std::vector<Gpu>> find_gpus(const std::vector<std::string>& uuids) {
  std::vector<Gpu> found;
  for (const probe::VendorPlugin& vendor : probe::vendors()) {
    if (found.size() == uuids.size()) break;
    for (const Gpu& gpu : probe::read_vendor(vendor, {}).gpus)
      if (std::ranges::find(uuids, gpu.uuid) != uuids.end()) found.push_back(gpu);
  }
  for (const std::string& uuid : uuids)
    if (std::ranges::none_of(found, [&](const Gpu& gpu) { return gpu.uuid == uuid; }))
      return make_error(Code::refused, "gpu " + sanitize(uuid) + " is not on this host (any more)");
  return found;
}

AttemptRunner::AttemptRunner(AttemptDir attempt, os::Clock& clock)
    : attempt_(std::move(attempt)), clock_(clock), ledger_(lease_directory(), Machine::real(), clock) {}
AttemptRunner::~AttemptRunner() = default;

int AttemptRunner::run() {
  auto lock = os::FileLock::try_acquire(attempt_.supervisor_lock());
  if (!lock || !*lock) return lock ? 0 : 1;
  lock_ = std::move(**lock);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGQUIT}) ::signal(signal, SIG_IGN);
  ask_to_be_spared();
  os::log_to_file(attempt_.path / "supervisor.log", os::LogLevel::info);
  auto outcome = begin();
  if (outcome && !is_over()) outcome = live();
  if (!outcome) {
    os::log(os::LogLevel::error, outcome.error().one_line());
    // Another supervisor came first, and has recorded why the attempt is over.
    if (const auto said = read_stored_status(attempt_, clock_); said && *said && (*said)->ended()) return 0;
    status_.end = why_not_begun(outcome.error());
    status_.detail = outcome.error().one_line();
    nothing_began_ = !payload_id_ && !started_at_;
  }
  conclude();
  return 0;
}

// A power cut may have taken what was never synced, including the specification: nothing of that attempt counts against
// it.
wire::EndReason AttemptRunner::why_not_begun(const Error& error) {
  if (error.code == Code::no_space) return wire::EndReason::disk_full;
  if (image_failed_) return wire::EndReason::image_failed;
  const auto stored = read_stored_status(attempt_, clock_);
  const bool other_boot = stored && *stored && (*stored)->boot_id != os::boot_id();
  return other_boot ? wire::EndReason::host_rebooted : wire::EndReason::start_failed;
}

Result<void> AttemptRunner::begin() {
  status_.job = attempt_.job();
  status_.epoch = attempt_.epoch();
  status_.phase = wire::AttemptPhase::starting;
  TRY_ASSIGN(spec_, read_spec(attempt_));
  engine_ = make_engine(spec_.engine);
  TRY_ASSIGN(auto before, read_status(attempt_, clock_));
  if (before) status_ = std::move(*before);
  if (status_.started_ms_ago >= 0) started_at_ = now() - std::chrono::milliseconds{status_.started_ms_ago};
  if (status_.running_ms_ago >= 0) running_since_ = now() - std::chrono::milliseconds{status_.running_ms_ago};
  TRY_ASSIGN(const auto deadline, read_number(attempt_.deadline_file()));
  stop_.set_deadline(BootTime{deadline.value_or(0)});
  launch_ = newest_launch(attempt_);
  view_ = view_of(attempt_, spec_, std::max(launch_, 1u));
  changes_.add(attempt_.control());
  if (changes_.fd() < 0)
    os::log(os::LogLevel::warn, "this user has no inotify instance or watch left: polling the control folder instead");
  timer_ = os::Fd(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  checkpoints_changed_ = os::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  TRY_ASSIGN(auto ring, LogRing::open(attempt_.log(), spec_.log_ring_bytes));
  ring_.emplace(std::move(ring));
  checkpoints_.emplace(attempt_, spec_, view_, clock_, checkpoints_changed_.get());
  if (!is_over()) read_control();
  return {};
}

AttemptRunner::Found AttemptRunner::examine() {
  if (launch_ == 0) return Found::nothing;
  const Path run = attempt_.run(launch_);
  for (;;) {
    // The file is checked before the lock: init takes its lock before it writes `once`, so `once` without a holder
    // means an end.
    const bool began = os::exists(run / "once");
    payload_id_ = lock_holder(run / "lock");
    if (payload_id_) return Found::alive;
    // The job may have removed its lock, but it cannot reach what an earlier supervisor has entered in the ledger.
    if (const auto held = ledger_.find(attempt_.controller(), attempt_.job(), attempt_.epoch());
        began && held && *held && (*held)->boot_id == os::boot_id() && (*held)->payload.pid > 0 &&
        os::is_alive((*held)->payload)) {
      payload_id_ = (*held)->payload;
      return Found::alive;
    }
    if (began) return Found::ended;
    if (claim_once()) return Found::in_doubt;
  }
}

Result<void> AttemptRunner::live() {
  const Found found = examine();
  if (found == Found::ended) return {};
  if (found != Found::alive) {
    // An engine may still be working on a launch whose init can no longer begin.
    if (found == Found::in_doubt) TRY(engine_->remove(name()));
    if (stop_wanted()) return {};
    TRY(prepare());
    checkpoints_->restored();
    if (stop_wanted()) return {};
    TRY(launch());
    if (!payload_id_) return {};  // it began and has ended already
  }
  adopt();
  follow();
  return {};
}

Result<void> AttemptRunner::prepare() {
  TRY(ledger_.take(lease(), machine_capacity()));
  const os::Fd told(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  struct {
    os::Mutex mutex;
    std::string doing GRIDCTL_GUARDED_BY(mutex);
    std::optional<Result<void>> outcome GRIDCTL_GUARDED_BY(mutex);
  } news;
  const auto say = [&](const std::string& word) {
    const os::MutexLock lock(news.mutex);
    news.doing = word;
    add_one(told.get());
  };
  const auto work = [&]() -> Result<void> {
    TRY_ASSIGN(gpus_, find_gpus(spec_.gpu_uuids));
    TRY_ASSIGN(prepared_, prepare_folders(attempt_, spec_, say));
    if (spec_.engine != EngineKind::process) say("image");
    auto image = get_image();
    image_failed_ = !image;
    TRY_ASSIGN(image_, std::move(image));
    return {};
  };
  std::thread worker([&] {
    auto result = work();
    const os::MutexLock lock(news.mutex);
    news.outcome = std::move(result);
    add_one(told.get());
  });
  for (;;) {
    arm_timer();
    pollfd waiting[] = {{told.get(), POLLIN, 0}, {changes_.fd(), POLLIN, 0}, {timer_.get(), POLLIN, 0}};
    ::poll(waiting, 3, changes_.patience_ms());
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(told.get(), &count, sizeof count);
    if (changes_.drain()) read_control();
    act_on_time();
    const os::MutexLock lock(news.mutex);
    if (news.outcome) break;
    if (stop_wanted()) {
      // A pull may take an hour. No process of the job runs yet, so only the record is needed; the thread ends with us.
      release_lease();
      status_.end = stop_.reason();
      status_.phase = wire::AttemptPhase::ended;
      status_.doing.clear();
      status_.ended_ms_ago = 0;
      publish();
      ::_exit(0);
    }
    if (!news.doing.empty() && news.doing != status_.doing) {
      status_.doing = news.doing;
      publish();
    }
  }
  worker.join();
  const os::MutexLock lock(news.mutex);
  return *std::move(news.outcome);
}

Result<std::string> AttemptRunner::get_image() {
  TRY_ASSIGN(const std::optional<OwnerTerms> owner, owner_terms(attempt_.agent_home(), attempt_.controller()));
  if (!owner) return engine_->ensure_image(spec_, prepared_.image_archive);
  TRY_ASSIGN(const Path agent, os::executable_path());
  const GuestImages images(owner->folder.parent_path(), agent);
  if (!prepared_.image_archive.empty()) return engine_->ensure_guest_archive(spec_, prepared_.image_archive, images);
  TRY_ASSIGN(const std::string name, guest_image_name(owner->terms, spec_.image));
  TRY(check_registry_address(registry_of(name), clock_));
  return engine_->ensure_guest_image(name, images);
}

Result<LaunchPlan> AttemptRunner::plan_launch() const {
  LaunchPlan plan;
  plan.name = name();
  plan.controller = attempt_.controller();
  TRY_ASSIGN(plan.agent, os::executable_path());
  plan.init = {view_.run, view_.control, view_.work, view_.secrets, spec_.stop_grace, {}};
  plan.host_run = attempt_.run(launch_);
  plan.image = image_;
  plan.gpus = gpus_;
  TRY_ASSIGN(const GuestNetwork network,
             guest_network(attempt_.agent_home(), plan.controller, spec_.engine, plan.agent));
  plan.network = network.arguments;
  TRY_ASSIGN(const std::optional<OwnerTerms> owner, owner_terms(attempt_.agent_home(), plan.controller));
  if (owner) plan.processes_max = guest_processes_here();
  plan.init.closed = network.closed;
  plan.binds = {{plan.agent, "/gridctl/agent", true},
                {plan.host_run, view_.run.string(), false},
                {attempt_.control(), view_.control.string(), true},
                {attempt_.home(), view_.home.string(), false},
                {attempt_.work(), view_.work.string(), false}};
  if (!view_.secrets.empty() && spec_.engine != EngineKind::process) {
    TRY_ASSIGN(const Path secrets, attempt_.secrets());
    plan.binds.push_back({secrets, view_.secrets.string(), true});
  }
  plan.binds.insert(plan.binds.end(), prepared_.binds.begin(), prepared_.binds.end());
  return plan;
}

Result<void> AttemptRunner::launch() {
  ++launch_;
  view_ = view_of(attempt_, spec_, launch_);
  const Path run = attempt_.run(launch_);
  TRY(make_run_folder(attempt_, spec_, view_, launch_, gpus_));
  log_pipe_ = os::Fd(::open((run / "log").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  changes_.add(run);
  TRY_ASSIGN(const LaunchPlan plan, plan_launch());
  update_lease(true);
  auto launched = engine_->launch(spec_, plan);
  // The engine's answer is a hint; the run folder records whether init started.
  if (!launched && claim_once()) return std::move(launched).error();
  return await_init();
}

Result<void> AttemptRunner::await_init() {
  const Path run = attempt_.run(launch_);
  const BootTime give_up = now() + k_init_wait;
  BootTime ask_at = now() + k_ask_every;
  while (!os::exists(run / "once")) {
    const bool gone = now() >= ask_at && engine_->is_gone(name());
    if (now() >= ask_at) ask_at = now() + k_ask_every;
    // A full disk may have ended init, and then has no room for `once` either.
    if ((gone || now() > give_up) && (claim_once() || (gone && !os::exists(run / "once"))))
      return make_error(Code::engine,
                        std::string("the engine reported that it started the job, but its first process ") +
                            (gone ? "ended before it began" : "did not begin within 60 s"));
    pollfd waiting{changes_.fd(), POLLIN, 0};
    ::poll(&waiting, 1, k_watch_ms);
    if (changes_.drain()) read_control();
  }
  payload_id_ = lock_holder(run / "lock");
  return {};
}

bool AttemptRunner::claim_once() const {
  const int fd = ::open((attempt_.run(launch_) / "once").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

void AttemptRunner::adopt() {
  const Path run = attempt_.run(launch_);
  if (!log_pipe_.valid()) {
    log_pipe_ = os::Fd(::open((run / "log").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
    changes_.add(run);
  }
  if (auto pidfd = os::open_pidfd(*payload_id_)) payload_ = std::move(*pidfd);
  memory_group_ = memory_group(std::to_string(payload_id_->pid));
  adopt_pause();
  if (!started_at_) started_at_ = now();
  update_lease(false);
  const auto owner = owner_terms(attempt_.agent_home(), attempt_.controller());
  if (!owner || *owner)
    disk_watch_ = std::make_unique<DiskWatch>(attempt_, payload_id_->pid, checkpoints_changed_.get(), clock_);
  if (!owner || *owner) up_watch_ = std::make_unique<UpWatch>(attempt_, payload_id_->pid, clock_);
  account_ = UseAccount::of(attempt_, payload_id_->pid, clock_);
  if (stop_wanted()) {
    // The attempt was to be stopped before this supervisor: TERM may never have been sent.
    status_.phase = wire::AttemptPhase::stopping;
    signal_each({*payload_id_}, SIGTERM);
  }
  read_phase();
  read_pause();
  publish();
  checkpoints_->start();
}

Lease AttemptRunner::lease() const {
  Lease lease = our_lease(attempt_.controller(), spec_.job, spec_.epoch);
  lease.supervisor = os::identify(::getpid()).value_or(os::ProcessId{});
  lease.payload = payload_id_.value_or(os::ProcessId{});
  lease.deadline = stop_.deadline();
  lease.grace = spec_.stop_grace;
  lease.cpus = spec_.cpus;
  // Memory moved off the GPUs is in the host's memory instead.
  lease.memory_bytes = spec_.memory_bytes + (pause_.stage == PauseStage::running ? 0 : pause_.bytes());
  if (!pause_.off_gpus()) lease.gpus = spec_.gpu_uuids;
  return lease;
}

void AttemptRunner::update_lease(bool launching) {
  Lease current = lease();
  current.launching = launching;
  if (const auto taken = ledger_.take(current, machine_capacity()); !taken)
    os::log(os::LogLevel::error, "cannot update the lease: " + taken.error().one_line());
}

int run_supervisor(const Path& directory, os::Clock& clock) {
  return AttemptRunner(AttemptDir{directory}, clock).run();
}

Result<int> spawn_supervisor(const AttemptDir& attempt) {
  TRY_ASSIGN(const Path self, os::executable_path());
  os::SpawnOptions options;
  options.new_session = true;
  options.detach = true;
  options.directory = "/";
  return os::spawn({self.string(), "supervise", attempt.path.string()}, options);
}

}  // namespace gridctl::agent

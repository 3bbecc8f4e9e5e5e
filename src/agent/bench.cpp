// SPDX-License-Identifier: Apache-2.0
#include "agent/bench.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <thread>

#include "agent/bench_host.hpp"
#include "agent/guest_disk.hpp"
#include "agent/helper_process.hpp"
#include "agent/host_folders.hpp"
#include "agent/owner_terms.hpp"
#include "base/formatted.hpp"
#include "base/text.hpp"
#include "os/mutex.hpp"
#include "os/process.hpp"
#include "os/random.hpp"

namespace gridctl::agent {
namespace {

constexpr Duration k_list_wait = std::chrono::seconds{30};  // drivers of eight GPUs that wake up
constexpr Duration k_slack = std::chrono::seconds{5};       // the lease outlives the test's deadline a little
constexpr std::chrono::milliseconds k_allowed_look{250};    // at whether the test may go on
constexpr Duration k_host_part_max = std::chrono::seconds{10};
// The helper has other verbs, which act on processes of this user.
constexpr std::array<std::string_view, 9> k_gpu_tests{"gemm", "fma", "fill", "rates", "memory", "copies", "peer", "sustain", "way"};
constexpr std::array<std::string_view, 2> k_gpu_backends{"cuda", "opencl"};
constexpr int k_host_parts = 6;  // that a test of the machine has, with its pauses
constexpr std::array<std::string_view, 4> k_operations{wire::k_bench_list, wire::k_bench_begin, wire::k_bench_seed, wire::k_bench_host};

}  // namespace

// Asks again and again whether a test may go on, and ends it where it may not.
class BenchWatch {
 public:
  BenchWatch(std::function<Result<void>()> allowed, std::function<void()> end)
      : allowed_(std::move(allowed)), end_(std::move(end)), thread_([this] { watch(); }) {}
  ~BenchWatch() {
    {
      const os::MutexLock lock(mutex_);
      over_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  BenchWatch(const BenchWatch&) = delete;
  BenchWatch& operator=(const BenchWatch&) = delete;

  // An error if it has ended the test.
  [[nodiscard]] Result<void> verdict() const {
    const os::MutexLock lock(mutex_);
    return verdict_;
  }

 private:
  void watch() {
    for (;;) {
      {
        const os::MutexLock lock(mutex_);
        if (!over_) wake_.wait_for(mutex_, k_allowed_look);
        if (over_) return;
      }
      const Result<void> told = allowed_();
      if (told) continue;
      {
        const os::MutexLock lock(mutex_);
        verdict_ = told;
      }
      return end_();
    }
  }

  const std::function<Result<void>()> allowed_;
  const std::function<void()> end_;
  mutable os::Mutex mutex_;
  os::Condition wake_;
  bool over_ GRIDCTL_GUARDED_BY(mutex_) = false;
  Result<void> verdict_ GRIDCTL_GUARDED_BY(mutex_);
  std::thread thread_;
};

Bench::Bench(os::Path home, ControllerId controller, os::Clock& clock, std::function<Result<void>()> allowed)
    : home_(std::move(home)),
      controller_(std::move(controller)),
      clock_(clock),
      ledger_(lease_directory(), Machine::real(), clock),
      allowed_(std::move(allowed)) {}
Bench::~Bench() { end(); }

bool Bench::serves(std::string_view operation) {
  return std::ranges::find(k_operations, operation) != k_operations.end();
}

Result<std::string> Bench::handle(std::string_view operation, std::string_view payload) {
  if (operation == wire::k_bench_list) {
    TRY_ASSIGN(const wire::BenchDevices devices, list());
    return wire::encode(devices);
  }
  if (operation == wire::k_bench_begin) {
    TRY_ASSIGN(const wire::BenchBegin request, wire::parse_bench_begin(payload));
    TRY_ASSIGN(const wire::BenchStage stage, begin(request));
    return wire::encode(stage);
  }
  if (operation == wire::k_bench_seed) {
    TRY_ASSIGN(const wire::BenchSeed request, wire::parse_bench_seed(payload));
    TRY_ASSIGN(const wire::BenchStage stage, seed(request));
    return wire::encode(stage);
  }
  TRY_ASSIGN(const wire::BenchHost request, wire::parse_bench_host(payload));
  TRY_ASSIGN(const wire::BenchStage stage, host(request));
  return wire::encode(stage);
}

// The test uses no more of a lent machine than is lent, together with the jobs there.
Result<void> Bench::lease_processors(double cpus, Duration part) {
  TRY_ASSIGN(const auto owner, owner_terms(home_, controller_));
  if (!owner || !owner->terms.cpus) return {};
  Lease lease = our_lease(controller_, JobId{std::string(k_bench_lease) + os::random_id(13)}, Epoch{1});
  lease.supervisor = os::identify(os::process_id()).value_or(os::ProcessId{});
  lease.deadline = clock_.boot() + part * k_host_parts + k_slack;
  lease.cpus = cpus;
  TRY(ledger_.take(lease, capacity_for(home_, controller_)));
  lease_ = lease.job;
  return {};
}

Result<wire::BenchStage> Bench::host(const wire::BenchHost& request) {
  end();
  TRY(os::make_directories(home_));
  TRY_ASSIGN(const std::optional<os::FileLock> alone, os::FileLock::try_acquire(home_ / "bench.lock"));
  if (!alone) return make_error(Code::busy, "another test measures this machine");
  HostShare share;
  const double cpus = std::max(capacity_for(home_, controller_).cpus, 0.0);
  share.processors = static_cast<std::size_t>(std::ceil(cpus));
  TRY(lease_processors(cpus, std::min(request.part, k_host_part_max)));
  const auto measured = measure_host(request, share);
  end();
  return measured;
}

Result<wire::BenchStage> Bench::measure_host(const wire::BenchHost& request, HostShare share) {
  share.disk_bytes = free_for(home_, controller_, share.disk_bytes);
  std::atomic<bool> ended = false;
  const auto watch = allowed_ ? std::make_unique<BenchWatch>(allowed_, [&ended] { ended = true; }) : nullptr;
  wire::BenchStage stage;
  stage.numbers = bench_host(home_, std::min(request.part, k_host_part_max), share, ended, clock_);
  if (watch) TRY(watch->verdict());
  stage.done = true;
  return stage;
}

Result<wire::BenchDevices> Bench::list() {
  end();
  TRY_ASSIGN(const os::Path path, install_gpubench(home_));
  TRY_ASSIGN(const auto helper, HelperProcess::start({path.string(), "list"}));
  wire::BenchDevices devices;
  wire::BenchStage problems;
  for (const BootTime deadline = clock_.boot() + k_list_wait;;) {
    TRY_ASSIGN(const std::string line, helper->receive(deadline, clock_));
    if (line == k_helper_done) break;
    if (line == k_helper_device && devices.devices.size() < wire::k_bench_devices_max) devices.devices.emplace_back();
    const bool is_problem = line.starts_with("text cuda ") || line.starts_with("text opencl ");
    if (is_problem || devices.devices.empty()) take_line(problems, line);
    else take_line(devices.devices.back(), line);
  }
  devices.problems = problems.texts;
  return devices;
}

Result<void> Bench::check(const wire::BenchBegin& request) const {
  const auto knows = [](const auto& words, const std::string& word) { return std::ranges::find(words, word) != words.end(); };
  if (!knows(k_gpu_tests, request.test) || !knows(k_gpu_backends, request.backend))
    return make_error(Code::refused, "there is no GPU test '" + sanitize(request.test) + "' by '" + sanitize(request.backend) + "'");
  TRY_ASSIGN(const auto owner, owner_terms(home_, controller_));
  if (owner && request.gpu.empty()) return make_error(Code::refused, "a test on a lent machine has to name the GPU that it uses");
  return {};
}

Result<void> Bench::lease(const wire::BenchBegin& request) {
  if (request.gpu.empty()) return {};
  Lease lease = our_lease(controller_, JobId{std::string(k_bench_lease) + os::random_id(13)}, Epoch{1});
  lease.supervisor = os::identify(os::process_id()).value_or(os::ProcessId{});
  lease.deadline = clock_.boot() + request.deadline + k_slack;
  lease.gpus = {request.gpu};
  if (!request.peer.empty()) lease.gpus.push_back(request.peer);
  TRY(ledger_.take(lease, machine_capacity()));
  lease_ = lease.job;
  return {};
}

void Bench::end() {
  watch_.reset();
  helper_.reset();
  if (!lease_.empty()) (void)ledger_.release(controller_, lease_, Epoch{1});
  lease_ = {};
}

Result<wire::BenchStage> Bench::begin(const wire::BenchBegin& request) {
  end();
  TRY(check(request));
  TRY(lease(request));
  deadline_ = clock_.boot() + request.deadline;
  const auto start = [&]() -> Result<wire::BenchStage> {
    TRY_ASSIGN(const os::Path path, install_gpubench(home_));
    std::vector<std::string> argv{path.string(), request.test, request.backend, std::to_string(request.index)};
    for (const auto& [name, value] : request.parameters) argv.push_back(name + "=" + std::to_string(value));
    TRY_ASSIGN(helper_, HelperProcess::start(argv));
    const auto stop = [this] {
      helper_->end();
      if (!lease_.empty()) (void)ledger_.release(controller_, lease_, Epoch{1});
    };
    if (allowed_) watch_ = std::make_unique<BenchWatch>(allowed_, stop);
    return next_stage();
  };
  Result<wire::BenchStage> stage = start();
  if (!stage) end();
  return stage;
}

Result<wire::BenchStage> Bench::seed(const wire::BenchSeed& request) {
  if (!helper_) return make_error(Code::refused, "no test waits for a seed on this connection");
  if (watch_ && !watch_->verdict()) return ended_by_watch();
  if (const auto sent = helper_->send(formatted("seed %llx", static_cast<unsigned long long>(request.seed))); !sent) {
    end();
    return sent.error();
  }
  return next_stage();
}

Error Bench::ended_by_watch() {
  Error why = watch_->verdict().error();
  end();
  return why;
}

// An error ends the test.
Result<wire::BenchStage> Bench::next_stage() {
  wire::BenchStage stage;
  for (;;) {
    Result<std::string> line = helper_->receive(deadline_, clock_);
    if (line && line->starts_with("error ")) line = error_of_line(*line);
    if (!line && watch_ && !watch_->verdict()) return ended_by_watch();
    if (!line) {
      end();
      return std::move(line).error();
    }
    if (*line == k_helper_ready) return stage;
    if (*line == k_helper_done) {
      stage.done = true;
      end();
      return stage;
    }
    take_line(stage, *line);
  }
}

}  // namespace gridctl::agent

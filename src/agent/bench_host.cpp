// SPDX-License-Identifier: Apache-2.0
#include "agent/bench_host.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "os/random.hpp"

namespace gridctl::agent {
namespace {

constexpr std::size_t k_copy_bytes = 32u << 20;         // of each processor: beyond its share of the caches
constexpr std::uint64_t k_disk_bytes_max = 256u << 20;  // a burst that fills no write cache of a good disk
constexpr std::size_t k_disk_piece = 4u << 20;
constexpr std::size_t k_alignment = 4096;  // of direct reads
constexpr std::size_t k_free_share = 20;   // of the free space at most one part in so many is used
constexpr int k_syncs = 5;

std::size_t usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return std::max(1u, std::thread::hardware_concurrency());
  return static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
}

// Decides how long each part of the test runs.
struct Span {
  Duration part;
  const std::atomic<bool>& ended;
  os::Clock& clock;
  [[nodiscard]] bool goes_on(BootTime began) const { return clock.boot() - began < part && !ended; }
};

// Runs `turn` on `threads` threads, at least once each; returns the sum of their results per second. The threads'
// preparation is not counted.
template <class Turn>
double rate_of(std::size_t threads, const Span& span, Turn turn) {
  std::vector<double> rates(threads, 0);
  std::vector<std::thread> running;
  for (std::size_t i = 0; i < threads; ++i)
    running.emplace_back([&, i] {
      auto work = turn();
      const BootTime began = span.clock.boot();
      double sum = 0;
      do {
        sum += work();
      } while (span.goes_on(began));
      rates[i] = sum / seconds(span.clock.boot() - began);
    });
  for (std::thread& one : running) one.join();
  double total = 0;
  for (const double one : rates) total += one;
  return total;
}

auto arithmetic() {
  return [values = std::array<double, 16>{}, sink = 0.0]() mutable {
    constexpr int k_steps = 20'000;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.5 + static_cast<double>(i) / 64 + sink;
    for (int step = 0; step < k_steps; ++step)
      for (double& value : values) value = value * value - 1.9;
    for (const double value : values) sink += value * 1e-300;
    return 2.0 * k_steps * static_cast<double>(values.size());
  };
}

auto copying() {
  auto from = std::make_shared<std::vector<char>>(k_copy_bytes, 'x');
  auto to = std::make_shared<std::vector<char>>(k_copy_bytes, 'y');
  return [from, to, turn = 0]() mutable {
    (*from)[static_cast<std::size_t>(turn++) % k_copy_bytes] = 'z';
    std::memcpy(to->data(), from->data(), k_copy_bytes);
    return 2.0 * static_cast<double>(k_copy_bytes) + ((*to)[0] == '?' ? 1 : 0);
  };
}

struct AlignedDeleter {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};
using AlignedBytes = std::unique_ptr<std::byte, AlignedDeleter>;

// Returns random bytes, so that no disk or file system can compress them.
AlignedBytes random_piece() {
  AlignedBytes piece(static_cast<std::byte*>(std::aligned_alloc(k_alignment, k_disk_piece)));
  const Bytes some = os::random_bytes(64 * 1024);
  for (std::size_t at = 0; at < k_disk_piece; at += some.size())
    std::memcpy(piece.get() + at, some.data(), some.size());
  return piece;
}

Result<double> write_rate(int fd, std::byte* piece, std::uint64_t bytes_max, const Span& span, std::uint64_t& written) {
  const BootTime began = span.clock.boot();
  while (written < bytes_max && span.goes_on(began)) {
    std::memcpy(piece, &written, sizeof written);  // no two pieces are equal
    TRY(os::write_all(fd, ByteView{piece, k_disk_piece}));
    written += k_disk_piece;
  }
  TRY(os::sync_fd(fd));
  return static_cast<double>(written) / seconds(span.clock.boot() - began) * 1e-6;
}

Result<double> read_rate(const os::Path& path, std::byte* piece, std::uint64_t bytes, const Span& span) {
  TRY_ASSIGN(const os::Fd file, os::open_file(path, O_RDONLY | O_DIRECT | O_CLOEXEC));
  const BootTime began = span.clock.boot();
  std::uint64_t at = 0;
  for (; at < bytes && span.goes_on(began); at += k_disk_piece)
    TRY(os::read_exactly(file.get(), piece, k_disk_piece, at));
  return static_cast<double>(at) / seconds(span.clock.boot() - began) * 1e-6;
}

Result<double> sync_time(int fd, std::byte* piece, os::Clock& clock) {
  std::vector<double> times;
  for (int i = 0; i < k_syncs; ++i) {
    const BootTime began = clock.boot();
    if (::pwrite(fd, piece, k_alignment, 0) < 0) return errno_error(errno, "cannot write the test file");
    TRY(os::sync_fd(fd));
    times.push_back(seconds(clock.boot() - began) * 1e3);
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

void bench_disk(const os::Path& folder, std::uint64_t disk_bytes, const Span& span, std::map<std::string, double>& found) {
  const auto free = os::free_bytes(folder);
  const os::Path path = folder / ("bench-" + os::random_id(8));
  auto file = os::open_file(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC);
  if (!free || !file) return;
  const AlignedBytes piece = random_piece();
  const std::uint64_t bytes_max = std::min<std::uint64_t>(k_disk_bytes_max, std::min(*free, disk_bytes) / k_free_share);
  std::uint64_t written = 0;
  const auto keep = [&](const char* name, const Result<double>& value) {
    if (value && *value > 0) found[name] = *value;
  };
  keep("disk_write_mbs", write_rate(file->get(), piece.get(), bytes_max, span, written));
  keep("disk_read_mbs", read_rate(path, piece.get(), written, span));
  keep("disk_sync_ms", sync_time(file->get(), piece.get(), span.clock));
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

}  // namespace

std::map<std::string, double> bench_host(const os::Path& folder, Duration part, const HostShare& share, const std::atomic<bool>& ended, os::Clock& clock) {
  const Span span{part, ended, clock};
  std::map<std::string, double> found;
  const std::size_t all = usable_processors(), processors = share.processors > 0 ? std::min(share.processors, all) : all;
  found["cpu_gflops"] = rate_of(1, span, arithmetic) * 1e-9;
  found["cpu_all_gflops"] = rate_of(processors, span, arithmetic) * 1e-9;
  found["memory_copy_gbs"] = rate_of(processors, span, copying) * 1e-9;
  bench_disk(folder, share.disk_bytes, span, found);
  return found;
}

}  // namespace gridctl::agent

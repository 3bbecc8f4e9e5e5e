// SPDX-License-Identifier: Apache-2.0
// Both sides of a transfer: snapshots in memory, a host at the other end of a socket, a link that is slow or breaks.
#pragma once

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <thread>

#include "store/scan.hpp"
#include "support/results.hpp"
#include "transfer/fd_link.hpp"
#include "transfer/pull.hpp"
#include "transfer/push.hpp"
#include "transfer/serve.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::transfer::testing {

using store::ChunkStore;

// Snapshots in memory; a test may falsify what they give.
class MemorySnapshots : public SnapshotSource {
 public:
  Bytes manifest_bytes;
  std::map<Digest, Bytes> chunks;
  std::atomic<int> chunks_until_failure{1'000'000};
  Result<Bytes> manifest(const wire::CheckpointRef& ref) override {
    if (ref.number != 7) return make_error(Code::not_found, "no such snapshot");
    return manifest_bytes;
  }
  Result<Bytes> chunk(const wire::CheckpointRef&, const Digest& digest) override {
    if (chunks_until_failure-- <= 0) return make_error(Code::io, "the disk of the host broke");
    const auto found = chunks.find(digest);
    if (found == chunks.end()) return make_error(Code::not_found, "no such chunk");
    return found->second;
  }
  void sent(const wire::CheckpointRef&, std::size_t) override {}
  void take(const os::Path& directory) {
    store::ScanOptions options;
    options.on_chunk = [&](const Digest& digest, ByteView content) -> Result<void> {
      chunks[digest] = Bytes(content.begin(), content.end());
      return {};
    };
    manifest_bytes = to_manifest(store::scan(directory, options)->tree);
  }
};

// A host at the other end of a socket, served by a thread.
class Host {
 public:
  Host(ChunkStore& cache, SnapshotSource& snapshots, Codecs takes = {}) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    ours_ = os::Fd(ends[0]);
    theirs_ = os::Fd(ends[1]);
    link = std::make_unique<FdLink>(ours_.get(), ours_.get(), false);
    thread_ = std::thread([this, &cache, &snapshots, takes] {
      FdLink server_link(theirs_.get(), theirs_.get(), false);
      BulkServer server(server_link, cache, snapshots, os::system_clock(), takes);
      while (true) {
        const auto request = server_link.receive(os::system_clock().boot() + std::chrono::minutes{1});
        if (!request) break;
        ++requests;
        if (!server.handle(*request)) break;
      }
      ::shutdown(theirs_.get(), SHUT_RDWR);
    });
  }
  ~Host() {
    ::shutdown(ours_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::unique_ptr<FdLink> link;
  std::atomic<int> requests{0};
  [[nodiscard]] int fd() const { return ours_.get(); }  // instead of the link

 private:
  os::Fd ours_, theirs_;
  std::thread thread_;
};

// Numbers as training leaves them: `count` of fp32 around zero.
inline std::string weights(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.02F);
  std::vector<float> numbers(count);
  for (float& number : numbers) number = normal(random);
  std::string bytes(count * sizeof(float), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

struct Line {
  std::uint64_t cut_after = std::numeric_limits<std::uint64_t>::max();  // bytes of both directions
  std::uint64_t bytes_per_second = 0;                                   // 0: as fast as it goes
};

// A host behind a line: bytes pass one by one as far as the line lets them, then both ends are closed.
class FarHost {
 public:
  FarHost(ChunkStore& cache, SnapshotSource& snapshots, Line line, Codecs takes = Codecs::ours())
      : host_(cache, snapshots, takes), line_(line) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    near_ = os::Fd(ends[0]);
    far_ = os::Fd(ends[1]);
    link = std::make_unique<FdLink>(near_.get(), near_.get(), false);
    thread_ = std::thread([this] { relay(); });
  }
  ~FarHost() {
    ::shutdown(near_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::unique_ptr<FdLink> link;
  [[nodiscard]] std::uint64_t passed() const { return passed_; }

 private:
  // What it could not carry in time is lost to a line: it catches up with no more than a sleep that came late.
  static constexpr Duration k_late_max = std::chrono::milliseconds{20};

  void relay() {
    BootTime free_at = os::system_clock().boot();  // when the line has carried what passed
    bool open = true;
    while (open && passed_ < line_.cut_after) {
      std::array<pollfd, 2> ends{{{far_.get(), POLLIN, 0}, {host_.fd(), POLLIN, 0}}};
      ::poll(ends.data(), ends.size(), -1);
      const std::uint64_t before = passed_;
      for (std::size_t side = 0; side < 2 && open; ++side)
        if (ends[side].revents != 0) open = pass(ends[side].fd, ends[1 - side].fd);
      if (line_.bytes_per_second == 0) continue;
      const BootTime now = os::system_clock().boot();
      free_at = std::max(free_at, now - k_late_max) +
                std::chrono::nanoseconds{(passed_ - before) * 1'000'000'000 / line_.bytes_per_second};
      if (free_at > now) os::pause_for(free_at - now);
    }
    ::shutdown(far_.get(), SHUT_RDWR);
    ::shutdown(host_.fd(), SHUT_RDWR);
  }

  bool pass(int from, int to) {
    std::array<char, 16 * 1024> buffer;
    const std::uint64_t room = line_.cut_after - passed_;
    const ssize_t got = ::read(from, buffer.data(), std::min<std::uint64_t>(buffer.size(), room));
    if (got <= 0) return false;
    passed_ += static_cast<std::uint64_t>(got);
    for (ssize_t at = 0; at < got;) {
      const ssize_t wrote = ::send(to, buffer.data() + at, static_cast<std::size_t>(got - at), MSG_NOSIGNAL);
      if (wrote > 0) at += wrote;
      else if (errno != EAGAIN) return false;
      else if (pollfd ready{to, POLLOUT, 0}; ::poll(&ready, 1, -1) < 0) return false;
    }
    return true;
  }

  Host host_;
  Line line_;
  os::Fd near_, far_;
  std::atomic<std::uint64_t> passed_{0};
  std::thread thread_;
};

}  // namespace gridctl::transfer::testing

// SPDX-License-Identifier: Apache-2.0
// Runs one transfer over one or more connections: the waiting chunks, the finished ones, and how many connections help.
// An SSH session carries one window per round trip. Whether window, loss or link is the limit shows only by trying
// another connection; it is kept if the complete transfer becomes faster.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <optional>
#include <thread>
#include <vector>

#include "os/mutex.hpp"
#include "store/tree.hpp"
#include "transfer/codecs.hpp"
#include "transfer/stream.hpp"

namespace gridctl::transfer {

inline constexpr std::size_t k_lanes_max = 8;  // connections of one transfer: 16 MiB in a round trip, over libssh2
inline constexpr int k_rounds_max = 3;         // what a broken connection had taken comes in the next one

struct BulkLink {
  std::unique_ptr<wire::Link> link;
  Codecs codecs = {};    // what its other side decodes
  bool uploads = false;  // it knows of uploads
  Duration took = {};    // to open it
  std::string transport = {};  // the way it came about, as a registration records it; empty: there is no such thing
  std::string way = {};        // the address, likewise
  std::string peer_key = {};   // of the host that answers, in hexadecimal; empty: it has proved none
};
// Opens another connection to the same host; called by several threads.
using MoreLinks = std::function<Result<BulkLink>()>;

// Describes the way to a host. Everything that it refers to must outlive the transfer.
struct Route {
  Route(wire::Link& first, Codecs takes = {}, MoreLinks open_more = {},  // NOLINT: one link is a way already
        Duration opening_took = {})
      : link(first), codecs(takes), more(std::move(open_more)), took(opening_took) {}
  wire::Link& link;
  Codecs codecs;
  MoreLinks more;
  Duration took;  // to open `link`: a login is some ten round trips; 0: not known
};

class ParallelTransfer {
 public:
  // `stats` already has the totals; all must outlive it. `progress` is called by one thread at a time.
  ParallelTransfer(const Route& route, const os::Clock& clock, const Progress& progress, TransferStats& stats)
      : route_(route), clock_(clock), progress_(progress), stats_(stats) {}

  // Does the work of one connection until nothing is left to take; each connection has its own thread.
  using Lane = std::function<Result<void>(Conversation with, Codecs codecs)>;
  // Runs `lane` over the first connection, and over more of them as long as that makes the complete transfer faster. An
  // error of the first connection, or any other than the breaking of another one, ends all. Chunks that a broken one
  // had taken are not done.
  [[nodiscard]] Result<void> run(std::vector<store::Chunk> chunks, const Lane& lane);
  [[nodiscard]] std::size_t lanes() const {  // of the last run
    const os::MutexLock lock(mutex_);
    return lanes_;
  }

  // Returns a conversation whose bytes are counted.
  [[nodiscard]] Conversation conversation(wire::Link& link);
  // Called by lanes. Returns the chunks to move next, at most this many bytes (but at least one chunk); empty: nothing
  // is left for this lane.
  [[nodiscard]] std::vector<store::Chunk> take(const wire::Link& lane, std::uint64_t bytes_max, std::size_t count_max);
  [[nodiscard]] Result<void> tell();                           // cancelled, or why another lane failed
  [[nodiscard]] Result<void> done(const store::Chunk& chunk);  // counts, and tells

 private:
  void moved(std::size_t bytes);
  // Returns bytes a second, measured again each time.
  [[nodiscard]] std::optional<double> rate(BootTime now) GRIDCTL_REQUIRES(mutex_);
  void weigh(double rate) GRIDCTL_REQUIRES(mutex_);
  void grow(std::size_t count) GRIDCTL_REQUIRES(mutex_);
  void help(const Lane& lane);
  bool is_surplus(const wire::Link& lane) GRIDCTL_REQUIRES(mutex_);
  void fail(const Error& error);

  const Route& route_;
  const os::Clock& clock_;
  const Progress& progress_;

  mutable os::Mutex mutex_;
  TransferStats& stats_ GRIDCTL_GUARDED_BY(mutex_);
  std::vector<store::Chunk> chunks_ GRIDCTL_GUARDED_BY(mutex_);
  std::size_t taken_ GRIDCTL_GUARDED_BY(mutex_) = 0;
  std::uint64_t bytes_left_ GRIDCTL_GUARDED_BY(mutex_) = 0;  // of chunks not taken
  std::optional<Error> failure_ GRIDCTL_GUARDED_BY(mutex_);

  const Lane* lane_ GRIDCTL_GUARDED_BY(mutex_) = nullptr;
  std::vector<std::thread> threads_ GRIDCTL_GUARDED_BY(mutex_);
  std::size_t lanes_ GRIDCTL_GUARDED_BY(mutex_) = 0;  // that were opened or are being opened
  std::size_t opening_ GRIDCTL_GUARDED_BY(mutex_) = 0;
  std::size_t lanes_before_ GRIDCTL_GUARDED_BY(mutex_) = 1;  // the last time that there were fewer
  std::size_t surplus_ GRIDCTL_GUARDED_BY(mutex_) = 0;       // that are to end: the link carries no more with them
  bool settled_ GRIDCTL_GUARDED_BY(mutex_) = false;          // more connections would not help
  double rate_before_ GRIDCTL_GUARDED_BY(mutex_) = 0;        // bytes a second with fewer of them
  std::optional<BootTime> warm_at_ GRIDCTL_GUARDED_BY(mutex_), mark_at_ GRIDCTL_GUARDED_BY(mutex_);
  std::uint64_t mark_bytes_ GRIDCTL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gridctl::transfer

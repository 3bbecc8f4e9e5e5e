// SPDX-License-Identifier: Apache-2.0
// Represents a byte stream to one command on a host. Non-blocking; one thread at a time, but not always the same one.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "os/loop.hpp"
#include "ssh/target.hpp"

namespace gridctl::ssh {

struct Watched {
  int fd = -1;
  os::Interest interest;
};

class Channel {
 public:
  virtual ~Channel() = default;  // ends the connection; the command sees its input end

  // Reads bytes of the command's stdout. nullopt: nothing now; poll wants() only after this. 0: the command has closed
  // its output, which says nothing about its success and may be early: only an END record inside the stream proves that
  // it is complete. An error if the connection broke.
  [[nodiscard]] virtual Result<std::optional<std::size_t>> read(std::span<std::byte> into) = 0;
  // Takes some of the bytes for the command's stdin; nullopt: none now. Bytes taken leave during later calls of read or
  // write: keep polling wants() until flushed().
  [[nodiscard]] virtual Result<std::optional<std::size_t>> write(ByteView bytes) = 0;
  [[nodiscard]] virtual bool flushed() const = 0;
  // Ends the command's input, after everything that write() took. Reading continues.
  virtual void close_write() = 0;

  // Returns the descriptors to poll before calling read (and write) again. `output_pending`: the caller has bytes to
  // write.
  [[nodiscard]] virtual std::vector<Watched> wants(bool output_pending) const = 0;
  // Call it every few seconds: it sends a message so that middleboxes do not forget the connection.
  virtual void keepalive(BootTime now) = 0;

  // Returns the last 4 KiB that the command wrote to stderr. Foreign text: sanitise.
  [[nodiscard]] virtual std::string stderr_tail() const = 0;
  [[nodiscard]] virtual TransportKind transport() const = 0;
  [[nodiscard]] virtual const std::string& peer() const = 0;  // "user@host:port"
};

inline constexpr std::size_t k_stderr_turn_bytes_max = 1u << 20;  // read at once; then others get their turn
inline constexpr std::size_t k_stderr_kept = 4 * 1024;
// Appends, keeping the last k_stderr_kept bytes.
void keep_tail(std::string& tail, std::string_view more);

}  // namespace gridctl::ssh

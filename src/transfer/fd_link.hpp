// SPDX-License-Identifier: Apache-2.0
// Links frames over two descriptors: stdin and stdout of the agent, or both ends of a socket.
#pragma once

#include "os/clock.hpp"
#include "os/files.hpp"
#include "wire/frame.hpp"

namespace gridctl::transfer {

class FdLink : public wire::Link {
 public:
  // Borrows the descriptors (the same twice for a socket) and makes them non-blocking. With `await_preamble`, skips
  // login noise first. SIGPIPE must be ignored if `write_fd` is a pipe.
  FdLink(int read_fd, int write_fd, bool await_preamble, const os::Clock& clock = os::system_clock());

  Result<void> send(const wire::Frame& frame, BootTime deadline) override;
  Result<wire::Frame> receive(BootTime deadline) override;
  // Returns true if the peer will send nothing more.
  [[nodiscard]] bool is_closed() const;
  // Sends bytes unframed, for the preamble.
  Result<void> send_raw(std::string_view bytes, BootTime deadline);

 private:
  int read_fd_, write_fd_;
  const os::Clock& clock_;
  wire::Decoder decoder_;
};

}  // namespace gridctl::transfer

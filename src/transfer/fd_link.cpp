// SPDX-License-Identifier: Apache-2.0
#include "transfer/fd_link.hpp"

#include "os/ready.hpp"

namespace gridctl::transfer {
namespace {

constexpr std::size_t k_read_bytes = 256 * 1024;

Error link_closed() { return make_error(Code::host_unreachable, "the other side closed the link"); }

}  // namespace

FdLink::FdLink(int read_fd, int write_fd, bool await_preamble, const os::Clock& clock)
    : read_fd_(read_fd), write_fd_(write_fd), clock_(clock), decoder_(await_preamble) {
  static_cast<void>(os::set_nonblocking(read_fd_));  // a descriptor that cannot be is found by the first read
  static_cast<void>(os::set_nonblocking(write_fd_));
}

Result<void> FdLink::send(const wire::Frame& frame, BootTime deadline) {
  return send_raw(wire::encode(frame), deadline);
}

Result<void> FdLink::send_raw(std::string_view bytes, BootTime deadline) {
  while (!bytes.empty()) {
    TRY_ASSIGN(const os::Moved moved, os::write_now(write_fd_, as_bytes(bytes)));
    if (moved.closed) return link_closed();
    bytes.remove_prefix(moved.bytes);
    if (!moved.blocked) continue;
    TRY_ASSIGN(const bool ready, os::wait_ready(write_fd_, false, true, deadline - clock_.boot()));
    if (!ready) return make_error(Code::timed_out, "the other side took no bytes before the deadline");
  }
  return {};
}

Result<wire::Frame> FdLink::receive(BootTime deadline) {
  Bytes buffer;
  while (true) {
    TRY_ASSIGN(auto frame, decoder_.next());
    if (frame) return *std::move(frame);
    buffer.resize(k_read_bytes);
    TRY_ASSIGN(const os::Moved moved, os::read_now(read_fd_, buffer));
    if (moved.closed) return link_closed();
    decoder_.feed(ByteView(buffer).first(moved.bytes));
    if (!moved.blocked) continue;
    TRY_ASSIGN(const bool ready, os::wait_ready(read_fd_, true, false, deadline - clock_.boot()));
    if (!ready) return make_error(Code::timed_out, "the other side sent nothing before the deadline");
  }
}

bool FdLink::is_closed() const {
  return os::peer_has_gone(read_fd_);
}

}  // namespace gridctl::transfer

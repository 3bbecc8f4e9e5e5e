// SPDX-License-Identifier: Apache-2.0
#include "control/reach/request.hpp"

#include <utility>

#include "wire/messages.hpp"

namespace gridctl::control {

Result<std::string> ask(wire::Link& link, std::uint32_t stream, std::string payload, BootTime deadline,
                        const std::function<BootTime()>& on_event) {
  TRY(link.send({wire::FrameKind::request, stream, std::move(payload)}, deadline));
  for (;;) {
    TRY_ASSIGN(wire::Frame frame, link.receive(deadline));
    if (frame.kind == wire::FrameKind::event && frame.stream == stream && on_event) deadline = on_event();
    if (frame.kind == wire::FrameKind::event) continue;
    if (frame.kind == wire::FrameKind::reply && frame.stream == k_health_stream && stream != k_health_stream) continue;
    if (frame.kind != wire::FrameKind::reply || frame.stream != stream)
      return make_error(Code::protocol_violation, "the agent answered what was not asked");
    if (std::optional<Error> error = wire::payload_error(frame.payload)) {
      if (error->code == Code::io) error->code = Code::engine;  // the host's trouble: `io` is of this machine's files
      return *error;
    }
    return std::move(frame.payload);
  }
}

}  // namespace gridctl::control

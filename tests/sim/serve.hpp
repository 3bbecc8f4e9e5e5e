// SPDX-License-Identifier: Apache-2.0
// A request's frame on its way to a host's core, and the reply's back; in some worlds in pieces, which may be damaged.
#pragma once

#include "host.hpp"
#include "wire/frame.hpp"

namespace gridctl::sim {

// The poll that came last over a connection: most of the next ones differ in their time only, and parsing them anew
// would be a tenth of the simulator's work.
struct LastPoll {
  std::string without_echo;
  wire::PollRequest request;
};

struct Served {
  std::string payload;              // of the reply
  std::optional<std::string> data;  // behind it, with an end record
};
// An error: the connection broke, or what came over it could not be read. Throws Killed when the
// serving process is killed meanwhile.
[[nodiscard]] Result<Served> serve(World& world, Host& host, int laptop, const wire::Frame& frame, LastPoll& last);
// "poll", "start"; what is no request of ours has another name, or none.
[[nodiscard]] std::string_view operation_of(std::string_view payload);
// The fault point of such a request, and whose job or host it is about.
[[nodiscard]] std::optional<Point> point_of(std::string_view operation);
[[nodiscard]] std::string job_named_in(std::string_view payload);  // empty: of none

}  // namespace gridctl::sim

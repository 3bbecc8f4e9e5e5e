// SPDX-License-Identifier: Apache-2.0
// A request's way to the host's core and the answer's way back; in some worlds as bytes, which may arrive damaged.
#pragma once

#include "host.hpp"

namespace gridctl::sim {

// Throws Killed when the serving process is killed meanwhile.
[[nodiscard]] Result<control::Answer> serve_by_wire(World& world, Host& host, int laptop,
                                                    const control::Request& question);

}  // namespace gridctl::sim

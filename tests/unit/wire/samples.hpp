// SPDX-License-Identifier: Apache-2.0
// One message of each kind with every field set, as values and as encoded payloads.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "wire/messages.hpp"

namespace gridctl::wire::samples {

[[nodiscard]] Digest digest(unsigned char fill);
[[nodiscard]] AttemptSpec spec();
[[nodiscard]] AttemptStatus status();

struct Sample {
  std::string name;
  std::string payload;
  // Parses the payload and encodes the value again.
  std::function<Result<std::string>(std::string_view)> again;
  // What comes back: the payload, without the hint of an error, for a host's is no hint.
  [[nodiscard]] std::string back() const;
};
[[nodiscard]] const std::vector<Sample>& all();

}  // namespace gridctl::wire::samples

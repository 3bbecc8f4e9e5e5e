// SPDX-License-Identifier: Apache-2.0
#include "job/outputs.hpp"

#include <algorithm>

namespace gridctl::job {

std::vector<std::string> outputs_at_end(const std::vector<Output>& outputs, bool success) {
  std::vector<std::string> patterns;
  for (const Output& output : outputs)
    if (output.when == OutputWhen::always || (output.when == OutputWhen::success) == success)
      patterns.push_back(output.from);
  return patterns;
}

OutputSync outputs_while_running(const std::vector<Output>& outputs) {
  OutputSync sync;
  for (const Output& output : outputs) {
    if (output.sync <= Duration{}) continue;
    sync.patterns.push_back(output.from);
    sync.every = sync.every > Duration{} ? std::min(sync.every, output.sync) : output.sync;
  }
  return sync;
}

}  // namespace gridctl::job

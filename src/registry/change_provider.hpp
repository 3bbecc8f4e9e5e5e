// SPDX-License-Identifier: Apache-2.0
// How a registered host is changed.
#pragma once

#include <functional>

#include "base/result.hpp"
#include "registry/host_records.hpp"

namespace gridctl::registry {

// Reads the row of `name`, lets `edit` change it, and writes it, all in one transaction: the daemon and several commands
// change the same rows. Whatever takes long (a login, a question) comes before. Returns the row as it is now. When
// `edit` fails, nothing is written. Code::not_found: the host was removed meanwhile.
[[nodiscard]] Result<Provider> change_provider(HostRecords& records, const HostName& name,
                                               const std::function<Result<void>(Provider&)>& edit);

}  // namespace gridctl::registry

// SPDX-License-Identifier: Apache-2.0
#include "registry/change_provider.hpp"

namespace gridctl::registry {

Result<Provider> change_provider(HostRecords& records, const HostName& name,
                                 const std::function<Result<void>(Provider&)>& edit) {
  Provider row;
  const auto write = [&]() -> Result<void> {
    TRY_ASSIGN(row, records.provider(name));
    TRY(edit(row));
    return records.update_provider(row);
  };
  TRY(records.together(write));
  return row;
}

}  // namespace gridctl::registry

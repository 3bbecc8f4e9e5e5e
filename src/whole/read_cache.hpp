// SPDX-License-Identifier: Apache-2.0
// Caches what recognisers have read from files that have not changed since. A value.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "store/listing.hpp"

namespace gridctl::whole {

class ReadCache {
 public:
  [[nodiscard]] Result<Bytes> read(const store::FileFact& file, std::uint64_t offset, std::size_t size,
                                   const store::ReadListed& read);
  void keep_only(const std::vector<store::FileFact>& files);  // ascending

 private:
  struct Known {
    store::FileFact fact;
    std::map<std::pair<std::uint64_t, std::size_t>, Bytes> pieces;
  };
  std::map<std::string, Known, std::less<>> known_;
  std::size_t bytes_ = 0;
};

}  // namespace gridctl::whole

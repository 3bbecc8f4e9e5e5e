// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "store/formats.hpp"

namespace gridctl::store {

Result<void> check_json(std::uint64_t file_size, const ReadAt& read) {
  TRY_ASSIGN(const Bytes bytes, read(0, file_size));
  const std::string_view text = trim(as_text(bytes));
  // A number or a word cut short may be another number or word; what has brackets has an end.
  const bool bracketed = text.starts_with('{') || text.starts_with('[');
  if (bytes.size() == file_size && bracketed && nlohmann::json::accept(text)) return {};
  return make_error(Code::checkpoint_damaged, "not one whole JSON object or array");
}

}  // namespace gridctl::store

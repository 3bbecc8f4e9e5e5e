// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "store/formats.hpp"

namespace gridctl::store {

bool is_json(std::string_view text) {
  if (nlohmann::json::accept(text)) return true;
  std::string plain;  // Python writes numbers that JSON lacks
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    if (quoted && text[at] == '\\' && at + 1 < text.size()) {
      plain += text[at++];
    } else if (text[at] == '"') {
      quoted = !quoted;
    } else if (!quoted && (rest.starts_with("NaN") || rest.starts_with("Infinity"))) {
      plain += '0';
      at += rest.starts_with("NaN") ? 2 : 7;
      continue;
    }
    plain += text[at];
  }
  return nlohmann::json::accept(plain);
}

Result<void> check_json(std::uint64_t file_size, const ReadAt& read) {
  TRY_ASSIGN(const Bytes bytes, read(0, file_size));
  const std::string_view text = trim(as_text(bytes));
  // A truncated number or word may be another number or word; text in brackets has an end.
  const bool bracketed = text.starts_with('{') || text.starts_with('[');
  if (bytes.size() == file_size && bracketed && is_json(text)) return {};
  return make_error(Code::checkpoint_damaged, "not one complete JSON object or array");
}

}  // namespace gridctl::store

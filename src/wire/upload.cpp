// SPDX-License-Identifier: Apache-2.0
#include "wire/upload.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "wire/coding.hpp"

namespace gridctl::wire {

namespace {

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
}

bool is_header_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c) || c == '-'; });
}

}  // namespace

template <class R>
void fields(R& r, Of<R, UploadRequest>& m) {
  fields(r, m.checkpoint);
  r("url", m.url, k_upload_url_max);
  const bool http = m.url.starts_with("http://") || m.url.starts_with("https://");
  r.check(http && is_printable(m.url), "does not contain an http or https URL");
  r.pairs("headers", m.headers, k_upload_headers_max, k_upload_header_max, k_upload_header_max);
  for (const auto& [name, value] : m.headers)
    r.check(is_header_name(name) && is_printable(value), "has a header that is not valid");
  r("recipe_bytes", m.recipe_bytes, k_upload_recipe_max);
}

GRIDCTL_REQUEST(UploadRequest, parse_upload, k_upload_operation)

}  // namespace gridctl::wire

// SPDX-License-Identifier: Apache-2.0
// What S3 servers answer, and what people write about remotes and profiles.
#include <algorithm>
#include <string>

#include "fuzz/target.hpp"
#include "transfer/s3.hpp"
#include "transfer/s3_answers.hpp"
#include "transfer/s3_credentials.hpp"
#include "xml/document.hpp"

namespace gridctl::transfer {
namespace {

std::size_t depth_of(const xml::Element& element) {
  std::size_t deepest = 0;
  for (const xml::Element& child : element.children) deepest = std::max(deepest, depth_of(child));
  return deepest + 1;
}

bool is_harmless(const std::string& text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

}  // namespace

FUZZ_TARGET(s3_answers) {
  if (const Result<xml::Element> root = xml::parse(input)) {
    PROMISE(depth_of(*root) <= xml::k_depth_max);
    PROMISE(!xml::parse(input.substr(0, input.rfind('>'))));  // what lacks its end is no whole
  }
  const std::string prefix = "p/";
  if (const Result<S3Page> page = parse_s3_page(input, prefix)) {
    PROMISE(page->next.size() <= 2048);
    for (const store::Object& object : page->objects)
      PROMISE(object.name.starts_with(prefix) && object.name.size() <= 1024);
  }
  if (const std::optional<S3Error> error = parse_s3_error(input)) {
    PROMISE(!error->code.empty() && is_harmless(error->code) && is_harmless(error->message) &&
            is_harmless(error->region));
    PROMISE(error->code.size() <= 60 && error->message.size() <= 2000);
  }
  if (const Result<std::string> id = parse_upload_id(input)) PROMISE(!id->empty());
  static_cast<void>(check_completed(input));
  if (const Result<S3Range> range = parse_content_range(input))
    PROMISE(range->first <= range->last && range->last < range->total);
}

// Lines: the remote, its endpoint, its region; then a file of profiles.
FUZZ_TARGET(s3_names) {
  std::string_view lines[3];
  for (std::string_view& line : lines) {
    line = input.substr(0, input.find('\n'));
    input.remove_prefix(std::min(line.size() + 1, input.size()));
  }
  if (const Result<S3Remote> remote = parse_s3_remote(lines[0], lines[1], lines[2])) {
    const Result<S3Remote> again = parse_s3_remote(to_url(*remote), remote->endpoint, remote->region);
    PROMISE(again && *again == *remote);
    PROMISE(open_s3(*remote).has_value());
  }
  for (const auto& [name, settings] : parse_s3_profiles(input))
    for (const auto& [setting, value] : settings) PROMISE(value.find('\n') == std::string::npos);
}

}  // namespace gridctl::transfer

// SPDX-License-Identifier: Apache-2.0
#include "transfer/s3_answers.hpp"

#include <algorithm>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "xml/document.hpp"

namespace gridctl::transfer {
namespace {

constexpr std::size_t k_code_max = 60, k_message_max = 200;  // bytes of an error's parts
constexpr std::size_t k_token_max = 2048;                    // bytes of a continuation token or an upload's id
constexpr std::size_t k_key_max = 1024;                      // bytes, S3's own limit

Error odd(const std::string& what) { return make_error(Code::protocol_violation, "the answer is invalid: " + what); }

// Returns one line that is safe in a message.
std::string harmless(std::string_view text, std::size_t bytes_max) {
  std::string out = sanitize(trim(text.substr(0, bytes_max)));
  std::ranges::replace(out, '\n', ' ');
  std::ranges::replace(out, '\t', ' ');
  return out;
}

S3Error error_of(const xml::Element& element) {
  const std::string_view code = trim(element.text_of("Code"));
  const auto fits = [](char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '_'; };
  const bool is_word = !code.empty() && code.size() <= k_code_max && std::ranges::all_of(code, fits);
  return {is_word ? std::string(code) : "Unknown", harmless(element.text_of("Message"), k_message_max),
          harmless(element.text_of("Region"), k_code_max)};
}

Result<store::Object> object_of(const xml::Element& element, std::string_view prefix) {
  const xml::Element* key = element.find("Key");
  const auto size = parse_number<std::uint64_t>(trim(element.text_of("Size")));
  if (key == nullptr || key->text.empty() || !size) return odd("an object without a name or a size");
  if (key->text.size() > k_key_max) return odd("an object's name is too long");
  if (!key->text.starts_with(prefix)) return odd("it lists an object that was not asked for");
  return store::Object{key->text, *size};
}

}  // namespace

std::optional<S3Error> parse_s3_error(std::string_view body) {
  const Result<xml::Element> root = xml::parse(xml::without_controls(body));  // some messages have them
  if (!root || root->name != "Error") return std::nullopt;
  return error_of(*root);
}

Result<S3Page> parse_s3_page(std::string_view body, std::string_view prefix) {
  TRY_ASSIGN(const xml::Element root, xml::parse(body));
  if (root.name != "ListBucketResult") return odd("no listing");
  S3Page page;
  for (const xml::Element& child : root.children) {
    if (child.name == "CommonPrefixes") return odd("it omits objects below a prefix");
    if (child.name != "Contents") continue;
    TRY_ASSIGN(store::Object object, object_of(child, prefix));
    page.objects.push_back(std::move(object));
  }
  if (const xml::Element* count = root.find("KeyCount");
      count != nullptr && parse_number<std::uint64_t>(trim(count->text)) != page.objects.size())
    return odd("its count differs from the objects that it lists");
  const std::string_view truncated = trim(root.text_of("IsTruncated"));
  if (truncated != "true" && truncated != "false") return odd("it does not say whether the list is complete");
  if (truncated == "false") return page;
  page.next = root.text_of("NextContinuationToken");
  if (page.next.empty()) return odd("more objects follow, but it does not say how to request them");
  if (page.next.size() > k_token_max) return odd("its continuation token is too long");
  return page;
}

Result<std::string> parse_upload_id(std::string_view body) {
  TRY_ASSIGN(const xml::Element root, xml::parse(body));
  if (root.name != "InitiateMultipartUploadResult") return odd("not a new upload");
  const std::string id(trim(root.text_of("UploadId")));
  if (id.empty() || id.size() > k_token_max) return odd("an upload without a valid id");
  return id;
}

Result<void> check_completed(std::string_view body) {
  TRY_ASSIGN(const xml::Element root, xml::parse(body));
  if (root.name != "CompleteMultipartUploadResult") return odd("the parts are not joined");
  return {};
}

Result<S3Range> parse_content_range(std::string_view header) {
  const std::string_view unit = "bytes ";
  const std::size_t dash = header.find('-'), slash = header.find('/');
  if (!header.starts_with(unit) || dash == std::string_view::npos || slash == std::string_view::npos || slash < dash)
    return odd("it does not say which bytes it returns");
  const auto first = parse_number<std::uint64_t>(header.substr(unit.size(), dash - unit.size()));
  const auto last = parse_number<std::uint64_t>(header.substr(dash + 1, slash - dash - 1));
  const auto total = parse_number<std::uint64_t>(header.substr(slash + 1));
  if (!first || !last || !total || *first > *last || *last >= *total)
    return odd("it does not say which bytes it returns");
  return S3Range{*first, *last, *total};
}

}  // namespace gridctl::transfer

// SPDX-License-Identifier: Apache-2.0
#include "wire/upload.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "wire/fields.hpp"

namespace gridctl::wire {

namespace {

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

bool is_header_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  });
}

std::pair<std::string, std::string> read_header(const Fields& fields) {
  std::pair<std::string, std::string> header{fields.text("name", k_upload_header_max),
                                             fields.text("value", k_upload_header_max)};
  if (!is_header_name(header.first) || !is_printable(header.second)) fields.fail("is no header");
  return header;
}

UploadRequest read_upload(const Fields& fields) {
  UploadRequest request;
  request.checkpoint = {fields.job(), fields.epoch(), fields.number("number")};
  request.url = fields.text("url", k_upload_url_max);
  if (!(request.url.starts_with("http://") || request.url.starts_with("https://")) || !is_printable(request.url))
    fields.fail("names no URL of http or https");
  request.headers = fields.list("headers", k_upload_headers_max, &read_header);
  request.recipe_bytes = fields.number("recipe_bytes", k_upload_recipe_max);
  return request;
}

}  // namespace

std::string encode(const UploadRequest& request) {
  nlohmann::json headers = nlohmann::json::array();
  for (const auto& [name, value] : request.headers) headers.push_back({{"name", name}, {"value", value}});
  return dump({{"op", k_upload_operation},
               {"job", request.checkpoint.job.value},
               {"epoch", request.checkpoint.epoch.value},
               {"number", request.checkpoint.number},
               {"url", request.url},
               {"headers", std::move(headers)},
               {"recipe_bytes", request.recipe_bytes}});
}

Result<UploadRequest> parse_upload(std::string_view text) {
  return parse_request(text, k_upload_operation, &read_upload);
}

}  // namespace gridctl::wire

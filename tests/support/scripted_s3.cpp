// SPDX-License-Identifier: Apache-2.0
#include "support/scripted_s3.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace gridctl::testing {
namespace {

std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

HttpReply xml(const std::string& body) {
  return {.headers = {{"Content-Type", "application/xml"}},
          .body = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>" + body};
}

}  // namespace

std::size_t ScriptedS3::count(const std::string& method) const {
  const std::vector<HttpCall> all = calls();
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [&](const HttpCall& call) { return call.method == method; }));
}

HttpReply ScriptedS3::error(int status, const std::string& code, const std::string& message) {
  HttpReply reply = xml("<Error><Code>" + code + "</Code><Message>" + message + "</Message></Error>");
  reply.status = status;
  return reply;
}

std::map<std::string, std::string> ScriptedS3::query(const HttpCall& call) {
  std::map<std::string, std::string> found;
  const std::size_t mark = call.target.find('?');
  if (mark == std::string::npos) return found;
  for (const std::string& part : split(std::string_view(call.target).substr(mark + 1), '&')) {
    const std::size_t equals = std::min(part.find('='), part.size());
    found[decoded(part.substr(0, equals))] = decoded(part.substr(std::min(equals + 1, part.size())));
  }
  return found;
}

std::string ScriptedS3::key(const HttpCall& call) {
  const std::string path = decoded(call.target.substr(0, call.target.find('?')));
  const std::size_t slash = path.find('/', 1);
  return slash == std::string::npos ? std::string{} : path.substr(slash + 1);
}

HttpReply ScriptedS3::answer(const HttpCall& call) {
  if (script_)
    if (std::optional<S3Fault> fault = script_(call, ++number_)) {
      if (fault->carried_out) (void)carry_out(call);
      return fault->reply;
    }
  return carry_out(call);
}

HttpReply ScriptedS3::carry_out(const HttpCall& call) {
  if (call.method == "GET" && key(call).empty()) return list(call);
  if (call.method == "GET" || call.method == "HEAD") return get(call);
  if (call.method == "PUT") return put(call);
  if (call.method == "POST") return post(call);
  if (const auto asked = query(call); asked.contains("uploadId")) {
    uploads.erase(asked.at("uploadId"));
  } else {
    objects.erase(key(call));
  }
  return {.status = 204};
}

HttpReply ScriptedS3::get(const HttpCall& call) {
  const auto found = objects.find(key(call));
  if (found == objects.end()) return error(404, "NoSuchKey");
  const std::string& all = found->second;
  HttpReply reply{.headers = {{"ETag", "\"x\""}}, .body = all};
  if (const auto writer = writers.find(found->first); writer != writers.end())
    reply.headers.emplace_back("x-amz-meta-gridctl-writer", writer->second);
  if (const auto range = call.headers.find("range"); range != call.headers.end()) {
    const std::size_t first = std::stoull(range->second.substr(6));
    const std::size_t last = std::stoull(range->second.substr(range->second.find('-') + 1));
    if (first >= all.size()) return error(416, "InvalidRange");
    reply.status = 206;
    reply.body = all.substr(first, last - first + 1);
    reply.headers.emplace_back("Content-Range", "bytes " + std::to_string(first) + "-" +
                                                    std::to_string(first + reply.body.size() - 1) + "/" +
                                                    std::to_string(all.size()));
  }
  return reply;
}

HttpReply ScriptedS3::put(const HttpCall& call) {
  const auto asked = query(call);
  if (asked.contains("uploadId")) {
    const auto upload = uploads.find(asked.at("uploadId"));
    if (upload == uploads.end()) return error(404, "NoSuchUpload");
    upload->second[std::stoi(asked.at("partNumber"))] = call.body;
    return {.headers = {{"ETag", "\"part" + asked.at("partNumber") + "\""}}};
  }
  if (call.headers.contains("if-none-match") && objects.contains(key(call))) return error(412, "PreconditionFailed");
  objects[key(call)] = call.body;
  if (const auto writer = call.headers.find("x-amz-meta-gridctl-writer"); writer != call.headers.end())
    writers[key(call)] = writer->second;
  return {.headers = {{"ETag", "\"x\""}}};
}

HttpReply ScriptedS3::post(const HttpCall& call) {
  const auto asked = query(call);
  if (asked.contains("uploads")) {
    const std::string id = "upload/" + std::to_string(++last_upload_);
    uploads[id];
    return xml("<InitiateMultipartUploadResult><UploadId>" + id + "</UploadId></InitiateMultipartUploadResult>");
  }
  const auto upload = uploads.find(asked.at("uploadId"));
  if (upload == uploads.end()) return error(404, "NoSuchUpload");
  std::string whole;
  for (const auto& [number, part] : upload->second) {
    if (call.body.find("<PartNumber>" + std::to_string(number) + "</PartNumber><ETag>\"part" + std::to_string(number) +
                       "\"</ETag>") == std::string::npos)
      return error(400, "InvalidPart");
    whole += part;
  }
  objects[key(call)] = whole;
  uploads.erase(upload);
  return xml("<CompleteMultipartUploadResult><ETag>\"x\"</ETag></CompleteMultipartUploadResult>");
}

HttpReply ScriptedS3::list(const HttpCall& call) {
  auto asked = query(call);
  std::string body;
  std::size_t count = 0;
  std::string next;
  for (const auto& [name, content] : objects) {
    if (!name.starts_with(asked["prefix"]) || name <= asked["continuation-token"]) continue;
    if (count == page) {
      next = std::prev(objects.find(name))->first;
      break;
    }
    ++count;
    body += "<Contents><Key>" + name + "</Key><Size>" + std::to_string(content.size()) + "</Size></Contents>";
  }
  body += "<KeyCount>" + std::to_string(count) + "</KeyCount><IsTruncated>" + (next.empty() ? "false" : "true") +
          "</IsTruncated>";
  if (!next.empty()) body += "<NextContinuationToken>" + next + "</NextContinuationToken>";
  return xml("<ListBucketResult>" + body + "</ListBucketResult>");
}

}  // namespace gridctl::testing

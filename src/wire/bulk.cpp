// SPDX-License-Identifier: Apache-2.0
// Bulk operations: have, put, manifest, get, and the END record of every data stream.
#include <nlohmann/json.hpp>

#include "wire/fields.hpp"

namespace gridctl::wire {

using nlohmann::json;

namespace {
constexpr std::uint64_t k_chunk_bytes_max = 64ull << 20;  // far above the 4 MiB in use, far below memory

json hex_list(const std::vector<Digest>& digests) {
  json list = json::array();
  for (const Digest& digest : digests) list.push_back(to_hex(digest));
  return list;
}

CheckpointRef read_ref(const Fields& fields) { return {fields.job(), fields.epoch(), fields.number("number")}; }
HaveRequest read_have(const Fields& fields) { return {fields.digests("chunks", k_chunks_max)}; }
HaveReply read_have_reply(const Fields& fields) { return {fields.indexes("missing", k_chunks_max)}; }
PutRequest read_put(const Fields& fields) {
  return {fields.digest("chunk"), static_cast<std::uint32_t>(fields.number("bytes", k_chunk_bytes_max))};
}
GetRequest read_get(const Fields& fields) { return {read_ref(fields), fields.digests("chunks", k_chunks_max)}; }

EndRecord read_end(const Fields& fields) {
  EndRecord record;
  record.bytes = fields.number("bytes");
  const bool ok = fields.flag("ok");
  if (fields.has("error")) record.error = read_error(fields.object("error"));
  if (fields.has("codec")) record.codec = static_cast<std::uint8_t>(fields.number("codec", 255));
  if (record.codec != 0 && fields.has("parameter"))
    record.codec_parameter = static_cast<std::uint16_t>(fields.number("parameter", 65'535));
  if (ok == record.error.has_value()) fields.fail("is neither success nor an error");
  return record;
}
}  // namespace

std::string encode(const HaveRequest& request) { return dump({{"op", "have"}, {"chunks", hex_list(request.chunks)}}); }

std::string encode(const HaveReply& reply) { return dump({{"missing", reply.missing}}); }

std::string encode(const PutRequest& request) {
  return dump({{"op", "put"}, {"chunk", to_hex(request.chunk)}, {"bytes", request.bytes}});
}

std::string encode(const GetRequest& request) {
  return dump({{"op", "get"},
               {"job", request.checkpoint.job.value},
               {"epoch", request.checkpoint.epoch.value},
               {"number", request.checkpoint.number},
               {"chunks", hex_list(request.chunks)}});
}

std::string encode_manifest(const CheckpointRef& checkpoint) {
  return dump({{"op", "manifest"},
               {"job", checkpoint.job.value},
               {"epoch", checkpoint.epoch.value},
               {"number", checkpoint.number}});
}

std::string encode(const EndRecord& record) {
  json out{{"ok", !record.error.has_value()}, {"bytes", record.bytes}};
  if (record.error) out["error"] = error_json(*record.error);
  if (record.codec != 0) out["codec"] = record.codec;
  if (record.codec_parameter != 0) out["parameter"] = record.codec_parameter;
  return dump(out);
}

Result<HaveRequest> parse_have(std::string_view text) { return parse_request(text, "have", &read_have); }
Result<HaveReply> parse_have_reply(std::string_view text) {
  return parse_message(text, "have reply", &read_have_reply);
}
Result<PutRequest> parse_put(std::string_view text) { return parse_request(text, "put", &read_put); }
Result<GetRequest> parse_get(std::string_view text) { return parse_request(text, "get", &read_get); }
Result<CheckpointRef> parse_manifest_request(std::string_view text) {
  return parse_request(text, "manifest", &read_ref);
}
Result<EndRecord> parse_end(std::string_view text) { return parse_message(text, "end record", &read_end); }

}  // namespace gridctl::wire

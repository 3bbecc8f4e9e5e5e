// SPDX-License-Identifier: Apache-2.0
// Implements bulk operations: have, put, manifest, get, keep, and the END record of every data stream.
#include "wire/coding.hpp"
#include "wire/own.hpp"

namespace gridctl::wire {

namespace {
constexpr std::uint64_t k_chunk_bytes_max = 64ull << 20;  // far above the 4 MiB in use, far below memory
}  // namespace

template <class R>
void fields(R& r, Of<R, HaveRequest>& m) {
  r("chunks", m.chunks, k_chunks_max);
}

template <class R>
void fields(R& r, Of<R, HaveForJob>& m) {
  r("chunks", m.chunks, k_chunks_max).unless("job", m.job, {});
}

template <class R>
void fields(R& r, Of<R, KeepRequest>& m) {
  r("job", m.job)("epoch", m.epoch);
}

template <class R>
void fields(R& r, Of<R, HaveReply>& m) {
  r("missing", m.missing, k_chunks_max, k_chunks_max - 1);
}

template <class R>
void fields(R& r, Of<R, PutRequest>& m) {
  r("chunk", m.chunk)("bytes", m.bytes, k_chunk_bytes_max);
}

template <class R>
void fields(R& r, Of<R, GetRequest>& m) {
  fields(r, m.checkpoint);
  r("chunks", m.chunks, k_chunks_max);
}

template <class R>
void fields(R& r, Of<R, EndRecord>& m) {
  bool ok = !m.error;
  r("ok", ok)("bytes", m.bytes).maybe("error", m.error).unless("codec", m.codec, 0);
  if (m.codec != 0) r.unless("parameter", m.codec_parameter, 0);
  r.check(ok != m.error.has_value(), "is neither a success nor an error");
}

std::string encode(const HaveRequest& m) { return encode_request("have", m); }
std::string encode(const HaveForJob& m) { return encode_request("have", m); }
std::string encode(const KeepRequest& m) { return encode_request(k_keep_operation, m); }
std::string encode(const HaveReply& m) { return write_record(m); }
std::string encode(const PutRequest& m) { return encode_request("put", m); }
std::string encode(const GetRequest& m) { return encode_request("get", m); }
std::string encode_manifest(const CheckpointRef& m) { return encode_request("manifest", m); }
std::string encode(const EndRecord& m) { return write_record(m); }

Result<HaveRequest> parse_have(std::string_view text) { return parse_request<HaveRequest>(text, "have"); }
Result<HaveForJob> parse_have_for_job(std::string_view text) { return parse_request<HaveForJob>(text, "have"); }
Result<KeepRequest> parse_keep(std::string_view text) { return parse_request<KeepRequest>(text, k_keep_operation); }
Result<HaveReply> parse_have_reply(std::string_view text) { return parse_message<HaveReply>(text, "have reply"); }
Result<PutRequest> parse_put(std::string_view text) { return parse_request<PutRequest>(text, "put"); }
Result<GetRequest> parse_get(std::string_view text) { return parse_request<GetRequest>(text, "get"); }
Result<CheckpointRef> parse_manifest_request(std::string_view text) {
  return parse_request<CheckpointRef>(text, "manifest");
}
Result<EndRecord> parse_end(std::string_view text) { return parse_message<EndRecord>(text, "end record"); }

}  // namespace gridctl::wire

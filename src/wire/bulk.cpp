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

GRIDCTL_REQUEST(HaveRequest, parse_have, "have")
GRIDCTL_REQUEST(HaveForJob, parse_have_for_job, "have")
GRIDCTL_REQUEST(KeepRequest, parse_keep, k_keep_operation)
GRIDCTL_REPLY(HaveReply, parse_have_reply, "have reply")
GRIDCTL_REQUEST(PutRequest, parse_put, "put")
GRIDCTL_REQUEST(GetRequest, parse_get, "get")
std::string encode_manifest(const CheckpointRef& m) { return encode_request("manifest", m); }
GRIDCTL_REPLY(EndRecord, parse_end, "end record")

Result<CheckpointRef> parse_manifest_request(std::string_view text) {
  return parse_request<CheckpointRef>(text, "manifest");
}

}  // namespace gridctl::wire

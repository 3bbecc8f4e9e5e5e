// SPDX-License-Identifier: Apache-2.0
#include "transfer/serve.hpp"

#include <utility>

#include "base/text.hpp"
#include "store/tree.hpp"
#include "transfer/feed.hpp"
#include "wire/own.hpp"

namespace gridctl::transfer {

using wire::FrameKind;

BulkServer::~BulkServer() { keep(); }

void BulkServer::keep() {
  if (!unsealed_) return;
  unsealed_ = false;
  static_cast<void>(cache_.seal());  // whoever asks for these chunks again is told that they are missing
}

bool BulkServer::serves(std::string_view operation) {
  return is_one_of(operation, {"have", "put", "seal", "manifest", "get"});
}

Result<void> BulkServer::handle(const wire::Frame& request) {
  if (request.kind != FrameKind::request)
    return make_error(Code::protocol_violation, "received a frame that belongs to no operation");
  const std::string operation = wire::request_name(request.payload);
  if (operation == "have") return have(request);
  if (operation == "put") return put(request);
  if (operation == "seal") return seal(request);
  if (operation == "manifest") return manifest(request);
  if (operation == "get") return get(request);
  return refuse(request, make_error(Code::unsupported, "unknown bulk operation"));
}

Result<void> BulkServer::refuse(const wire::Frame& request, const Error& error) {
  return with_.send(FrameKind::reply, request.stream, wire::error_payload(error));
}

Result<void> BulkServer::have(const wire::Frame& request) {
  const auto wanted = wire::parse_have_for_job(request.payload);
  if (!wanted) return refuse(request, wanted.error());
  if (wanted->chunks.size() > k_have_batch)
    return refuse(request, make_error(Code::protocol_violation, "more than 4096 chunks in one request"));
  auto missing = cache_.missing(wanted->chunks);
  if (!missing) return refuse(request, missing.error());
  if (!wanted->job.value.empty() && !missing->empty()) snapshots_.find(wanted->job, wanted->chunks, *missing);
  return with_.send(FrameKind::reply, request.stream, wire::encode(wire::HaveReply{*std::move(missing)}));
}

// The data follow the request at once, so they are read even if the request is refused, unless their size is unknown.
Result<void> BulkServer::put(const wire::Frame& request) {
  TRY_ASSIGN(const wire::PutRequest wanted, wire::parse_put(request.payload));
  if (wanted.bytes == 0 || wanted.bytes > store::k_blob_max)
    return make_error(Code::protocol_violation, "chunk of " + std::to_string(wanted.bytes) + " bytes was announced");
  TRY_ASSIGN(Parcel parcel, with_.parcel(request.stream, wanted.bytes));
  const auto content = unpack(std::move(parcel), wanted.bytes, Codecs::ours());
  if (!content) return refuse(request, content.error());
  if (const auto done = cache_.put(wanted.chunk, *content); !done) return refuse(request, done.error());
  unsealed_ = true;
  return with_.send(FrameKind::reply, request.stream, R"({"stored":true})");
}

Result<void> BulkServer::seal(const wire::Frame& request) {
  unsealed_ = false;
  if (const auto done = cache_.seal(); !done) return refuse(request, done.error());
  return with_.send(FrameKind::reply, request.stream, "{}");
}

Result<void> BulkServer::manifest(const wire::Frame& request) {
  const auto wanted = wire::parse_manifest_request(request.payload);
  if (!wanted) return refuse(request, wanted.error());
  const auto content = snapshots_.manifest(*wanted);
  if (!content) return refuse(request, content.error());
  TRY(with_.send(FrameKind::reply, request.stream, "{\"bytes\":" + std::to_string(content->size()) + "}"));
  return with_.send_data(request.stream, *content);
}

// The first chunk that is not available ends the operation with an error in its end record.
Result<void> BulkServer::get(const wire::Frame& request) {
  const auto wanted = wire::parse_get(request.payload);
  if (!wanted) return refuse(request, wanted.error());
  TRY(with_.send(FrameKind::reply, request.stream, "{}"));
  const auto next = [&digests = wanted->chunks, at = std::size_t{0}]() mutable -> std::optional<store::Chunk> {
    if (at == digests.size()) return std::nullopt;
    return store::Chunk{digests[at++], 0};
  };
  const auto read = [&](const Digest& digest) { return snapshots_.chunk(wanted->checkpoint, digest); };
  Feed feed({next, read}, takes_, worth_, with_.clock, true);
  Conversation paced = with_;
  paced.on_bytes = [&](std::size_t bytes) { snapshots_.sent(wanted->checkpoint, bytes); };
  while (const std::optional<Feed::Item> item = feed.take()) {
    if (!item->parcel) return with_.send_error_end(request.stream, item->parcel.error());
    const BootTime began = with_.clock.boot();
    TRY(paced.send_data(request.stream, item->parcel->bytes, item->parcel->encoding));
    worth_.sent(item->parcel->bytes.size(), with_.clock.boot() - began);
  }
  return {};
}

}  // namespace gridctl::transfer

// SPDX-License-Identifier: Apache-2.0
#include "transfer/serve_remote.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/text.hpp"
#include "store/dir_remote.hpp"
#include "store/remote.hpp"

namespace gridctl::transfer {
namespace {

using wire::FrameKind;
using wire::RemoteDeed;

bool lies_in(const os::Path& path, const os::Path& folder) {
  std::error_code failed;
  const os::Path inner = std::filesystem::weakly_canonical(path, failed),
                 outer = std::filesystem::weakly_canonical(folder, failed);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

// Passes the data after a request to the writer, in order.
class Incoming {
 public:
  Incoming(Conversation& with, std::uint32_t stream, std::uint64_t bytes)
      : inflow_(with, stream, bytes), bytes_(bytes) {}

  // The last piece is passed on only after the end record: a sender that gives up says so there.
  Result<Bytes> read(std::uint64_t offset, std::size_t size) {
    if (offset != given_) return make_error(Code::io, "data that was already sent cannot be read again");
    const bool is_last = given_ + size >= bytes_;
    while ((held_.size() < size || is_last) && !inflow_.has_ended()) {
      TRY_ASSIGN(const std::optional<std::string> piece, inflow_.next());
      if (piece) held_ += *piece;
    }
    const ByteView part = as_bytes(std::string_view(held_).substr(0, size));
    Bytes out(part.begin(), part.end());
    held_.erase(0, out.size());
    given_ += out.size();
    return out;
  }

  // An error here is one of the link.
  Result<void> drain() {
    while (!inflow_.has_ended())
      if (const auto piece = inflow_.next(); !piece && !inflow_.has_ended()) return piece.error();
    return {};
  }

 private:
  Inflow inflow_;
  std::uint64_t bytes_, given_ = 0;
  std::string held_;
};

Result<bool> store_it(store::Backend& remote, const wire::RemoteRequest& request, Incoming& incoming) {
  const auto content = [&](std::uint64_t offset, std::size_t size) { return incoming.read(offset, size); };
  if (request.deed == RemoteDeed::put) {
    TRY(remote.put(request.name, request.bytes, content));
    return true;
  }
  if (request.bytes > store::k_object_read_max)
    return make_error(Code::refused, "this is too large to be written exclusively");
  TRY_ASSIGN(const Bytes whole, content(0, static_cast<std::size_t>(request.bytes)));
  if (whole.size() != request.bytes) return make_error(Code::io, "received less data than announced");
  return remote.put_new(request.name, whole);
}

}  // namespace

Result<os::Path> RemoteServer::folder_of(const std::string& text) const {
  const os::Path given(text);
  if (std::ranges::find(given, os::Path("..")) != given.end())
    return make_error(Code::refused, "'" + sanitize(text, 200) + "' leads upwards");
  os::Path path = (given.is_absolute() ? given : home_ / given).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // a slash at its end
  if (path == path.root_path() || path == home_.lexically_normal())
    return make_error(Code::refused, "copies need their own directory");
  if (lies_in(path, own_))
    return make_error(Code::refused, "'" + sanitize(text, 200) + "' is used by gridctl itself on the host");
  return path;
}

Result<void> RemoteServer::open(const wire::RemoteRequest& request) {
  TRY_ASSIGN(os::Path folder, folder_of(request.folder));
  if (remote_ && folder == folder_ && request.marked == marked_) return {};
  folder_ = std::move(folder);
  marked_ = request.marked;
  remote_ = store::open_dir_remote(folder_, marked_ ? store::k_mark_name : std::string_view());
  return {};
}

Result<void> RemoteServer::make(const wire::RemoteRequest& request) const {
  TRY_ASSIGN(const os::Path folder, folder_of(request.folder));
  if (os::exists(folder)) return {};
  if (!os::exists(folder.parent_path()))
    return make_error(Code::not_found, folder.parent_path().native() + " does not exist; is its disk mounted?");
  TRY(os::make_directories(folder));
  return os::sync_directory(folder.parent_path());
}

Result<void> RemoteServer::answer(std::uint32_t stream, const Result<void>& done) {
  return with_.send(FrameKind::reply, stream, done ? "{}" : wire::error_payload(done.error()));
}

Result<void> RemoteServer::handle(const wire::Frame& frame) {
  // Without a readable request, the length of the following data is unknown.
  TRY_ASSIGN(const wire::RemoteRequest request, wire::parse_remote_request(frame.payload));
  if (request.deed == RemoteDeed::put || request.deed == RemoteDeed::put_new) return put(frame.stream, request);
  if (request.deed == RemoteDeed::make) return answer(frame.stream, make(request));
  if (const Result<void> opened = open(request); !opened) return answer(frame.stream, opened);
  if (request.deed == RemoteDeed::list) return list(frame.stream, request);
  if (request.deed == RemoteDeed::read) return read(frame.stream, request);
  return answer(frame.stream, remote_->remove(request.name));
}

// The data follow the request at once, so they are read even if they are not wanted.
Result<void> RemoteServer::put(std::uint32_t stream, const wire::RemoteRequest& request) {
  Incoming incoming(with_, stream, request.bytes);
  const Result<void> opened = open(request);
  const Result<bool> stored = opened ? store_it(*remote_, request, incoming) : Result<bool>(opened.error());
  TRY(incoming.drain());
  if (!stored) return answer(stream, stored.error());
  return with_.send(FrameKind::reply, stream, wire::encode(wire::RemoteStored{*stored}));
}

Result<void> RemoteServer::list(std::uint32_t stream, const wire::RemoteRequest& request) {
  const Result<std::vector<store::Object>> objects = remote_->list(request.name);
  if (!objects) return answer(stream, objects.error());
  TRY(answer(stream, {}));
  wire::EndRecord end;
  std::string lines;
  const auto flush = [&]() -> Result<void> {
    end.bytes += lines.size();
    return lines.empty() ? Result<void>() : with_.send(FrameKind::data, stream, std::exchange(lines, {}));
  };
  for (const store::Object& object : *objects) {
    lines += std::to_string(object.size) + " " + object.name + "\n";
    if (lines.size() >= k_data_frame) TRY(flush());
  }
  TRY(flush());
  return with_.send(FrameKind::end, stream, wire::encode(end));
}

Result<void> RemoteServer::read(std::uint32_t stream, const wire::RemoteRequest& request) {
  const Result<Bytes> content = remote_->read(request.name, request.offset, static_cast<std::size_t>(request.bytes));
  if (!content) return answer(stream, content.error());
  TRY(answer(stream, {}));
  return with_.send_data(stream, *content);
}

}  // namespace gridctl::transfer

// SPDX-License-Identifier: Apache-2.0
#include "transfer/host_remote.hpp"

#include <algorithm>
#include <utility>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "store/dir_remote.hpp"
#include "wire/remote.hpp"

namespace gridctl::transfer {
namespace {

using store::Object;
using wire::FrameKind;
using wire::RemoteDeed;
using wire::RemoteRequest;

constexpr int k_tries = 2;  // of an operation whose connection broke: the first may have been long dead

static_assert(wire::k_remote_read_max == store::k_object_read_max);
static_assert(wire::k_remote_object_max == store::k_object_max);
static_assert(wire::k_remote_name_max == store::k_object_name_max);

// Represents a connection that knows whether it can still be used.
class Session final : public wire::Link {
 public:
  Session(std::unique_ptr<wire::Link> link, const os::Clock& clock) : link_(std::move(link)), with{*this, clock} {}

  Result<void> send(const wire::Frame& frame, BootTime deadline) override { return note(link_->send(frame, deadline)); }
  Result<wire::Frame> receive(BootTime deadline) override { return note(link_->receive(deadline)); }
  [[nodiscard]] bool is_broken() const { return broken_; }

  // Sends the request; returns its stream.
  Result<std::uint32_t> begin(const RemoteRequest& request) {
    const std::uint32_t stream = next_stream_++;
    TRY(with.send(FrameKind::request, stream, wire::encode(request)));
    return stream;
  }
  Result<void> ask(const RemoteRequest& request) {
    TRY_ASSIGN(const std::uint32_t stream, begin(request));
    TRY(with.reply(stream));
    return {};
  }

 private:
  template <class T>
  Result<T> note(Result<T> outcome) {
    broken_ = broken_ || !outcome;
    return outcome;
  }

  std::unique_ptr<wire::Link> link_;
  bool broken_ = false;
  std::uint32_t next_stream_ = 1;

 public:
  Conversation with;
};

// Reads the host's list of objects line by line: names of objects, each once, in order, only requested ones.
class Lines {
 public:
  explicit Lines(std::string_view prefix) : prefix_(prefix) {}

  Result<void> add(std::string_view piece) {
    rest_ += piece;
    std::size_t begin = 0;
    for (std::size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
      TRY(take(std::string_view(rest_).substr(begin, end - begin)));
      begin = end + 1;
    }
    rest_.erase(0, begin);
    return rest_.size() > k_line_max ? odd("an endless line") : Result<void>();
  }
  Result<std::vector<Object>> finish() && {
    if (!rest_.empty()) return odd("half a line");
    return std::move(objects_);
  }

 private:
  static constexpr std::size_t k_line_max = store::k_object_name_max + 32;  // bytes

  static Error odd(const std::string& what) {
    return make_error(Code::protocol_violation, "the host's list of objects holds " + what);
  }

  Result<void> take(std::string_view line) {
    Object object;
    std::string_view rest = line;
    const auto size = take_number<std::uint64_t>(rest);
    if (!size || !rest.starts_with(' ')) return odd("'" + sanitize(line, 80) + "'");
    object.size = *size;
    object.name = rest.substr(1);
    if (!store::is_object_name(object.name) || !object.name.starts_with(prefix_))
      return odd("'" + sanitize(object.name, 80) + "'");
    if (!objects_.empty() && objects_.back().name >= object.name) return odd("names that are not in order");
    if (objects_.size() == store::k_objects_max) return odd("too many objects");
    objects_.push_back(std::move(object));
    return {};
  }

  std::string prefix_, rest_;
  std::vector<Object> objects_;
};

class HostRemote final : public store::Backend {
 public:
  HostRemote(HostFolder folder, MoreLinks open, const os::Clock& clock)
      : folder_(std::move(folder)), open_(std::move(open)), clock_(clock), made_(folder_.marked) {}

  Result<std::vector<Object>> list(std::string_view prefix) override {
    return tried([&](Session& session) -> Result<std::vector<Object>> {
      TRY_ASSIGN(const std::uint32_t stream, session.begin(request(RemoteDeed::list, prefix)));
      TRY(session.with.reply(stream));
      Inflow inflow(session.with, stream, wire::k_remote_listing_max);
      Lines lines(prefix);
      for (;;) {
        TRY_ASSIGN(const std::optional<std::string> piece, inflow.next());
        if (!piece) return std::move(lines).finish();
        TRY(lines.add(*piece));
      }
    });
  }

  Result<Bytes> read(std::string_view name, std::uint64_t offset, std::size_t size) override {
    TRY(check(name));
    const std::size_t wanted = std::min(size, store::k_object_read_max);
    const auto ask = [&](Session& session) -> Result<Bytes> {
      TRY_ASSIGN(const std::uint32_t stream, session.begin(request(RemoteDeed::read, name, wanted, offset)));
      TRY(session.with.reply(stream));
      return session.with.data(stream, wanted);
    };
    return tried(ask, Code::not_found);
  }

  Result<void> put(std::string_view name, std::uint64_t size, const store::ReadAt& content,
                   const store::Moved& moved) override {
    TRY(check(name));
    if (size > store::k_object_max) return make_error(Code::unsupported, "an object of " + format_size(size));
    std::optional<Error> ours;
    const Result<bool> stored = tried(
        [&](Session& session) { return send(session, request(RemoteDeed::put, name, size), content, moved, ours); });
    if (ours) return *std::move(ours);
    TRY(stored);
    return {};
  }

  Result<bool> put_new(std::string_view name, ByteView content) override {
    TRY(check(name));
    if (content.size() > store::k_object_read_max)
      return make_error(Code::unsupported,
                        "an object of " + format_size(content.size()) + " is too large to be written exclusively");
    const auto give = [content](std::uint64_t offset, std::size_t size) -> Result<Bytes> {
      const ByteView part = content.subspan(offset, size);
      return Bytes(part.begin(), part.end());
    };
    int tries = 0;
    std::optional<Error> ours;
    TRY_ASSIGN(const bool stored, tried([&](Session& session) {
                 ++tries;
                 return send(session, request(RemoteDeed::put_new, name, content.size()), give, {}, ours);
               }));
    if (stored || tries == 1) return stored;
    // The answer to the first try was lost: the object there may come from it.
    TRY_ASSIGN(const Bytes there, read(name, 0, store::k_object_read_max));
    return std::equal(there.begin(), there.end(), content.begin(), content.end());
  }

  Result<void> remove(std::string_view name) override {
    TRY(check(name));
    return tried([&](Session& session) { return session.ask(request(RemoteDeed::remove, name)); });
  }

 private:
  static Result<void> check(std::string_view name) {
    if (store::is_object_name(name)) return {};
    return make_error(Code::protocol_violation, "'" + sanitize(name, 80) + "' is not a valid object name");
  }

  [[nodiscard]] RemoteRequest request(RemoteDeed deed, std::string_view name, std::uint64_t bytes = 0,
                                     std::uint64_t offset = 0) const {
    return {deed, folder_.path, folder_.marked, std::string(name), offset, bytes};
  }

  // Runs work over the present connection, or over a new one. The host's answer is final; a broken connection is
  // replaced once. `allowed`: a code that may have a meaning for the caller.
  template <class Work>
  auto tried(Work work, Code allowed = Code::io) -> decltype(work(std::declval<Session&>())) {
    for (int left = k_tries;;) {
      TRY(connect());
      const Result<void> made = make(*session_);
      auto done = made ? work(*session_) : decltype(work(*session_))(made.error());
      if (done) return done;
      const bool broke = session_->is_broken();
      if (broke || done.error().code == Code::protocol_violation) session_.reset();
      if (!broke) return as_of_remote(std::move(done).error(), made ? allowed : Code::not_found);
      if (--left == 0 || done.error().code != Code::host_unreachable) return done;
    }
  }

  Result<void> connect() {
    if (session_) return {};
    TRY_ASSIGN(BulkLink bulk, open_());
    session_ = std::make_unique<Session>(std::move(bulk.link), clock_);
    return {};
  }

  Result<void> make(Session& session) {
    if (made_) return {};
    TRY(session.ask(request(RemoteDeed::make, "")));
    made_ = true;
    return {};
  }

  // A host may claim anything: that a checkpoint is damaged here, for instance. Only what a remote can know counts.
  [[nodiscard]] Error as_of_remote(Error error, Code allowed) const {
    constexpr Code k_known[] = {Code::no_space, Code::host_unreachable, Code::timed_out,
                                Code::refused,  Code::unsupported,      Code::protocol_violation};
    if (error.code != allowed && std::find(std::begin(k_known), std::end(k_known), error.code) == std::end(k_known))
      error.code = Code::io;
    error.hint.clear();
    return std::move(error).with_context("at the remote on " + folder_.host);
  }

  // `ours`: the content could not be read, or the copying was stopped; then the host is told, and keeps nothing.
  static Result<bool> send(Session& session, const RemoteRequest& request, const store::ReadAt& content,
                           const store::Moved& moved, std::optional<Error>& ours) {
    ours.reset();
    Conversation& with = session.with;
    TRY_ASSIGN(const std::uint32_t stream, session.begin(request));
    for (std::uint64_t done = 0; done < request.bytes && !ours;) {
      const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(k_data_frame, request.bytes - done));
      Result<Bytes> piece = content(done, wanted);
      if (piece && piece->size() != wanted) piece = make_error(Code::io, "the data to copy became shorter");
      if (!piece) {
        ours = std::move(piece).error();
        break;
      }
      TRY(with.send(FrameKind::data, stream, std::string(as_text(*piece))));
      done += wanted;
      if (moved && !moved(done)) ours = make_error(Code::cancelled, "copying was stopped");
    }
    if (ours) TRY(with.send_error_end(stream, *ours));
    else TRY(with.send(FrameKind::end, stream, wire::encode(wire::EndRecord{request.bytes, {}})));
    TRY_ASSIGN(const std::string payload, with.reply(stream));
    TRY_ASSIGN(const wire::RemoteStored stored, wire::parse_remote_stored(payload));
    return stored.stored;
  }

  HostFolder folder_;
  MoreLinks open_;
  const os::Clock& clock_;
  bool made_;
  std::unique_ptr<Session> session_;
};

}  // namespace

std::unique_ptr<store::Backend> open_host_remote(HostFolder folder, MoreLinks open, const os::Clock& clock) {
  return std::make_unique<HostRemote>(std::move(folder), std::move(open), clock);
}

}  // namespace gridctl::transfer

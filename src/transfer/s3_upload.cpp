// SPDX-License-Identifier: Apache-2.0
#include "transfer/s3_wire.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <optional>
#include <string>
#include <utility>

#include "base/text.hpp"

namespace gridctl::transfer {
namespace {

constexpr std::size_t k_read_at_once = 4u << 20;             // bytes
constexpr auto k_look = std::chrono::milliseconds{20};       // between two looks at the parts under way
constexpr std::size_t k_etag_max = 256;                      // bytes; they have 34
constexpr Duration k_abandon_max = std::chrono::seconds{3};  // whoever cancels waits for it
constexpr unsigned k_uploads_max = 3;                        // anew, when the server has forgotten one

Result<std::string> proper_etag(const http::Answer& answer) {
  const std::string_view etag = answer.header("etag");
  if (!etag.empty() && etag.size() <= k_etag_max && is_plain(etag) &&
      etag.find_first_of("<>&") == std::string_view::npos)
    return std::string(etag);
  return make_error(Code::protocol_violation, "the server accepted a part without returning its ETag");
}

// Holds the part that one wire is sending.
struct Lane {
  S3Wire* wire = nullptr;
  std::size_t number = 0;  // from 1, as S3 counts
  Bytes bytes;
  std::atomic<std::uint64_t> sent = 0;
  std::future<Result<std::string>> etag;
};

class Upload {
 public:
  Upload(const std::vector<std::unique_ptr<S3Wire>>& wires, std::string_view name, std::uint64_t size,
         const store::ReadAt& content, const store::Moved& moved)
      : main_(*wires.front()), name_(name), size_(size), content_(content), moved_(moved), lanes_(wires.size()) {
    for (std::size_t i = 0; i < wires.size(); ++i) lanes_[i].wire = wires[i].get();
    etags_.resize((size + k_part_size - 1) / k_part_size);
  }

  Result<void> run() {
    for (unsigned tries = 1;; ++tries) {
      TRY(begin());
      Result<void> result = send_parts();
      if (result) result = complete();
      if (result) return {};
      abandon();
      if (!forgotten_ || tries == k_uploads_max) return result;
    }
  }

 private:
  S3Call call_for(const std::string& method) const {
    S3Call call;
    call.method = method;
    call.name = name_;
    return call;
  }
  // Checks for cancellation in requests of the caller's own thread.
  std::function<bool(std::uint64_t)> asking() {
    return [this](std::uint64_t) { return go_on(); };
  }
  bool go_on() {
    std::uint64_t bytes = done_;
    for (const Lane& lane : lanes_)
      if (lane.etag.valid()) bytes += lane.sent.load();
    return !moved_ || moved_(std::min(bytes, size_));
  }

  Result<void> begin() {
    forgotten_ = false;
    stop_ = false;
    done_ = 0;
    S3Call call = call_for("POST");
    call.query = {{"uploads", ""}};
    call.body = ByteView{};
    call.tells_in_xml = true;
    call.progress = asking();
    TRY_ASSIGN(const S3Outcome outcome, main_.call(call));
    if (outcome.answer.status != 200) return unexpected(outcome);
    TRY_ASSIGN(id_, parse_upload_id(as_text(outcome.answer.body)));
    return {};
  }

  Error unexpected(const S3Outcome& outcome) {
    forgotten_ = forgotten_ || outcome.error.code == "NoSuchUpload";
    return make_error(Code::protocol_violation, "an upload in parts: the server answered " +
                                                    std::to_string(outcome.answer.status) + " " + outcome.error.code);
  }

  Result<void> send_parts() {
    std::size_t next = 1;
    std::optional<Error> failure;
    for (;;) {
      bool busy = false;
      for (Lane& lane : lanes_) {
        if (lane.etag.valid() && lane.etag.wait_for(std::chrono::seconds{0}) == std::future_status::ready) {
          Result<void> taken = take(lane);
          if (!taken && !failure) failure = std::move(taken).error();
        }
        if (!lane.etag.valid() && next <= etags_.size() && !failure) {
          Result<void> given = give(lane, next);
          if (given) ++next;
          else failure = std::move(given).error();
        }
        busy = busy || lane.etag.valid();
      }
      if (!busy) break;
      if (!failure && !go_on()) failure = make_error(Code::cancelled, "stopped");
      if (failure) stop_ = true;  // the others end at once
      for (Lane& lane : lanes_)
        if (lane.etag.valid()) {
          (void)lane.etag.wait_for(k_look);
          break;
        }
    }
    if (failure) return *std::move(failure);
    return {};
  }

  Result<void> give(Lane& lane, std::size_t number) {
    const std::uint64_t offset = (number - 1) * k_part_size;
    TRY_ASSIGN(lane.bytes, read_part(content_, offset, std::min(k_part_size, size_ - offset)));
    lane.number = number;
    lane.sent = 0;
    lane.etag = std::async(std::launch::async, [this, &lane] { return send(lane); });
    return {};
  }

  // Runs on its own thread.
  Result<std::string> send(Lane& lane) {
    S3Call call = call_for("PUT");
    call.query = {{"partNumber", std::to_string(lane.number)}, {"uploadId", id_}};
    call.body = lane.bytes;
    call.progress = [&](std::uint64_t sent) {
      lane.sent = sent;
      return !stop_.load();
    };
    TRY_ASSIGN(const S3Outcome outcome, lane.wire->call(call));
    if (outcome.answer.status != 200) return unexpected(outcome);
    return proper_etag(outcome.answer);
  }

  Result<void> take(Lane& lane) {
    Result<std::string> etag = lane.etag.get();
    if (!etag) return std::move(etag).error();
    etags_[lane.number - 1] = *std::move(etag);
    done_ += lane.bytes.size();
    return {};
  }

  Result<void> complete() {
    std::string list = "<CompleteMultipartUpload>";
    for (std::size_t i = 0; i < etags_.size(); ++i)
      list += "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>" + etags_[i] + "</ETag></Part>";
    list += "</CompleteMultipartUpload>";
    S3Call call = call_for("POST");
    call.query = {{"uploadId", id_}};
    call.body = as_bytes(list);
    call.tells_in_xml = true;
    call.progress = asking();
    TRY_ASSIGN(const S3Outcome outcome, main_.call(call));
    // An earlier try may have succeeded, and then the upload no longer exists; the length is checked in any case.
    const bool perhaps_done = outcome.error.code == "NoSuchUpload";
    if (!perhaps_done) {
      if (outcome.answer.status != 200) return unexpected(outcome);
      TRY(check_completed(as_text(outcome.answer.body)));
    }
    return check_length(perhaps_done);
  }

  Result<void> check_length(bool perhaps_done) {
    S3Call call = call_for("HEAD");
    call.progress = asking();
    TRY_ASSIGN(const S3Outcome outcome, main_.call(call));
    if (outcome.answer.status == 200 && outcome.answer.header("content-length") == std::to_string(size_)) return {};
    forgotten_ = perhaps_done;
    return make_error(Code::protocol_violation, "the server joined the parts into a different object");
  }

  // Does its best, even if everything was cancelled: the bucket's own rules remove leftovers.
  void abandon() {
    S3Call call = call_for("DELETE");
    call.query = {{"uploadId", id_}};
    call.within = k_abandon_max;
    (void)main_.call(call);
  }

  S3Wire& main_;
  std::string name_;
  std::uint64_t size_;
  const store::ReadAt& content_;
  const store::Moved& moved_;
  std::vector<Lane> lanes_;
  std::vector<std::string> etags_;
  std::string id_;
  std::uint64_t done_ = 0;  // bytes of parts that are there
  std::atomic<bool> stop_ = false, forgotten_ = false;
};

}  // namespace

Result<Bytes> read_part(const store::ReadAt& content, std::uint64_t offset, std::size_t size) {
  Bytes bytes;
  bytes.reserve(size);
  while (bytes.size() < size) {
    TRY_ASSIGN(const Bytes more, content(offset + bytes.size(), std::min(k_read_at_once, size - bytes.size())));
    if (more.empty() || more.size() > size - bytes.size())
      return make_error(Code::io, "the object has a different length than announced");
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  return bytes;
}

Result<void> upload_in_parts(const std::vector<std::unique_ptr<S3Wire>>& wires, std::string_view name,
                             std::uint64_t size, const store::ReadAt& content, const store::Moved& moved) {
  return Upload(wires, name, size, content, moved).run();
}

}  // namespace gridctl::transfer

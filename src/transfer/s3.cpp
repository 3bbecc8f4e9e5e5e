// SPDX-License-Identifier: Apache-2.0
#include "transfer/s3.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "os/random.hpp"
#include "store/dir_remote.hpp"
#include "transfer/s3_wire.hpp"

namespace gridctl::transfer {
namespace {

using store::Moved;
using store::Object;

constexpr std::uint64_t k_page_bytes_max = 8u << 20;  // a page of 1,000 names of 1 KiB, with all that is said of them
constexpr std::size_t k_pages_max = 2 * store::k_objects_max / 1000;  // servers may give fewer than 1,000 a page
constexpr std::size_t k_small_max = 8u << 20;                         // bytes of what put_new puts
constexpr std::string_view k_writer = "x-amz-meta-gridctl-writer";

class S3 : public store::Backend {
 public:
  S3(S3Remote remote, S3Options options, os::Clock& clock)
      : remote_(std::move(remote)), options_(std::move(options)), clock_(clock) {
    wires_.push_back(std::make_unique<S3Wire>(remote_, options_, clock_, skew_));
  }

  Result<std::vector<Object>> list(std::string_view prefix) override {
    return list_all(prefix).context("while listing " + to_url(remote_));
  }
  Result<Bytes> read(std::string_view name, std::uint64_t offset, std::size_t size) override {
    TRY(check_name(name));
    return read_range(name, offset, size).context("while reading " + described(name));
  }
  Result<void> put(std::string_view name, std::uint64_t size, const store::ReadAt& content,
                   const Moved& moved) override {
    TRY(check_name(name));
    if (size > store::k_object_max)
      return make_error(Code::usage, "an object of " + format_size(size) + " is too large for a remote");
    return put_whole(name, size, content, moved).context("while putting " + described(name));
  }
  Result<bool> put_new(std::string_view name, ByteView content) override {
    TRY(check_name(name));
    if (content.size() > k_small_max) return make_error(Code::usage, "put_new is only for small objects");
    return put_if_free(name, content).context("while putting " + described(name));
  }
  Result<void> remove(std::string_view name) override {
    TRY(check_name(name));
    return remove_one(name).context("while removing " + described(name));
  }
  Result<std::optional<store::SignedPut>> sign_put(std::string_view name, const Digest& content) override {
    TRY(check_name(name));
    TRY_ASSIGN(S3Signed ready, wires_.front()->signed_for(call_for("PUT", name), content));
    store::SignedPut put{std::move(ready.url), {}};
    for (http::Header& header : ready.headers)
      put.headers.emplace_back(std::move(header.name), std::move(header.value));
    return std::optional(std::move(put));
  }

 private:
  std::string described(std::string_view name) const { return to_url(remote_) + "/" + std::string(name); }

  static Result<void> check_name(std::string_view name) {
    if (store::is_object_name(name)) return {};
    return make_error(Code::usage, "'" + sanitize(name, 100) + "' is not a valid object name");
  }

  S3Call call_for(const std::string& method, std::string_view name) const {
    S3Call call;
    call.method = method;
    call.name = name;
    call.progress = [this](std::uint64_t) { return !options_.cancelled || !options_.cancelled(); };
    return call;
  }
  Result<S3Outcome> ask(const S3Call& call) { return wires_.front()->call(call); }

  static Error unexpected(const S3Outcome& outcome) {
    return make_error(Code::protocol_violation, answered(outcome.answer, outcome.error));
  }

  Result<std::vector<Object>> list_all(std::string_view prefix) {
    const std::size_t skipped = remote_.prefix.empty() ? 0 : remote_.prefix.size() + 1;
    const std::string whole = (skipped == 0 ? "" : remote_.prefix + "/") + std::string(prefix);
    std::vector<Object> found;
    std::set<std::string> tokens;
    std::string token;
    do {
      TRY_ASSIGN(S3Page page, page_of(whole, token));
      for (Object& object : page.objects) {
        object.name.erase(0, skipped);
        // Foreign objects beside ours, such as the empty "folders" of consoles, have no name that we can request.
        if (store::is_object_name(object.name)) found.push_back(std::move(object));
      }
      if (found.size() > store::k_objects_max || tokens.size() > k_pages_max)
        return make_error(Code::protocol_violation, "the listing is endless");
      token = std::move(page.next);
      if (!token.empty() && !tokens.insert(token).second)
        return make_error(Code::protocol_violation, "the listing repeats itself");
    } while (!token.empty());
    // Some servers do not sort.
    std::ranges::sort(found, {}, &Object::name);
    const auto twice =
        std::ranges::adjacent_find(found, [](const Object& a, const Object& b) { return a.name == b.name; });
    if (twice != found.end())
      return make_error(Code::protocol_violation, "the listing contains " + twice->name + " twice");
    return found;
  }

  Result<S3Page> page_of(const std::string& prefix, const std::string& token) {
    S3Call call = call_for("GET", {});
    call.bucket = true;
    call.query = {{"list-type", "2"}, {"max-keys", "1000"}};
    if (!prefix.empty()) call.query.emplace_back("prefix", prefix);
    if (!token.empty()) call.query.emplace_back("continuation-token", token);
    call.answer_max = k_page_bytes_max;
    call.tells_in_xml = true;
    TRY_ASSIGN(const S3Outcome outcome, ask(call));
    if (outcome.answer.status != 200) return unexpected(outcome);
    return parse_s3_page(as_text(outcome.answer.body), prefix);
  }

  Result<Bytes> read_range(std::string_view name, std::uint64_t offset, std::size_t size) {
    if (size > store::k_object_read_max)
      return make_error(Code::usage, "a read of " + format_size(size) + " is too big");
    const std::size_t asked = std::max<std::size_t>(size, 1);  // of nothing there is no range; the object must be there
    S3Call call = call_for("GET", name);
    call.headers = {{"range", "bytes=" + std::to_string(offset) + "-" + std::to_string(offset + asked - 1)}};
    call.answer_max = asked;
    TRY_ASSIGN(S3Outcome outcome, ask(call));
    const int status = outcome.answer.status;
    if (status == 416) return Bytes{};  // it begins at the object's end or behind it
    if (status == 404 && outcome.error.code == "NoSuchKey")
      return make_error(Code::not_found, "there is no " + described(name));
    TRY(check_range(outcome.answer, offset, asked));
    outcome.answer.body.resize(std::min(outcome.answer.body.size(), size));
    return std::move(outcome.answer.body);
  }

  static Result<void> check_range(const http::Answer& answer, std::uint64_t offset, std::size_t asked) {
    const std::size_t got = answer.body.size();
    if (answer.status == 200 && offset == 0 && got <= asked) return {};  // all there is, and no range about it
    if (answer.status != 206)
      return make_error(Code::protocol_violation,
                        "the server answered " + std::to_string(answer.status) + " instead of the range");
    TRY_ASSIGN(const S3Range range, parse_content_range(answer.header("content-range")));
    const bool right = range.first == offset && got == range.last - range.first + 1 &&
                       (got == asked || (got < asked && range.last + 1 == range.total));
    if (!right) return make_error(Code::protocol_violation, "the server returned other bytes than requested");
    return {};
  }

  // The remote's own statement is enough to leave an object as it is: every reader verifies.
  Result<bool> is_there(std::string_view name, std::uint64_t size) {
    TRY_ASSIGN(const S3Outcome outcome, ask(call_for("HEAD", name)));
    return outcome.answer.status == 200 && outcome.answer.header("content-length") == std::to_string(size);
  }

  Result<void> put_whole(std::string_view name, std::uint64_t size, const store::ReadAt& content, const Moved& moved) {
    TRY_ASSIGN(const bool there, is_there(name, size));
    if (there) return {};
    const Moved both = [&](std::uint64_t bytes) {
      return !(options_.cancelled && options_.cancelled()) && (!moved || moved(bytes));
    };
    if (size > 2 * k_part_size) {
      while (wires_.size() < k_parts_in_flight)
        wires_.push_back(std::make_unique<S3Wire>(remote_, options_, clock_, skew_));
      return upload_in_parts(wires_, name, size, content, both);
    }
    TRY_ASSIGN(const Bytes bytes, read_part(content, 0, static_cast<std::size_t>(size)));
    S3Call call = call_for("PUT", name);
    call.body = bytes;
    call.progress = both;
    TRY_ASSIGN(const S3Outcome outcome, ask(call));
    if (outcome.answer.status != 200) return unexpected(outcome);
    return {};
  }

  Result<bool> put_if_free(std::string_view name, ByteView content) {
    const std::string writer = os::random_id(20);  // so that our own earlier try is known again
    S3Call call = call_for("PUT", name);
    call.headers = {{"if-none-match", "*"}, {std::string(k_writer), writer}};
    call.body = content;
    TRY_ASSIGN(const S3Outcome outcome, ask(call));
    if (outcome.answer.status == 200) return true;
    if (outcome.answer.status == 501)
      return make_error(Code::unsupported, "this server does not support writing only if the name is free (" +
                                               (outcome.error.code.empty() ? "501" : outcome.error.code) + ")");
    if (outcome.answer.status != 412) return unexpected(outcome);
    TRY_ASSIGN(const S3Outcome found, ask(call_for("HEAD", name)));
    if (found.answer.status != 200) return make_error(Code::host_unreachable, "it is unclear which writer succeeded");
    return found.answer.header(k_writer) == writer;
  }

  Result<void> remove_one(std::string_view name) {
    TRY_ASSIGN(const S3Outcome outcome, ask(call_for("DELETE", name)));
    const int status = outcome.answer.status;
    if (status == 204 || status == 200 || outcome.error.code == "NoSuchKey") return {};
    return unexpected(outcome);
  }

  const S3Remote remote_;
  const S3Options options_;
  os::Clock& clock_;
  S3Skew skew_;
  std::vector<std::unique_ptr<S3Wire>> wires_;  // the first is for everything, the others for parts
};

}  // namespace

Result<std::unique_ptr<store::Backend>> open_s3(const S3Remote& remote, const S3Options& options) {
  TRY_ASSIGN(S3Remote checked, parse_s3_remote(to_url(remote), remote.endpoint, remote.region, remote.profile));
  os::Clock& clock = options.clock != nullptr ? *options.clock : os::system_clock();
  return std::unique_ptr<store::Backend>(std::make_unique<S3>(std::move(checked), options, clock));
}

}  // namespace gridctl::transfer

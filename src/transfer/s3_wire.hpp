// SPDX-License-Identifier: Apache-2.0
// Sends one S3 request after another: signed, and retried where that helps. A pure function decides what an answer
// means.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/client.hpp"
#include "os/mutex.hpp"
#include "store/backend.hpp"
#include "transfer/s3.hpp"
#include "transfer/s3_answers.hpp"
#include "transfer/s3_credentials.hpp"
#include "transfer/s3_sign.hpp"

namespace gridctl::transfer {

struct S3Call {
  std::string method;
  std::string name;  // within the prefix; ignored when `bucket`
  bool bucket = false;
  S3Query query = {};
  std::vector<http::Header> headers = {};
  std::optional<ByteView> body = {};
  std::uint64_t answer_max = 1u << 20;  // bytes
  bool tells_in_xml = false;            // then a body of <Error> is one, also behind a status of 200
  std::optional<Duration> within = {};  // instead of the remote's patience, tries and all
  // Gets the bytes of the body sent so far, and is called during waits; false stops.
  std::function<bool(std::uint64_t sent)> progress = {};
};

// Names the next step after an answer.
enum class S3Next : std::uint8_t {
  take,         // the caller knows what to make of it
  again,        // later, the same
  again_fresh,  // with credentials that are looked up anew, if they have changed
  again_timed,  // by the server's clock
  fail
};
struct S3Verdict {
  S3Next next = S3Next::take;
  Error error = {};  // when it is not to be taken, or after the last try
};
// `error`: the body's statement, if there is one; none for genuine 2xx answers. The caller takes 2xx, 304, 404
// NoSuchKey and NoSuchUpload, 412, 416, 405 and 501, and for HEAD, which has no body, everything that is not to be
// retried.
[[nodiscard]] S3Verdict judge(const http::Answer& answer, const S3Error& error, bool head);

// Returns the wait before try number `tries` (from 1): random, below a bound that doubles, because many rejected
// clients must not return at once. `random` is uniform over all its values.
[[nodiscard]] Duration backoff(unsigned tries, std::uint64_t random);

// Any request may have been carried out before, by a try whose answer was lost: by ours, or by libcurl's on a kept
// connection.
struct S3Outcome {
  http::Answer answer;
  S3Error error;  // of an answer that is not 2xx
};

// Returns "the server answered 403 AccessDenied: …".
[[nodiscard]] std::string answered(const http::Answer& answer, const S3Error& error);

// Holds the difference between the server's clock and ours, which the wires of one remote share. Threads may share it.
class S3Skew {
 public:
  [[nodiscard]] Duration now() const;
  void set(Duration skew);

 private:
  mutable os::Mutex mutex_;
  Duration skew_ GRIDCTL_GUARDED_BY(mutex_){0};
};

// Represents one connection. One thread at a time. Remote, options and skew must outlive it.
class S3Wire {
 public:
  S3Wire(const S3Remote& remote, const S3Options& options, os::Clock& clock, S3Skew& skew);
  [[nodiscard]] Result<S3Outcome> call(const S3Call& call);
  // Returns the request for another sender, which sends a body with this hash.
  [[nodiscard]] Result<S3Signed> signed_for(const S3Call& call, const Digest& body) const;

 private:
  struct Tries;
  Result<http::Answer> once(const S3Call& call, const S3Login& login);
  Result<void> wait(Tries& tries, const S3Call& call, std::optional<Duration> told, const Error& because);
  bool correct_clock(const http::Answer& answer);
  S3Message message(const S3Call& call, const S3Login& login) const;
  S3Signed signed_now(const S3Call& call, const S3Login& login, const Digest& body) const;

  const S3Remote& remote_;
  const S3Options& options_;
  os::Clock& clock_;
  S3Skew& skew_;
  http::Client client_;
};

// Defines the parts of one big object; several travel at the same time.
inline constexpr std::uint64_t k_part_size = 8u << 20;  // bytes; S3 wants 5 MiB at least
inline constexpr std::size_t k_parts_in_flight = 4;     // one connection seldom fills a long link; 32 MiB of memory

// Returns the next `size` bytes at `offset`; fewer are an error, because the object would be incomplete.
[[nodiscard]] Result<Bytes> read_part(const store::ReadAt& content, std::uint64_t offset, std::size_t size);

// `wires` are used by threads of this function, one each, the first for everything that is not a part; only the
// caller's thread calls `moved` and `content`. Removes the leftovers of a failed upload.
[[nodiscard]] Result<void> upload_in_parts(const std::vector<std::unique_ptr<S3Wire>>& wires, std::string_view name,
                                           std::uint64_t size, const store::ReadAt& content, const store::Moved& moved);

}  // namespace gridctl::transfer

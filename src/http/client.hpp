// SPDX-License-Identifier: Apache-2.0
// Sends HTTP requests, one after another, over connections that are kept, with libcurl. Redirects are answers like any
// other, and no cookies or passwords are sent. http_proxy, https_proxy and no_proxy of the environment are respected.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"

namespace gridctl::http {

inline constexpr std::size_t k_headers_max = 64u << 10;  // bytes of an answer's headers; real ones have 2 KiB
inline constexpr std::size_t k_header_count_max = 200;   // and so many of them
inline constexpr std::size_t k_url_max = 8u << 10;       // bytes; servers refuse longer ones anyway

struct Header {
  std::string name;  // in answers in lower case
  std::string value;
  bool operator==(const Header&) const = default;
};

struct BodySource {
  std::uint64_t size = 0;
  // Fills `into`, which lies within the size. Called in order, and from the start again if libcurl repeats a body after
  // a kept connection was closed.
  std::function<Result<void>(std::uint64_t offset, std::span<std::byte> into)> read;
};
[[nodiscard]] BodySource source_of(ByteView bytes);  // which must outlive it

struct Limits {
  std::uint64_t body_max = 1u << 20;                // bytes of an answer's body; more is a protocol_violation
  Duration connect_max = std::chrono::seconds{10};  // name lookup, TCP and TLS
  Duration stalled_max = std::chrono::seconds{60};  // no byte either way; includes what the server thinks about
  Duration total_max = std::chrono::minutes{30};
};

struct Request {
  std::string method = "GET";
  std::string url;              // http or https, encoded already; no name or password in it
  std::vector<Header> headers;  // Host, Content-Length and Expect are made from the rest
  std::optional<BodySource> body;
  Limits limits;
  // Receives the byte counts of both bodies, at least about ten times a second; false cancels the request.
  std::function<bool(std::uint64_t sent, std::uint64_t received)> progress;
};

struct Answer {
  int status = 0;  // 200 to 999
  std::vector<Header> headers;
  Bytes body;
  std::optional<Duration> retry_after;  // as told by seconds or date; foreign: bound it
  // Returns the value of the first header with that name (lower case), or an empty text.
  [[nodiscard]] std::string_view header(std::string_view name) const;
};

struct ClientOptions {
  std::string ca_bundle;  // path of a PEM file; empty: the system's
};

// Use it from one thread at a time.
class Client {
 public:
  explicit Client(const ClientOptions& options = {}, os::Clock& clock = os::system_clock());
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // Returns any complete answer as a value, whatever its status. Errors never contain the URL's path or query, nor a
  // header: host_unreachable (no such name, refused, the link broke, also in the middle of a body), timed_out,
  // host_key_mismatch (TLS certificate), protocol_violation (not HTTP, or beyond the limits), cancelled, usage (invalid
  // request), and those of the body's source.
  [[nodiscard]] Result<Answer> perform(const Request& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Holds "https://host:port" of a URL, for messages and for signing; usage if the URL is not an http(s) URL, or contains
// a user name or bytes that are not allowed in URLs.
struct Origin {
  std::string scheme, authority;  // lower case; "host" or "host:port"
  std::size_t path_at = 0;        // where the path begins in the URL
};
[[nodiscard]] Result<Origin> parse_origin(std::string_view url);

// Parses "Fri, 24 May 2013 00:00:00 GMT", and the older forms.
[[nodiscard]] std::optional<WallTime> parse_date(std::string_view text);

}  // namespace gridctl::http

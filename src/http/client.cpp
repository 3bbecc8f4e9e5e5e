// SPDX-License-Identifier: Apache-2.0
#include "http/client.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "http/curl.hpp"
#include "os/files.hpp"

namespace gridctl::http {
namespace {

constexpr int k_look_ms = 100;  // between two looks at deadlines and at whoever may cancel

long in_ms(Duration duration) {
  return static_cast<long>(
      std::max<std::int64_t>(1, std::chrono::duration_cast<std::chrono::milliseconds>(duration).count()));
}

// Holds the data that the callbacks of one request share.
struct Exchange {
  const Request* request = nullptr;
  Answer answer;
  std::optional<Error> failure;  // of a callback; tells why libcurl was stopped
  std::uint64_t sent = 0, received = 0;
  std::uint64_t stirred = 0;  // any byte or seek; when it stands still, the transfer does
  std::size_t header_bytes = 0;
  bool headers_ended = false;  // libcurl takes a connection that ends before for an answer

  std::size_t fail(Error error, std::size_t result) {
    failure = std::move(error);
    return result;
  }
};

std::size_t on_read(char* into, std::size_t size, std::size_t count, void* context) {
  Exchange& exchange = *static_cast<Exchange*>(context);
  const BodySource& body = *exchange.request->body;
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(size * count, body.size - exchange.sent));
  if (wanted == 0) return 0;
  const std::span<std::byte> space{reinterpret_cast<std::byte*>(into), wanted};
  if (auto read = body.read(exchange.sent, space); !read)
    return exchange.fail(std::move(read).error(), CURL_READFUNC_ABORT);
  exchange.sent += wanted;
  ++exchange.stirred;
  return wanted;
}

int on_seek(void* context, curl_off_t offset, int origin) {
  Exchange& exchange = *static_cast<Exchange*>(context);
  if (origin != SEEK_SET || offset < 0 || static_cast<std::uint64_t>(offset) > exchange.request->body->size)
    return CURL_SEEKFUNC_FAIL;
  exchange.sent = static_cast<std::uint64_t>(offset);
  ++exchange.stirred;
  return CURL_SEEKFUNC_OK;
}

std::size_t on_write(char* data, std::size_t size, std::size_t count, void* context) {
  Exchange& exchange = *static_cast<Exchange*>(context);
  const std::size_t bytes = size * count;
  if (exchange.answer.body.size() + bytes > exchange.request->limits.body_max)
    return exchange.fail(
        make_error(Code::protocol_violation,
                   "the answer is longer than " + std::to_string(exchange.request->limits.body_max) + " bytes"),
        0);
  const ByteView view = as_bytes({data, bytes});
  exchange.answer.body.insert(exchange.answer.body.end(), view.begin(), view.end());
  exchange.received += bytes;
  ++exchange.stirred;
  return bytes;
}

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* context) {
  Exchange& exchange = *static_cast<Exchange*>(context);
  const std::size_t bytes = size * count;
  const std::string_view line{data, bytes};
  exchange.header_bytes += bytes;
  ++exchange.stirred;
  if (line.starts_with("HTTP/")) {  // after "100 Continue" comes the real one
    exchange.answer.headers.clear();
    exchange.headers_ended = false;
    return bytes;
  }
  if (trim(line).empty()) exchange.headers_ended = true;
  if (exchange.header_bytes > k_headers_max || exchange.answer.headers.size() >= k_header_count_max)
    return exchange.fail(make_error(Code::protocol_violation, "the answer has too many headers"), 0);
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return bytes;
  exchange.answer.headers.push_back({lower(trim(line.substr(0, colon))), std::string(trim(line.substr(colon + 1)))});
  return bytes;
}

Code code_of(CURLcode result) {
  switch (result) {
    case CURLE_OPERATION_TIMEDOUT: return Code::timed_out;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CACERT_BADFILE: return Code::host_key_mismatch;
    case CURLE_URL_MALFORMAT: return Code::usage;
    case CURLE_UNSUPPORTED_PROTOCOL:  // not HTTP; the scheme has been looked at before
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
    case CURLE_FILESIZE_EXCEEDED: return Code::protocol_violation;
    case CURLE_OUT_OF_MEMORY:
    case CURLE_FAILED_INIT: return Code::internal;
    default: return Code::host_unreachable;  // no name, refused, reset, cut off
  }
}

struct CurlList {
  const Curl& lib;
  curl_slist* list = nullptr;
  ~CurlList() { lib.slist_free_all(list); }
  void add(const std::string& line) { list = lib.slist_append(list, line.c_str()); }
};

bool is_header_text(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

}  // namespace

struct Client::State {
  State(const ClientOptions& chosen, os::Clock& with) : options(chosen), clock(with) {}
  ~State() {
    if (lib == nullptr) return;
    lib->easy_cleanup(easy);
    lib->multi_cleanup(multi);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Result<void> begin() {
    if (lib != nullptr) return {};
    TRY_ASSIGN(lib, curl());
    easy = lib->easy_init();
    multi = lib->multi_init();
    GRIDCTL_CHECK(easy != nullptr && multi != nullptr);
    return {};
  }
  template <class Value>
  void set(CURLoption option, Value value) {
    GRIDCTL_CHECK(lib->easy_setopt(easy, option, value) == CURLE_OK);
  }
  void describe(const Request& request, Exchange& exchange, CurlList& headers);
  Result<CURLcode> run(const Request& request, Exchange& exchange);
  Result<void> look(const Request& request, const Exchange& exchange);

  ClientOptions options;
  os::Clock& clock;
  const Curl* lib = nullptr;  // when the first request has begun, as the two handles
  CURL* easy = nullptr;
  CURLM* multi = nullptr;
  std::array<char, CURL_ERROR_SIZE> reason{};
  BootTime began, stirred_at;
  std::uint64_t stirred = 0;
};

// Returns the place where libcurl looks for certificates if they exist there, otherwise the place where other
// distributions keep them: a statically linked gridctl may run on any of them. Empty: libcurl's own choice.
std::string present_ca_bundle(const Curl& lib) {
  const curl_version_info_data* const about = lib.version_info(CURLVERSION_NOW);
  if (about->cainfo != nullptr && os::exists(about->cainfo)) return {};
  for (const char* const path : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                                 "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"})
    if (os::exists(path)) return path;
  return {};
}

void Client::State::describe(const Request& request, Exchange& exchange, CurlList& headers) {
  lib->easy_reset(easy);
  reason.fill('\0');
  set(CURLOPT_ERRORBUFFER, reason.data());
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  const std::string ca_bundle = options.ca_bundle.empty() ? present_ca_bundle(*lib) : options.ca_bundle;
  if (!ca_bundle.empty()) set(CURLOPT_CAINFO, ca_bundle.c_str());
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  set(CURLOPT_PATH_AS_IS, 1L);  // it is signed as it is
  set(CURLOPT_QUICK_EXIT, 1L);  // a name server that does not answer must not hold up a cancellation
  set(CURLOPT_CONNECTTIMEOUT_MS, in_ms(request.limits.connect_max));
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_BUFFERSIZE, 256L << 10);  // fewer turns of the loop than with 16 KiB
  set(CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
  set(CURLOPT_USERAGENT, "gridctl");
  set(CURLOPT_URL, request.url.c_str());
  if (request.body) {
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body->size));
    set(CURLOPT_READFUNCTION, on_read);
    set(CURLOPT_READDATA, &exchange);
    set(CURLOPT_SEEKFUNCTION, on_seek);
    set(CURLOPT_SEEKDATA, &exchange);
  } else if (request.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  }
  set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  set(CURLOPT_WRITEFUNCTION, on_write);
  set(CURLOPT_WRITEDATA, &exchange);
  set(CURLOPT_HEADERFUNCTION, on_header);
  set(CURLOPT_HEADERDATA, &exchange);
  for (const Header& header : request.headers)
    headers.add(header.value.empty() ? header.name + ";" : header.name + ": " + header.value);
  set(CURLOPT_HTTPHEADER, headers.list);
}

// Checks deadlines by a clock that continues while the machine sleeps, unlike libcurl's own.
Result<void> Client::State::look(const Request& request, const Exchange& exchange) {
  const BootTime now = clock.boot();
  if (stirred != exchange.stirred) {
    stirred = exchange.stirred;
    stirred_at = now;
  }
  if (request.progress && !request.progress(exchange.sent, exchange.received))
    return make_error(Code::cancelled, "stopped");
  if (now - stirred_at > request.limits.stalled_max)
    return make_error(Code::timed_out, "no data has moved for " + format_duration(request.limits.stalled_max));
  if (now - began > request.limits.total_max)
    return make_error(Code::timed_out, "not done after " + format_duration(request.limits.total_max));
  return {};
}

Result<CURLcode> Client::State::run(const Request& request, Exchange& exchange) {
  began = stirred_at = clock.boot();
  stirred = 0;
  for (;;) {
    int running = 0, left = 0;
    if (lib->multi_perform(multi, &running) != CURLM_OK) return make_error(Code::internal, "libcurl cannot continue");
    while (const CURLMsg* message = lib->multi_info_read(multi, &left))
      if (message->msg == CURLMSG_DONE) return message->data.result;
    TRY(look(request, exchange));
    if (lib->multi_poll(multi, nullptr, 0, k_look_ms, nullptr) != CURLM_OK)
      return make_error(Code::internal, "libcurl cannot wait");
  }
}

Client::Client(const ClientOptions& options, os::Clock& clock) : state_(std::make_unique<State>(options, clock)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Answer> Client::perform(const Request& request) {
  TRY_ASSIGN(const Origin origin, parse_origin(request.url));
  const std::string attempt = request.method + " at " + origin.scheme + "://" + origin.authority;
  for (const Header& header : request.headers)
    if (!is_header_text(header.name) || !is_header_text(header.value))
      return make_error(Code::usage, attempt + ": a header contains control characters");
  TRY(state_->begin());
  Exchange exchange;
  exchange.request = &request;
  CurlList headers{*state_->lib};
  state_->describe(request, exchange, headers);
  GRIDCTL_CHECK(state_->lib->multi_add_handle(state_->multi, state_->easy) == CURLM_OK);
  const Result<CURLcode> result = state_->run(request, exchange);
  state_->lib->multi_remove_handle(state_->multi, state_->easy);
  if (!result || (*result != CURLE_OK && exchange.failure)) {
    Error error = exchange.failure ? *std::move(exchange.failure) : result.error();
    error.message = attempt + ": " + error.message;
    return error;
  }
  if (*result != CURLE_OK) {
    const char* said = state_->reason[0] != '\0' ? state_->reason.data() : state_->lib->easy_strerror(*result);
    return make_error(code_of(*result), attempt + ": " + sanitize(trim(said), 300));
  }
  if (!exchange.headers_ended) return make_error(Code::host_unreachable, attempt + ": the answer is truncated");
  long status = 0;
  state_->lib->easy_getinfo(state_->easy, CURLINFO_RESPONSE_CODE, &status);
  curl_off_t after = 0;
  if (state_->lib->easy_getinfo(state_->easy, CURLINFO_RETRY_AFTER, &after) == CURLE_OK && after > 0)
    exchange.answer.retry_after = std::chrono::seconds{std::min<curl_off_t>(after, 7 * 24 * 3600)};
  if (status < 200 || status > 999)
    return make_error(Code::protocol_violation, attempt + ": an answer of status " + std::to_string(status));
  exchange.answer.status = static_cast<int>(status);
  return std::move(exchange.answer);
}

std::string_view Answer::header(std::string_view name) const {
  for (const Header& one : headers)
    if (one.name == name) return one.value;
  return {};
}

BodySource source_of(ByteView bytes) {
  return {bytes.size(), [bytes](std::uint64_t offset, std::span<std::byte> into) -> Result<void> {
            std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
            return {};
          }};
}

namespace {
// Accepts "host", "host:80", "[::1]" and "[::1]:80", in lower case.
bool is_authority(std::string_view text) {
  const bool literal = text.starts_with('[');
  const std::size_t end = literal ? text.find(']') + 1 : std::min(text.find(':'), text.size());  // 0: no ']'
  const std::string_view host = text.substr(0, end), port = text.substr(end);
  const std::string_view name = literal && end > 0 ? host.substr(1, end - 2) : host;
  const std::string_view allowed = literal ? "0123456789abcdef:." : "abcdefghijklmnopqrstuvwxyz0123456789.-_";
  if (name.empty() || name.find_first_not_of(allowed) != std::string_view::npos) return false;
  const bool digits =
      port.size() >= 2 && port.size() <= 6 && port.substr(1).find_first_not_of("0123456789") == std::string_view::npos;
  return port.empty() || (port.front() == ':' && digits);
}
}  // namespace

Result<Origin> parse_origin(std::string_view url) {
  const auto none = [](const std::string& why) {
    return make_error(Code::usage, "this is not an http or https URL: " + why);
  };
  if (url.size() > k_url_max) return none("it is longer than " + std::to_string(k_url_max) + " bytes");
  if (std::ranges::any_of(url, [](char c) { return c <= 0x20 || c == 0x7F || c == '"' || c == '\\'; }))
    return none("it contains bytes that must be encoded");
  const std::size_t colon = url.find("://");
  if (colon == std::string_view::npos) return none("it does not begin with https://");
  Origin origin;
  origin.scheme = lower(url.substr(0, colon));
  if (origin.scheme != "http" && origin.scheme != "https") return none("it does not begin with https://");
  const std::size_t host = colon + 3;
  origin.path_at = std::min(url.find_first_of("/?#", host), url.size());
  origin.authority = lower(url.substr(host, origin.path_at - host));
  if (origin.authority.empty() || origin.authority.front() == ':') return none("it does not name a host");
  if (origin.authority.find('@') != std::string::npos) return none("it contains a user name or password");
  if (!is_authority(origin.authority)) return none("the host name is not valid");
  return origin;
}

std::optional<WallTime> parse_date(std::string_view text) {
  if (text.size() > 64) return std::nullopt;
  const Result<const Curl*> lib = curl();
  if (!lib) return std::nullopt;
  const auto seconds_since_1970 = (*lib)->getdate(std::string(text).c_str(), nullptr);
  if (seconds_since_1970 < 0) return std::nullopt;
  return WallTime{static_cast<std::int64_t>(seconds_since_1970) * 1000};
}

}  // namespace gridctl::http

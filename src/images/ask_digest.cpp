// SPDX-License-Identifier: Apache-2.0
#include "images/ask_digest.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "images/registry_answers.hpp"
#include "os/address.hpp"

namespace gridctl::images {

namespace {

constexpr std::string_view k_hub = "docker.io", k_hub_host = "registry-1.docker.io";  // its name, and where its API is
constexpr Duration k_connect_max = std::chrono::seconds{5};
constexpr std::uint64_t k_manifest_max = 4u << 20;  // bytes, as registries allow
constexpr int k_redirects_max = 3;                  // to another place of the same registry
constexpr int k_ok = 200, k_unauthorized = 401, k_forbidden = 403, k_not_found = 404, k_too_many = 429;

// Returns the host in "host", "host:port" and "[::1]:port".
std::string host_in(std::string_view authority) {
  if (authority.starts_with('[')) return std::string(authority.substr(1, std::min(authority.find(']'), authority.size()) - 1));
  std::string host(authority.substr(0, authority.find(':')));
  while (host.ends_with('.')) host.pop_back();  // "localhost." is localhost
  return host;
}

bool is_loopback(std::string_view authority) {
  const std::string host = host_in(authority);
  return host == "localhost" || os::address_kind(host) == os::AddressKind::own;
}

// Returns true for this machine, for what lies beside it (where clouds keep their metadata), and for numbers that
// libraries read as addresses, such as 2130706433 and 0x7f.1.
bool is_near(std::string_view authority) {
  const std::string host = host_in(authority);
  const os::AddressKind kind = os::address_kind(host);
  if (kind != os::AddressKind::none) return kind == os::AddressKind::own || kind == os::AddressKind::special;
  const std::string_view last = std::string_view(host).substr(host.rfind('.') + 1);
  const bool is_number = !last.empty() && last.front() >= '0' && last.front() <= '9';
  return host == "localhost" || host.ends_with(".localhost") || is_number;
}

bool is_redirect(int status) { return status == 301 || status == 302 || status == 303 || status == 307 || status == 308; }

class Conversation {
 public:
  Conversation(const job::ImageReference& image, BootTime deadline, os::Clock& clock, const Exchange& exchange)
      : image_(image), deadline_(deadline), clock_(clock), exchange_(exchange), local_(is_loopback(image.registry)) {}

  Result<std::string> digest() {
    const std::string_view host = image_.registry == k_hub ? k_hub_host : std::string_view(image_.registry);
    std::string url = std::string(local_ ? "http://" : "https://") + std::string(host) + "/v2/" + image_.repository + "/manifests/" + image_.tag;
    TRY_ASSIGN(const http::Origin home, http::parse_origin(url));
    std::string token;
    for (int redirects = 0;;) {
      TRY_ASSIGN(const http::Origin origin, http::parse_origin(url));
      const bool at_home = origin.scheme == home.scheme && origin.authority == home.authority;
      TRY_ASSIGN(const http::Answer answer, get(url, accepted_types(), at_home ? token : ""));
      if (answer.status == k_ok)
        return digest_of_manifest(answer.header("content-type"), answer.body, answer.header("docker-content-digest"));
      if (answer.status == k_unauthorized && at_home && token.empty()) {
        TRY_ASSIGN(token, get_token(answer));
      } else if (is_redirect(answer.status) && redirects < k_redirects_max) {
        ++redirects;
        TRY_ASSIGN(url, redirected(origin, answer.header("location")));
      } else {
        return refusal(answer.status);
      }
    }
  }

 private:
  // No other party on the network may read or change the answer; and no registry leads a request to this machine.
  [[nodiscard]] Result<void> check_url(const std::string& url) const {
    TRY_ASSIGN(const http::Origin origin, http::parse_origin(url));
    if (local_ ? is_loopback(origin.authority) : origin.scheme == "https" && !is_near(origin.authority)) return {};
    return make_error(Code::protocol_violation, "it leads to " + sanitize(origin.scheme + "://" + origin.authority) + ", which is not asked");
  }

  [[nodiscard]] Result<http::Answer> get(const std::string& url, const std::string& accept, const std::string& token) {
    TRY(check_url(url));
    const Duration left = deadline_ - clock_.boot();
    if (left <= Duration::zero()) return make_error(Code::timed_out, "it takes too long to answer");
    http::Request request;
    request.url = url;
    if (!accept.empty()) request.headers.push_back({"Accept", accept});
    if (!token.empty()) request.headers.push_back({"Authorization", "Bearer " + token});
    request.limits = {k_manifest_max, std::min(k_connect_max, left), left, left};
    return exchange_(request);
  }

  [[nodiscard]] Result<std::string> get_token(const http::Answer& refused) {
    for (const http::Header& header : refused.headers) {
      const auto challenge = header.name == "www-authenticate" ? parse_challenge(header.value) : std::nullopt;
      if (!challenge) continue;
      TRY_ASSIGN(const http::Answer answer, get(token_url(*challenge, image_.repository), "", ""));
      if (answer.status == k_ok) return parse_token(as_text(answer.body));
      return refusal(answer.status);
    }
    return refusal(refused.status);
  }

  [[nodiscard]] static Result<std::string> redirected(const http::Origin& from, std::string_view location) {
    if (location.starts_with("/") && !location.starts_with("//"))
      return from.scheme + "://" + from.authority + std::string(location);
    if (location.starts_with("https://") || location.starts_with("http://")) return std::string(location);
    return make_error(Code::protocol_violation, "it leads nowhere");
  }

  [[nodiscard]] Error refusal(int status) const {
    const std::string what = image_.repository + ":" + image_.tag;
    if (status == k_not_found) return make_error(Code::not_found, "it has no image " + what);
    if (status == k_unauthorized || status == k_forbidden)
      return make_error(Code::auth_refused, "it has no image " + what + ", or gives it only after a login");
    if (status == k_too_many) return make_error(Code::busy, "it accepts no more requests from here for now (429)");
    return make_error(Code::protocol_violation, "it answers " + std::to_string(status));
  }

  const job::ImageReference& image_;
  const BootTime deadline_;
  os::Clock& clock_;
  const Exchange& exchange_;
  const bool local_;
};

}  // namespace

Result<std::string> ask_digest(const job::ImageReference& image, BootTime deadline, os::Clock& clock, const Exchange& exchange) {
  if (!image.digest.empty()) return image.digest;
  if (!image.has_registry() || image.tag.empty()) return make_error(Code::usage, "image " + image.repository + " is of no registry");
  Result<std::string> digest = Conversation(image, deadline, clock, exchange).digest();
  if (digest) return digest;
  Error error = std::move(digest).error();
  error.message.insert(0, "registry " + image.registry + ": ");
  return error;
}

Result<std::string> ask_digest(const job::ImageReference& image, Duration within, os::Clock& clock) {
  http::Client client({}, clock);
  return ask_digest(image, clock.boot() + within, clock, [&](const http::Request& request) { return client.perform(request); });
}

}  // namespace gridctl::images

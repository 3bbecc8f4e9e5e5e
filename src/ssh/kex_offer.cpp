// SPDX-License-Identifier: Apache-2.0
#include "ssh/kex_offer.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "ssh/encoding.hpp"

namespace gridctl::ssh {
namespace {

constexpr std::uint8_t k_kexinit = 20;

// Returns the start of the banner line, or npos.
std::size_t banner_start(std::string_view bytes) {
  if (bytes.starts_with("SSH-")) return 0;
  const std::size_t at = bytes.find("\nSSH-");
  return at == std::string_view::npos ? at : at + 1;
}

std::string shown(const std::vector<std::string>& names) { return sanitize(join(names, ","), 200); }

bool any_ends_with(const std::vector<std::string>& names, std::string_view end) {
  return std::ranges::any_of(names, [end](const std::string& name) { return name.ends_with(end); });
}

}  // namespace

std::string banner_of(std::string_view first_bytes) {
  const std::size_t start = banner_start(first_bytes);
  if (start == std::string_view::npos) return {};
  const std::size_t end = first_bytes.find('\n', start);
  if (end == std::string_view::npos) return {};
  return std::string{trim(first_bytes.substr(start, end - start))};
}

bool KexOffer::offers_any(std::span<const std::string> key_types) const {
  return std::ranges::any_of(key_types, [this](const std::string& type) {
    return std::ranges::find(host_keys, type) != host_keys.end() ||
           (type == "ssh-rsa" &&
            std::ranges::any_of(host_keys, [](const std::string& name) { return name.starts_with("rsa-sha2-"); }));
  });
}

std::string KexOffer::difference(std::span<const std::string> key_types) const {
  if (!offers_any(key_types)) return "it offers only host keys " + shown(host_keys);
  if (!any_ends_with(ciphers, "-ctr")) return "it offers only ciphers " + shown(ciphers);
  if (!any_ends_with(macs, "hmac-sha2-256") && !any_ends_with(macs, "hmac-sha2-512"))
    return "it offers only MACs " + shown(macs);
  return "it offers key exchanges " + shown(kex);
}

std::optional<KexOffer> parse_kex_offer(std::string_view first_bytes) {
  const std::size_t start = banner_start(first_bytes);
  if (start == std::string_view::npos) return std::nullopt;
  const std::size_t end = first_bytes.find('\n', start);
  if (end == std::string_view::npos) return std::nullopt;
  FieldReader fields{first_bytes.substr(end + 1)};
  if (!fields.number() || !fields.byte() || fields.byte() != k_kexinit || !fields.take(16)) return std::nullopt;
  std::vector<std::vector<std::string>> lists;
  for (int i = 0; i < 6; ++i) {
    const auto list = fields.text();
    if (!list) return std::nullopt;
    lists.push_back(split(*list, ','));
  }
  // The order is kex, host keys, cipher to server, cipher to client, MAC to server, MAC to client.
  return KexOffer{lists[0], lists[1], lists[2], lists[4]};
}

}  // namespace gridctl::ssh

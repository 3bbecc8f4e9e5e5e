// SPDX-License-Identifier: Apache-2.0
#include "os/address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <memory>

#include "base/numbers.hpp"
#include "os/files.hpp"

namespace gridctl::os {

namespace {

struct Range {
  std::uint32_t network;
  int bits;
  AddressKind kind;
};
constexpr Range k_ranges[] = {
    {0x7f000000, 8, AddressKind::own},      {0x00000000, 8, AddressKind::own},
    {0xa9fe0000, 16, AddressKind::special}, {0xe0000000, 3, AddressKind::special},  // multicast, reserved, broadcast
    {0x0a000000, 8, AddressKind::site},     {0xac100000, 12, AddressKind::site},
    {0xc0a80000, 16, AddressKind::site},    {0x64400000, 10, AddressKind::site},
};

AddressKind kind_of(std::uint32_t address) {
  for (const Range& range : k_ranges)
    if ((address ^ range.network) >> (32 - range.bits) == 0) return range.kind;
  return AddressKind::internet;
}

AddressKind kind_of(const in6_addr& address) {
  if (IN6_IS_ADDR_LOOPBACK(&address) || IN6_IS_ADDR_UNSPECIFIED(&address)) return AddressKind::own;
  if (IN6_IS_ADDR_LINKLOCAL(&address) || IN6_IS_ADDR_MULTICAST(&address) || IN6_IS_ADDR_SITELOCAL(&address))
    return AddressKind::special;
  if ((address.s6_addr[0] & 0xfe) == 0xfc) return AddressKind::site;
  // Unwraps a mapped IPv4 address, which must not pass as another kind.
  const bool mapped = IN6_IS_ADDR_V4MAPPED(&address) || IN6_IS_ADDR_V4COMPAT(&address);
  const bool translated =
      address.s6_addr[0] == 0 && address.s6_addr[1] == 0x64 && address.s6_addr[2] == 0xff && address.s6_addr[3] == 0x9b;
  if (mapped || translated) {
    std::uint32_t inner = 0;
    std::memcpy(&inner, address.s6_addr + 12, sizeof inner);
    return kind_of(ntohl(inner));
  }
  return AddressKind::internet;
}

}  // namespace

AddressKind address_kind(const std::string& address) {
  in_addr four{};
  if (::inet_pton(AF_INET, address.c_str(), &four) == 1) return kind_of(ntohl(four.s_addr));
  in6_addr six{};
  if (::inet_pton(AF_INET6, address.c_str(), &six) == 1) return kind_of(six);
  return AddressKind::none;
}

namespace {
struct OwnAddress {
  std::string address, interface;
  bool is_four = false;
};

std::vector<OwnAddress> addresses_up() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, &::freeifaddrs);
  std::vector<OwnAddress> found;
  for (const ifaddrs* item = list; item != nullptr; item = item->ifa_next) {
    if (item->ifa_addr == nullptr || (item->ifa_flags & IFF_UP) == 0) continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    const int family = item->ifa_addr->sa_family;
    const void* raw = nullptr;
    if (family == AF_INET) raw = &reinterpret_cast<const sockaddr_in*>(item->ifa_addr)->sin_addr;
    if (family == AF_INET6) raw = &reinterpret_cast<const sockaddr_in6*>(item->ifa_addr)->sin6_addr;
    if (raw == nullptr || ::inet_ntop(family, raw, text.data(), text.size()) == nullptr) continue;
    found.push_back({text.data(), item->ifa_name, family == AF_INET});
  }
  return found;
}
}  // namespace

std::vector<std::string> own_addresses() {
  std::vector<std::string> four, six;
  for (const OwnAddress& own : addresses_up()) {
    const AddressKind kind = address_kind(own.address);
    if (kind == AddressKind::site || kind == AddressKind::internet)
      (own.is_four ? four : six).push_back(own.address);
  }
  four.insert(four.end(), six.begin(), six.end());
  return four;
}

std::string interface_of(const std::string& address) {
  for (const OwnAddress& own : addresses_up())
    if (own.address == address) return own.interface;
  return "";
}

std::uint16_t ephemeral_port_first() {
  const auto text = read_file("/proc/sys/net/ipv4/ip_local_port_range", 64);
  return text ? leading_number<std::uint16_t>(*text).value_or(0) : 0;
}

}  // namespace gridctl::os

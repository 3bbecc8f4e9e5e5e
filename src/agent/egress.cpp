// SPDX-License-Identifier: Apache-2.0
#include "agent/egress.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "agent/owner_terms.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/address.hpp"
#include "os/files.hpp"
#include "os/shaping.hpp"

namespace gridctl::agent {

namespace {

constexpr std::size_t k_state_max = 1u << 20;
constexpr int k_ports_tried = 9;  // of the check: discard; nothing is sent

constexpr std::uint32_t k_loopback = 127;
constexpr std::uint64_t k_bits_in_byte = 8, k_first_part = 4;

struct Network {
  std::uint32_t address = 0;  // host order
  int bits = 32;
};

// Lists IANA's special-purpose addresses (RFC 6890) that a home network, a provider's network or this machine may use,
// and multicast with everything above it. The subnet of slirp4netns (10.0.2.0/24) is more specific than 10.0.0.0/8, and
// stays.
constexpr std::array k_closed{
    Network{0x00000000, 8},  Network{0x0a000000, 8},  Network{0x64400000, 10}, Network{0xa9fe0000, 16},
    Network{0xac100000, 12}, Network{0xc0000000, 24}, Network{0xc0a80000, 16}, Network{0xc6120000, 15},
    Network{0xe0000000, 3}};

constexpr std::size_t k_site_prefix = 8;  // bytes of an IPv6 address that neighbours share
constexpr Network k_slirp{0x0a000200, 24};
constexpr int k_narrowest_default = 7;  // bits: VPNs divide the way to everywhere in two

std::uint32_t mask_of(int bits) { return bits == 0 ? 0 : ~std::uint32_t{0} << (32 - bits); }
bool lies_in(const Network& one, const Network& other) {
  return one.bits >= other.bits && ((one.address ^ other.address) & mask_of(other.bits)) == 0;
}

// Returns the networks that this machine reaches other than by its default route: its neighbours, including public
// addresses, and networks behind a VPN. A line of /proc/net/route: device, destination, gateway, flags, three counts,
// mask.
std::vector<Network> networks_of_this_machine() {
  std::vector<Network> all;
  for (const std::string& line : split_lines(os::read_file("/proc/net/route", k_state_max).value_or(""))) {
    std::istringstream words(line);
    std::string device, gateway, flags, refs, uses, metric;
    std::uint32_t to = 0, mask = 0;
    if (!(words >> device >> std::hex >> to >> gateway >> flags >> refs >> uses >> metric >> mask)) continue;
    const int bits = std::popcount(mask);
    if (bits <= k_narrowest_default || ntohl(mask) != mask_of(bits)) continue;
    const Network network{ntohl(to) & mask_of(bits), bits};
    if (network.address >> 24 != k_loopback && !lies_in(network, k_slirp)) all.push_back(network);
  }
  return all;
}

std::vector<Network> addresses_of_this_machine() {
  std::vector<Network> all;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return all;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in address{};
    std::memcpy(&address, one->ifa_addr, sizeof address);
    const std::uint32_t number = ntohl(address.sin_addr.s_addr);
    if (number >> 24 != k_loopback) all.push_back({number, 32});  // a container has its own
  }
  ::freeifaddrs(list);
  return all;
}

struct RouteRequest {
  nlmsghdr head{};
  rtmsg route{};
  std::array<char, 64> attributes{};
};

void append(RouteRequest& request, unsigned short kind, const void* value, std::size_t size) {
  auto* attribute = reinterpret_cast<rtattr*>(reinterpret_cast<char*>(&request) + NLMSG_ALIGN(request.head.nlmsg_len));
  attribute->rta_type = kind;
  attribute->rta_len = static_cast<unsigned short>(RTA_LENGTH(size));
  std::memcpy(RTA_DATA(attribute), value, size);
  request.head.nlmsg_len = NLMSG_ALIGN(request.head.nlmsg_len) + RTA_ALIGN(attribute->rta_len);
}

// Returns false if the kernel did not add the route.
bool add_refusal(int netlink, unsigned char family, const Network& to) {
  RouteRequest request;
  request.head.nlmsg_len = NLMSG_LENGTH(sizeof(rtmsg));
  request.head.nlmsg_type = RTM_NEWROUTE;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
  request.route.rtm_family = family;
  request.route.rtm_dst_len = static_cast<unsigned char>(family == AF_INET ? to.bits : 0);
  request.route.rtm_table = RT_TABLE_MAIN;
  request.route.rtm_protocol = RTPROT_STATIC;
  request.route.rtm_scope = RT_SCOPE_UNIVERSE;
  request.route.rtm_type = RTN_PROHIBIT;
  const std::uint32_t address = htonl(to.address), metric = 1;
  if (family == AF_INET) append(request, RTA_DST, &address, sizeof address);
  else append(request, RTA_PRIORITY, &metric, sizeof metric);
  if (::send(netlink, &request, request.head.nlmsg_len, 0) < 0) return false;
  alignas(nlmsghdr) std::array<char, 4096> answer{};
  if (::recv(netlink, answer.data(), answer.size(), 0) < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(nlmsgerr)))) return false;
  nlmsgerr error{};
  std::memcpy(&error, answer.data() + NLMSG_LENGTH(0), sizeof error);
  return error.error == 0 || error.error == -EEXIST || (family == AF_INET6 && error.error == -EAFNOSUPPORT) ||
         (family == AF_INET6 && error.error == -EOPNOTSUPP);
}

// Asks the kernel for a route; nothing is sent.
bool has_way(std::uint32_t address) {
  const os::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(k_ports_tried);
  to.sin_addr.s_addr = htonl(address);
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
}

bool has_way_of_ipv6() {
  const os::Fd socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return false;
  sockaddr_in6 to{};
  to.sin6_family = AF_INET6;
  to.sin6_port = htons(k_ports_tried);
  ::inet_pton(AF_INET6, "2001:db8::1", &to.sin6_addr);
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
}

int fail(const char* what) {
  std::fprintf(stderr, "gridctl-agent egress-hook: %s: %s\n", what, std::strerror(errno));
  return 1;
}

// A container begins with a part of the rate; whoever supervises it gives it its share at once.
std::string hook_words(std::uint64_t bits, bool open) {
  return R"(,")" + std::to_string(bits / k_bits_in_byte / k_first_part) + R"(")" + (open ? R"(,"open")" : "");
}

// Returns the pid of the container's first process from {"pid": 4711, ...}.
std::optional<int> pid_in(std::string_view state) {
  constexpr std::string_view k_key = "\"pid\"";
  const std::size_t at = state.find(k_key);
  if (at == std::string_view::npos) return std::nullopt;
  state.remove_prefix(at + k_key.size());
  state.remove_prefix(std::min(state.find_first_of("0123456789"), state.size()));
  return leading_number<int>(state);
}

}  // namespace

Result<GuestNetwork> guest_network(const os::Path& agent_home, const ControllerId& controller, EngineKind engine,
                                   const os::Path& agent) {
  TRY_ASSIGN(const std::optional<OwnerTerms> owner, owner_terms(agent_home, controller));
  if (!owner) return GuestNetwork{};
  const bool open = owner->terms.egress == wire::Egress::open, held = owner->terms.up_bits.has_value();
  if (open && !held) return GuestNetwork{};
  if (owner->terms.egress == wire::Egress::none) return GuestNetwork{{"--network", "none"}, true};
  if (engine != EngineKind::podman)
    return make_error(Code::refused, std::string("the owner of this machine ") + (open ? "limits what jobs send" : "filters the network of jobs") + ", which needs podman");
  const os::Path hooks = owner->folder / "hooks";
  TRY(os::make_directories(hooks));
  // The path needs no quotes: we chose it, below a home directory.
  TRY(os::write_file_atomically(hooks / "egress.json",
                                R"({"version":"1.0.0","hook":{"path":")" + agent.string() +
                                    R"(","args":["gridctl-agent","egress-hook")" + (held ? hook_words(*owner->terms.up_bits, open) : "") +
                                    R"(]},"when":{"always":true},)"
                                    R"("stages":["createRuntime"]})"));
  // Other networks give a container an address in the home network itself.
  return GuestNetwork{{"--network", "slirp4netns", "--hooks-dir", hooks.string()}, !open};
}

std::string open_network() {
  for (const Network& one : k_closed)
    if (one.address != 0 && has_way(one.address + 1)) return "a network that should be closed is open";
  return has_way_of_ipv6() ? "IPv6 is open" : "";
}

bool is_near(const std::string& address) {
  in_addr four{};
  if (::inet_pton(AF_INET, address.c_str(), &four) == 1) {
    const Network asked{ntohl(four.s_addr), 32};
    const auto holds = [&](const Network& one) { return lies_in(asked, one); };
    return std::ranges::any_of(addresses_of_this_machine(), holds) || std::ranges::any_of(networks_of_this_machine(), holds);
  }
  in6_addr six{};
  if (::inet_pton(AF_INET6, address.c_str(), &six) != 1) return true;
  return std::ranges::any_of(os::own_addresses(), [&](const std::string& own) {
    in6_addr ours{};
    return ::inet_pton(AF_INET6, own.c_str(), &ours) == 1 && std::memcmp(&ours, &six, k_site_prefix) == 0;
  });
}

int egress_hook(std::span<char* const> arguments) {
  const auto rate = arguments.empty() ? std::nullopt : parse_number<std::uint64_t>(arguments[0]);
  if (!arguments.empty() && !rate) return fail("its argument is no number");
  std::string state(k_state_max, '\0');
  std::size_t size = 0;
  for (ssize_t got = 0; size < state.size() && (got = ::read(STDIN_FILENO, state.data() + size, state.size() - size)) > 0;)
    size += static_cast<std::size_t>(got);
  const std::optional<int> pid = pid_in(std::string_view(state).substr(0, size));
  if (!pid || *pid <= 1) return fail("the state does not name a process");
  std::vector<Network> own = addresses_of_this_machine();
  const std::vector<Network> near = networks_of_this_machine();
  own.insert(own.end(), near.begin(), near.end());
  const os::Fd network(::open(("/proc/" + std::to_string(*pid) + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC));
  if (!network.valid() || ::setns(network.get(), CLONE_NEWNET) != 0) return fail("cannot enter the container's network");
  if (rate)
    if (const Result<void> held = os::shape_own_network(*rate); !held) return fail(held.error().message.c_str());
  if (arguments.size() > 1) return 0;
  const os::Fd netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!netlink.valid()) return fail("netlink is not available");
  for (const Network& one : k_closed)
    if (!add_refusal(netlink.get(), AF_INET, one)) return fail("cannot block a network");
  for (const Network& one : own)
    if (!add_refusal(netlink.get(), AF_INET, one)) return fail("cannot block an address of this machine");
  if (!add_refusal(netlink.get(), AF_INET6, {})) return fail("cannot block IPv6");
  if (const std::string open = open_network(); !open.empty()) return fail(open.c_str());
  for (const Network& one : own)
    if (has_way(one.bits == 32 ? one.address : one.address + 1)) return fail("an address of this machine is open");
  return 0;
}

}  // namespace gridctl::agent

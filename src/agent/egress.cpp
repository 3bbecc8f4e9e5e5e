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

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/numbers.hpp"
#include "os/files.hpp"
#include "os/process.hpp"
#include "wire/guest.hpp"

namespace gridctl::agent {

namespace {

constexpr std::size_t k_state_max = 1u << 20;
constexpr int k_ports_tried = 9;  // of the check: discard; nothing is sent

constexpr std::uint32_t k_loopback = 127;

struct Network {
  std::uint32_t address = 0;  // host order
  int bits = 32;
};

// IANA's special-purpose addresses (RFC 6890) that a home network, a provider's network or this machine may use, and
// multicast with all above it. The subnet of slirp4netns (10.0.2.0/24) is more special than 10.0.0.0/8, and stays.
constexpr std::array k_closed{
    Network{0x00000000, 8},  Network{0x0a000000, 8},  Network{0x64400000, 10}, Network{0xa9fe0000, 16},
    Network{0xac100000, 12}, Network{0xc0000000, 24}, Network{0xc0a80000, 16}, Network{0xc6120000, 15},
    Network{0xe0000000, 3}};

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

// False: the kernel did not add it.
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

// Asks the kernel for a way; nothing is sent.
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

// The pid in {"pid": 4711, ...}: of the container's first process.
std::optional<int> pid_in(std::string_view state) {
  constexpr std::string_view k_key = "\"pid\"";
  const std::size_t at = state.find(k_key);
  if (at == std::string_view::npos) return std::nullopt;
  state.remove_prefix(at + k_key.size());
  state.remove_prefix(std::min(state.find_first_of("0123456789"), state.size()));
  return leading_number<int>(state);
}

std::optional<wire::GuestTerms> terms_of(const os::Path& agent_home, const ControllerId& controller, os::Path& folder) {
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(agent_home / "lend", failed)) {
    const Result<std::string> text = os::read_file(entry.path() / "terms.json");
    if (!text) continue;
    Result<wire::GuestTerms> terms = wire::parse_guest_terms(*text);
    if (!terms || terms->controller != controller) continue;
    folder = entry.path();
    return *std::move(terms);
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<std::string>> guest_network(const os::Path& agent_home, const ControllerId& controller,
                                               EngineKind engine, const os::Path& agent) {
  using Arguments = std::vector<std::string>;
  os::Path folder;
  const std::optional<wire::GuestTerms> terms = terms_of(agent_home, controller, folder);
  if (!terms || terms->egress == wire::Egress::open) return Arguments{};
  if (terms->egress == wire::Egress::none) return Arguments{"--network", "none"};
  if (engine != EngineKind::podman)
    return make_error(Code::refused, "the owner of this machine filters the network of jobs, which needs podman");
  const os::Path hooks = folder / "hooks";
  TRY(os::make_directories(hooks));
  // No quotes: the path is of our own making, below a home directory.
  TRY(os::write_file_atomically(hooks / "egress.json",
                                R"({"version":"1.0.0","hook":{"path":")" + agent.string() +
                                    R"(","args":["gridctl-agent","egress-hook"]},"when":{"always":true},)"
                                    R"("stages":["createRuntime"]})"));
  // Other networks give a container an address of the home network itself.
  return Arguments{"--network", "slirp4netns", "--hooks-dir", hooks.string()};
}

int egress_hook() {
  std::string state(k_state_max, '\0');
  std::size_t size = 0;
  for (ssize_t got = 0; size < state.size() && (got = ::read(STDIN_FILENO, state.data() + size, state.size() - size)) > 0;)
    size += static_cast<std::size_t>(got);
  const std::optional<int> pid = pid_in(std::string_view(state).substr(0, size));
  if (!pid || *pid <= 1) return fail("the state names no process");
  const std::vector<Network> own = addresses_of_this_machine();
  const os::Fd network(::open(("/proc/" + std::to_string(*pid) + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC));
  const os::Fd ours(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!network.valid() || ::setns(network.get(), CLONE_NEWNET) != 0) return fail("cannot enter the container's network");
  const os::Fd netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!netlink.valid()) return fail("there is no netlink");
  for (const Network& one : k_closed)
    if (!add_refusal(netlink.get(), AF_INET, one)) return fail("cannot close a network");
  for (const Network& one : own)
    if (!add_refusal(netlink.get(), AF_INET, one)) return fail("cannot close an address of this machine");
  if (!add_refusal(netlink.get(), AF_INET6, {})) return fail("cannot close IPv6");
  for (const Network& one : k_closed)
    if (one.address != 0 && has_way(one.address + 1)) return fail("a network that was closed is open");
  for (const Network& one : own)
    if (has_way(one.address)) return fail("an address of this machine is open");
  if (has_way_of_ipv6()) return fail("IPv6 is open");
  return 0;
}

}  // namespace gridctl::agent

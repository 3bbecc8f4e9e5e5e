// SPDX-License-Identifier: Apache-2.0
#include "os/shaping.hpp"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "os/files.hpp"

namespace gridctl::os {

namespace {

constexpr std::uint64_t k_burst_least = 96 * 1024;  // bytes; slirp4netns' device takes packets of 65,520
constexpr std::uint64_t k_bursts_a_second = 16, k_queues_a_second = 4;
constexpr std::uint64_t k_rate_most = UINT32_MAX;
constexpr std::uint32_t k_handle = 0x67630000;  // of our queue
constexpr std::uint64_t k_tried_rate = 1'000'000;

struct QueueRequest {
  nlmsghdr head{};
  tcmsg tc{};
  std::array<char, 256> attributes{};
};

rtattr* append(QueueRequest& request, unsigned short kind, const void* value, std::size_t size) {
  auto* attribute = reinterpret_cast<rtattr*>(reinterpret_cast<char*>(&request) + NLMSG_ALIGN(request.head.nlmsg_len));
  attribute->rta_type = kind;
  attribute->rta_len = static_cast<unsigned short>(RTA_LENGTH(size));
  if (size > 0) std::memcpy(RTA_DATA(attribute), value, size);
  request.head.nlmsg_len = NLMSG_ALIGN(request.head.nlmsg_len) + RTA_ALIGN(attribute->rta_len);
  return attribute;
}

Error shaping_error(const std::string& what) {
  return make_error(Code::unsupported, "cannot hold the traffic of a network: " + what + ": " + std::strerror(errno));
}

// An error number of the kernel's, or 0.
int send_request(int netlink, const QueueRequest& request) {
  if (::send(netlink, &request, request.head.nlmsg_len, 0) < 0) return errno;
  alignas(nlmsghdr) std::array<char, 4096> answer{};
  if (::recv(netlink, answer.data(), answer.size(), 0) < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(nlmsgerr)))) return EIO;
  nlmsgerr error{};
  std::memcpy(&error, answer.data() + NLMSG_LENGTH(0), sizeof error);
  return -error.error;
}

int set_queue(int netlink, int device, std::uint64_t bytes_per_second) {
  QueueRequest request;
  request.head.nlmsg_len = NLMSG_LENGTH(sizeof(tcmsg));
  request.head.nlmsg_type = bytes_per_second > 0 ? RTM_NEWQDISC : RTM_DELQDISC;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  if (bytes_per_second > 0) request.head.nlmsg_flags |= NLM_F_CREATE | NLM_F_REPLACE;
  request.tc.tcm_family = AF_UNSPEC;
  request.tc.tcm_ifindex = device;
  request.tc.tcm_parent = TC_H_ROOT;
  request.tc.tcm_handle = k_handle;
  if (bytes_per_second == 0) {
    const int failed = send_request(netlink, request);
    return failed == ENOENT || failed == EINVAL ? 0 : failed;  // there was none of ours
  }
  const Shape shape = shape_for(bytes_per_second);
  tc_tbf_qopt options{};
  options.rate.rate = static_cast<std::uint32_t>(shape.rate);
  options.rate.linklayer = TC_LINKLAYER_ETHERNET;
  options.limit = static_cast<std::uint32_t>(shape.queue);
  const auto burst = static_cast<std::uint32_t>(shape.burst);
  append(request, TCA_KIND, "tbf", sizeof "tbf");
  const std::size_t begin = NLMSG_ALIGN(request.head.nlmsg_len);
  rtattr* nest = append(request, TCA_OPTIONS, nullptr, 0);
  append(request, TCA_TBF_PARMS, &options, sizeof options);
  append(request, TCA_TBF_BURST, &burst, sizeof burst);
  nest->rta_len = static_cast<unsigned short>(request.head.nlmsg_len - begin);
  return send_request(netlink, request);
}

Result<void> shape_devices(std::uint64_t bytes_per_second, bool loopback) {
  const Fd netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!netlink.valid()) return shaping_error("there is no netlink");
  struct if_nameindex* const all = ::if_nameindex();
  if (all == nullptr) return shaping_error("its devices cannot be listed");
  int failed = 0;
  for (const struct if_nameindex* one = all; one->if_index != 0 && failed == 0; ++one)
    if ((std::strcmp(one->if_name, "lo") == 0) == loopback)
      failed = set_queue(netlink.get(), static_cast<int>(one->if_index), bytes_per_second);
  ::if_freenameindex(all);
  if (failed == 0) return {};
  errno = failed;
  return shaping_error("the kernel adds no queue");
}

}  // namespace

Shape shape_for(std::uint64_t bytes_per_second) {
  const std::uint64_t rate = std::min(bytes_per_second, k_rate_most);
  const std::uint64_t burst = std::clamp<std::uint64_t>(rate / k_bursts_a_second, k_burst_least, 16u << 20);
  return {rate, burst, burst + std::clamp<std::uint64_t>(rate / k_queues_a_second, 64 * 1024, 32u << 20)};
}

Result<void> shape_own_network(std::uint64_t bytes_per_second) { return shape_devices(bytes_per_second, false); }

Result<void> shape_network_of(int pid, std::uint64_t bytes_per_second) {
  const std::string of = "/proc/" + std::to_string(pid) + "/ns/";
  const Fd network(::open((of + "net").c_str(), O_RDONLY | O_CLOEXEC)), ours(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  struct stat its {
  }, own{};
  if (!network.valid() || ::fstat(network.get(), &its) != 0 || ::fstat(ours.get(), &own) != 0) return shaping_error("process " + std::to_string(pid));
  if (its.st_ino == own.st_ino && its.st_dev == own.st_dev) {
    errno = EPERM;
    return shaping_error("process " + std::to_string(pid) + " shares the network of this machine");
  }
  // The rights come with the user namespace that the network belongs to. Whoever is in it already cannot enter it.
  const Fd users(::ioctl(network.get(), NS_GET_USERNS)), our_users(::open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC));
  const bool other = users.valid() && ::fstat(users.get(), &its) == 0 && ::fstat(our_users.get(), &own) == 0 && its.st_ino != own.st_ino;
  if (other && ::setns(users.get(), CLONE_NEWUSER) != 0) return shaping_error("the rights over it");
  if (::setns(network.get(), CLONE_NEWNET) != 0) return shaping_error("it cannot be entered");
  return shape_devices(bytes_per_second, false);
}

Result<void> try_shaping() {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) ::_exit(errno & 0x7f);
    ::_exit(shape_devices(k_tried_rate, true) ? 0 : errno & 0x7f);
  }
  int status = 0;
  if (child < 0) return shaping_error("no process for a try");
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return shaping_error("a try");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
  return shaping_error("neither the kernel nor the rights of this user");
}

}  // namespace gridctl::os

// SPDX-License-Identifier: Apache-2.0
// nfdelay QUEUE MS: holds every packet of one netfilter queue for MS milliseconds, for kernels without netem.
// Only metadata crosses to user space and large (GSO) packets stay whole, so it keeps up with 1 Gbit/s.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

enum { k_ring = 1 << 18, k_receive_buffer = 8 << 20 };

struct message {
  struct nlmsghdr header;
  struct nfgenmsg family;
  char attributes[256];
};

struct held {
  uint32_t id;
  uint64_t due;
};

static int netlink;
static uint16_t queue;
static struct held ring[k_ring];  // packets leave in the order of their arrival
static unsigned oldest, next;

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static struct message new_message(int type) {
  struct message message;
  memset(&message, 0, sizeof message);
  message.header.nlmsg_len = NLMSG_LENGTH(sizeof(struct nfgenmsg));
  message.header.nlmsg_type = NFNL_SUBSYS_QUEUE << 8 | type;
  message.header.nlmsg_flags = NLM_F_REQUEST;
  message.family.nfgen_family = AF_UNSPEC;
  message.family.version = NFNETLINK_V0;
  message.family.res_id = htons(queue);
  return message;
}

static void add(struct message* message, int type, const void* data, int size) {
  struct nlattr* attribute = (void*)((char*)message + NLMSG_ALIGN(message->header.nlmsg_len));
  attribute->nla_type = type;
  attribute->nla_len = NLA_HDRLEN + size;
  memcpy((char*)attribute + NLA_HDRLEN, data, size);
  message->header.nlmsg_len = NLMSG_ALIGN(message->header.nlmsg_len) + NLA_ALIGN(attribute->nla_len);
}

static void say(struct message* message) {
  if (send(netlink, message, message->header.nlmsg_len, 0) < 0) perror("nfdelay: send");
}

static int bind_queue(void) {
  int size = k_receive_buffer, one = 1;
  struct sockaddr_nl address = {.nl_family = AF_NETLINK};
  netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
  if (netlink < 0 || bind(netlink, (void*)&address, sizeof address)) return -1;
  setsockopt(netlink, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
  setsockopt(netlink, SOL_NETLINK, NETLINK_NO_ENOBUFS, &one, sizeof one);

  struct nfqnl_msg_config_cmd command = {.command = NFQNL_CFG_CMD_BIND};
  struct message bind_message = new_message(NFQNL_MSG_CONFIG);
  add(&bind_message, NFQA_CFG_CMD, &command, sizeof command);
  say(&bind_message);

  struct nfqnl_msg_config_params params = {.copy_range = 0, .copy_mode = NFQNL_COPY_META};
  uint32_t length = htonl(k_ring - 1), flags = htonl(NFQA_CFG_F_GSO);
  struct message config = new_message(NFQNL_MSG_CONFIG);
  add(&config, NFQA_CFG_PARAMS, &params, sizeof params);
  add(&config, NFQA_CFG_QUEUE_MAXLEN, &length, sizeof length);
  add(&config, NFQA_CFG_FLAGS, &flags, sizeof flags);
  add(&config, NFQA_CFG_MASK, &flags, sizeof flags);
  say(&config);
  return 0;
}

static void release_due(void) {
  uint64_t time = now();
  unsigned end = oldest;
  while (end != next && ring[end % k_ring].due <= time) end++;
  if (end == oldest) return;
  struct nfqnl_msg_verdict_hdr verdict = {.verdict = htonl(NF_ACCEPT), .id = htonl(ring[(end - 1) % k_ring].id)};
  struct message message = new_message(NFQNL_MSG_VERDICT_BATCH);  // everything up to this id
  add(&message, NFQA_VERDICT_HDR, &verdict, sizeof verdict);
  say(&message);
  oldest = end;
}

static void wait_for_packet_or_due(void) {
  struct timespec wait = {1, 0};
  if (oldest != next) {
    uint64_t time = now(), due = ring[oldest % k_ring].due, left = due > time ? due - time : 0;
    wait.tv_sec = left / 1000000000u;
    wait.tv_nsec = left % 1000000000u;
  }
  struct pollfd ready = {netlink, POLLIN, 0};
  ppoll(&ready, 1, &wait, NULL);
}

static void hold_arrived(uint64_t delay) {
  static char buffer[1 << 16];
  int left = recv(netlink, buffer, sizeof buffer, MSG_DONTWAIT);
  uint64_t due = now() + delay;
  for (struct nlmsghdr* header = (void*)buffer; left > 0 && NLMSG_OK(header, (unsigned)left);
       header = NLMSG_NEXT(header, left)) {
    if ((header->nlmsg_type & 0xff) != NFQNL_MSG_PACKET) continue;
    struct nlattr* attribute = (void*)((char*)NLMSG_DATA(header) + sizeof(struct nfgenmsg));
    char* end = (char*)header + header->nlmsg_len;
    for (; (char*)attribute + NLA_HDRLEN <= end && attribute->nla_len >= NLA_HDRLEN;
         attribute = (void*)((char*)attribute + NLA_ALIGN(attribute->nla_len))) {
      if ((attribute->nla_type & NLA_TYPE_MASK) != NFQA_PACKET_HDR) continue;
      struct nfqnl_msg_packet_hdr* packet = (void*)((char*)attribute + NLA_HDRLEN);
      ring[next % k_ring].id = ntohl(packet->packet_id);
      ring[next++ % k_ring].due = due;
    }
  }
}

int main(int count, char** arguments) {
  if (count != 3) return fputs("usage: nfdelay QUEUE MS\n", stderr), 2;
  queue = (uint16_t)atoi(arguments[1]);
  uint64_t delay = (uint64_t)(atof(arguments[2]) * 1e6);
  prctl(PR_SET_TIMERSLACK, 1);
  if (bind_queue()) return perror("nfdelay: netlink"), 1;
  for (;;) {
    release_due();
    wait_for_packet_or_due();
    hold_arrived(delay);
  }
}

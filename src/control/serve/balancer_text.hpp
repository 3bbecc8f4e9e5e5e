// SPDX-License-Identifier: Apache-2.0
// Builds HAProxy's configuration, reads its figures, and lists the commands that set its servers as wanted. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "job/service.hpp"

namespace gridctl::control {

// Names inside the gateway's folder, which is HAProxy's working directory.
inline constexpr std::string_view k_admin_socket = "admin.sock", k_hold_file = "hold.lua",
                                  k_bearer_file = "bearer.keys", k_key_file = "plain.keys", k_wait_socket = "wait.sock";
[[nodiscard]] std::string server_name(int replica);    // "r2"; replicas count from 1
[[nodiscard]] std::string server_socket(int replica);  // "r2.sock"

// The address is a socket that HAProxy gets under this number. Each replica is a server; all are out at first.
// `has_exporter`: this HAProxy can export its figures for Prometheus.
[[nodiscard]] std::string balancer_config(const job::Service& service, int replicas, int listen_fd, bool has_exporter);
// Requests that arrive while no replica is ready wait for one: at most k_held_max of them, for k_hold_seconds.
inline constexpr int k_held_max = 100, k_hold_seconds = 60;
[[nodiscard]] std::string hold_script();
// Name the answers of the server of last resort: a replica is ready, but none became ready in time. The client never
// sees the former.
inline constexpr std::string_view
    k_ask_again_answer =
        "HTTP/1.1 425 Too Early\r\nx-gridctl-wait: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    k_given_up_answer =
        "HTTP/1.1 504 Gateway Timeout\r\nx-gridctl-wait: 1\r\nretry-after: 5\r\ncontent-length: 0\r\nconnection: "
        "close\r\n\r\n";

// Refuses new requests for k_refusal; the caller repeats it to extend this.
inline constexpr Duration k_refusal = std::chrono::seconds{5};
[[nodiscard]] std::string refuse_command(WallTime now);

enum class ServerState : std::uint8_t {
  out,    // no way leads to it
  drain,  // finishes what it has
  ready,  // gets requests as soon as its probes pass
};
struct ServerLine {
  std::string name;    // "r2", or "BACKEND" and "FRONTEND"
  std::string status;  // HAProxy's word: "UP", "UP 1/2", "DOWN", "MAINT", "DRAIN"
  std::string probe;   // how the last probe went: "L7OK/200 in 1ms"; empty: none yet
  std::uint64_t under_way = 0, queued = 0, requests = 0, failed = 0, retried = 0, moved = 0;
  std::uint64_t answer_ms = 0;  // mean of the last 1,024 requests
  [[nodiscard]] bool is_up() const { return status.starts_with("UP"); }
};
// Parses the answer to `show stat`; skips lines that it does not understand.
[[nodiscard]] std::vector<ServerLine> parse_stats(std::string_view csv);
// Returns the commands that set the servers as wanted (by replica, from 1 on); empty if they already are. `trusted`:
// servers that were up when HAProxy ended.
[[nodiscard]] std::vector<std::string> repairs(std::span<const ServerLine> found, std::span<const ServerState> wanted,
                                               const std::set<std::string>& trusted = {});

// Holds the keys of a file, one per line, as HAProxy compares them: alone, and after "Bearer ".
struct KeyFiles {
  std::string plain, bearer;
};
[[nodiscard]] KeyFiles key_files(std::string_view text);

}  // namespace gridctl::control

// SPDX-License-Identifier: Apache-2.0
// Runs one host's heartbeat: keeps a connection to its agent, polls it, and reports how long it has been silent. It
// decides nothing. Loop thread only.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "control/reach/agent_network.hpp"
#include "control/reach/pace.hpp"
#include "job/failure_detector.hpp"
#include "os/clock.hpp"
#include "os/executor.hpp"
#include "wire/health.hpp"
#include "wire/messages.hpp"

namespace gridctl::control {

// Measures how long a host's messages were in transit. A message lies in the host's network buffers while the
// connection is cut, and says "ended just now" when it arrives minutes later.
// Tracks the delays of one connection by the difference of two boot clocks: the smallest difference ever seen counts as
// no delay, and may grow as clocks drift apart (0.05 %).
class Transit {
 public:
  // `sent` is by the host's boot clock, `got` by ours. Returns at most the connection's age, whatever the host says.
  Duration took(BootTime sent, BootTime got);

 private:
  std::optional<Duration> least_;
  BootTime begun_{}, last_{};
};

// Shifts every time in the reply back by `late`, and reduces what is left of its limits. A reply that is hardly late
// stays unchanged.
void make_older(wire::PollReply& reply, Duration late);

inline constexpr std::uint32_t k_log_piece = 64 * 1024;  // per request: heartbeats wait behind it

class HostMonitor : public std::enable_shared_from_this<HostMonitor> {
 public:
  struct Listener {
    std::function<void(const wire::PollReply&)> polled;
    std::function<void(const wire::LogRequest&, std::uint64_t offset, const std::string& bytes)> logged;
    std::function<void(const wire::AgentHello&)> connected;
    std::function<void(const Error&)> failed;
    std::function<void(const wire::HealthReply&, Duration took)> told_health;  // may be empty
    std::function<void(Duration)> pinged = {};  // a round trip to the agent; may be empty
  };
  // Holds the remaining limits of an attempt, by our boot clock; the host receives them relative to its echoed time.
  struct AttemptLimits {
    std::optional<BootTime> run_until{};
    std::string run_limit{};
    std::optional<BootTime> time_until{};
    bool operator==(const AttemptLimits&) const = default;
  };
  // Lists the renewals and questions, with each job's own lease.
  struct Want {
    wire::PollRequest::Want attempt;
    Duration lease{};
    std::optional<AttemptLimits> limits{};  // nullopt: as they were
    bool operator==(const Want&) const = default;
  };

  HostMonitor(os::Executor& run, AgentNetwork& net, os::Clock& clock, registry::Provider provider, Listener listener);

  void set_wants(std::vector<Want> wants, Duration heartbeat);
  // Allows one request at a time; returns false if one is under way.
  bool request_log(const wire::LogRequest& request);
  // Requests the host's health; also returns false if its agent does not know health.
  bool request_health(const wire::HealthRequest& request);
  void tick(BootTime now, bool others_answer);
  // Notes that the host answered over another connection.
  void heard(BootTime at);
  void poll_now();  // without waiting for the next heartbeat
  // Which host is to be met from the next connection on.
  void expect(const std::string& peer_key, const Shared<Inventory>& inventory);

  [[nodiscard]] bool is_up() const { return link_ != nullptr; }
  [[nodiscard]] std::string way() const { return link_ == nullptr ? std::string() : link_->way(); }
  [[nodiscard]] bool was_tried() const { return tried_; }
  [[nodiscard]] bool is_in_use() const { return connecting_; }
  [[nodiscard]] std::optional<BootTime> last_answer() const { return last_answer_; }
  [[nodiscard]] const job::FailureDetector& silence() const { return silence_; }
  [[nodiscard]] Duration heartbeat() const { return heartbeat_; }
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  struct Asked {  // in the order of sending; the agent answers in this order
    std::uint32_t stream = 0;
    std::optional<std::uint64_t> ping;  // its nonce
    BootTime sent{};
    bool health = false;
    std::optional<wire::LogRequest> log;
    std::uint64_t log_offset = 0;
    std::string log_bytes;
    bool log_reply_seen = false;
  };
  [[nodiscard]] Duration longest_lease() const;
  void connect(BootTime now);
  void take_over(Result<std::unique_ptr<AgentChannel>> channel);
  void on_frame(const wire::Frame& frame);
  void on_log_frame(Asked& asked, const wire::Frame& frame);
  void on_health_frame(const wire::Frame& frame, BootTime sent);
  void send_ping(BootTime now);
  // Corrects the times of a reply that has just arrived by its own age.
  void heard_time(wire::PollReply& reply);
  void on_pong(const wire::Frame& frame);
  void drop(const Error& error);
  void send_polls(BootTime now);
  void send(Asked asked, std::string payload);

  os::Executor& run_;
  AgentNetwork& net_;
  os::Clock& clock_;
  registry::Provider provider_;
  Listener listener_;
  std::unique_ptr<AgentChannel> link_;
  std::vector<Want> wants_;
  Duration heartbeat_ = k_heartbeat_idle;
  std::deque<Asked> asked_;
  std::uint32_t next_stream_ = 1;
  BootTime next_poll_{}, next_connect_{}, asked_since_{};
  BootTime connect_began_{};
  int quick_retries_ = 0;
  Duration reconnect_pause_{};
  BootTime echo_{};  // newest host time
  BootTime echo_heard_{};  // by our clock
  Transit transit_;
  BootTime next_ping_{};
  int quick_pings_ = 0;  // still to be sent without a pause
  bool knows_links_ = false;
  std::optional<BootTime> last_answer_;
  std::optional<BootTime> ends_at_;  // the host, as it said last
  BootTime heard_agent_at_;  // itself, not only its SSH server; from the start on
  job::FailureDetector silence_{k_nap};
  bool connecting_ = false, tried_ = false, knows_health_ = false;
  std::string trouble_;
};

}  // namespace gridctl::control

// SPDX-License-Identifier: Apache-2.0
// Writes measured links and their consequences into the registry: sites, islands, countries, contradictions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "control/measure/landmarks.hpp"
#include "control/measure/network.hpp"
#include "control/reach/link_meter.hpp"
#include "probe/netperf.hpp"
#include "registry/host_records.hpp"
#include "sched/link_schedule.hpp"
#include "sched/query/host_facts.hpp"
#include "sched/topology.hpp"

namespace gridctl::control {

// Stores what the registry knows of a host's network beyond the matrix of links, as the host report "network": round
// trips from here, who can connect to it, its reports on landmarks, the bytes spent on measuring, the last verdicts.
inline constexpr std::string_view k_network_report = "network";
inline constexpr std::size_t k_network_peers_max = 256;

struct NetworkReport {
  std::string address;  // that the round trips belong to; another address begins anew
  std::optional<Duration> rtt_min, rtt_median;
  std::uint64_t rtt_samples = 0;
  std::optional<WallTime> rtt_at, here_at, landmarks_at;
  std::int64_t day = 0;                           // since 1970, UTC
  std::uint64_t bytes_today = 0, bytes_last = 0;  // spent on measuring; by the last measurement with data

  struct Contact {  // of a provider that connects to this one
    WallTime at;
    std::string reason;   // why it cannot; empty: it can
    std::string address;  // that worked
    bool full = false;    // rates were measured, not only round trips
  };
  std::map<std::string, Contact> contacts;  // by the name of the connecting provider

  struct Landmark {
    WallTime at;
    std::optional<Duration> rtt;  // as the host says
    std::string problem;
  };
  std::map<std::string, Landmark> landmarks;

  std::string verdict, verdict_text;  // of the country; verdict_name()
  std::string verdict_region{};       // the declaration that was judged
  std::string site_text;              // contradiction, or empty

  void spend(std::uint64_t bytes, WallTime now);
  [[nodiscard]] std::uint64_t spent_today(WallTime now) const;
};

[[nodiscard]] std::string encode(NetworkReport report);  // bounded: the oldest contacts go
// Returns an empty report if the text cannot be read: everything in it can be measured again.
[[nodiscard]] NetworkReport parse_network_report(std::string_view text);

// Returns the age of a measurement; one in the future, because a clock was set back, counts as taken now.
[[nodiscard]] inline Duration age_of(WallTime at, WallTime now) {
  return std::chrono::milliseconds{std::max<std::int64_t>(0, now.ms - at.ms)};
}

// Holds the figures of one provider, for queries; unmeasured ones are absent. A host's own connection is at least as
// fast as its best link.
struct HostNetwork {
  std::optional<double> up_bits_per_second, down_bits_per_second;  // from the host, to it
  std::optional<Duration> latency;                                 // round trip from here
};
using LinkIndex = std::map<std::pair<std::string, std::string>, const registry::HostLink*>;  // by source and target
// Returns the links in the scheduler's form.
[[nodiscard]] std::vector<sched::PairLink> pair_links(std::span<const registry::HostLink> measured);
[[nodiscard]] LinkIndex index_links(std::span<const registry::HostLink> links);
[[nodiscard]] std::map<std::string, HostNetwork> networks_of(std::span<const registry::HostLink> links);

// Holds everything known, as in the registry now.
struct NetworkPicture {
  std::vector<registry::Provider> providers;
  std::vector<registry::HostLink> links;
  std::map<std::string, NetworkReport> reports;  // of every provider
  std::vector<LandmarkRow> landmarks;
  sched::Topology topology;
  std::map<std::string, sched::CountryFinding> countries;  // by provider
};
[[nodiscard]] Result<NetworkPicture> network_picture(registry::HostRecords& registry, const Paths& paths);
// Returns the JSON for `provider links --json`; for one provider only when `only` names it.
[[nodiscard]] std::string to_json(const NetworkPicture& picture, const std::string& only, WallTime now);
// Formats a rate as "91.4 Mbit/s" or "9.4 Gbit/s".
[[nodiscard]] std::string rate_text(double bits_per_second);
// Formats a round trip as "0.31 ms" or "40.2 ms".
[[nodiscard]] std::string rtt_text(Duration rtt);
// Returns one line for people: "round trip 40 ms, 91 Mbit/s down, 90 Mbit/s up, site hpc; declared DE, …"; empty if
// nothing is known.
[[nodiscard]] Result<std::string> network_line(registry::HostRecords& registry, const Paths& paths, const HostName& name);

// Marks the hosts whose declared region cannot be true, because even light would be too slow.
[[nodiscard]] Result<void> apply_countries(registry::HostRecords& registry, std::vector<sched::HostFacts>& hosts);

// Returns the due measurements among the hosts that answer. `asked`: by a person, who may spend more than the daemon.
[[nodiscard]] std::vector<sched::LinkTask> due_measurements(const NetworkPicture& picture, WallTime now,
                                                            const std::function<bool(const std::string&)>& is_up,
                                                            bool asked = false);
// Returns the bytes that may still be moved today to measure this host's links, both directions together.
[[nodiscard]] Result<std::uint64_t> measuring_bytes_left(registry::HostRecords& registry,
                                                         const registry::Provider& provider, WallTime now, bool asked);
// Returns the landmarks that hosts connect to directly.
[[nodiscard]] std::vector<wire::ReachRequest::Target> reach_targets(const std::vector<LandmarkRow>& landmarks,
                                                                    os::Clock& clock);

class NetworkRecorder {
 public:
  NetworkRecorder(registry::HostRecords& registry, Paths paths) : registry_(registry), paths_(std::move(paths)) {}

  [[nodiscard]] Result<void> pinged(const registry::Provider& provider, const probe::RttWindow& window,
                                    const LinkIndex& links, WallTime now);
  [[nodiscard]] Result<void> here(const registry::Provider& provider, const HereMeasured& measured, WallTime now);
  [[nodiscard]] Result<void> pair(const HostName& a, const HostName& b, const PairMeasured& measured, WallTime now);
  [[nodiscard]] Result<void> landmarks(const HostName& name, const std::vector<LandmarkRow>& asked,
                                       const wire::ReachReply& reply, WallTime now);
  // A transfer shows the minimum speed of a link: the figure is updated if the transfer is near it or above it.
  [[nodiscard]] Result<void> transferred(const LinkMeter::Note& note, WallTime now);
  // Derives all verdicts; those that start or stop being a contradiction become events of their hosts.
  [[nodiscard]] Result<void> judge(WallTime now);

 private:
  [[nodiscard]] Result<NetworkReport> report(const HostName& name);
  [[nodiscard]] Result<void> save(const HostName& name, const NetworkReport& report, WallTime now);
  [[nodiscard]] Result<void> tell(const HostName& name, const std::string& kind, const std::string& text, WallTime now);

  registry::HostRecords& registry_;
  Paths paths_;
};

}  // namespace gridctl::control

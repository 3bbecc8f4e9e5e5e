// SPDX-License-Identifier: Apache-2.0
// Holds the terms under which the owner of a lent machine lets one researcher use it, as its agent reads them:
// lend/ID/terms.json, gridctl-lend(7).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/rates.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "wire/message.hpp"

namespace gridctl::wire {

inline constexpr std::int64_t k_until_resumed = INT64_MAX;

// Names the part of the network that a guest's jobs can reach.
enum class Egress : std::uint8_t {
  filtered,  // the Internet; not the owner's own networks, and not this machine
  open,      // whatever programs of the owner reach
  none,
};
[[nodiscard]] std::string_view egress_name(Egress egress);
[[nodiscard]] Result<Egress> parse_egress(std::string_view name);

struct GuestTerms {
  ControllerId controller;                      // the only one that is let in
  std::string who;                              // the researcher, in words
  std::optional<std::int64_t> paused_until_ms;  // since 1970; k_until_resumed: until the owner says so
  std::optional<int> from_minute, to_minute;    // of the day, local time: jobs may begin and run then; past midnight too
  Egress egress = Egress::filtered;
  bool reclaim = true;  // jobs leave a GPU when a program of the owner's uses one
  std::optional<std::uint64_t> disk_bytes;      // what the jobs of all guests, and what is kept for them, may take together
  std::optional<std::int64_t> max_job_ms;       // a job that has run for so long ends here
  std::optional<double> cpus;                   // that jobs may use together
  std::optional<std::uint64_t> memory_bytes;    // that jobs may use together
  std::vector<std::string> registries;          // where images may come from; empty: k_public_registries
  Rates rates;                                  // what jobs that begin from now on cost
  std::optional<std::uint64_t> up_bits;         // a second that the work of all guests may send out of the machine
  std::optional<std::int64_t> idle_ms;          // jobs run while nobody has used the machine for so long
  std::optional<int> gpu_watts;                 // the power limit of GPUs that jobs hold
  std::optional<int> heat_celsius;              // above it, jobs end
  bool on_battery = false;                      // jobs run also while the machine is not on mains power
  bool operator==(const GuestTerms&) const = default;

  [[nodiscard]] bool is_paused(WallTime now) const { return paused_until_ms && now.ms < *paused_until_ms; }
  // `minute` of the day.
  [[nodiscard]] bool is_open_at(int minute) const;
  // Returns the minutes until the hours are over; nullopt: there are none, or they are over.
  [[nodiscard]] std::optional<int> minutes_left(int minute) const;
  [[nodiscard]] bool allows_registry(std::string_view registry) const;
};

// Registries that give images to everyone, or to everyone who logs in there.
inline constexpr std::array<std::string_view, 8> k_public_registries{
    "docker.io", "ghcr.io", "quay.io", "nvcr.io", "gcr.io", "public.ecr.aws", "mcr.microsoft.com", "registry.gitlab.com"};
// Stands in a list of registries for images that the machine's engine holds under this name, and that have no registry.
inline constexpr std::string_view k_local_images = "localhost";
// Fails with usage unless it is a host with or without a port. Its addresses are not checked.
[[nodiscard]] Result<void> check_registry(std::string_view registry);

// Names the file beside the terms with a time: while a program of the owner is on a GPU, milliseconds since 1970 until
// which no job starts.
inline constexpr std::string_view k_reclaimed_file = "reclaimed";

// Beside the terms: while the machine's state keeps jobs away, a line: milliseconds since 1970 until which no job begins,
// those since when that is so, what keeps them away, and why in words for the owner.
enum class ClosedBy : std::uint8_t { owner, battery, heat };
inline constexpr std::string_view k_closed_file = "closed";
struct Closed {
  WallTime until, since;
  ClosedBy by = ClosedBy::owner;
  std::string why;  // "input at pts/3"
  bool operator==(const Closed&) const = default;
};
[[nodiscard]] std::string_view closed_by_name(ClosedBy by);  // what jobs find as the reason: "owner", "battery", "heat"
[[nodiscard]] std::string encode(const Closed& closed);
[[nodiscard]] std::optional<Closed> parse_closed(std::string_view text);

// In the agent's home: who sends for guests at the moment, and how fast each may. os/shared_rate.hpp
inline constexpr std::string_view k_up_file = "lend/up";

// A folder of the agent's home with a file for each controller that a machine is lent to: the id of the invitation (the
// folder of its terms) under which that controller's jobs run here. No other invitation reaches them.
inline constexpr std::string_view k_guests_folder = "guests";

// A lent machine and its researcher agree on their own key, over a connection encrypted with the token's key: both draw
// a part. From then on, the token opens nothing.
inline constexpr std::string_view k_rekey_feature = "rekey", k_rekey_operation = "rekey";
struct RekeyRequest {
  Digest part;
};
struct RekeyReply {
  Digest part;
};
GRIDCTL_MESSAGE(RekeyRequest, parse_rekey)  // op "rekey"
GRIDCTL_MESSAGE(RekeyReply, parse_rekey_reply)
// Files beside the terms: both parts in hexadecimal digits, the researcher's first; and a file that exists once the
// researcher has used the key.
inline constexpr std::string_view k_session_file = "session", k_session_proven_file = "session_proven";

[[nodiscard]] std::string encode(const GuestTerms& terms);
[[nodiscard]] Result<GuestTerms> parse_guest_terms(std::string_view text);

}  // namespace gridctl::wire

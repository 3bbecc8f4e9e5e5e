// SPDX-License-Identifier: Apache-2.0
// Reads `ports`: the job's listening ports on 127.0.0.1. Hosts open no others for `gridctl job forward`;
// GRIDCTL_FORWARD_PORTS tells the host and the job.
#include <set>

#include "base/numbers.hpp"
#include "config/job_parts.hpp"

namespace gridctl::config {

namespace {
constexpr std::size_t k_ports_max = 256;

// Reads "8888", or "8000-8010" including both ends.
bool add_ports(std::string_view text, std::set<std::uint16_t>& ports) {
  const std::size_t dash = text.find('-');
  const auto first = parse_number<std::uint16_t>(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_number<std::uint16_t>(text.substr(dash + 1));
  if (!first || !last || *first == 0 || *last < *first || *last - *first >= static_cast<int>(k_ports_max)) return false;
  for (unsigned port = *first; port <= *last; ++port) ports.insert(static_cast<std::uint16_t>(port));
  return ports.size() <= k_ports_max;
}
}  // namespace

Result<void> read_ports(const Fields& fields, job::Spec& spec) {
  std::vector<std::string> words;
  TRY(fields.words("ports", words));
  std::set<std::uint16_t> ports;
  for (const std::string& word : words)
    if (!add_ports(word, ports))
      return fields.expected("ports", "ports from 1 to 65535 such as [8888, 6006] or 8000-8010, at most 256");
  if (ports.empty()) return {};
  std::string list;
  for (const std::uint16_t port : ports) list += (list.empty() ? "" : ",") + std::to_string(port);
  spec.envs["GRIDCTL_FORWARD_PORTS"] = list;
  return {};
}

}  // namespace gridctl::config

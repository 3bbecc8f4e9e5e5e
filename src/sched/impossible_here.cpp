// SPDX-License-Identifier: Apache-2.0
// Checks what is impossible on the registered hosts. Bounds are always in the job's favour: what was not measured may
// be near and fast.
#include <algorithm>
#include <limits>
#include <map>

#include "base/text.hpp"
#include "sched/catalogue/gpu_match.hpp"
#include "sched/impossible.hpp"
#include "sched/physics.hpp"
#include "sched/place.hpp"

namespace gridctl::sched {

namespace {
using job::JobClass;

using Finding = std::optional<Impossible>;

// Lists the hosts that can run one part, now or later.
struct Fitting {
  std::vector<const HostFacts*> hosts;
  std::string others;  // why the rest cannot: "3 gpu, 1 region"
};

Fitting fitting_of(const job::Spec& spec, const std::vector<HostFacts>& hosts) {
  job::Spec part = spec;
  part.num_nodes = 1;
  const Decision decision = place(part, hosts, {});
  std::vector<Rejection> never = decision.rejections;
  std::erase_if(never, [](const Rejection& rejection) { return rejection.temporary; });
  Fitting fitting;
  for (const HostFacts& host : hosts)
    if (!std::ranges::binary_search(never, host.name, {}, &Rejection::host)) fitting.hosts.push_back(&host);
  fitting.others = counts_text(never);
  return fitting;
}

std::string hosts_text(std::size_t count) { return std::to_string(count) + (count == 1 ? " host" : " hosts"); }

std::string fewer(std::size_t count) { return "num_nodes: " + std::to_string(count); }

Finding enough_hosts(const job::Spec& spec, const std::vector<HostFacts>& hosts, const Fitting& fitting) {
  const auto wanted = static_cast<std::size_t>(job::nodes_least(spec));
  const std::size_t have = fitting.hosts.size();
  if (have == 0 || wanted <= have) return std::nullopt;  // none at all is told host by host
  Impossible no{"hosts", fewer(wanted) + " needs " + hosts_text(wanted) + " at once, but only ", {fewer(have)}};
  if (hosts.size() < wanted)
    no.why += std::to_string(hosts.size()) + (hosts.size() == 1 ? " is" : " are") + " registered";
  else
    no.why +=
        std::to_string(have) + " of " + hosts_text(hosts.size()) + " can run a part (others: " + fitting.others + ")";
  no.instead.push_back(hosts_text(wanted - have) + " more: gridctl provider register NAME ssh://user@host");
  return no;
}

// Returns the vendor of a host's GPUs: the first that satisfies the request.
std::optional<Vendor> vendor_of(const job::Spec& spec, const HostFacts& host) {
  for (const job::GpuRequest& request : spec.resources.gpus)
    for (const Gpu& gpu : host.inventory->gpus)
      if (match_gpu(request, gpu) == GpuMismatch::none) return gpu.vendor;
  return std::nullopt;
}

Finding one_vendor(const job::Spec& spec, const Coupling& coupling, const Fitting& fitting) {
  const bool library = spec.workload.backend == job::Backend::nccl || spec.workload.backend == job::Backend::rccl ||
                       spec.workload.backend == job::Backend::oneccl;
  if (spec.resources.gpus.empty() || (coupling.mixed_vendors && !library)) return std::nullopt;
  std::map<Vendor, std::size_t> counts;
  for (const HostFacts* host : fitting.hosts)
    if (const auto vendor = vendor_of(spec, *host)) ++counts[*vendor];
  std::size_t most = 0;
  std::vector<std::string> parts;
  for (const auto& [vendor, count] : counts) {
    most = std::max(most, count);
    parts.push_back(std::to_string(count) + " " + std::string(vendor_name(vendor)));
  }
  if (counts.size() < 2 || most >= static_cast<std::size_t>(job::nodes_least(spec))) return std::nullopt;
  return Impossible{
      "vendors",
      fewer(static_cast<std::size_t>(job::nodes_least(spec))) + " is possible only across vendors (" +
          join(parts, ", ") + "), and " +
          (library ? "backend " + std::string(job::backend_name(spec.workload.backend)) + " runs on only one vendor"
                   : "no library synchronises GPUs of different vendors in every step at full speed"),
      {fewer(most) + " of one vendor", "class: federated with backend: gloo and workload.sync_every: any vendors"}};
}

// Holds the known figures of a pair; unknown ones are nullopt.
struct PairFacts {
  std::optional<double> rate;  // bytes a second, of the slower direction
  std::optional<double> rtt;   // seconds, the smaller
};
using Pairs = std::map<std::pair<std::string, std::string>, PairFacts>;

Pairs pairs_of(std::span<const PairLink> links) {
  Pairs pairs;
  for (const PairLink& link : links) {
    PairFacts& known = pairs[std::minmax(link.source, link.target)];
    if (link.bits_per_second)
      known.rate = std::min(known.rate.value_or(std::numeric_limits<double>::max()), *link.bits_per_second / 8);
    if (link.rtt) known.rtt = std::min(known.rtt.value_or(std::numeric_limits<double>::max()), seconds(*link.rtt));
  }
  return pairs;
}

const PairFacts* find(const Pairs& pairs, const HostFacts& a, const HostFacts& b) {
  const auto found = pairs.find(std::minmax(a.name.value, b.name.value));
  return found == pairs.end() ? nullptr : &found->second;
}

// Returns true if they are certainly not at one site: measured far, or declared apart and not measured near.
bool apart(const Pairs& pairs, const HostFacts& a, const HostFacts& b) {
  const PairFacts* known = find(pairs, a, b);
  if (known != nullptr && known->rtt) return *known->rtt > seconds(k_site_rtt);
  return !a.site.empty() && !b.site.empty() && a.site != b.site;
}

// Returns the best link that the slowest pair of any such gang can have: each member needs all others, so no gang is
// better than its members' (n-1)-th best links. nullopt while too little was measured to bound it.
std::optional<Wire> best_wire(const Pairs& pairs, const std::vector<const HostFacts*>& hosts, std::size_t members) {
  Wire best{0, std::numeric_limits<double>::max()};
  for (const HostFacts* host : hosts) {
    std::vector<double> rates, rtts;
    for (const HostFacts* other : hosts) {
      if (other == host) continue;
      const PairFacts* known = find(pairs, *host, *other);
      if (known == nullptr || !known->rate) return std::nullopt;
      rates.push_back(-*known->rate);
      rtts.push_back(known->rtt.value_or(0));
    }
    const auto nth = static_cast<std::ptrdiff_t>(members) - 2;
    std::nth_element(rates.begin(), rates.begin() + nth, rates.end());
    std::nth_element(rtts.begin(), rtts.begin() + nth, rtts.end());
    best.bytes_per_s = std::max(best.bytes_per_s, -rates[members - 2]);
    best.round_trip_s = std::min(best.round_trip_s, rtts[members - 2]);
  }
  return best;
}

Finding one_site(const job::Spec& spec, const Coupling& coupling, const Fitting& fitting, const Pairs& pairs) {
  if (coupling.job_class != JobClass::tight) return std::nullopt;
  std::size_t most = 0;
  for (const HostFacts* host : fitting.hosts) {
    const auto together = static_cast<std::size_t>(std::ranges::count_if(
        fitting.hosts, [&](const HostFacts* other) { return other == host || !apart(pairs, *host, *other); }));
    most = std::max(most, together);
  }
  const auto wanted = static_cast<std::size_t>(job::nodes_least(spec));
  if (most >= wanted) return std::nullopt;
  Impossible no{"site",
                "a tight gang of " + hosts_text(wanted) + " must be at one site, but at most " + std::to_string(most) +
                    " of the " + std::to_string(fitting.hosts.size()) + " suitable hosts " +
                    (most == 1 ? "is" : "are") + " together",
                {most == 1 ? "num_nodes: 1" : fewer(most) + " at one site"}};
  const std::optional<Wire> wire = best_wire(pairs, fitting.hosts, wanted);
  if (wire)
    no.why += "; between sites at best " + rate_text(wire->bytes_per_s) + " and " + time_text(wire->round_trip_s);
  LinkVerdict verdict;
  if (wire && wire->bytes_per_s > 0) verdict = judge_link(synchronous_of(spec), *wire);
  if (!verdict.arithmetic.empty()) no.why += ": " + verdict.arithmetic;
  for (const std::string& other : verdict.instead) no.instead.push_back(other);
  if (verdict.instead.empty())
    no.instead.emplace_back(
        "class: federated with workload.sync_every: 500 (DiLoCo): members exchange every 500 steps");
  return no;
}

Finding link(const job::Spec& spec, const Coupling&, const Fitting& fitting, const Pairs& pairs) {
  const SynchronousJob job = synchronous_of(spec);
  if (job.exchange.bytes <= 0 || job.exchange.compute_s <= 0) return std::nullopt;
  const std::optional<Wire> wire = best_wire(pairs, fitting.hosts, static_cast<std::size_t>(std::max(2, job::nodes_least(spec))));
  if (!wire || wire->bytes_per_s <= 0) return std::nullopt;
  LinkVerdict verdict = judge_link(job, *wire);
  if (verdict.answer != LinkVerdict::Answer::refused) return std::nullopt;
  return Impossible{"link", verdict.arithmetic, std::move(verdict.instead), true};
}

Finding gpus_of_one_host(const job::Spec& spec, const std::vector<HostFacts>& hosts) {
  if (spec.resources.gpus.empty() || job::variant_for(spec, std::nullopt) != nullptr) return std::nullopt;
  int wanted = std::numeric_limits<int>::max();
  for (const job::GpuRequest& request : spec.resources.gpus) wanted = std::min(wanted, request.count_min);
  std::size_t most = 0;
  for (const HostFacts& host : hosts) most = std::max(most, host.inventory->gpus.size());
  if (most == 0 || static_cast<std::size_t>(wanted) <= most) return std::nullopt;
  const std::size_t nodes = (static_cast<std::size_t>(wanted) + most - 1) / most;
  return Impossible{"hosts",
                    std::to_string(wanted) + " GPUs in one host are needed, but no registered host has more than " +
                        std::to_string(most),
                    {"a count of " + std::to_string(most), "num_nodes: " + std::to_string(nodes) + " with " +
                                                               std::to_string(most) + " GPUs each, at one site"}};
}
}  // namespace

SynchronousJob synchronous_of(const job::Spec& spec) {
  SynchronousJob job;
  job.exchange = {job::exchange_bytes(spec.workload).value_or(0), spec.workload.step ? seconds(*spec.workload.step) : 0,
                  spec.workload.sync_every};
  job.members = spec.num_nodes;
  job.gpus_per_member = job::gpus_most(spec);
  return job;
}

std::optional<Wire> best_gang_wire(const job::Spec& spec, const std::vector<HostFacts>& hosts,
                                   std::span<const PairLink> links) {
  const auto members = static_cast<std::size_t>(job::nodes_least(spec));
  if (members < 2) return std::nullopt;  // before each of a thousand hosts is looked at
  const Fitting fitting = fitting_of(spec, hosts);
  if (fitting.hosts.size() < members) return std::nullopt;
  const std::optional<Wire> wire = best_wire(pairs_of(links), fitting.hosts, members);
  return wire && wire->bytes_per_s > 0 ? wire : std::nullopt;
}

std::optional<Wire> slowest_wire(const std::vector<const HostFacts*>& members, std::span<const PairLink> links) {
  const Pairs pairs = pairs_of(links);
  Wire slowest{std::numeric_limits<double>::max(), 0};
  for (auto one = members.begin(); one != members.end(); ++one)
    for (auto other = one + 1; other != members.end(); ++other) {
      const PairFacts* known = find(pairs, **one, **other);
      if (known == nullptr || !known->rate || *known->rate <= 0) return std::nullopt;
      slowest.bytes_per_s = std::min(slowest.bytes_per_s, *known->rate);
      slowest.round_trip_s = std::max(slowest.round_trip_s, known->rtt.value_or(0));
    }
  return members.size() < 2 ? std::nullopt : std::optional<Wire>(slowest);
}

Finding impossible_there(const job::Spec& spec, const std::vector<const HostFacts*>& members,
                         std::span<const PairLink> links) {
  const std::optional<Wire> wire = slowest_wire(members, links);
  if (!wire) return std::nullopt;
  LinkVerdict verdict = judge_link(synchronous_of(spec), *wire);
  if (verdict.answer != LinkVerdict::Answer::refused) return std::nullopt;
  return Impossible{"link", verdict.arithmetic, std::move(verdict.instead)};
}

Finding impossible_here(const job::Spec& spec, const Coupling& coupling, const std::vector<HostFacts>& hosts,
                        std::span<const PairLink> links) {
  if (hosts.empty()) return std::nullopt;
  if (Finding no = gpus_of_one_host(spec, hosts)) return no;
  if (job::nodes_least(spec) < 2) return std::nullopt;
  const Fitting fitting = fitting_of(spec, hosts);
  if (Finding no = enough_hosts(spec, hosts, fitting)) return no;
  if (fitting.hosts.empty()) return std::nullopt;
  if (Finding no = one_vendor(spec, coupling, fitting)) return no;
  const Pairs pairs = pairs_of(links);
  if (Finding no = one_site(spec, coupling, fitting, pairs)) return no;
  return link(spec, coupling, fitting, pairs);
}

}  // namespace gridctl::sched

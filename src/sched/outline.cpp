// SPDX-License-Identifier: Apache-2.0
#include "sched/outline.hpp"

#include <algorithm>

#include "base/formatted.hpp"
#include "sched/candidate.hpp"
#include "sched/catalogue/catalogue.hpp"
#include "sched/catalogue/list_price.hpp"
#include "sched/impossible.hpp"
#include "sched/physics.hpp"

namespace gridctl::sched {

namespace {
using job::Backend;
using job::JobClass;

const Gpu* find_gpu(const Chosen& chosen, const std::string& uuid) {
  for (const Gpu& gpu : chosen.host->inventory->gpus)
    if (gpu.uuid == uuid) return &gpu;
  return nullptr;
}

std::vector<Vendor> vendors_of_chosen(const std::vector<Chosen>& chosen) {
  std::vector<Vendor> vendors;
  for (const Chosen& one : chosen)
    for (const std::string& uuid : one.gpu_uuids)
      if (const Gpu* gpu = find_gpu(one, uuid)) vendors.push_back(gpu->vendor);
  return vendors;
}

// Vendors that the request leaves open are not chosen yet.
std::vector<Vendor> vendors_of_request(const job::Spec& spec) {
  std::vector<Vendor> all;
  for (const job::GpuRequest& request : spec.resources.gpus) {
    const std::vector<Vendor> some = vendors_meant(request);
    if (some.size() != 1) return {};
    if (std::ranges::find(all, some[0]) == all.end()) all.push_back(some[0]);
  }
  return all.size() == 1 ? all : std::vector<Vendor>{};
}

Reach reach_of(const job::Spec& spec, JobClass job_class) {
  if (spec.num_nodes == 1) return Reach::host;
  return job_class == JobClass::tight ? Reach::site : Reach::wan;
}

BackendChoice backend_of(const job::Spec& spec, const Coupling& coupling, const std::vector<Chosen>& chosen) {
  BackendQuestion question{coupling.job_class, vendors_of_chosen(chosen), reach_of(spec, coupling.job_class),
                           spec.workload.backend};
  const bool alone = spec.num_nodes == 1 && spec.workload.tasks == 0;
  const int gpus = job::gpus_most(spec);
  if (alone && gpus <= 1 && question.wish == Backend::automatic) return {Backend::none, "the job is a single process"};
  if (alone && gpus > 1) question.job_class = JobClass::medium;  // its own GPUs talk, whatever it is to others
  const bool talks = question.job_class != JobClass::loose && question.job_class != JobClass::service;
  if (question.vendors.empty()) question.vendors = vendors_of_request(spec);
  if (question.vendors.empty() && gpus > 0 && talks && question.reach != Reach::wan)
    return {question.wish, "the library of the vendor whose GPUs it gets"};
  if (question.wish == Backend::automatic && coupling.named != Backend::automatic && talks) {
    question.wish = coupling.named;
    if (auto named = choose_backend(question)) return {named->backend, "its command names it"};
    question.wish = Backend::automatic;
  }
  auto choice = choose_backend(question);
  return choice ? *choice : BackendChoice{spec.workload.backend, choice.error().message};
}

const GpuModel* model_of(const Chosen& chosen, const std::string& uuid) {
  const Gpu* gpu = find_gpu(chosen, uuid);
  return gpu == nullptr ? nullptr : model_by_key(gpu->model);
}

// Returns the figures of a GPU that the job has or would have.
std::optional<CardFigures> card_of(const std::vector<Chosen>& chosen) {
  for (const Chosen& one : chosen)
    for (const std::string& uuid : one.gpu_uuids) {
      const GpuModel* model = model_of(one, uuid);
      if (model != nullptr && model->memory_gbs)
        return CardFigures{model->key, static_cast<double>(find_gpu(one, uuid)->memory_bytes),
                           *model->memory_gbs * 1e9};
    }
  return std::nullopt;
}

std::optional<Wire> uplink_of(const std::vector<Chosen>& chosen) {
  for (const Chosen& one : chosen) {
    const auto up = one.host->figures.find("inet_up");  // Mbit/s
    const auto rtt = one.host->figures.find("rtt");     // ms
    if (up != one.host->figures.end() && up->second > 0)
      return Wire{up->second * 1e6 / 8, rtt == one.host->figures.end() ? 0 : rtt->second / 1000};
  }
  return std::nullopt;
}

using Notes = std::vector<std::string>;

// Holds the links of the chosen gang, or of the best possible one.
struct GangWire {
  std::optional<Wire> wire;
  std::string head;
};
GangWire gang_wire(const job::Spec& spec, const std::vector<Chosen>& chosen, const std::vector<HostFacts>& hosts,
                   std::span<const PairLink> links) {
  std::vector<const HostFacts*> members;
  for (const Chosen& one : chosen) members.push_back(one.host);
  if (members.size() >= static_cast<std::size_t>(std::max(2, job::nodes_least(spec))))
    if (auto wire = slowest_wire(members, links)) return {wire, "link: "};
  return {best_gang_wire(spec, hosts, links), "link: at best "};
}

void note_link(const job::Spec& spec, const GangWire& gang, Notes& notes) {
  if (spec.num_nodes < 2) return;
  if (!gang.wire)
    return notes.push_back("link: not measured between the suitable hosts, so the idle time of the GPUs is unknown");
  if (!job::exchange_bytes(spec.workload))
    return notes.push_back(gang.head + rate_text(gang.wire->bytes_per_s) + " and " +
                           time_text(gang.wire->round_trip_s) +
                           " between its hosts; the amount that they exchange is unknown (workload.params)");
  notes.push_back(gang.head + judge_link(synchronous_of(spec), *gang.wire).arithmetic);
}

void note_cards(const job::Spec& spec, const std::vector<Chosen>& chosen, const std::optional<Wire>& wire,
                Notes& notes) {
  const std::optional<CardFigures> card = card_of(chosen);
  if (!card) return;
  if (spec.num_nodes > 1 && wire && wire->bytes_per_s < k_island_bits_per_second / 8)
    notes.push_back(join_cards_answer(*card, *wire));
  // A job that saves nothing, or wants its newest state elsewhere at once, may expect more than is possible.
  const bool hopes = spec.checkpoint.standby || spec.checkpoint.interval == job::CheckpointPolicy::Interval::off;
  const std::optional<Wire> uplink = uplink_of(chosen);
  if (hopes && uplink) notes.push_back(replicate_memory_answer(*card, *uplink));
}

// Returns the on-demand price of the chosen GPUs, or of similar ones, at a hyperscaler.
std::string beside_list_price(const std::vector<Chosen>& chosen) {
  double there = 0, here = 0;
  std::string what;
  for (const Chosen& one : chosen) {
    here += one.host->price_per_hour;
    for (const std::string& uuid : one.gpu_uuids) {
      const GpuModel* model = model_of(one, uuid);
      const std::optional<ListPrice> listed = model == nullptr ? std::nullopt : list_price(*model);
      if (!listed) return "";
      there += listed->usd_per_gpu_hour;
      if (what.empty())
        what = std::string(listed->model == model->key ? "" : "comparable to an ") + std::string(listed->model) +
               ", at " + std::string(listed->instance);
    }
  }
  if (there <= 0) return "";
  return "list price: " + price_text(there) + " on demand (" + what + ", " + std::string(k_list_prices_read) +
         "); here " + (here > 0 ? price_text(here) + formatted(", %.0f %% of that", 100 * here / there) : "free");
}
}  // namespace

Outline outline(const job::Spec& spec, const std::vector<Chosen>& chosen, const std::vector<HostFacts>& hosts,
                std::span<const PairLink> links) {
  Outline out;
  out.coupling = classify(spec);
  out.backend = backend_of(spec, out.coupling, chosen);
  const GangWire gang = gang_wire(spec, chosen, hosts, links);
  note_link(spec, gang, out.notes);
  note_cards(spec, chosen, gang.wire, out.notes);
  out.list_price = beside_list_price(chosen);
  return out;
}

std::vector<std::string> explain(const Outline& outline) {
  std::vector<std::string> lines = explain(outline.coupling);
  lines.insert(lines.end() - 1, "backend: " + std::string(job::backend_name(outline.backend.backend)) + " (" +
                                    outline.backend.why + ")");
  lines.insert(lines.end(), outline.notes.begin(), outline.notes.end());
  if (!outline.list_price.empty()) lines.push_back(outline.list_price);
  return lines;
}

}  // namespace gridctl::sched

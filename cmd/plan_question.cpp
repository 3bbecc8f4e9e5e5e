// SPDX-License-Identifier: Apache-2.0
#include "cmd/plan_question.hpp"

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "cmd/plan_islands.hpp"
#include "cmd/provider_facts.hpp"
#include "control/measure/network_record.hpp"
#include "os/files.hpp"
#include "sched/catalogue/list_price.hpp"
#include "sched/fabric.hpp"
#include "sched/query/query.hpp"
#include "sched/standing/reliability.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::uint64_t k_config_bytes_max = 1 << 20;
constexpr double k_giga = 1e9;

// Parses "H100:8x4": model, GPUs of a node, nodes.
struct GpuWords {
  std::string name;
  int each = 1, nodes = 1;
};
Result<GpuWords> read_gpu(const std::string& text) {
  GpuWords out;
  const std::size_t colon = text.rfind(':');
  out.name = text.substr(0, colon);
  if (colon == std::string::npos) return out;
  const std::string counts = text.substr(colon + 1);
  const std::size_t times = counts.find('x');
  const auto whole = [](std::string_view digits, int& into) {
    return parse_into(digits, into) && into >= 1 && into <= 100'000;
  };
  if (!whole(counts.substr(0, times), out.each) ||
      (times != std::string::npos && !whole(counts.substr(times + 1), out.nodes)))
    return make_error(
        Code::usage, "--gpu: expected NAME:GPUS or NAME:GPUSxNODES such as H100:8x4, got '" + sanitize(text, 80) + "'");
  return out;
}

void price_of(const sched::GpuModel& model, Machines& out) {
  const std::optional<sched::ListPrice> price = sched::list_price(model);
  if (!price) return;
  out.usd_per_gpu_hour = price->usd_per_gpu_hour;
  out.sources.push_back("price: list price of " + std::string(price->instance) + ", " +
                        std::string(sched::k_list_prices_read) +
                        (price->model == model.key ? ""
                                                   : ", the cheapest that does as much: its GPU is " +
                                                         std::string(price->model)));
}

Result<std::vector<Machines>> named_machines(const Parsed& parsed) {
  TRY_ASSIGN(const GpuWords words, read_gpu(parsed.value("gpu")));
  TRY_ASSIGN(const sched::GpuModel* const model, plan::gpu_named(words.name));
  Machines out;
  out.cluster = plan::cluster_of(plan::device_of(*model), model, words.each);
  out.nodes = words.nodes;
  out.gpu = model->key;
  const std::string kind = plan::data_centre(*model) ? "datacenter" : "home";
  out.failures_per_node_hour = sched::class_rate_per_hour(kind) + words.each * sched::k_gpu_rate_per_hour;
  out.sources.push_back("GPU: the catalogue's figures of " + model->key);
  price_of(*model, out);
  out.sources.push_back("failures: the class " + kind);
  if (out.nodes > 1 && !parsed.has("link"))
    out.sources.push_back("network between the nodes: assumed " + rate_text(out.cluster.inter_link) +
                          " for each GPU; --link sets it");
  return std::vector<Machines>{out};
}

double figure(const sched::HostFacts& host, std::string_view name) {
  const auto found = host.figures.find(name);
  return found == host.figures.end() ? 0 : found->second;
}

// Returns the least of a measured figure over the hosts; 0 if one of them lacks it.
double least_figure(const std::vector<const sched::HostFacts*>& hosts, std::string_view name) {
  double least = 1e300;
  for (const sched::HostFacts* host : hosts) least = std::min(least, figure(*host, name));
  return least;
}

// Measured figures replace the catalogue's; the slowest host of the group sets the pace.
void apply_measured(const std::vector<const sched::HostFacts*>& hosts, const sched::GpuModel* model, Machines& out) {
  plan::Device& device = out.cluster.device;
  const double gpus = out.cluster.gpus_per_node;
  double memory = 1e300;
  for (const sched::HostFacts* host : hosts)
    for (const Gpu& gpu : host->inventory->gpus) memory = std::min(memory, static_cast<double>(gpu.memory_bytes));
  if (memory > 0 && memory < 1e300) {
    device.memory = memory;
    out.sources.push_back("memory: as the drivers of the hosts show it");
  }
  if (const double tflops = least_figure(hosts, "total_flops"); tflops > 0) {
    // The coefficients are relative to the declared peak, of which a sound GPU reaches the middle of its band.
    const double expected =
        model != nullptr && model->gemm_band ? (model->gemm_band->low + model->gemm_band->high) / 2 : 0.75;
    const double share = std::min(1.0, tflops / gpus * 1e12 / (device.flops_bf16 * expected));
    for (double* rate : {&device.flops_bf16, &device.flops_fp8, &device.flops_fp4, &device.flops_fp32}) *rate *= share;
    out.sources.push_back("GPU: measured, " + ui::number(tflops / gpus, 3) + " TFLOPS of matrices each");
  } else {
    out.sources.push_back("GPU: the catalogue's figures of " + out.gpu + "; gridctl provider bench measures");
  }
  if (const double up = least_figure(hosts, "inet_up"); up > 0) {
    out.uplink = up * 1e6 / 8;
    out.sources.push_back("network: measured, " + ui::number(up, 3) + " Mbit/s up on the slowest host");
  }
}

Machines group_of(const std::string& key, const std::vector<const sched::HostFacts*>& hosts) {
  Machines out;
  const sched::HostFacts& first = *hosts.front();
  const sched::GpuModel* const model = sched::model_by_key(key);
  const int each = static_cast<int>(first.inventory->gpus.size());
  out.gpu = key;
  out.cluster = plan::cluster_of(
      model != nullptr
          ? plan::device_of(*model)
          : plan::device_of_figures(static_cast<double>(first.inventory->gpus.front().memory_bytes) / k_giga, 12.5),
      model, each);
  if (model == nullptr) out.cluster.device.name = key;
  out.nodes = static_cast<int>(hosts.size());
  out.site = first.site;
  out.rdma = std::ranges::all_of(hosts, [&](const sched::HostFacts* host) {
    return sched::common_rdma({&*first.inventory, &*host->inventory}).has_value();
  });
  double usd = 0, rate = 0;
  for (const sched::HostFacts* host : hosts) {
    usd += host->price_per_hour;
    const double mtbf = figure(*host, "mtbf");
    rate += mtbf > 0 ? 1 / mtbf : sched::class_rate_per_hour(host->host_class);
    out.hosts.push_back(host->name.value);
  }
  out.usd_per_gpu_hour = usd / out.nodes / each;
  out.failures_per_node_hour = rate / out.nodes;
  apply_measured(hosts, model, out);
  out.sources.push_back("price and failures: of the registered hosts");
  return out;
}

Result<std::vector<Machines>> registered_machines(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const sched::Query query, sched::Query::parse(parsed.value("on")));
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(std::vector<sched::HostFacts> hosts, all_host_facts(registry, context.now()));
  if (hosts.empty())
    return make_error(Code::no_provider_fits, "no provider is registered, and no --gpu is given",
                      "gridctl plan train … --gpu H100:8x4");
  TRY_ASSIGN(const control::NetworkPicture picture, control::network_picture(registry, context.paths()));
  for (const sched::Site& site : picture.topology.sites)
    for (sched::HostFacts& host : hosts)
      if (host.site.empty() && std::ranges::find(site.hosts, host.name.value) != site.hosts.end())
        host.site = site.name;
  std::vector<const sched::HostFacts*> usable;
  for (const sched::HostFacts& host : hosts)
    if (query.matches(sched::subject_of(host)) && !host.drained && host.quarantined.empty()) usable.push_back(&host);
  const bool without =
      std::ranges::any_of(usable, [](const sched::HostFacts* host) { return host->inventory->gpus.empty(); });
  std::vector<Machines> out = grouped(usable);
  if (out.empty())
    return make_error(
        Code::no_provider_fits,
        without ? "none of the providers that match has a GPU" : "no provider matches, or all are out of service",
        "gridctl provider ls");
  apply_links(picture.links, out);
  return out;
}
}  // namespace

std::string rate_text(double bytes_per_s) {
  const double mbit = bytes_per_s * 8 / 1e6;
  return mbit >= 1000 ? ui::number(mbit / 1000, 3) + " Gbit/s" : ui::number(mbit, 3) + " Mbit/s";
}

Result<double> read_amount(std::string_view option, std::string_view text) {
  static constexpr std::string_view k_letters = "kmbt";
  const std::string given(text);
  double factor = 1;
  if (!text.empty()) {
    const std::size_t power = k_letters.find(static_cast<char>(text.back() | 0x20));
    for (std::size_t i = 0; power != std::string_view::npos && i <= power; ++i) factor *= 1000;
    if (power != std::string_view::npos) text.remove_suffix(1);
  }
  double value = 0;
  if (!parse_into(text, value) || !(value * factor >= 1) || value * factor > 1e18)
    return make_error(Code::usage, "--" + std::string(option) + ": expected a number such as 350M, 7B or 1.5T, got '" +
                                       sanitize(given, 60) + "'");
  return value * factor;
}

Result<plan::Model> read_model(const Parsed& parsed) {
  const std::string name = parsed.value("model");
  if (name.empty() == !parsed.has("params"))
    return make_error(Code::usage, name.empty() ? "which model? give --model NAME, --model config.json or --params 7B"
                                                : "--model and --params exclude each other");
  if (name.empty()) {
    TRY_ASSIGN(const double params, read_amount("params", parsed.value("params")));
    if (params < 1e6) return make_error(Code::usage, "--params: no transformer has fewer than a million parameters");
    return plan::usual_shape(params);
  }
  if (const plan::Model* known = plan::family(name)) return *known;
  if (!name.ends_with(".json")) {
    std::vector<std::string> names;
    for (const plan::Model& model : plan::families()) names.push_back(model.name);
    const std::string near = nearest(lower(name), names);
    return make_error(
        Code::usage,
        "unknown model '" + sanitize(name, 80) + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"),
        "give its config.json: --model path/to/config.json");
  }
  Result<std::string> text = os::read_file(name, k_config_bytes_max);
  if (!text) return make_error(Code::usage, "cannot read '" + sanitize(name) + "': " + text.error().message);
  Result<plan::Model> model = plan::read_config(*text);
  if (!model) return make_error(Code::usage, "'" + sanitize(name) + "': " + model.error().message);
  return model;
}

std::vector<Machines> grouped(const std::vector<const sched::HostFacts*>& hosts) {
  // Groups hosts by GPUs, their number, and site, because such hosts may communicate as a gang.
  std::map<std::string, std::vector<const sched::HostFacts*>> groups;
  for (const sched::HostFacts* host : hosts) {
    if (host->inventory->gpus.empty()) continue;
    const Gpu& gpu = host->inventory->gpus.front();
    groups[(gpu.model.empty() ? gpu.name : gpu.model) + "\n" + std::to_string(host->inventory->gpus.size()) + "\n" +
           host->site]
        .push_back(host);
  }
  std::vector<Machines> out;
  for (const auto& [key, members] : groups) out.push_back(group_of(key.substr(0, key.find('\n')), members));
  return out;
}

Result<std::vector<Machines>> read_machines(Context& context, const Parsed& parsed) {
  if (parsed.has("gpu") && parsed.has("on")) return make_error(Code::usage, "--gpu and --on exclude each other");
  TRY_ASSIGN(std::vector<Machines> out, parsed.has("gpu") ? named_machines(parsed) : registered_machines(context, parsed));
  if (!parsed.has("link")) return out;
  const auto rate = plan::bytes_per_second_of(parsed.value("link"));
  if (!rate)
    return make_error(Code::usage, "--link: expected the rate between two nodes such as 1Gbps or 400Gbit/s, got '" +
                                       sanitize(parsed.value("link"), 60) + "'");
  for (Machines& machines : out) {
    machines.between = *rate;
    machines.cluster.inter_link = *rate / machines.cluster.gpus_per_node;
    machines.sources.push_back("network between the nodes: " + rate_text(*rate) + " for each node, by --link");
  }
  return out;
}

}  // namespace gridctl::cmd

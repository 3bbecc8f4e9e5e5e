// SPDX-License-Identifier: Apache-2.0
#include "ui/provider_view.hpp"

#include <cmath>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "ui/human.hpp"
#include "ui/reliability.hpp"
#include "ui/table.hpp"

namespace gridctl::ui {

namespace {

constexpr std::size_t k_matrix_gpus_max = 16;  // a wider matrix does not fit a terminal: --json has it

std::string head(std::string_view title, Style style) { return "\n" + style(Paint::bold, title) + "\n"; }

std::string joined(const std::map<std::string, std::string>& labels) {
  std::vector<std::string> words;
  for (const auto& [key, value] : labels) words.push_back(key + "=" + value);
  return join(words, ", ");
}

// Formats "now of most", "now" if they are equal, "-" if unknown.
template <class T>
std::string of(const std::optional<T>& now, const std::optional<T>& most) {
  if (!now && !most) return "-";
  if (!now) return "? of " + number(static_cast<double>(*most));
  if (!most || *now == *most) return number(static_cast<double>(*now));
  return number(static_cast<double>(*now)) + " of " + number(static_cast<double>(*most));
}

std::string yes_no(const std::optional<bool>& value) { return !value ? "-" : *value ? "on" : "off"; }

std::string rate(const std::optional<double>& bits) {
  if (!bits) return "-";
  return *bits >= 1e9 ? number(*bits / 1e9) + " Gbit/s" : number(*bits / 1e6) + " Mbit/s";
}

void add_owner(Facts& facts, const ProviderView& view, WallTime now) {
  const registry::Provider& provider = view.provider;
  facts.add("name", provider.name.value);
  if (provider.more_ways.empty()) facts.add("address", provider.address);
  else
    for (const registry::Way& way : provider.ways())
      facts.add("address", way.address + (way.jump.empty() ? "" : ", by way of " + way.jump) +
                               (way.address == view.way_in_use ? " (in use)" : ""));
  if (provider.more_ways.empty()) facts.add("jump", provider.jump);
  facts.add("transport", provider.transport);
  facts.add("identity", provider.peer_key);
  facts.add("state", provider.drained ? "drained" : provider.liveness);
  facts.add("seen", age(provider.last_seen_at, now));
  if (provider.until)
    facts.add("there until", format_rfc3339(*provider.until) + (*provider.until <= now ? ", which has passed" : ""));
  facts.add("fails in", mtbf(provider));
  facts.add("record", record(provider));
  facts.add("bench drift", bench_drift(provider));
  facts.add("registered", moment(provider.registered_at, now));
  facts.add("runs with", provider.engine);
  facts.add("class", provider.host_class);
  facts.add("region", provider.region);
  facts.add("site", provider.site);
  facts.add("price", provider.price_per_hour == 0 ? "" : money(provider.price_per_hour) + " an hour");
  facts.add("declared", provider.declared_gpus);
  facts.add("labels", joined(provider.labels));
  for (const std::string& line : view.contradictions) facts.add("contradiction", line);
}

std::string cpu_text(const Inventory& inventory) {
  const CpuLayout& cpu = inventory.cpu;
  std::string text = number(inventory.cpus) + " usable";
  if (cpu.sockets && cpu.cores && cpu.threads)
    text += "; " + counted(*cpu.sockets, "socket") + ", " +
            std::to_string(*cpu.cores) + " cores, " + std::to_string(*cpu.threads) + " threads";
  if (!cpu.numa.empty()) text += ", " + counted(cpu.numa.size(), "node");
  if (cpu.max_mhz) text += ", " + std::to_string(*cpu.max_mhz) + " MHz";
  if (!inventory.cpu_model.empty()) text += "; " + inventory.cpu_model;
  return text;
}

std::string engine_text(const Engine& engine) {
  std::string text(engine_name(engine.kind));
  if (!engine.version.empty()) text += " " + engine.version;
  if (engine.rootless) text += ", rootless";
  if (engine.limits_enforced) text += ", limits hold";
  return engine.problem.empty() ? text : text + ": " + engine.problem;
}

void add_machine(Facts& facts, const Inventory& in) {
  facts.add("hostname", in.hostname);
  facts.add("product", in.product);
  facts.add("virtual", in.virtualization == "none" ? "no" : in.virtualization);
  facts.add("system", in.os + (in.kernel.empty() ? "" : ", kernel " + in.kernel) +
                          (in.arch.empty() ? "" : ", " + in.arch) +
                          (in.software.libc.empty() ? "" : ", " + in.software.libc));
  facts.add("cpus", cpu_text(in));
  facts.add("features", join(in.cpu.features, " "));
  facts.add("memory", format_size(in.memory_bytes) +
                          (in.memory_free_bytes ? ", " + format_size(*in.memory_free_bytes) + " free" : ""));
  facts.add("disk", format_size(in.disk_free_bytes) + " free of " + format_size(in.disk_total_bytes) +
                        (in.facts.home_path.empty() ? "" : " for " + in.facts.home_path));
  facts.add("cuda", in.cuda + (in.software.cuda_toolkit.empty() ? "" : " (toolkit " + in.software.cuda_toolkit + ")"));
  facts.add("rocm", in.rocm + (in.software.hip.empty() ? "" : " (hip " + in.software.hip + ")"));
  facts.add("oneapi",
            in.oneapi + (in.software.level_zero.empty() ? "" : " (level zero " + in.software.level_zero + ")"));
  const ContainerGpus& containers = in.software.container_gpus;
  std::vector<std::string> ways;
  if (!containers.toolkit.empty()) ways.push_back("nvidia toolkit " + containers.toolkit);
  if (containers.docker.value_or(false)) ways.emplace_back("docker runtime");
  for (const std::string& device : containers.devices) ways.push_back("CDI " + device);
  facts.add("container gpus", join(ways, ", "));
  facts.add("gpu direct", join(in.gpu_direct, ", "));
  for (const Engine& engine : in.engines) facts.add("engine", engine_text(engine));
  facts.add("machine", in.machine_id);
  facts.add("boot", in.boot_id);
}

std::string gpu_name(const Gpu& gpu) {
  return gpu.model.empty() ? gpu.name + " (model uncertain)" : gpu.name + " = " + gpu.model;
}

std::string gpus_text(const ProviderView& view, std::size_t columns, Style style) {
  const Inventory& in = view.provider.inventory;
  Table table({
      {"#", true, 1}, {"gpu", false, 12, true}, {"memory", true}, {"arch"}, {"units", true, 3}, {"core MHz", true, 4},
      {"power"}, {"pcie"}, {"ecc", false, 3}, {"numa", true, 1}, {"driver"}});
  for (std::size_t i = 0; i < in.gpus.size(); ++i) {
    const Gpu& gpu = in.gpus[i];
    table.add({std::to_string(i), gpu_name(gpu), format_size(gpu.memory_bytes), gpu.arch.empty() ? "-" : gpu.arch,
               gpu.units ? std::to_string(*gpu.units) : "-", of(gpu.clocks.core_mhz, gpu.clocks.core_max_mhz),
               power_text(gpu.power), pcie_text(gpu.pcie), yes_no(gpu.ecc),
               gpu.numa_node ? std::to_string(*gpu.numa_node) : "-", gpu.driver});
  }
  std::string text = head("GPUs", style) + table.render(columns, style);
  Facts facts;
  for (std::size_t i = 0; i < in.gpus.size(); ++i) {
    const Gpu& gpu = in.gpus[i];
    std::string line = gpu.uuid + (gpu.pci.empty() ? "" : ", " + gpu.pci);
    if (!gpu.partition.profile.empty()) line += ", part " + gpu.partition.profile + " of " + gpu.partition.parent;
    else if (gpu.partition.enabled.value_or(false)) line += ", partitioned";
    if (gpu.fabric.active) line += ", " + std::to_string(*gpu.fabric.active) + " links";
    if (gpu.fabric.active && gpu.fabric.bits_per_second) line += " of " + rate(gpu.fabric.bits_per_second);
    if (gpu.throttle && !gpu.throttle->empty()) line += ", held down: " + join(*gpu.throttle, ", ");
    if (gpu.memory_bus_bits) line += ", memory bus of " + std::to_string(*gpu.memory_bus_bits) + " bits";
    if (const auto told = view.measured.find(gpu.uuid); told != view.measured.end())
      line += " (measured: " + join(told->second, ", ") + ")";
    if (const auto found = view.gpus.find(gpu.uuid); found != view.gpus.end() && found->second.failures > 0)
      line += ", fails in " + sched::describe(found->second) + ", " + counted(found->second.failures, "failure");
    facts.add("gpu " + std::to_string(i), line);
  }
  return text + facts.render(style);
}

std::string links_text(const Inventory& in, std::size_t columns, Style style) {
  if (in.links.empty()) return {};
  std::string title = "Links between GPUs";
  if (has_nvswitch(in))
    title += in.nvswitch.value_or(0) > 0 ? ", " + std::to_string(*in.nvswitch) + " NVSwitch" : ", NVSwitch";
  if (in.gpus.size() > k_matrix_gpus_max) {
    std::map<std::string, int> kinds;
    for (const GpuLink& link : in.links) ++kinds[link_text(link)];
    Facts facts;
    for (const auto& [kind, count] : kinds) facts.add(kind, std::to_string(count) + " pairs");
    return head(title, style) + facts.render(style);
  }
  std::vector<Column> titles{{"", true, 1}};
  for (std::size_t i = 0; i < in.gpus.size(); ++i) titles.push_back({std::to_string(i), false, 2});
  std::vector<std::vector<std::string>> cells(in.gpus.size(), std::vector<std::string>(in.gpus.size(), "-"));
  for (const GpuLink& link : in.links)
    if (link.a < cells.size() && link.b < cells.size()) cells[link.a][link.b] = cells[link.b][link.a] = link_text(link);
  Table table(std::move(titles));
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i][i] = "x";
    cells[i].insert(cells[i].begin(), std::to_string(i));
    table.add(std::move(cells[i]));
  }
  return head(title, style) + table.render(columns, style);
}

std::string disks_text(const Inventory& in, std::size_t columns, Style style) {
  if (in.disks.empty()) return {};
  Table table({{"disk", false, 6, true},
               {"kind"},
               {"free", true},
               {"total", true},
               {"file system"},
               {"source", false, 6, true}});
  for (const Disk& disk : in.disks)
    table.add({disk.mount, std::string(disk_kind_name(disk.kind)) + (disk.read_only ? ", read only" : ""),
               format_size(disk.free_bytes), format_size(disk.total_bytes), disk.file_system, disk.source});
  return head("Disks", style) + table.render(columns, style);
}

std::string nics_text(const Inventory& in, std::size_t columns, Style style) {
  if (in.nics.empty()) return {};
  Table table(
      {{"network", false, 6, true}, {"kind"}, {"rate", true}, {"state"}, {"numa", true, 1}, {"card", false, 6, true}});
  for (const Nic& nic : in.nics) {
    std::string name = nic.device.empty() ? nic.interface : nic.device;
    if (!nic.device.empty() && !nic.interface.empty()) name += " (" + nic.interface + ")";
    table.add({name, std::string(nic_kind_name(nic.kind)), rate(nic.bits_per_second), nic.up ? "up" : "down",
               nic.numa_node ? std::to_string(*nic.numa_node) : "-", nic.model});
  }
  return head("Network", style) + table.render(columns, style);
}

std::string list_text(std::string_view title, const std::vector<std::string>& lines, Style style) {
  if (lines.empty()) return {};
  std::string text = head(title, style);
  for (const std::string& line : lines) text += "  " + sanitize(line) + "\n";
  return text;
}

}  // namespace

std::string pcie_text(const PcieLink& link) {
  if (!link.generation && !link.generation_max && !link.width && !link.width_max) return "-";
  return "gen " + of(link.generation, link.generation_max) + ", x" + of(link.width, link.width_max);
}

std::string power_text(const GpuPower& power) {
  const auto watts = [](double value) { return number(std::round(value)) + " W"; };
  if (!power.cap_watts) return power.default_watts ? "made for " + watts(*power.default_watts) : "-";
  const bool lowered = power.default_watts && std::round(*power.default_watts) != std::round(*power.cap_watts);
  return watts(*power.cap_watts) + (lowered ? ", made for " + watts(*power.default_watts) : "");
}

std::string link_text(const GpuLink& link) {
  const std::string lanes = link.lanes ? std::to_string(*link.lanes) : "";
  switch (link.kind) {
    case LinkKind::nvlink: return "NV" + lanes;
    case LinkKind::xgmi: return "xGMI" + (lanes.empty() ? "" : " x" + lanes);
    case LinkKind::xelink: return "XL" + lanes;
    case LinkKind::pix: return "PIX";
    case LinkKind::pxb: return "PXB";
    case LinkKind::phb: return "PHB";
    case LinkKind::node: return "NODE";
    case LinkKind::sys: return "SYS";
    case LinkKind::unknown: break;
  }
  return "-";
}

std::vector<std::string> gap_lines(const Inventory& inventory) {
  struct Lacks {
    std::vector<std::string> host;
    std::map<std::string, std::size_t> gpus;  // attribute -> how many
  };
  std::map<std::pair<GapReason, std::string>, Lacks> by_reason;
  for (const Gap& gap : inventory.gaps) by_reason[{gap.reason, gap.detail}].host.push_back(gap.attribute);
  for (const Gpu& gpu : inventory.gpus)
    for (const Gap& gap : gpu.gaps) ++by_reason[{gap.reason, gap.detail}].gpus[gap.attribute];
  std::vector<std::string> lines;
  for (const auto& [why, lacks] : by_reason) {
    std::vector<std::string> words = lacks.host;
    for (const auto& [attribute, count] : lacks.gpus)
      words.push_back(attribute + (count == inventory.gpus.size() ? "" : " of " + std::to_string(count) + " GPUs"));
    lines.push_back(join(words, ", ") + ": " + std::string(gap_reason_name(why.first)) +
                    (why.second.empty() ? "" : " (" + why.second + ")"));
  }
  return lines;
}

std::string provider_view(const ProviderView& view, WallTime now, std::size_t columns, Style style) {
  const Inventory& in = view.provider.inventory;
  Facts owner, machine;
  add_owner(owner, view, now);
  for (const JobId& job : view.jobs) owner.add("job", job.value);
  add_machine(machine, in);
  std::string text = owner.render(style) + head("Machine", style) + machine.render(style);
  if (!in.gpus.empty()) text += gpus_text(view, columns, style);
  text += links_text(in, columns, style) + disks_text(in, columns, style) + nics_text(in, columns, style);
  text += list_text("Worth a look", in.notes, style);
  if (in.version < k_inventory_version)
    text += list_text(
        "Unknown",
        {"earlier agents did not check this: gridctl provider rescan " + view.provider.name.value},
        style);
  else text += list_text("Unknown, and why", gap_lines(in), style);
  std::vector<std::string> history;
  for (const registry::HostEvent& event : view.history)
    history.push_back(moment(event.at, now) + "  " + event.kind + ": " + event.text);
  return text + list_text("History", history, style);
}

}  // namespace gridctl::ui

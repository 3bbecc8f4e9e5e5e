// SPDX-License-Identifier: Apache-2.0
#include "registry/listing.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace gridctl::registry {

namespace {
constexpr char k_separator = '\x1f';
constexpr std::size_t k_list_max = 4096;  // of GPUs, labels, features; the inventory's own limits are lower

class Writer {
 public:
  Writer& text(std::string_view value) {
    for (const char c : value) out_ += c == k_separator ? ' ' : c;
    out_ += k_separator;
    return *this;
  }
  template <class T>
  Writer& number(T value) {
    char digits[40];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    return text({digits, static_cast<std::size_t>(end - digits)});
  }
  template <class T>
  Writer& maybe(const std::optional<T>& value) {
    return value ? number(*value) : text({});
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::string_view line) : rest_(line) {}
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  std::string_view word() {
    const std::size_t end = rest_.find(k_separator);
    good_ = good_ && end != std::string_view::npos;
    if (!good_) return {};
    const std::string_view out = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return out;
  }
  Reader& text(std::string& into) {
    into.assign(word());
    return *this;
  }
  template <class T>
  Reader& number(T& into) {
    good_ = parse_into(word(), into) && good_;
    return *this;
  }
  template <class T>
  Reader& maybe(std::optional<T>& into) {
    if (!rest_.starts_with(k_separator)) return number(into.emplace());
    into.reset();
    (void)word();
    return *this;
  }
  std::size_t count() {
    std::size_t value = 0;
    number(value);
    good_ = good_ && value <= k_list_max;
    return good_ ? value : 0;
  }

 private:
  std::string_view rest_;
  bool good_ = true;
};

// Do they differ in nothing but their ids?
bool alike(const Gpu& a, const Gpu& b) {
  return a.vendor == b.vendor && a.name == b.name && a.memory_bytes == b.memory_bytes && a.driver == b.driver &&
         a.arch == b.arch && a.ecc == b.ecc && a.power.cap_watts == b.power.cap_watts &&
         a.heat.slowdown_c == b.heat.slowdown_c && a.pcie.generation_max == b.pcie.generation_max &&
         a.pcie.width == b.pcie.width;
}

void write_gpus(Writer& out, const std::vector<Gpu>& gpus) {
  for (std::size_t i = 0; i < gpus.size();) {
    const Gpu& gpu = gpus[i];
    std::size_t end = i + 1;
    while (end < gpus.size() && alike(gpu, gpus[end])) ++end;
    out.number(end - i).number(static_cast<int>(gpu.vendor)).text(gpu.name).number(gpu.memory_bytes);
    out.text(gpu.driver).text(gpu.arch).maybe(gpu.ecc ? std::optional{int{*gpu.ecc}} : std::nullopt);
    out.maybe(gpu.power.cap_watts).maybe(gpu.heat.slowdown_c);
    out.maybe(gpu.pcie.generation_max).maybe(gpu.pcie.width);
    for (; i < end; ++i) out.text(gpus[i].uuid);
  }
  out.number(0);
}

void read_gpus(Reader& in, std::vector<Gpu>& gpus) {
  gpus.clear();
  while (const std::size_t count = in.count()) {
    Gpu gpu;
    int vendor = 0;
    std::optional<int> ecc;
    in.number(vendor).text(gpu.name).number(gpu.memory_bytes).text(gpu.driver).text(gpu.arch).maybe(ecc);
    gpu.vendor = vendor >= 0 && vendor <= static_cast<int>(Vendor::other) ? static_cast<Vendor>(vendor) : Vendor::other;
    if (ecc) gpu.ecc = *ecc != 0;
    in.maybe(gpu.power.cap_watts).maybe(gpu.heat.slowdown_c);
    in.maybe(gpu.pcie.generation_max).maybe(gpu.pcie.width);
    for (std::size_t i = 0; i < count && in.good() && gpus.size() < k_list_max; ++i) {
      in.text(gpu.uuid);
      gpus.push_back(gpu);
    }
  }
}

// The fastest link between two GPUs, for `bw_nvlink`.
const GpuLink* best_link(const std::vector<GpuLink>& links) {
  const GpuLink* best = nullptr;
  for (const GpuLink& link : links)
    if (is_fabric(link.kind) && link.bits_per_second &&
        (best == nullptr || *link.bits_per_second > *best->bits_per_second))
      best = &link;
  return best;
}
}  // namespace

std::string listing_of(const Provider& p) {
  const Inventory& i = p.inventory;
  Writer out;
  out.text(p.address).text(p.transport).text(p.engine).number(p.price_per_hour);
  out.text(p.region).text(p.site).text(p.host_class).number(p.registered_at.ms);
  out.number(p.labels.size());
  for (const auto& [key, value] : p.labels) out.text(key).text(value);
  out.text(i.kernel).text(i.arch).text(i.os).text(i.machine_id).text(i.cpu_model).text(join(i.cpu.features, " "));
  out.number(i.cpus).maybe(i.cpu.threads).maybe(i.cpu.max_mhz);
  out.number(i.memory_bytes).number(i.disk_free_bytes).text(i.cuda).text(i.rocm);
  const GpuLink* link = best_link(i.links);
  out.maybe(link != nullptr ? link->bits_per_second : std::nullopt);
  write_gpus(out, i.gpus);
  return out.take();
}

bool read_listing(std::string_view line, Provider& p) {
  Reader in(line);
  Inventory& i = p.inventory.edit();
  in.text(p.address).text(p.transport).text(p.engine).number(p.price_per_hour);
  in.text(p.region).text(p.site).text(p.host_class).number(p.registered_at.ms);
  p.labels.clear();
  for (std::size_t n = in.count(); n > 0; --n) {
    std::string key(in.word());
    in.text(p.labels[std::move(key)]);
  }
  in.text(i.kernel).text(i.arch).text(i.os).text(i.machine_id).text(i.cpu_model);
  const std::string_view features = in.word();
  i.cpu.features.clear();
  if (!features.empty()) i.cpu.features = split(features, ' ');
  std::optional<double> fabric;
  in.number(i.cpus).maybe(i.cpu.threads).maybe(i.cpu.max_mhz);
  in.number(i.memory_bytes).number(i.disk_free_bytes).text(i.cuda).text(i.rocm).maybe(fabric);
  i.links.clear();
  if (fabric) i.links.push_back({0, 1, LinkKind::nvlink, {}, fabric});
  read_gpus(in, i.gpus);
  return in.good() && in.at_end();
}

std::string figures_text(const Figures& figures) {
  std::string out;
  for (const auto& [name, value] : figures) {
    char digits[40];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    out += (out.empty() ? "" : " ") + name + "=" + std::string(digits, end);
  }
  return out;
}

namespace {
// One figure, of which `next` is the likely place: most hosts have the same ones, in one order, and then nothing is
// allocated. What stands before `next` is of this host.
Figures::iterator put_figure(Figures& figures, Figures::iterator next, std::string_view name, double value) {
  if (next != figures.begin() && std::prev(next)->first >= name) {  // out of order
    figures.insert_or_assign(std::string(name), value);
    return next;
  }
  while (next != figures.end() && next->first < name) next = figures.erase(next);
  if (next == figures.end() || next->first != name) next = figures.insert_or_assign(next, std::string(name), value);
  next->second = value;
  return std::next(next);
}
}  // namespace

void read_figures(std::string_view text, Figures& into) {
  auto next = into.begin();
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view part = text.substr(0, end);
    const std::size_t equals = std::min(part.find('='), part.size());
    if (equals < part.size())
      if (const auto value = parse_number<double>(part.substr(equals + 1)); value && std::isfinite(*value))
        next = put_figure(into, next, part.substr(0, equals), *value);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  into.erase(next, into.end());
}

}  // namespace gridctl::registry

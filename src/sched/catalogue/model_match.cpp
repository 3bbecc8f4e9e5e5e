// SPDX-License-Identifier: Apache-2.0
// Finds the catalogue row of a device.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/bytes.hpp"
#include "base/formatted.hpp"
#include "base/text.hpp"
#include "sched/catalogue/catalogue.hpp"
#include "sched/catalogue/gpu_match.hpp"
#include "sched/catalogue/gpu_words.hpp"

namespace gridctl::sched {

namespace {
constexpr std::size_t k_product_max = 160;  // bytes looked at: names come from hosts
constexpr double k_nominal_low = 0.93;      // of the nominal memory: ECC and firmware take some
constexpr double k_nominal_high = 1.08;     // nominal GB are GiB on most boards
constexpr double k_laptop_power = 0.7;  // GeForce boards are delivered with at least their rated power; laptops less
constexpr std::array k_processor_memory_gb{120.0, 240.0, 480.0};  // that GH200's name mentions
constexpr int k_mig_slices = 7;                                   // of a whole GPU
constexpr int k_mig_slices_a30 = 4;

// Lists words that do not distinguish models.
constexpr std::array k_noise{"nvidia",   "geforce", "tesla",       "amd",         "ati",         "radeon", "instinct",
                             "intel",    "gpu",     "graphics",    "series",      "generation",  "data",   "center",
                             "edition",  "server",  "workstation", "corporation", "accelerator", "oam",    "mcm",
                             "ac",       "mba",     "hbm2",        "hbm2e",       "hbm3",        "hbm3e",  "laptop",
                             "notebook", "mobile",  "with",        "design"};
constexpr std::string_view k_usual_form = "pcie";  // of a model whose name says none
constexpr std::array k_forms{"sxm", "sxm2", "sxm3", "sxm4", "sxm5", "sxm6", "pcie", "nvl"};
// Boards with two dies that appear as two devices, each with half the row's figures.
constexpr std::array k_two_dies{"Instinct MI250X", "Instinct MI250"};

struct Name {
  std::vector<std::string> core;  // sorted words that make the model
  std::string form;               // "sxm4", "pcie"
  std::optional<double> size_gb;
  bool laptop = false;  // or Max-Q: less power than the board of that name

  [[nodiscard]] bool operator==(const Name& other) const { return core == other.core && laptop == other.laptop; }
};

Name name_of(std::string_view text) {
  Name name;
  const std::string low = lower(text.substr(0, k_product_max));
  const bool max_q = low.find("max-q") != std::string::npos || low.find("max q") != std::string::npos;
  const std::vector<std::string> words = words_of(text, k_product_max);
  name.laptop = max_q || contains(words, "laptop") || contains(words, "notebook") || contains(words, "mobile");
  for (const std::string& word : words) {
    if (max_q && is_one_of(word, {"max", "q"})) continue;
    if (contains(k_forms, word)) name.form = word;
    else if (const auto size = gigabytes(word)) name.size_gb = name.size_gb ? name.size_gb : size;
    else if (!contains(k_noise, word)) name.core.push_back(word);
  }
  std::ranges::sort(name.core);
  return name;
}

// Returns the part of the text that names the product: the last brackets of "Navi 31 [Radeon RX 7900 XTX]", the text
// before a partition's profile and before a key's remark in parentheses.
std::string_view product_of(std::string_view text) {
  text = text.substr(0, text.find(" MIG "));
  const std::size_t open = text.rfind('['), close = text.rfind(']');
  if (open != std::string_view::npos && close != std::string_view::npos && close > open + 1)
    return text.substr(open + 1, close - open - 1);
  if (text.ends_with(")")) return text.substr(0, text.find(" (per "));
  return text;
}

constexpr std::size_t k_alternatives_max = 8;  // names in one; more is no name

// "RX 7900 XT/7900 XTX/7900M" means one of three: each with the first one's leading words.
std::vector<Name> alternatives_of(std::string_view text) {
  std::vector<std::string> parts = split(product_of(text.substr(0, k_product_max)), '/');
  if (parts.size() > k_alternatives_max) parts.resize(k_alternatives_max);
  std::vector<Name> names;
  std::string lead;
  for (const std::string& part : parts) {
    names.push_back(name_of(lead + part));
    if (!lead.empty()) continue;
    for (const std::string& word : words_of(part, k_product_max)) {
      if (word.find_first_of("0123456789") != std::string::npos) break;
      lead += word + " ";
    }
  }
  return names;
}

// Holds a row's name in the catalogue, parsed once.
struct RowName {
  const GpuModel* model = nullptr;
  Name name;
  std::vector<std::vector<std::string>> aliases;  // words
};

std::vector<RowName> row_names() {
  std::vector<RowName> rows;
  for (const GpuModel& model : catalogue()) {
    RowName row{&model, name_of(product_of(model.key)), {}};
    for (const std::string& alias : model.aliases) row.aliases.push_back(words_of(alias, k_product_max));
    rows.push_back(std::move(row));
  }
  return rows;
}

enum class Fit { no, words, sure };  // the words allow it; name and form say it

Fit fit_of(const Name& row, const Name& name) {
  if (!(row == name)) return Fit::no;
  if (row.form.empty()) return name.form.empty() || name.form == k_usual_form ? Fit::sure : Fit::no;
  if (name.form.empty()) return Fit::words;
  return row.form.starts_with(name.form) || name.form.starts_with(row.form) ? Fit::sure : Fit::no;
}

bool has_two_dies(const GpuModel& model) { return contains(k_two_dies, model.key); }

// Parses MIG profiles: "3g.40gb", "1c.3g.40gb", "1g.10gb+me".
void take_mig_shares(ModelMatch& match, std::string_view profile) {
  int slices = 0, compute = 0;
  for (const std::string& part : split(profile.substr(0, profile.find('+')), '.')) {
    const std::size_t digits = part.find_first_not_of("0123456789");
    if (digits == 0 || digits == std::string::npos || digits > 2) continue;
    const int value = std::stoi(part.substr(0, digits));
    const std::string unit = part.substr(digits);
    if (is_one_of(unit, {"c"})) compute = value;
    if (is_one_of(unit, {"g"})) slices = value;
    if (is_one_of(unit, {"gb"})) match.memory_share = std::min(1.0, value / match.model->memory_gb);
  }
  const int whole = is_one_of(match.model->key, {"A30"}) ? k_mig_slices_a30 : k_mig_slices;
  const int used = compute != 0 ? compute : slices;
  if (used > 0) match.compute_share = std::min(1.0, static_cast<double>(used) / whole);
}

void take_shares(ModelMatch& match, const GpuClues& clues) {
  const GpuModel& model = *match.model;
  if (clues.profile.empty()) {
    if (has_two_dies(model) && memory_is_nominal(clues.memory_bytes, model.memory_gb / 2))
      match.compute_share = match.memory_share = 0.5;
    return;
  }
  if (clues.vendor == Vendor::nvidia) return take_mig_shares(match, clues.profile);
  if (clues.units && model.units) match.compute_share = std::min(1.0, static_cast<double>(*clues.units) / *model.units);
  if (clues.memory_bytes != 0)
    match.memory_share = std::min(1.0, static_cast<double>(clues.memory_bytes) / (model.memory_gb * 1e9));
}

// Holds objections to a row although the name fits. A contradiction makes the name a lie; a doubt leaves the device
// unknown: boards are sold in several sizes, and forms, under one name.
struct Objections {
  std::vector<std::string> contradictions;
  std::string doubt;
  void contradict(std::string what, const GpuModel& model, const std::string& has) {
    contradictions.push_back(std::move(what) + ", " + with_article(model.key) + " has " + has);
  }
};

std::string gigabytes_text(double value) { return formatted("%.6g", value); }

// Returns true for a board sold under the model's name with another memory size, as far as its clues show.
bool is_other_size(const GpuModel& model, const GpuClues& clues) {
  // AMD's older tools show the parts of a GPU without saying that they are parts.
  for (const std::uint32_t parts : {2u, 4u, 8u})
    if (model.vendor == Vendor::amd && memory_is_nominal(clues.memory_bytes, model.memory_gb / parts) &&
        (!clues.units || !model.units || *clues.units * parts == *model.units))
      return true;
  return std::ranges::any_of(other_sizes_of(model.key), [&](const OtherSize& other) {
    return memory_is_nominal(clues.memory_bytes, other.memory_gb) && (!clues.units || *clues.units == other.units);
  });
}

void object_to_memory(Objections& out, const GpuModel& model, const Name& name, const GpuClues& clues) {
  const bool part = !clues.profile.empty();
  if (part || clues.memory_bytes == 0) {
    if (name.size_gb && std::abs(*name.size_gb - model.memory_gb) >= 0.5)
      out.doubt = "its name mentions a different memory size than that of " + model.key;
    return;
  }
  const auto is_nominal = [&](double gb) { return memory_is_nominal(clues.memory_bytes, gb); };
  const std::string size = std::to_string(clues.memory_bytes >> 20) + " MiB";
  const bool named = name.size_gb && !contains(k_processor_memory_gb, *name.size_gb);
  if (named && !is_nominal(*name.size_gb)) {
    out.contradictions.push_back(size + ", its name says " + gigabytes_text(*name.size_gb) + " GB");
    return;
  }
  if (is_nominal(model.memory_gb) || (has_two_dies(model) && is_nominal(model.memory_gb / 2))) return;
  const bool said = name.size_gb && is_nominal(*name.size_gb) && std::abs(*name.size_gb - model.memory_gb) >= 0.5;
  if (said || is_other_size(model, clues))
    out.doubt = "its memory of " + format_size(clues.memory_bytes) + " is not that of " + model.key;
  else out.contradict(size, model, gigabytes_text(model.memory_gb) + " GB");
}

// Turns "sm_90" into "compute capability 9.0".
std::string dotted_capability(std::string_view isa) {
  const std::string digits(isa.substr(3));
  return digits.size() < 2 ? digits : digits.substr(0, digits.size() - 1) + "." + digits.back();
}

void object_to_architecture(Objections& out, const GpuModel& model, const GpuClues& clues) {
  if (clues.arch == model.isa) return;
  if (clues.arch.starts_with("sm_") && model.isa.starts_with("sm_"))
    out.contradict("compute capability " + dotted_capability(clues.arch), model, dotted_capability(model.isa));
  if (clues.arch.starts_with("gfx") && model.isa.starts_with("gfx"))
    out.contradict("architecture " + std::string(clues.arch), model, model.isa);
}

void object_to_units(Objections& out, const GpuModel& model, const GpuClues& clues) {
  if (!clues.units || !model.units || !clues.profile.empty() || *clues.units == *model.units) return;
  if (has_two_dies(model) && *clues.units * 2 == *model.units) return;
  const std::string count =
      std::to_string(*clues.units) + (model.vendor == Vendor::nvidia ? " multiprocessors" : " units");
  // If the catalogue itself is uncertain, or the board is another with that name, a count proves nothing.
  if (model.confirmed == Confirmed::unconfirmed || is_other_size(model, clues))
    out.doubt = "it has " + count + " and not the " + std::to_string(*model.units) + " of " + model.key;
  else out.contradict(count, model, std::to_string(*model.units));
}

void object_to_device(Objections& out, const GpuModel& model, const GpuClues& clues) {
  const std::vector<std::string_view> owners = models_of_pci_device(clues.pci_device);
  if (owners.empty() || contains(owners, model.key)) return;
  out.contradictions.push_back("PCI device " + std::string(clues.pci_device) + " is " + with_article(owners.front()));
}

Objections objections(const GpuModel& model, const Name& name, const GpuClues& clues) {
  Objections out;
  object_to_architecture(out, model, clues);
  object_to_memory(out, model, name, clues);
  object_to_units(out, model, clues);
  object_to_device(out, model, clues);
  const bool board = model.family == k_geforce_family;
  if (board && clues.default_watts && model.tdp_watts && *clues.default_watts < *model.tdp_watts * k_laptop_power)
    out.doubt = "it has a lower power limit than a board of " + model.key + ": a laptop part?";
  return out;
}

struct Candidates {
  std::vector<const GpuModel*> models;
  bool exact = false;               // found by alias
  std::string doubt;                // about the last one that nothing contradicts
  const GpuModel* named = nullptr;  // of those that are contradicted, the one that is contradicted least
  std::vector<std::string> contradictions;
};

Candidates candidates_of(const GpuClues& clues) {
  static const std::vector<RowName> rows = row_names();
  const std::vector<Name> names = alternatives_of(clues.name);
  const std::vector<std::string> words = words_of(clues.name.substr(0, clues.name.find(" MIG ")), k_product_max);
  const bool one_name = names.size() == 1;
  Candidates out;
  const auto consider = [&](const GpuModel& model, const Name& name, Fit fit) {
    // If there are several names, or the form is open, a count that only this model has decides.
    if (fit == Fit::words || !one_name) fit = clues.units && model.units ? Fit::sure : Fit::words;
    Objections against = objections(model, name, clues);
    if (!against.contradictions.empty()) {
      if (out.named == nullptr || against.contradictions.size() < out.contradictions.size())
        out.named = &model, out.contradictions = std::move(against.contradictions);
      return;
    }
    if (against.doubt.empty() && fit == Fit::words) against.doubt = "its name fits " + model.key + " and others";
    if (against.doubt.empty()) out.models.push_back(&model);
    else out.doubt = std::move(against.doubt);
  };
  for (const RowName& row : rows) {
    if (row.model->vendor != clues.vendor || !contains(row.aliases, words)) continue;
    out.exact = true;
    consider(*row.model, names.front(), Fit::sure);
  }
  if (!out.exact)
    for (const RowName& row : rows) {
      if (row.model->vendor != clues.vendor) continue;
      const auto name = std::ranges::find_if(names, [&](const Name& one) { return fit_of(row.name, one) != Fit::no; });
      if (name != names.end()) consider(*row.model, *name, fit_of(row.name, *name));
    }
  // A device with one of several names may be one that the catalogue lacks.
  if (!one_name && out.named != nullptr && out.doubt.empty()) out.doubt = out.contradictions.front();
  if (!out.models.empty() || !out.doubt.empty()) out.named = nullptr;
  return out;
}
}  // namespace

std::string with_article(std::string_view key) {
  // Letters that are spelled out ("an H200", "an RTX 4090") sound like their names, words as they are written.
  const bool spelled = key.size() < 2 || key[1] < 'a' || key[1] > 'z';
  const std::string_view vowels = spelled ? "AEFHILMNORSX8" : "AEIO";
  const bool word = key.starts_with("TITAN") || key.starts_with("GH") || key.starts_with("GB");
  const bool an = !key.empty() && !word && vowels.find(key.front()) != std::string_view::npos;
  return (an ? "an " : "a ") + std::string(key);
}

bool is_same_product(std::string_view a, std::string_view b) {
  const Name one = name_of(product_of(a)), other = name_of(product_of(b));
  return one == other && (one.form.empty() || other.form.empty() || one.form == other.form);
}

bool memory_is_nominal(std::uint64_t bytes, double nominal_gb) {
  const double share = static_cast<double>(bytes) / (nominal_gb * 1e9);
  return share >= k_nominal_low && share <= k_nominal_high;
}

ModelMatch find_model(const GpuClues& clues) {
  ModelMatch match;
  const Candidates candidates = candidates_of(clues);
  if (candidates.models.size() == 1) {
    match.model = candidates.models.front();
    take_shares(match, clues);
    return match;
  }
  if (candidates.models.size() > 1) {
    match.why = "it may be " + candidates.models[0]->key + " or " + candidates.models[1]->key;
  } else if (candidates.named != nullptr) {
    match.named = candidates.named;
    match.contradictions = candidates.contradictions;
    match.why = join(match.contradictions, "; ");
  } else if (!candidates.doubt.empty()) {
    match.why = candidates.doubt;
  } else {
    match.why = name_of(clues.name).laptop ? "a laptop or low-power part: the catalogue has none with its name"
                                           : "no model in the catalogue has this name";
  }
  return match;
}

ModelMatch find_model(const Gpu& gpu) {
  return find_model(GpuClues{gpu.vendor, gpu.name, gpu.memory_bytes, gpu.units, gpu.arch, gpu.power.default_watts,
                             gpu.partition.profile});
}

std::vector<const GpuModel*> models_named(std::string_view name) {
  job::GpuRequest request;
  request.names = {std::string(name)};
  std::vector<const GpuModel*> models;
  for (const GpuModel& model : catalogue()) {
    Gpu gpu;
    gpu.vendor = model.vendor;
    gpu.name = model.key;
    gpu.memory_bytes = static_cast<std::uint64_t>(model.memory_gb * 1e9);
    if (match_gpu(request, gpu) == GpuMismatch::none) models.push_back(&model);
  }
  return models;
}

void name_models(Inventory& inventory) {
  for (Gpu& gpu : inventory.gpus) {
    const ModelMatch match = find_model(gpu);
    gpu.model = match.model == nullptr ? std::string() : match.model->key;
  }
}

}  // namespace gridctl::sched

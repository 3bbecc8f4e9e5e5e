// SPDX-License-Identifier: Apache-2.0
// Holds the figures that each GPU model should reach: data/gpus.csv, compiled in. Matching happens here and not on
// hosts, so that a better catalogue needs no new agents and no host names its own model. Pure; the catalogue is read
// once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/inventory.hpp"
#include "base/result.hpp"

namespace gridctl::sched {

// Gives the part of the declared peak that a sound device reaches in a good test (theory: fractions of bench results by
// class).
struct Band {
  double low = 0, high = 0;
};

// Describes how well the row's figures are known: datasheets; computed from units and clocks; from memory. A host never
// fails on an unconfirmed figure.
enum class Confirmed : std::uint8_t { yes, derived, unconfirmed };

// Rates are those of dense matrices in TFLOPS (1e12 operations a second), bandwidths in 1e9 bytes a second.
inline constexpr std::string_view k_geforce_family = "nv_geforce";
struct GpuModel {
  Vendor vendor = Vendor::nvidia;
  std::string key;  // "H100 SXM5 80GB": unique in the catalogue
  std::vector<std::string> aliases;
  std::string arch;      // "Hopper"
  std::string isa;       // "sm_90"
  std::string family;    // class of the bands: nv_dc, nv_ws, nv_geforce, nv_old, amd_dc, amd_radeon, intel_dc, …
  double memory_gb = 0;  // nominal, 1e9 bytes as sold: drivers show 0.93 to 1.08 of it
  std::string memory_kind;
  std::optional<double> memory_gbs;
  std::optional<double> fp32, tf32, fp16, fp16_short, bf16, fp8;  // fp16_short: fp16 accumulation
  std::optional<double> int8;                                     // TOPS
  std::optional<std::uint32_t> units, boost_mhz;
  std::string link;                // "NVLink", "none"
  std::optional<double> link_gbs;  // both directions together
  std::optional<int> pcie_generation, pcie_lanes;
  std::optional<double> tdp_watts;
  std::optional<Band> gemm_band, fp32_band, memory_band;
  Confirmed confirmed = Confirmed::unconfirmed;
  std::string note;
};

[[nodiscard]] std::span<const GpuModel> catalogue();
// Reads a catalogue; an error names the wrong line. It reads the compiled-in one too, which is tested.
[[nodiscard]] Result<std::vector<GpuModel>> parse_catalogue(std::string_view csv);

// Finds a model by key, ignoring case, blanks, '-' and '_': "rtx_4090", "H100-SXM5-80GB". nullptr if there is none.
[[nodiscard]] const GpuModel* model_by_key(std::string_view key);

// Holds the result of recognising a device. `model` is null if it is not certain, and `why` says why.
struct ModelMatch {
  const GpuModel* model = nullptr;
  const GpuModel* named = nullptr;          // the model that the name claims and that `contradictions` rule out
  std::vector<std::string> contradictions;  // "compute capability 9.0, a T4 has 7.5"
  double compute_share = 1;  // of the row's rates: a MIG device, a compute partition, one die of two
  double memory_share = 1;   // of the row's memory and its bandwidth
  std::string why;           // "a laptop part: the catalogue has desktop parts only"
};

// Holds the known properties of a device. Units, power and memory distinguish parts that share a name; unknown ones
// decide nothing.
struct GpuClues {
  Vendor vendor = Vendor::nvidia;
  std::string_view name;           // as the driver or a person says it
  std::uint64_t memory_bytes = 0;  // 0 = unknown
  std::optional<std::uint32_t> units{};
  std::string_view arch{};  // "sm_89", "gfx942"; empty = unknown
  std::optional<double> default_watts{};
  std::string_view profile{};     // of a part of a GPU: "3g.40gb"
  std::string_view pci_device{};  // "10de:2335"; empty = unknown
};

// Strips maker, memory size, form and partition from the name; takes a row whose key or alias has the same words and
// whose memory, units and architecture do not contradict. Two matching rows count as none. Laptop and Max-Q parts are
// never taken for desktop parts, or the other way round. Matches only without doubt: a wrong model makes a sound host
// look like a liar. If a name claims one model but architecture, memory, units or PCI device belong to another, the
// result lists that model's contradictions; a board with that name in another size (`other_sizes_of`) contradicts
// nothing.
[[nodiscard]] ModelMatch find_model(const GpuClues& clues);
[[nodiscard]] ModelMatch find_model(const Gpu& gpu);

// Returns the models that a PCI device id ("10de:2335") belongs to; empty if the id is not known here.
[[nodiscard]] std::vector<std::string_view> models_of_pci_device(std::string_view id);
// Lists the other sizes of boards with the model's name.
struct OtherSize {
  double memory_gb = 0;
  std::uint32_t units = 0;
};
[[nodiscard]] std::vector<OtherSize> other_sizes_of(std::string_view key);
// Returns "a T4", "an H200 SXM".
[[nodiscard]] std::string with_article(std::string_view key);
// Returns whether two product names mean one model, whatever maker, brand and memory size they mention.
[[nodiscard]] bool is_same_product(std::string_view a, std::string_view b);

// Returns all rows that the words allow, whatever the device: "A100" matches four. For declarations and queries.
[[nodiscard]] std::vector<const GpuModel*> models_named(std::string_view name);

// Returns whether a size shown by the driver belongs to a nominal one (0.93 to 1.08 of it).
[[nodiscard]] bool memory_is_nominal(std::uint64_t bytes, double nominal_gb);

// Sets Gpu::model of every GPU; an existing value came from outside.
void name_models(Inventory& inventory);

}  // namespace gridctl::sched

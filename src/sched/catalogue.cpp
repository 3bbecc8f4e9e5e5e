// SPDX-License-Identifier: Apache-2.0
#include "sched/catalogue.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/check.hpp"
#include "base/text.hpp"
#include "sched/catalogue_data.hpp"

namespace gridctl::sched {

namespace {

// Columns of data/gpus.csv in their order.
enum Column : std::size_t {
  c_vendor,
  c_model,
  c_aliases,
  c_arch,
  c_isa,
  c_class,
  c_vram_gb,
  c_mem_type,
  c_mem_bw_gbs,
  c_fp32,
  c_tf32,
  c_fp16,
  c_fp16_short,
  c_bf16,
  c_fp8,
  c_int8,
  c_units,
  c_boost_mhz,
  c_link,
  c_link_gen,
  c_link_bw_gbs,
  c_pcie_gen,
  c_pcie_lanes,
  c_tdp_w,
  c_gemm_low,
  c_gemm_high,
  c_fp32_low,
  c_fp32_high,
  c_membw_low,
  c_membw_high,
  c_confirmed,
  c_source,
  c_note,
  k_columns
};

constexpr std::string_view k_header =
    "vendor,model,aliases,arch,isa,class,vram_gb,mem_type,mem_bw_gbs,fp32_tflops,tf32_tflops_dense,fp16_tflops_dense,"
    "fp16_fp16acc_tflops_dense,bf16_tflops_dense,fp8_tflops_dense,int8_tops_dense,units,boost_mhz,link,link_gen,"
    "link_bw_gbs_bidir,pcie_gen,pcie_lanes,tdp_w,gemm_bf16_frac_low,gemm_bf16_frac_high,fp32_frac_low,fp32_frac_high,"
    "membw_frac_low,membw_frac_high,confirmed,source,note";

// Cells of one line: commas inside double quotes do not separate.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    else if (c == ',' && !quoted) cells.emplace_back();
    else cells.back() += c;
  }
  return cells;
}

// Reads the cells of one line and remembers the first that is no number.
class Row {
 public:
  explicit Row(std::vector<std::string> cells) : cells_(std::move(cells)) {}
  [[nodiscard]] const std::string& text(Column column) const { return cells_[column]; }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

  std::optional<double> real(Column column) {
    const std::string& text = cells_[column];
    if (text.empty()) return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 0 || value > 1e9) {
      if (wrong_.empty()) wrong_ = "'" + text + "' is no number";
      return std::nullopt;
    }
    return value;
  }
  template <class Integer>
  std::optional<Integer> whole(Column column) {
    const auto value = real(column);
    return value ? std::optional<Integer>(static_cast<Integer>(*value)) : std::nullopt;
  }
  std::optional<Band> band(Column low, Column high) {
    const auto from = real(low), to = real(high);
    if (!from || !to) return std::nullopt;
    if (*from >= *to && wrong_.empty()) wrong_ = "a band ends before it begins";
    return Band{*from, *to};
  }

 private:
  std::vector<std::string> cells_;
  std::string wrong_;
};

Confirmed parse_confirmed(std::string_view word) {
  return word == "yes" ? Confirmed::yes : word == "derived" ? Confirmed::derived : Confirmed::unconfirmed;
}

GpuModel model_of(Row& row) {
  GpuModel m;
  m.vendor = parse_vendor(lower(row.text(c_vendor))).value_or(Vendor::other);
  m.key = row.text(c_model);
  for (const std::string& alias : split(row.text(c_aliases), ';'))
    if (!trim(alias).empty()) m.aliases.emplace_back(trim(alias));
  m.arch = row.text(c_arch);
  m.isa = row.text(c_isa);
  m.family = row.text(c_class);
  m.memory_gb = row.real(c_vram_gb).value_or(0);
  m.memory_kind = row.text(c_mem_type);
  m.memory_gbs = row.real(c_mem_bw_gbs);
  m.fp32 = row.real(c_fp32);
  m.tf32 = row.real(c_tf32);
  m.fp16 = row.real(c_fp16);
  m.fp16_short = row.real(c_fp16_short);
  m.bf16 = row.real(c_bf16);
  m.fp8 = row.real(c_fp8);
  m.int8 = row.real(c_int8);
  m.units = row.whole<std::uint32_t>(c_units);
  m.boost_mhz = row.whole<std::uint32_t>(c_boost_mhz);
  m.link = row.text(c_link);
  m.link_gbs = row.real(c_link_bw_gbs);
  m.pcie_generation = row.whole<int>(c_pcie_gen);
  m.pcie_lanes = row.whole<int>(c_pcie_lanes);
  m.tdp_watts = row.real(c_tdp_w);
  m.gemm_band = row.band(c_gemm_low, c_gemm_high);
  m.fp32_band = row.band(c_fp32_low, c_fp32_high);
  m.memory_band = row.band(c_membw_low, c_membw_high);
  m.confirmed = parse_confirmed(row.text(c_confirmed));
  m.note = row.text(c_note);
  return m;
}

std::string squeezed(std::string_view key) {
  std::string out;
  for (const char c : lower(key))
    if (c != ' ' && c != '-' && c != '_') out += c;
  return out;
}

std::vector<GpuModel> built_in() {
  auto models = parse_catalogue(catalogue_csv());
  GRIDCTL_CHECK(models.has_value());
  return std::move(models).value();
}

}  // namespace

Result<std::vector<GpuModel>> parse_catalogue(std::string_view csv) {
  const auto wrong = [](std::size_t line, const std::string& why) {
    return make_error(Code::usage, "line " + std::to_string(line) + " of the catalogue of GPUs: " + why);
  };
  const std::vector<std::string> lines = split_lines(csv);
  if (lines.empty() || lines.front() != k_header) return wrong(1, "the columns are not the expected ones");
  std::vector<GpuModel> models;
  std::set<std::string> keys;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    std::vector<std::string> cells = cells_of(lines[i]);
    if (cells.size() != k_columns) return wrong(i + 1, "has " + std::to_string(cells.size()) + " columns");
    Row row(std::move(cells));
    GpuModel model = model_of(row);
    if (!row.wrong().empty()) return wrong(i + 1, row.wrong());
    if (model.key.empty() || model.memory_gb == 0) return wrong(i + 1, "a model needs a name and a memory size");
    if (!keys.insert(squeezed(model.key)).second) return wrong(i + 1, "'" + model.key + "' is there twice");
    models.push_back(std::move(model));
  }
  return models;
}

std::span<const GpuModel> catalogue() {
  static const std::vector<GpuModel> models = built_in();
  return models;
}

const GpuModel* model_by_key(std::string_view key) {
  constexpr std::size_t k_key_max = 128;  // bytes looked at: keys come from people
  const std::string wanted = squeezed(key.substr(0, k_key_max));
  for (const GpuModel& model : catalogue())
    if (squeezed(model.key) == wanted) return &model;
  return nullptr;
}

}  // namespace gridctl::sched

// SPDX-License-Identifier: Apache-2.0
#include "sched/catalogue/catalogue.hpp"

#include <algorithm>
#include <set>

#include "base/check.hpp"
#include "base/names.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "sched/catalogue/catalogue_data.hpp"

namespace gridctl::sched {

namespace {

// Columns of data/gpus.csv.
constexpr std::string_view k_header =
    "vendor,model,aliases,arch,isa,class,vram_gb,mem_type,mem_bw_gbs,fp32_tflops,tf32_tflops_dense,fp16_tflops_dense,fp16_fp16acc_tflops_dense,bf16_tflops_dense,fp8_tflops_dense,int8_tops_dense,units,boost_mhz,link,link_gen,link_bw_gbs_bidir,pcie_gen,pcie_lanes,tdp_w,gemm_bf16_frac_low,gemm_bf16_frac_high,fp32_frac_low,fp32_frac_high,membw_frac_low,membw_frac_high,confirmed,source,note";

// Splits one line into cells: commas inside double quotes do not separate.
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

// Reads the cells of one line and remembers the first that is not a number.
class Row {
 public:
  explicit Row(std::vector<std::string> cells) : cells_(std::move(cells)) {}
  [[nodiscard]] const std::string& text(std::string_view column) const {
    static const std::vector<std::string> columns = split(k_header, ',');
    return cells_.at(static_cast<std::size_t>(std::ranges::find(columns, column) - columns.begin()));
  }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

  std::optional<double> real(std::string_view column) {
    const std::string& cell = text(column);
    if (cell.empty()) return std::nullopt;
    const auto value = parse_number<double>(cell);
    if (value && !(*value < 0 || *value > 1e9)) return value;
    if (wrong_.empty()) wrong_ = "'" + cell + "' is not a number";
    return std::nullopt;
  }
  template <class Integer>
  std::optional<Integer> whole(std::string_view column) {
    const auto value = real(column);
    return value ? std::optional<Integer>(static_cast<Integer>(*value)) : std::nullopt;
  }
  std::optional<Band> band(std::string_view low, std::string_view high) {
    const auto from = real(low), to = real(high);
    if (!from || !to) return std::nullopt;
    if (*from >= *to && wrong_.empty()) wrong_ = "a band ends before it begins";
    return Band{*from, *to};
  }

 private:
  std::vector<std::string> cells_;
  std::string wrong_;
};

constexpr Names<Confirmed, Confirmed::unconfirmed> k_confirmed_names{"yes", "derived", "unconfirmed"};
Confirmed parse_confirmed(std::string_view word) {
  return k_confirmed_names.find(word).value_or(Confirmed::unconfirmed);
}

GpuModel model_of(Row& row) {
  GpuModel m;
  m.vendor = parse_vendor(lower(row.text("vendor"))).value_or(Vendor::other);
  m.key = row.text("model");
  for (const std::string& alias : split(row.text("aliases"), ';'))
    if (!trim(alias).empty()) m.aliases.emplace_back(trim(alias));
  m.arch = row.text("arch");
  m.isa = row.text("isa");
  m.family = row.text("class");
  m.memory_gb = row.real("vram_gb").value_or(0);
  m.memory_kind = row.text("mem_type");
  m.memory_gbs = row.real("mem_bw_gbs");
  m.fp32 = row.real("fp32_tflops");
  m.tf32 = row.real("tf32_tflops_dense");
  m.fp16 = row.real("fp16_tflops_dense");
  m.fp16_short = row.real("fp16_fp16acc_tflops_dense");
  m.bf16 = row.real("bf16_tflops_dense");
  m.fp8 = row.real("fp8_tflops_dense");
  m.int8 = row.real("int8_tops_dense");
  m.units = row.whole<std::uint32_t>("units");
  m.boost_mhz = row.whole<std::uint32_t>("boost_mhz");
  m.link = row.text("link");
  m.link_gbs = row.real("link_bw_gbs_bidir");
  m.pcie_generation = row.whole<int>("pcie_gen");
  m.pcie_lanes = row.whole<int>("pcie_lanes");
  m.tdp_watts = row.real("tdp_w");
  m.gemm_band = row.band("gemm_bf16_frac_low", "gemm_bf16_frac_high");
  m.fp32_band = row.band("fp32_frac_low", "fp32_frac_high");
  m.memory_band = row.band("membw_frac_low", "membw_frac_high");
  m.confirmed = parse_confirmed(row.text("confirmed"));
  m.note = row.text("note");
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
    if (cells.size() != cells_of(k_header).size())
      return wrong(i + 1, "has " + std::to_string(cells.size()) + " columns");
    Row row(std::move(cells));
    GpuModel model = model_of(row);
    if (!row.wrong().empty()) return wrong(i + 1, row.wrong());
    if (model.key.empty() || model.memory_gb == 0) return wrong(i + 1, "a model needs a name and a memory size");
    if (!keys.insert(squeezed(model.key)).second) return wrong(i + 1, "'" + model.key + "' appears twice");
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

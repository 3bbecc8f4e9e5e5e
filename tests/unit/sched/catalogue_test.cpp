// SPDX-License-Identifier: Apache-2.0
#include "sched/catalogue/catalogue.hpp"

#include <gtest/gtest.h>

#include <set>

namespace gridctl::sched::catalogue_test {
namespace {

std::uint64_t gigabytes_as_shown(double gb) { return static_cast<std::uint64_t>(gb * 1.07 * 1e9); }

std::string found(Vendor vendor, std::string_view name, std::uint64_t mib, std::optional<std::uint32_t> units = {},
                  std::string_view arch = {}, std::optional<double> watts = {}, std::string_view profile = {}) {
  const ModelMatch match = find_model(GpuClues{vendor, name, mib << 20, units, arch, watts, profile});
  EXPECT_NE(match.model == nullptr, match.why.empty()) << name;
  return match.model == nullptr ? "" : match.model->key;
}

TEST(Catalogue, HasEveryRowOfItsData) {
  EXPECT_GE(catalogue().size(), 109u);
  std::set<std::string> isas;
  for (const GpuModel& model : catalogue()) {
    SCOPED_TRACE(model.key);
    EXPECT_NE(model.vendor, Vendor::other);
    EXPECT_FALSE(model.isa.empty());
    EXPECT_GT(model.memory_gb, 5);
    ASSERT_TRUE(model.memory_band);
    EXPECT_LT(model.memory_band->low, model.memory_band->high);
  }
  const GpuModel* h100 = model_by_key("H100 SXM5 80GB");
  ASSERT_NE(h100, nullptr);
  EXPECT_EQ(h100->bf16, 989);
  EXPECT_EQ(h100->units, 132u);
  EXPECT_EQ(h100->tdp_watts, 700);
  EXPECT_EQ(h100->confirmed, Confirmed::yes);
}

TEST(Catalogue, FindsARowByItsKeyHoweverItIsWritten) {
  for (const char* key : {"rtx_4090", "RTX 4090", "rtx-4090", "RTX4090"})
    EXPECT_EQ(model_by_key(key), model_by_key("RTX 4090")) << key;
  EXPECT_EQ(model_by_key("RTX 4091"), nullptr);
  EXPECT_EQ(model_by_key(""), nullptr);
  EXPECT_EQ(model_by_key(std::string(100000, 'x')), nullptr);
}

TEST(Catalogue, NamesTheLineThatIsWrong) {
  EXPECT_FALSE(parse_catalogue(""));
  EXPECT_FALSE(parse_catalogue("vendor,model\n"));
  const std::string header =
      "vendor,model,aliases,arch,isa,class,vram_gb,mem_type,mem_bw_gbs,fp32_tflops,tf32_tflops_dense,"
      "fp16_tflops_dense,fp16_fp16acc_tflops_dense,bf16_tflops_dense,fp8_tflops_dense,int8_tops_dense,units,boost_mhz,"
      "link,link_gen,link_bw_gbs_bidir,pcie_gen,pcie_lanes,tdp_w,gemm_bf16_frac_low,gemm_bf16_frac_high,fp32_frac_low,"
      "fp32_frac_high,membw_frac_low,membw_frac_high,confirmed,source,note\n";
  const std::string good = "NVIDIA,X 1,a;b,Y,sm_1,nv_dc,8,,1,2,,,,,,,7,,none,,0,4,16,50,,,0.5,1,0.5,1,yes,\"a, b\",n\n";
  const auto read = parse_catalogue(header + good);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->at(0).aliases, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(read->at(0).note, "n");
  for (const std::string& bad :
       {good + good, std::string("NVIDIA,X\n"),
        std::string("NVIDIA,X 1,,Y,sm_1,nv_dc,many,,1,2,,,,,,,7,,none,,0,4,16,50,,,0.5,1,0.5,1,yes,s,n\n"),
        std::string("NVIDIA,X 1,,Y,sm_1,nv_dc,8,,1,2,,,,,,,7,,none,,0,4,16,50,,,0.5,1,0.9,0.8,yes,s,n\n"),
        std::string("NVIDIA,,,Y,sm_1,nv_dc,8,,1,2,,,,,,,7,,none,,0,4,16,50,,,0.5,1,0.5,1,yes,s,n\n")}) {
    const auto refused = parse_catalogue(header + bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_NE(refused.error().message.find("line "), std::string::npos);
  }
}

TEST(ModelMatch, FindsEveryRowByItsKeyAndItsAliases) {
  for (const GpuModel& model : catalogue()) {
    SCOPED_TRACE(model.key);
    const std::uint64_t shown = gigabytes_as_shown(model.memory_gb);
    for (const std::string& alias : model.aliases)
      EXPECT_EQ(find_model(GpuClues{model.vendor, alias, shown}).model, &model) << alias;
    EXPECT_EQ(find_model(GpuClues{model.vendor, model.key, shown, model.units, model.isa, model.tdp_watts}).model,
              &model);
  }
}

TEST(ModelMatch, NeverTakesALaptopPartForABoard) {
  for (const GpuModel& model : catalogue())
    for (const char* suffix : {" Laptop GPU", " with Max-Q Design", " Max-Q", " Mobile", " Notebook"}) {
      const std::string name = model.key + suffix;
      const ModelMatch match = find_model(GpuClues{model.vendor, name, gigabytes_as_shown(model.memory_gb)});
      EXPECT_EQ(match.model, nullptr) << name;
      EXPECT_FALSE(match.why.empty());
    }
}

struct Case {
  Vendor vendor;
  const char* name;   // as drivers say it
  std::uint64_t mib;  // as drivers show it
  const char* key;    // "" = not surely known
};

// Names and sizes as nvidia-smi, amd-smi, rocm-smi and xpu-smi print them.
constexpr Case k_cases[] = {
    {Vendor::nvidia, "NVIDIA H100 80GB HBM3", 81559, "H100 SXM5 80GB"},
    {Vendor::nvidia, "NVIDIA H100 PCIe", 81559, "H100 PCIe 80GB"},
    {Vendor::nvidia, "NVIDIA H100 NVL", 95830, "H100 NVL 94GB"},
    {Vendor::nvidia, "NVIDIA H100", 81559, ""},  // PCIe and SXM have one memory
    {Vendor::nvidia, "NVIDIA H200", 143771, "H200 SXM"},
    {Vendor::nvidia, "NVIDIA H200 NVL", 143771, "H200 NVL"},
    {Vendor::nvidia, "NVIDIA GH200 480GB", 97871, "GH200 96GB"},
    {Vendor::nvidia, "NVIDIA B200", 183359, "B200 SXM"},
    {Vendor::nvidia, "NVIDIA GB200", 189471, "GB200"},
    {Vendor::nvidia, "NVIDIA B300 SXM6 AC", 275040, "B300 SXM"},
    {Vendor::nvidia, "NVIDIA H20", 97871, "H20"},
    {Vendor::nvidia, "NVIDIA A100-SXM4-80GB", 81920, "A100 SXM4 80GB"},
    {Vendor::nvidia, "NVIDIA A100-SXM4-40GB", 40960, "A100 SXM4 40GB"},
    {Vendor::nvidia, "A100-SXM-80GB", 81251, "A100 SXM4 80GB"},
    {Vendor::nvidia, "NVIDIA A100 80GB PCIe", 81920, "A100 PCIe 80GB"},
    {Vendor::nvidia, "NVIDIA A100-PCIE-40GB", 40960, "A100 PCIe 40GB"},
    {Vendor::nvidia, "NVIDIA A100-SXM-64GB", 65536, ""},
    {Vendor::nvidia, "NVIDIA A800-SXM4-80GB", 81920, "A800 SXM4 80GB"},
    {Vendor::nvidia, "NVIDIA A800 80GB PCIe", 81920, ""},
    {Vendor::nvidia, "NVIDIA A10", 23028, "A10"},
    {Vendor::nvidia, "NVIDIA A10G", 23028, "A10G"},
    {Vendor::nvidia, "NVIDIA A16", 15356, "A16 (per GPU of 4)"},
    {Vendor::nvidia, "NVIDIA A2", 15356, "A2"},
    {Vendor::nvidia, "NVIDIA A30", 24576, "A30"},
    {Vendor::nvidia, "NVIDIA A40", 46068, "A40"},
    {Vendor::nvidia, "NVIDIA L4", 23034, "L4"},
    {Vendor::nvidia, "NVIDIA L40", 46068, "L40"},
    {Vendor::nvidia, "NVIDIA L40S", 46068, "L40S"},
    {Vendor::nvidia, "NVIDIA L40G", 24576, ""},
    {Vendor::nvidia, "Tesla V100-SXM2-16GB", 16160, "V100 SXM2 16GB"},
    {Vendor::nvidia, "Tesla V100-SXM2-32GB", 32510, "V100 SXM2 32GB"},
    {Vendor::nvidia, "Tesla V100-SXM3-32GB", 32510, ""},
    {Vendor::nvidia, "Tesla V100-PCIE-16GB", 16160, "V100 PCIe 16GB"},
    {Vendor::nvidia, "Tesla V100S-PCIE-32GB", 32510, "V100S PCIe 32GB"},
    {Vendor::nvidia, "Tesla T4", 15360, "T4"},
    {Vendor::nvidia, "Tesla P100-PCIE-16GB", 16280, "P100 PCIe 16GB"},
    {Vendor::nvidia, "Tesla P100-PCIE-12GB", 12198, ""},
    {Vendor::nvidia, "Tesla P40", 23040, "P40"},
    {Vendor::nvidia, "Tesla M40 24GB", 22945, ""},
    {Vendor::nvidia, "Tesla K80", 11441, "K80 (per GPU of 2)"},
    {Vendor::nvidia, "NVIDIA RTX A6000", 49140, "RTX A6000"},
    {Vendor::nvidia, "NVIDIA RTX 6000 Ada Generation", 49140, "RTX 6000 Ada"},
    {Vendor::nvidia, "NVIDIA RTX 5000 Ada Generation Laptop GPU", 16376, ""},
    {Vendor::nvidia, "NVIDIA RTX 4000 SFF Ada Generation", 20475, ""},
    {Vendor::nvidia, "NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887, "RTX PRO 6000 Blackwell"},
    {Vendor::nvidia, "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 97887, "RTX PRO 6000 Blackwell"},
    {Vendor::nvidia, "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 97887, ""},
    {Vendor::nvidia, "Quadro RTX 8000", 49152, "Quadro RTX 8000"},
    {Vendor::nvidia, "Quadro RTX 6000", 24576, "Quadro RTX 6000"},
    {Vendor::nvidia, "NVIDIA TITAN RTX", 24576, "TITAN RTX"},
    {Vendor::nvidia, "NVIDIA GeForce RTX 4090", 24564, "RTX 4090"},
    {Vendor::nvidia, "NVIDIA GeForce RTX 4090 D", 24564, "RTX 4090 D"},
    {Vendor::nvidia, "NVIDIA GeForce RTX 4090 Laptop GPU", 16376, ""},
    {Vendor::nvidia, "NVIDIA GeForce RTX 4090", 49140, ""},  // boards with doubled memory are no catalogue part
    {Vendor::nvidia, "NVIDIA GeForce RTX 4080", 16376, "RTX 4080"},
    {Vendor::nvidia, "NVIDIA GeForce RTX 4080 SUPER", 16376, "RTX 4080 SUPER"},
    {Vendor::nvidia, "NVIDIA GeForce RTX 4070 Ti", 12282, "RTX 4070 Ti"},
    {Vendor::nvidia, "NVIDIA GeForce RTX 4070 Ti SUPER", 16376, "RTX 4070 Ti SUPER"},
    {Vendor::nvidia, "NVIDIA GeForce RTX 4060 Ti", 16380, "RTX 4060 Ti 16GB"},
    {Vendor::nvidia, "NVIDIA GeForce RTX 4060 Ti", 8188, ""},
    {Vendor::nvidia, "NVIDIA GeForce RTX 5060 Ti", 16311, "RTX 5060 Ti 16GB"},
    {Vendor::nvidia, "NVIDIA GeForce RTX 5060 Laptop GPU", 8151, ""},
    {Vendor::nvidia, "NVIDIA GeForce RTX 3060", 12288, "RTX 3060 12GB"},
    {Vendor::nvidia, "NVIDIA GeForce RTX 3080", 10240, "RTX 3080"},
    {Vendor::nvidia, "NVIDIA GeForce RTX 3080", 12288, ""},
    {Vendor::nvidia, "NVIDIA GeForce RTX 2080 Ti", 11264, "RTX 2080 Ti"},
    {Vendor::nvidia, "GeForce RTX 2080 Super with Max-Q Design", 8192, ""},
    {Vendor::nvidia, "NVIDIA GeForce GTX 1080 Ti", 11264, "GTX 1080 Ti"},
    {Vendor::nvidia, "NVIDIA GB10", 122880, ""},
    {Vendor::nvidia, "Graphics Device", 24576, ""},
    {Vendor::amd, "AMD Instinct MI300X", 196592, "Instinct MI300X"},
    {Vendor::amd, "AMD Instinct MI300X OAM", 196592, "Instinct MI300X"},
    {Vendor::amd, "AMD Instinct MI325X", 262128, "Instinct MI325X"},
    {Vendor::amd, "AMD INSTINCT MI250 (MCM) OAM AC MBA", 65520, "Instinct MI250"},
    {Vendor::amd, "AMD Instinct MI250X", 65520, "Instinct MI250X"},
    {Vendor::amd, "Instinct MI210", 65520, "Instinct MI210"},
    {Vendor::amd, "Arcturus GL-XL [Instinct MI100]", 32752, "Instinct MI100"},
    {Vendor::amd, "Navi 31 [Radeon RX 7900 XT/7900 XTX/7900M]", 24560, ""},  // one of three
    {Vendor::amd, "AMD Radeon RX 7900 XTX", 24560, "Radeon RX 7900 XTX"},
    {Vendor::amd, "Radeon RX 7900 GRE", 16368, ""},
    {Vendor::amd, "AMD Radeon PRO W7900", 49136, "Radeon PRO W7900"},
    {Vendor::amd, "AMD Radeon Graphics", 512, ""},
    {Vendor::amd, "AMD GPU 0x73df", 12272, ""},
    {Vendor::intel, "Intel(R) Data Center GPU Max 1100", 49136, "Data Center GPU Max 1100"},
    {Vendor::intel, "Intel(R) Data Center GPU Max 1550", 131072, "Data Center GPU Max 1550"},
    {Vendor::intel, "Intel(R) Data Center GPU Flex 170", 15473, "Data Center GPU Flex 170"},
    {Vendor::intel, "Intel(R) Arc(TM) A770 Graphics", 15473, "Arc A770"},
    {Vendor::intel, "Intel(R) Arc(TM) A770 Graphics", 8192, ""},
    {Vendor::intel, "Intel(R) Arc(TM) A770M Graphics", 15473, ""},
    {Vendor::intel, "Intel(R) Arc(TM) B580 Graphics", 12216, "Arc B580"},
    {Vendor::intel, "Intel(R) Arc(TM) Pro B70 Graphics", 32656, ""},
    {Vendor::intel, "NVIDIA GeForce RTX 4090", 24564, ""},  // no other maker's row
};

TEST(ModelMatch, ReadsTheNamesThatDriversGive) {
  for (const Case& c : k_cases) EXPECT_EQ(found(c.vendor, c.name, c.mib), c.key) << c.name << " " << c.mib;
}

TEST(ModelMatch, IsDecidedByUnitsWhereTheNameLeavesItOpen) {
  EXPECT_EQ(found(Vendor::nvidia, "NVIDIA H100", 81559, 114), "H100 PCIe 80GB");
  EXPECT_EQ(found(Vendor::nvidia, "NVIDIA H100", 81559, 132), "H100 SXM5 80GB");
  EXPECT_EQ(found(Vendor::amd, "Navi 31 [Radeon RX 7900 XT/7900 XTX/7900M]", 24560, 96), "Radeon RX 7900 XTX");
  EXPECT_EQ(found(Vendor::amd, "AMD Instinct MI250X/MI250", 65520, 104), "Instinct MI250");
  EXPECT_EQ(found(Vendor::amd, "AMD Instinct MI250X/MI250", 65520, 110), "Instinct MI250X");
}

TEST(ModelMatch, RefusesWhatContradictsTheRow) {
  EXPECT_EQ(found(Vendor::nvidia, "NVIDIA GeForce RTX 4090", 24564, 128), "RTX 4090");
  EXPECT_EQ(found(Vendor::nvidia, "NVIDIA GeForce RTX 4090", 24564, 114), "");
  EXPECT_EQ(found(Vendor::nvidia, "NVIDIA GeForce RTX 4090", 24564, {}, "sm_89"), "RTX 4090");
  EXPECT_EQ(found(Vendor::nvidia, "NVIDIA GeForce RTX 4090", 24564, {}, "sm_86"), "");
  EXPECT_EQ(found(Vendor::nvidia, "NVIDIA GeForce RTX 2080 SUPER", 8192, {}, "", 250.0), "RTX 2080 SUPER");
  EXPECT_EQ(found(Vendor::nvidia, "NVIDIA GeForce RTX 2080 SUPER", 8192, {}, "", 150.0), "") << "a laptop's limit";
}

TEST(ModelMatch, TellsTheShareOfAPart) {
  const auto share = [](Vendor vendor, std::string_view name, std::uint64_t mib, std::string_view profile,
                        std::optional<std::uint32_t> units = {}) {
    const ModelMatch match = find_model(GpuClues{vendor, name, mib << 20, units, {}, {}, profile});
    EXPECT_NE(match.model, nullptr) << name << ": " << match.why;
    return std::pair(match.compute_share, match.memory_share);
  };
  using Pair = std::pair<double, double>;
  EXPECT_EQ(share(Vendor::nvidia, "NVIDIA A100-SXM4-40GB MIG 1g.5gb", 4864, "1g.5gb"), Pair(1.0 / 7, 0.125));
  EXPECT_EQ(share(Vendor::nvidia, "NVIDIA H100 80GB HBM3 MIG 3g.40gb", 40448, "3g.40gb"), Pair(3.0 / 7, 0.5));
  EXPECT_EQ(share(Vendor::nvidia, "NVIDIA A30 MIG 2g.12gb", 11968, "2g.12gb"), Pair(0.5, 0.5));
  EXPECT_EQ(share(Vendor::nvidia, "NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb", 13482, "1c.3g.40gb").first, 1.0 / 7);
  EXPECT_EQ(share(Vendor::amd, "AMD Instinct MI250X", 65520, ""), Pair(0.5, 0.5));
  EXPECT_EQ(share(Vendor::amd, "AMD Instinct MI300X", 196592, "CPX", 38), Pair(0.125, 1.0));
  EXPECT_EQ(share(Vendor::nvidia, "NVIDIA H200", 143771, ""), Pair(1.0, 1.0));
}

TEST(ModelMatch, BearsAnyName) {
  std::uint32_t state = 7;
  for (int i = 0; i < 3000; ++i) {
    std::string name = "NVIDIA A100-SXM4-80GB/[MIG (per";
    for (int k = 0; k < 6; ++k) {
      state = state * 1664525u + 1013904223u;
      name[(state >> 8) % name.size()] = static_cast<char>(state >> 24);
    }
    const ModelMatch match = find_model(GpuClues{Vendor::nvidia, name, 81920ull << 20, {}, {}, {}, name});
    EXPECT_NE(match.model == nullptr, match.why.empty());
  }
  EXPECT_EQ(found(Vendor::nvidia, std::string(100000, '/'), 1), "");
  EXPECT_EQ(found(Vendor::nvidia, "", 1), "");
}

TEST(ModelMatch, ListsTheRowsThatADeclarationAllows) {
  EXPECT_EQ(models_named("A100").size(), 4u);
  EXPECT_EQ(models_named("A100-80GB").size(), 2u);
  ASSERT_EQ(models_named("RTX_4090").size(), 1u);
  EXPECT_EQ(models_named("RTX_4090").front()->key, "RTX 4090");
  EXPECT_TRUE(models_named("RTX 4090 Laptop GPU").empty());
}

TEST(ModelMatch, WritesTheModelsOfAnInventoryAndBelievesNoHost) {
  Inventory inventory;
  inventory.gpus.resize(2);
  inventory.gpus[0].name = "NVIDIA GeForce RTX 4090";
  inventory.gpus[0].memory_bytes = 24564ull << 20;
  inventory.gpus[1].name = "NVIDIA GeForce RTX 4090 Laptop GPU";
  inventory.gpus[1].memory_bytes = 16376ull << 20;
  inventory.gpus[1].model = "H100 SXM5 80GB";
  name_models(inventory);
  EXPECT_EQ(inventory.gpus[0].model, "RTX 4090");
  EXPECT_EQ(inventory.gpus[1].model, "");
}

}  // namespace
}  // namespace gridctl::sched::catalogue_test

// SPDX-License-Identifier: Apache-2.0
#include "base/hardware.hpp"

#include <array>
#include <utility>

namespace gridctl {

namespace {
template <class Enum, std::size_t N>
using Names = std::array<std::pair<Enum, std::string_view>, N>;

constexpr Names<Vendor, 4> k_vendors{
    {{Vendor::nvidia, "nvidia"}, {Vendor::amd, "amd"}, {Vendor::intel, "intel"}, {Vendor::other, "other"}}};

constexpr Names<GapReason, 9> k_gap_reasons{{{GapReason::not_applicable, "not_applicable"},
                                             {GapReason::not_supported, "not_supported"},
                                             {GapReason::not_reported, "not_reported"},
                                             {GapReason::needs_bench, "needs_bench"},
                                             {GapReason::no_tool, "no_tool"},
                                             {GapReason::no_driver, "no_driver"},
                                             {GapReason::denied, "denied"},
                                             {GapReason::timed_out, "timed_out"},
                                             {GapReason::unreadable, "unreadable"}}};

constexpr Names<LinkKind, 9> k_link_kinds{{{LinkKind::unknown, "unknown"},
                                           {LinkKind::nvlink, "nvlink"},
                                           {LinkKind::xgmi, "xgmi"},
                                           {LinkKind::xelink, "xelink"},
                                           {LinkKind::pix, "pix"},
                                           {LinkKind::pxb, "pxb"},
                                           {LinkKind::phb, "phb"},
                                           {LinkKind::node, "node"},
                                           {LinkKind::sys, "sys"}}};

constexpr Names<NicKind, 4> k_nic_kinds{{{NicKind::ethernet, "ethernet"},
                                         {NicKind::roce, "roce"},
                                         {NicKind::infiniband, "infiniband"},
                                         {NicKind::other, "other"}}};

constexpr Names<DiskKind, 6> k_disk_kinds{{{DiskKind::unknown, "unknown"},
                                           {DiskKind::nvme, "nvme"},
                                           {DiskKind::ssd, "ssd"},
                                           {DiskKind::hdd, "hdd"},
                                           {DiskKind::network, "network"},
                                           {DiskKind::memory, "memory"}}};

template <class Enum, std::size_t N>
std::string_view name_in(const Names<Enum, N>& names, Enum value) {
  for (const auto& [known, name] : names)
    if (known == value) return name;
  return names.front().second;
}

template <class Enum, std::size_t N>
Result<Enum> parse_in(const Names<Enum, N>& names, std::string_view name, std::string_view what) {
  for (const auto& [value, known] : names)
    if (known == name) return value;
  std::string choices;
  for (const auto& [value, known] : names) choices += (choices.empty() ? "" : ", ") + std::string(known);
  return make_error(Code::usage,
                    "'" + std::string(name.substr(0, 40)) + "' is not a " + std::string(what) + ": " + choices);
}
}  // namespace

std::string_view vendor_name(Vendor vendor) { return name_in(k_vendors, vendor); }
Result<Vendor> parse_vendor(std::string_view name) { return parse_in(k_vendors, name, "GPU vendor"); }

std::string_view gap_reason_name(GapReason reason) { return name_in(k_gap_reasons, reason); }
Result<GapReason> parse_gap_reason(std::string_view name) { return parse_in(k_gap_reasons, name, "gap reason"); }

std::string_view link_kind_name(LinkKind kind) { return name_in(k_link_kinds, kind); }
Result<LinkKind> parse_link_kind(std::string_view name) { return parse_in(k_link_kinds, name, "link kind"); }
bool is_fabric(LinkKind kind) { return kind == LinkKind::nvlink || kind == LinkKind::xgmi || kind == LinkKind::xelink; }

std::string_view nic_kind_name(NicKind kind) { return name_in(k_nic_kinds, kind); }
Result<NicKind> parse_nic_kind(std::string_view name) { return parse_in(k_nic_kinds, name, "network kind"); }

std::string_view disk_kind_name(DiskKind kind) { return name_in(k_disk_kinds, kind); }
Result<DiskKind> parse_disk_kind(std::string_view name) { return parse_in(k_disk_kinds, name, "disk kind"); }

}  // namespace gridctl

// SPDX-License-Identifier: Apache-2.0
#include "base/hardware.hpp"

#include "base/names.hpp"

namespace gridctl {

namespace {
constexpr Names<Vendor, Vendor::other> k_vendors{"nvidia", "amd", "intel", "other"};
constexpr Names<GapReason, GapReason::unreadable> k_gap_reasons{"not_applicable", "not_supported", "not_reported",
                                                                "needs_bench",    "no_tool",       "no_driver",
                                                                "denied",         "timed_out",     "unreadable"};
constexpr Names<LinkKind, LinkKind::sys> k_link_kinds{"unknown", "nvlink", "xgmi", "xelink", "pix",
                                                      "pxb",     "phb",    "node", "sys"};
constexpr Names<NicKind, NicKind::other> k_nic_kinds{"ethernet", "roce", "infiniband", "other"};
constexpr Names<DiskKind, DiskKind::memory> k_disk_kinds{"unknown", "nvme", "ssd", "hdd", "network", "memory"};

template <class Enum, Enum last>
Result<Enum> parse_in(const Names<Enum, last>& names, std::string_view name, const char* what) {
  if (const auto value = names.find(name)) return *value;
  return make_error(Code::usage, "'" + std::string(name.substr(0, 40)) + "' is not a " + what + ": " + names.choices());
}
}  // namespace

std::string_view vendor_name(Vendor vendor) { return k_vendors(vendor); }
Result<Vendor> parse_vendor(std::string_view name) { return parse_in(k_vendors, name, "GPU vendor"); }

std::string_view gap_reason_name(GapReason reason) { return k_gap_reasons(reason); }
Result<GapReason> parse_gap_reason(std::string_view name) { return parse_in(k_gap_reasons, name, "gap reason"); }

std::string_view link_kind_name(LinkKind kind) { return k_link_kinds(kind); }
Result<LinkKind> parse_link_kind(std::string_view name) { return parse_in(k_link_kinds, name, "link kind"); }
bool is_fabric(LinkKind kind) { return kind == LinkKind::nvlink || kind == LinkKind::xgmi || kind == LinkKind::xelink; }

std::string_view nic_kind_name(NicKind kind) { return k_nic_kinds(kind); }
Result<NicKind> parse_nic_kind(std::string_view name) { return parse_in(k_nic_kinds, name, "network kind"); }

std::string_view disk_kind_name(DiskKind kind) { return k_disk_kinds(kind); }
Result<DiskKind> parse_disk_kind(std::string_view name) { return parse_in(k_disk_kinds, name, "disk kind"); }

}  // namespace gridctl

// SPDX-License-Identifier: Apache-2.0
#include "probe/health_log.hpp"

#include <algorithm>
#include <optional>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe {

using wire::KernelEvent;

namespace {

constexpr std::uint64_t k_second_us = 1'000'000;

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Parses "5.140900" or "  5.140900" into microseconds.
std::optional<std::uint64_t> read_stamp(std::string_view text) {
  text = trim(text);
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos || text.size() - dot - 1 != 6) return std::nullopt;
  const auto whole = whole_number(text.substr(0, dot)), part = whole_number(text.substr(dot + 1));
  if (!whole || !part || *whole > UINT64_MAX / k_second_us / 2) return std::nullopt;
  return *whole * k_second_us + *part;
}

std::optional<LogLine> kmsg_line(std::string_view line) {
  const std::size_t semicolon = line.find(';');
  if (semicolon == std::string_view::npos) return std::nullopt;
  const std::vector<std::string> head = split(line.substr(0, std::min<std::size_t>(semicolon, 200)), ',');
  if (head.size() < 3) return std::nullopt;
  const auto stamp = whole_number(head[2]);
  if (!stamp) return std::nullopt;
  return LogLine{*stamp, line.substr(semicolon + 1)};
}

std::optional<LogLine> journal_line(std::string_view line) {
  const std::size_t open = line.find('['), close = line.find(']');
  if (open == std::string_view::npos || open > 8 || close == std::string_view::npos || close < open)
    return std::nullopt;
  const auto stamp = read_stamp(line.substr(open + 1, close - open - 1));
  const std::string_view text = trim(line.substr(close + 1));
  const std::size_t kernel = text.find("kernel: ");  // after the host's name, which nobody here needs
  if (!stamp || kernel == std::string_view::npos) return std::nullopt;
  return LogLine{*stamp, text.substr(kernel + 8)};
}

// Returns the first "0000:3b:00.0" or "0000:3b:00" in the text, with the function added; empty if there is none.
std::string find_pci(std::string_view text) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); };
  const auto all_hex = [&](std::size_t at, std::size_t count) {
    return at + count <= text.size() && std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at),
                                                    text.begin() + static_cast<std::ptrdiff_t>(at + count), hex);
  };
  for (std::size_t at = 0; at + 10 <= text.size(); ++at) {
    if (at > 0 && hex(text[at - 1])) continue;
    if (!all_hex(at, 4) || text[at + 4] != ':' || !all_hex(at + 5, 2) || text[at + 7] != ':' || !all_hex(at + 8, 2))
      continue;
    const bool function =
        at + 12 <= text.size() && text[at + 10] == '.' && text[at + 11] >= '0' && text[at + 11] <= '7';
    return lower(text.substr(at, 10)) + (function ? std::string(text.substr(at + 10, 2)) : ".0");
  }
  return {};
}

// Parses "(PCI:0000:3b:00): 79, pid=…" after "Xid " or "SXid ".
std::optional<int> xid_code(std::string_view text, std::size_t at) {
  const std::size_t close = text.find("): ", at);
  if (close == std::string_view::npos) return std::nullopt;
  const auto code = leading_number<int>(text.substr(close + 3));
  return code && (*code <= 0 || *code > 1'000'000) ? std::nullopt : code;
}

KernelEvent event(std::string_view kind, int code = 0) {
  KernelEvent one;
  one.kind = kind;
  one.code = code;
  return one;
}

KernelEvent read_nvidia(std::string_view text) {
  for (const std::string_view word : {"SXid (", "Xid ("}) {
    const std::size_t at = text.find(word);
    if (at == std::string_view::npos) continue;
    const auto code = xid_code(text, at);
    return code ? event(word.front() == 'S' ? "sxid" : "xid", *code) : KernelEvent{};
  }
  // Some drivers only describe it in words.
  if (has(text, "fallen off the bus")) return event("xid", 79);
  return {};
}

// Finds the count before the words in "amdgpu: 2 uncorrectable hardware errors detected in umc block"; "no" and 0 count
// as none.
bool counts_uncorrectable(std::string_view text) {
  const std::size_t at = text.find(" uncorrectable hardware errors detected");
  if (at == std::string_view::npos) return false;
  std::string_view before = text.substr(0, at);
  if (before.ends_with(" new")) before.remove_suffix(4);
  const std::size_t blank = before.rfind(' ');
  const auto count = whole_number(before.substr(blank == std::string_view::npos ? 0 : blank + 1));
  return count && *count > 0;
}

KernelEvent read_amd(std::string_view text) {
  if (counts_uncorrectable(text)) return event("ras");
  if (has(text, "GPU Recovery Failed") || has(text, "GPU reset end with ret = -") || has(text, "ASIC reset failed") ||
      (has(text, "device wedged") && !has(text, "recovered")))
    return event("gpu_lost");
  if (has(text, "GPU reset begin")) return event("gpu_reset");
  if (has(text, "ring ") && has(text, " timeout")) return event("gpu_hang");
  if (has(text, "page fault")) return event("gpu_fault");
  return {};
}

KernelEvent read_intel(std::string_view text) {
  if (has(text, "wedged")) return event("gpu_lost");
  if (has(text, "GPU HANG")) return event("gpu_hang");
  if (has(text, "Resetting chip") || has(text, "Engine reset")) return event("gpu_reset");
  if (has(text, "Timedout job")) return event("gpu_hang");
  if (has(text, "CAT error") || has(text, "Fault response: Unsuccessful")) return event("gpu_fault");
  return {};
}

KernelEvent read_machine_line(std::string_view text) {
  if (has(text, "[Hardware Error]") && (has(text, "Uncorrected") || has(text, "|UC|") || has(text, "fatal")))
    return event("machine_check");
  if (text.starts_with("EDAC ") && has(text, " UE ")) return event("memory_error");
  if (has(text, "AER: ") && (has(text, "(Fatal)"))) return event("pcie_fatal");
  if (has(text, "Remounting filesystem read-only") || has(text, "EXT4-fs error") ||
      (text.starts_with("XFS (") && has(text, "orruption")) ||
      (text.starts_with("BTRFS") && has(text, "error (device")))
    return event("fs_error");
  if (has(text, "I/O error, dev ") || text.starts_with("Buffer I/O error on dev") ||
      (text.starts_with("nvme ") && (has(text, "controller is down") || has(text, "Removing after probe failure"))))
    return event("disk_error");
  if (has(text, "blocked for more than")) return event("hung_task");
  if (text.starts_with("Out of memory: Killed process")) return event("oom");
  return {};
}

KernelEvent recognise(std::string_view text) {
  if (has(text, "NVRM") || has(text, "nvidia-nvswitch")) return read_nvidia(text);
  // Pairs drivers and readers; the driver's name stands at the beginning or in "[drm:function [amdgpu]]".
  if (text.starts_with("amdgpu") || has(text, "[amdgpu]")) return read_amd(text);
  if (text.starts_with("i915 ") || text.starts_with("xe ") || text.starts_with("[drm] GPU HANG"))
    return read_intel(text);
  return read_machine_line(text);
}

}  // namespace

std::vector<LogLine> split_log(std::string_view log, LogForm form) {
  std::vector<LogLine> lines;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    if (const auto read = form == LogForm::kmsg ? kmsg_line(line) : journal_line(line)) lines.push_back(*read);
  }
  return lines;
}

KernelEvent read_log_line(std::string_view text) {
  KernelEvent found = recognise(text);
  if (found.kind.empty()) return found;
  found.pci = find_pci(text);
  found.text = text.substr(0, std::min(text.size(), wire::k_health_text_max));
  return found;
}

std::vector<KernelEvent> read_kernel_log(std::string_view log, LogForm form, std::uint64_t now_us) {
  std::vector<KernelEvent> events;
  for (const LogLine& line : split_log(log, form)) {
    KernelEvent found = read_log_line(line.text);
    if (found.kind.empty()) continue;
    found.stamp_us = line.stamp_us;
    found.age_ms = now_us > line.stamp_us ? static_cast<std::int64_t>((now_us - line.stamp_us) / 1000) : 0;
    const auto same = std::ranges::find_if(events, [&](const KernelEvent& known) {
      return known.kind == found.kind && known.code == found.code && known.pci == found.pci;
    });
    if (same != events.end()) {
      found.count = same->count + 1;
      events.erase(same);
    }
    events.push_back(std::move(found));
    if (events.size() > wire::k_health_events_max) events.erase(events.begin());
  }
  return events;
}

}  // namespace gridctl::probe

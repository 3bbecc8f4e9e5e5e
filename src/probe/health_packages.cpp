// SPDX-License-Identifier: Apache-2.0
#include "probe/health_packages.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe {

using wire::Package;

namespace {

// Lists Debian's binary packages whose version is the version under our names.
struct PackageList {
  std::string_view binary, name;
};
constexpr std::array<PackageList, 8> k_binaries{{{"openssh-server", "openssh"},
                                            {"openssh-client", "openssh"},
                                            {"runc", "runc"},
                                            {"docker-ce", "docker"},
                                            {"docker.io", "docker"},
                                            {"podman", "podman"},
                                            {"nvidia-container-toolkit", "nvidia-container-toolkit"},
                                            {"libssh2-1", "libssh2"}}};

void add(std::vector<Package>& packages, std::string_view name, std::string_view version, bool packaged) {
  version = trim(version);
  if (version.empty() || version.size() > 100 || packages.size() >= wire::k_health_packages_max) return;
  for (const Package& known : packages)
    if (known.name == name) return;  // the first is the better source
  packages.push_back({std::string(name), std::string(version), packaged});
}

// "openssh-server\t1:9.2p1-2+deb12u7\n"
void read_dpkg(std::string_view text, std::vector<Package>& packages) {
  for (const PackageList& source : k_binaries)
    for (const std::string& line : split_lines(text)) {
      const std::size_t tab = line.find('\t');
      if (tab == std::string::npos || std::string_view(line).substr(0, tab) != source.binary) continue;
      add(packages, source.name, std::string_view(line).substr(tab + 1), true);
    }
}

std::string_view word_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + key.size());
  return rest.substr(0, rest.find_first_of(" ,\n\r\t"));
}

// Parses "OpenSSH_9.2p1 Debian-2+deb12u7, OpenSSL 3.0.16": the distributor's revision follows the name of the system.
void read_ssh(std::string_view text, std::vector<Package>& packages) {
  const std::string_view version = word_after(text, "OpenSSH_");
  const std::string_view revision = word_after(text, "Debian-");
  if (version.empty()) return;
  if (revision.empty()) add(packages, "openssh", version, text.find("Ubuntu-") != std::string_view::npos);
  else add(packages, "openssh", "1:" + std::string(version) + "-" + std::string(revision), true);
}

// Parses "Linux version 6.1.0-28-amd64 (…) … #1 SMP PREEMPT_DYNAMIC Debian 6.1.119-1 (2024-11-22)". Other distributors'
// kernels do not name their sources.
void read_kernel(std::string_view text, std::vector<Package>& packages) {
  const std::size_t build = text.find("#");  // before it stands the compiler, which may be Debian's too
  if (build == std::string_view::npos) return;
  add(packages, "linux", word_after(text.substr(build), " Debian "), true);
}

struct Version {
  std::uint64_t epoch = 0;
  std::string_view upstream, revision;
};
Version split_version(std::string_view text) {
  Version version;
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    version.epoch = whole_number(text.substr(0, colon)).value_or(0);
    text.remove_prefix(colon + 1);
  }
  const std::size_t dash = text.rfind('-');
  version.upstream = text.substr(0, dash);
  if (dash != std::string_view::npos) version.revision = text.substr(dash + 1);
  return version;
}

// Sorts '~' before the end, the end before letters, letters before everything else: deb-version(7).
int order_of(std::string_view text, std::size_t at) {
  if (at >= text.size() || is_digit(text[at])) return 0;
  const auto c = static_cast<unsigned char>(text[at]);
  if (c == '~') return -1;
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter ? c : c + 256;
}
int compare_part(std::string_view a, std::string_view b) {
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    while ((i < a.size() && !is_digit(a[i])) || (j < b.size() && !is_digit(b[j]))) {
      const int left = order_of(a, i), right = order_of(b, j);
      if (left != right) return left < right ? -1 : 1;
      ++i, ++j;
    }
    while (i < a.size() && a[i] == '0') ++i;
    while (j < b.size() && b[j] == '0') ++j;
    const auto length = [](std::string_view text, std::size_t at) {
      std::size_t end = at;
      while (end < text.size() && is_digit(text[end])) ++end;
      return end - at;
    };
    const std::size_t left = length(a, i), right = length(b, j);
    if (left != right) return left < right ? -1 : 1;
    if (const int order = a.substr(i, left).compare(b.substr(j, right)); order != 0) return order < 0 ? -1 : 1;
    i += left, j += right;
  }
  return 0;
}

// Returns Debian's release of a revision: "deb12u3" -> "bookworm"; a revision without such a mark belongs to no known
// one.
std::string_view release_of(std::string_view revision) {
  for (const auto& [mark, release] : {std::pair<std::string_view, std::string_view>{"deb10u", "buster"},
                                      {"deb11u", "bullseye"},
                                      {"deb12u", "bookworm"},
                                      {"deb13u", "trixie"}})
    if (revision.find(mark) != std::string_view::npos) return release;
  return {};
}

// Docker and NVIDIA package their own releases; Debian's kernels have the stable release's own number.
bool is_upstreams_own(const Package& package) {
  return !package.packaged || package.name == "nvidia-container-toolkit" || package.name == "linux" ||
         package.version.find("~debian.") != std::string::npos || package.version.find("~ubuntu.") != std::string::npos;
}

}  // namespace

std::vector<ToolCall> package_calls() {
  ToolCall dpkg{{"dpkg-query", "-W", "-f", "${Package}\\t${Version}\\n"}};
  for (const PackageList& source : k_binaries) dpkg.argv.emplace_back(source.binary);
  return {std::move(dpkg), {{"ssh", "-V"}}, {{"runc", "--version"}}, {{"nvidia-ctk", "--version"}}};
}

std::vector<Package> read_packages(const HostFiles& files, std::span<const ToolAnswer> answers) {
  std::vector<Package> packages;
  // dpkg-query fails if one of the names is not installed, and nevertheless reports the others.
  for (const ToolAnswer& answer : answers)
    if (answer.tool == "dpkg-query" && answer.answered) read_dpkg(answer.out, packages);
  for (const ToolAnswer& answer : answers) {
    if (!answer.answered) continue;
    if (answer.tool == "ssh") read_ssh(answer.err.empty() ? answer.out : answer.err, packages);
    if (answer.tool == "runc") add(packages, "runc", word_after(answer.out, "runc version "), false);
    if (answer.tool == "nvidia-ctk")
      add(packages, "nvidia-container-toolkit", word_after(answer.out, "version "), false);
  }
  read_kernel(files.read("/proc/version").value_or(""), packages);
  return packages;
}

int compare_debian(std::string_view a, std::string_view b) {
  const Version left = split_version(a), right = split_version(b);
  if (left.epoch != right.epoch) return left.epoch < right.epoch ? -1 : 1;
  if (const int upstream = compare_part(left.upstream, right.upstream); upstream != 0) return upstream;
  return compare_part(left.revision, right.revision);
}

std::string upstream_version(std::string_view package_version) {
  std::string_view upstream = split_version(package_version).upstream;
  upstream = upstream.substr(0, upstream.find_first_of("+~"));
  return std::string(upstream);
}

Exposure exposure(const Advisory& advisory, const Package& package) {
  if (advisory.package != package.name) return Exposure::none;
  // The distributor's own advisory decides if there is one for this release.
  const std::string_view release = package.packaged ? release_of(split_version(package.version).revision) : "";
  for (const std::string& entry : split(advisory.debian, ',')) {
    const std::vector<std::string> words = split(trim(entry), ' ');
    if (release.empty() || words.size() != 2 || words[0] != release) continue;
    if (words[1] == "-") return Exposure::none;
    return compare_debian(package.version, words[1]) < 0 ? Exposure::likely : Exposure::none;
  }
  const std::string upstream = upstream_version(package.version);
  const bool old_enough = compare_part(upstream, advisory.fixed) < 0;
  const bool new_enough = advisory.since.empty() || compare_part(upstream, advisory.since) >= 0;
  if (!old_enough || !new_enough) return Exposure::none;
  return is_upstreams_own(package) ? Exposure::likely : Exposure::unclear;
}

}  // namespace gridctl::probe

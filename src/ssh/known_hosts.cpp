// SPDX-License-Identifier: Apache-2.0
// Stores pins in our own known_hosts file. One line per key, "NAME TYPE BLOB", which `ssh` also reads.
#include <algorithm>

#include "base/text.hpp"
#include "os/files.hpp"
#include "ssh/encoding.hpp"
#include "ssh/known_hosts.hpp"
#include "ssh/target.hpp"

namespace gridctl::ssh {
namespace {

constexpr std::uint64_t k_known_hosts_bytes_max = 16u << 20;  // ten thousand hosts with three keys are 10 MB

std::vector<std::string> words(std::string_view line) {
  std::vector<std::string> found;
  for (const std::string& word : split(line, ' '))
    if (!trim(word).empty()) found.emplace_back(trim(word));
  return found;
}

bool names(std::string_view hosts, const std::string& name) {
  const std::vector<std::string> all = split(hosts, ',');
  return std::ranges::find(all, name) != all.end();
}

int rank(const std::string& type) {
  if (type == "ssh-ed25519") return 0;
  return type.starts_with("ecdsa-") ? 1 : 2;
}

Result<std::string> read_known_hosts(const os::Path& path) {
  if (path.empty() || !os::exists(path)) return std::string{};
  return os::read_file(path, k_known_hosts_bytes_max).context("while reading the pinned host keys");
}

}  // namespace

std::optional<HostKey> make_host_key(std::string_view type, std::string_view blob_base64) {
  const auto blob = decode_base64(blob_base64);
  if (!blob) return std::nullopt;
  FieldReader fields{*blob};
  if (fields.text() != type) return std::nullopt;
  return HostKey{std::string{type}, std::string{blob_base64}, fingerprint_of(*blob)};
}

std::vector<HostKey> parse_known_hosts(std::string_view text, const std::string& name) {
  std::vector<HostKey> keys;
  for (const std::string& line : split_lines(text)) {
    const std::vector<std::string> parts = words(line);
    if (parts.size() < 3 || parts[0].starts_with('#') || parts[0].starts_with('@') || !names(parts[0], name)) continue;
    auto key = make_host_key(parts[1], parts[2]);
    if (key && std::ranges::find(keys, *key) == keys.end()) keys.push_back(*std::move(key));
  }
  std::ranges::stable_sort(keys, [](const HostKey& a, const HostKey& b) { return rank(a.type) < rank(b.type); });
  return keys;
}

Result<std::vector<HostKey>> pinned(const Target& target) {
  TRY_ASSIGN(const std::string text, read_known_hosts(target.known_hosts));
  return parse_known_hosts(text, target.pin_name());
}

Result<void> pin(const Target& target, std::span<const HostKey> keys) {
  if (target.known_hosts.empty()) return make_error(Code::internal, "cannot pin host keys: no known_hosts file is set");
  os::Path lock_path = target.known_hosts;
  lock_path += ".lock";
  TRY(os::make_directories(target.known_hosts.parent_path()));
  TRY_ASSIGN(const os::FileLock lock, os::FileLock::acquire(lock_path));
  TRY_ASSIGN(const std::string text, read_known_hosts(target.known_hosts));
  std::string kept;
  for (const std::string& line : split_lines(text)) {
    const std::vector<std::string> parts = words(line);
    if (parts.empty() || parts[0] != target.pin_name()) kept += line + "\n";
  }
  for (const HostKey& key : keys) kept += target.pin_name() + " " + key.type + " " + key.blob + "\n";
  return os::write_file_durably(target.known_hosts, kept).context("while pinning the host key of " + target.address());
}

std::string describe(std::span<const HostKey> keys) {
  std::vector<std::string> parts;
  for (const HostKey& key : keys) parts.push_back(key.type + " " + key.fingerprint);
  return parts.empty() ? "none" : join(parts, ", ");
}

Error mismatch_error(const Target& target, std::span<const HostKey> pins, const std::string& shown) {
  if (pins.empty())
    return make_error(Code::host_key_mismatch,
                      "the host key of " + target.address() + " is not known: the host shows " + shown +
                          " and no key is pinned for it; nothing was sent",
                      "compare it with what the host's owner says, then: gridctl provider register NAME " +
                          target.peer() + " --host-key SHA256:…");
  return make_error(
      Code::host_key_mismatch,
      "the host key of " + target.address() + " has changed: pinned is " + describe(pins) + ", the host shows " +
          shown + "; either it was reinstalled or someone stands in between; nothing was sent",
      "ask the host's owner, then: gridctl provider register NAME " + target.peer() + " --host-key SHA256:…");
}

std::optional<std::string> parse_recognised_key(std::string_view words) {
  // The last match counts: those of jump hosts come before.
  const std::size_t known = words.rfind(" is known and matches the ");
  if (known == std::string_view::npos) return std::nullopt;
  const std::string_view before = words.substr(0, known);
  const std::size_t at = std::max(before.rfind("Server host key: ") + 1, before.rfind("Server host certificate: ") + 1);
  if (at == 0) return std::nullopt;
  const std::size_t print = before.find("SHA256:", at);
  if (print == std::string_view::npos) return std::nullopt;
  const std::string_view rest = before.substr(print);
  return std::string(rest.substr(0, rest.find_first_of(", \r\n")));
}

}  // namespace gridctl::ssh

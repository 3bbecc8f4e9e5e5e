// SPDX-License-Identifier: Apache-2.0
#include "agent/guest_images.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "agent/engine.hpp"
#include "agent/pull_gate.hpp"
#include "base/text.hpp"
#include "os/address.hpp"
#include "os/net.hpp"

namespace gridctl::agent {

namespace {

constexpr std::size_t k_image_name_max = 1024, k_images_kept = 1000;
constexpr std::uint64_t k_images_file_max = 4u << 20;
constexpr Duration k_address_wait = std::chrono::seconds{10};
constexpr std::uint16_t k_registry_port = 443;
constexpr const char* k_images_file = "images";

bool is_image_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("._-/:@").find(c) != std::string_view::npos;
}

std::string listed(const wire::GuestTerms& terms) {
  std::vector<std::string> names = terms.registries;
  if (names.empty()) names.assign(wire::k_public_registries.begin(), wire::k_public_registries.end());
  return join(names, ", ");
}

}  // namespace

std::string_view registry_of(std::string_view full_name) { return full_name.substr(0, full_name.find('/')); }

Result<std::string> guest_image_name(const wire::GuestTerms& terms, std::string_view image) {
  const std::string shown = "'" + sanitize(image.substr(0, k_image_name_max), 200) + "'";
  if (image.empty() || image.size() > k_image_name_max || !std::ranges::all_of(image, is_image_letter))
    return make_error(Code::refused, "a lent machine takes images by the name of a registry, such as docker.io/library/debian:12; " + shown + " is none");
  const std::string full = full_image_name(image);
  const std::string_view registry = registry_of(full);
  if (terms.allows_registry(registry) && registry.size() < full.size()) return full;
  const std::string own = registry == wire::k_local_images ? "image " + shown + " is one that only this machine's owner has"
                                                           : "image " + shown + " comes from the registry " + sanitize(registry, 80);
  return make_error(Code::refused, own + "; the owner of this machine allows images from " + listed(terms) +
                                       ", and archives: image: ./image.tar (podman save -o image.tar " + shown + ")");
}

Result<void> check_registry_address(std::string_view registry, os::Clock& clock) {
  if (registry == wire::k_local_images) return {};
  const std::string host(registry.substr(0, registry.find(':')));
  const auto found = os::numeric_addresses(host, clock.boot() + k_address_wait, clock);
  if (!found) return {};
  for (const std::string& address : *found)
    if (os::address_kind(address) != os::AddressKind::internet)
      return make_error(Code::refused, "the registry " + sanitize(registry, 80) + " is at " + address +
                                           ", an address of this machine's own network: images come from public registries only");
  return {};
}

bool GuestImages::knows(const std::string& name, const std::string& id) const {
  const std::vector<std::string> lines = split_lines(os::read_file(folder_ / k_images_file, k_images_file_max).value_or(""));
  return std::ranges::find(lines, id + " " + name) != lines.end();
}

void GuestImages::add(const std::string& name, const std::string& id) const {
  std::vector<std::string> lines = split_lines(os::read_file(folder_ / k_images_file, k_images_file_max).value_or(""));
  if (lines.size() >= k_images_kept) lines.erase(lines.begin());
  lines.push_back(id + " " + name);
  (void)os::write_file_atomically(folder_ / k_images_file, join(lines, "\n") + "\n");  // a line that is lost costs a look at the registry
}

std::string GuestImages::id_of(const std::string& name) const {
  const std::vector<std::string> lines = split_lines(os::read_file(folder_ / k_images_file, k_images_file_max).value_or(""));
  for (auto line = lines.rbegin(); line != lines.rend(); ++line)
    if (const std::size_t cut = line->find(' '); cut != std::string::npos && line->substr(cut + 1) == name) return line->substr(0, cut);
  return {};
}

std::vector<std::string> GuestImages::gate() const {
  // Behind a proxy of the owner's that proxy decides what is reached.
  for (const char* name : {"HTTPS_PROXY", "https_proxy"})
    if (!os::environment(name).value_or("").empty()) return {};
  if (agent_.empty()) return {};
  std::vector<std::string> words{agent_.string(), k_gated_command};
  if (::geteuid() != 0) words.insert(words.begin(), {"podman", "unshare"});
  return words;
}

Result<os::FileLock> GuestImages::lock() const { return os::FileLock::acquire(folder_ / "images.lock"); }

Result<os::Path> GuestImages::no_login() const {
  const os::Path folder = folder_ / "no-login";
  TRY(os::make_directories(folder));
  TRY(os::write_file_atomically(folder / "config.json", "{\"auths\":{}}\n"));
  return folder;
}

}  // namespace gridctl::agent

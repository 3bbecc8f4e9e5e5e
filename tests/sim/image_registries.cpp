// SPDX-License-Identifier: Apache-2.0
#include "image_registries.hpp"

#include <algorithm>

#include "truth.hpp"

namespace gridctl::sim {

namespace {
constexpr Nanos k_quick = 2 * k_s, k_slow_answer = 9 * k_s;  // an answer takes at most
constexpr std::size_t k_hex = 64;

std::string repository_of(int image) { return "team/tool" + std::to_string(image); }
}  // namespace

std::string ImageHub::written(int image) { return registry(image) + "/" + repository_of(image) + ":stable"; }

int ImageHub::index_of(const std::string& name) const {
  for (std::size_t i = 0; i < versions_.size(); ++i)
    if (written(static_cast<int>(i)) == name) return static_cast<int>(i);
  return -1;
}

std::string ImageHub::digest(int image) const {
  std::string number = std::to_string(1000 * (image + 1) + versions_[static_cast<std::size_t>(image)]);
  return "sha256:" + std::string(k_hex - number.size(), 'a') + number;
}

void ImageHub::begin(int registry, Trouble trouble) { troubles_[static_cast<std::size_t>(registry)].push_back(trouble); }

void ImageHub::end(int registry, Trouble trouble) {
  std::vector<Trouble>& all = troubles_[static_cast<std::size_t>(registry)];
  if (const auto found = std::ranges::find(all, trouble); found != all.end()) all.erase(found);
  if (all.empty()) well_since_[static_cast<std::size_t>(registry)] = world_.now;
}

void ImageHub::heal() {
  for (int i = 0; i < k_registries; ++i)
    while (!troubles_[static_cast<std::size_t>(i)].empty()) end(i, troubles_[static_cast<std::size_t>(i)].front());
}

void ImageHub::move_tag(int image) {
  ++versions_[static_cast<std::size_t>(image)];
  world_.say("tag of ", written(image), " moves to ", digest(image));
}

std::optional<ImageHub::Trouble> ImageHub::trouble(int image) const {
  const std::vector<Trouble>& all = troubles_[static_cast<std::size_t>(image % k_registries)];
  return all.empty() ? std::nullopt : std::optional(all.back());
}

std::optional<Nanos> ImageHub::well_since(int image) const {
  if (trouble(image)) return std::nullopt;
  return well_since_[static_cast<std::size_t>(image % k_registries)];
}

bool SimImages::is_offline() const {
  for (int host = 0; host < world_.options.hosts; ++host)
    if (world_.link(laptop_, host).cut_requests == 0) return false;
  return true;
}

// The answer is what the registry knows when it goes out: a tag may move while somebody waits.
Result<std::string> SimImages::digest_of(const job::ImageReference& image) {
  ImageHub& hub = *world_.image_hub;
  ++hub.asked;
  int which = -1;
  for (int i = 0; i < world_.options.images; ++i)
    if (const auto known = job::parse_image_reference(ImageHub::written(i)); known && known->name() == image.name() && known->tag == image.tag) which = i;
  const auto silent = [&](Nanos passed) {
    run_.pause(control::k_registry_wait - Duration{passed});
    return make_error(Code::timed_out, "registry " + image.registry + " does not answer");
  };
  if (which < 0) return make_error(Code::not_found, "registry " + image.registry + " has no such image");
  const auto before = hub.trouble(which);
  const Nanos takes = before == ImageHub::Trouble::slow ? world_.rng.between(k_quick, k_slow_answer) : world_.rng.between(10 * k_ms, k_quick);
  run_.pause(Duration{takes});
  if (is_offline()) return silent(takes);
  switch (hub.trouble(which).value_or(ImageHub::Trouble::slow)) {
    case ImageHub::Trouble::silent: return silent(takes);
    case ImageHub::Trouble::refused: return make_error(Code::auth_refused, "registry " + image.registry + " wants a login");
    case ImageHub::Trouble::unknown: return make_error(Code::not_found, "registry " + image.registry + " has no image " + image.name());
    case ImageHub::Trouble::nonsense: return make_error(Code::protocol_violation, "registry " + image.registry + " sent no manifest");
    case ImageHub::Trouble::slow: break;
  }
  std::string digest = hub.digest(which);
  world_.truth->image_told(laptop_, which, digest);
  return digest;
}

}  // namespace gridctl::sim

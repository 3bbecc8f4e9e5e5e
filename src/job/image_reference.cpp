// SPDX-License-Identifier: Apache-2.0
#include "job/image_reference.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "job/spec.hpp"

namespace gridctl::job {

namespace {

constexpr std::string_view k_default_registry = "docker.io", k_default_registry_of_old = "index.docker.io";
constexpr std::string_view k_sha256 = "sha256:";
constexpr std::size_t k_repository_max = 255, k_tag_max = 128, k_registry_max = 255, k_hex_digits = 64;

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_word(char c) { return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '_'; }

// Accepts words of lower-case letters and digits, joined by '.', '_', '__' or any number of '-'.
bool is_path_component(std::string_view part) {
  if (part.empty() || !is_lower_or_digit(part.front()) || !is_lower_or_digit(part.back())) return false;
  for (std::size_t i = 0; i < part.size();) {
    std::size_t end = i;
    while (end < part.size() && !is_lower_or_digit(part[end])) ++end;
    const std::string_view joint = part.substr(i, end - i);
    const bool dashes = std::ranges::all_of(joint, [](char c) { return c == '-'; });
    if (!dashes && !is_one_of(joint, {".", "_", "__"})) return false;
    i = std::max(end, i + 1);
  }
  return true;
}

bool is_repository(std::string_view text) {
  if (text.size() > k_repository_max) return false;
  for (std::size_t from = 0;;) {
    const std::size_t slash = text.find('/', from);
    if (!is_path_component(text.substr(from, slash == std::string_view::npos ? slash : slash - from))) return false;
    if (slash == std::string_view::npos) return true;
    from = slash + 1;
  }
}

bool is_tag(std::string_view text) {
  if (text.empty() || text.size() > k_tag_max || !is_word(text.front())) return false;
  return std::ranges::all_of(text, [](char c) { return is_word(c) || c == '.' || c == '-'; });
}

// Accepts "HOST" and "HOST:PORT".
bool is_registry(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view host = text.substr(0, colon);
  const auto fits = [](char c) { return (is_word(c) && c != '_') || c == '.' || c == '-'; };
  if (host.empty() || text.size() > k_registry_max || !std::ranges::all_of(host, fits)) return false;
  if (host.front() == '-' || host.front() == '.') return false;
  if (colon == std::string_view::npos) return true;
  const std::string_view port = text.substr(colon + 1);
  return !port.empty() && port.size() <= 5 && std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; });
}

// Cuts the registry off, if the name has one.
std::string take_registry(std::string_view& name) {
  const std::size_t slash = name.find('/');
  const std::string_view first = name.substr(0, slash);
  const bool named = slash != std::string_view::npos && (first == k_no_registry || first.find_first_of(".:") != std::string_view::npos);
  if (!named) return std::string(k_default_registry);
  name.remove_prefix(slash + 1);
  return first == k_default_registry_of_old ? std::string(k_default_registry) : std::string(first);
}

}  // namespace

bool is_image_digest(std::string_view text) {
  if (!text.starts_with(k_sha256) || text.size() != k_sha256.size() + k_hex_digits) return false;
  return std::ranges::all_of(text.substr(k_sha256.size()), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Result<ImageReference> parse_image_reference(std::string_view text) {
  const auto wrong = [&] { return make_error(Code::usage, "'" + sanitize(text.substr(0, k_registry_max)) + "' is not the name of an image"); };
  ImageReference image;
  std::string_view name = text;
  if (const std::size_t at = name.find('@'); at != std::string_view::npos) {
    image.digest = name.substr(at + 1);
    if (!is_image_digest(image.digest)) return wrong();
    name = name.substr(0, at);
  }
  image.registry = take_registry(name);
  if (const std::size_t colon = name.find(':'); colon != std::string_view::npos) {
    image.tag = name.substr(colon + 1);
    if (!is_tag(image.tag)) return wrong();
    name = name.substr(0, colon);
  } else if (image.digest.empty()) {
    image.tag = "latest";
  }
  image.repository = name;
  if (image.registry == k_default_registry && name.find('/') == std::string_view::npos)
    image.repository.insert(0, "library/");
  if (!is_registry(image.registry) || !is_repository(image.repository)) return wrong();
  return image;
}

namespace {

// Returns the digest by which the image runs on borrowed hosts; empty: none is known.
std::string digest_of(const Spec& spec, const ImageReference& image, const std::string& written) {
  if (!image.digest.empty()) return image.digest;
  const auto known = spec.image_digests.find(written);
  return known == spec.image_digests.end() ? "" : known->second;
}

}  // namespace

std::vector<std::string> images_without_digest(const Spec& spec) {
  std::vector<std::string> images;
  if (spec.constraints.image_tags || spec.constraints.is_private) return images;
  const auto look = [&](const std::string& image, bool is_archive) {
    if (image.empty() || is_archive || std::ranges::find(images, image) != images.end()) return;
    const auto read = parse_image_reference(image);
    if (read && read->has_registry() && digest_of(spec, *read, image).empty()) images.push_back(image);
  };
  if (spec.variants.empty()) look(spec.image, spec.image_is_archive);
  for (const Variant& variant : spec.variants) look(variant.image, variant.image_is_archive);
  return images;
}

std::optional<TagRefusal> tag_refusal(const Spec& spec, const std::string& image, bool is_archive, const std::string& problem) {
  if (image.empty() || is_archive || spec.constraints.image_tags || spec.image_digests.contains(image)) return std::nullopt;
  const auto read = parse_image_reference(image);
  if (read && !read->digest.empty()) return std::nullopt;
  const std::string rule = "borrowed hosts run images by digest only";
  if (!read || !read->has_registry())
    return TagRefusal{rule + ", and image " + image + " is of no registry", "send it as an archive (image: ./image.tar)", false};
  return TagRefusal{rule + ", and image " + image + " is a tag: " +
                        (problem.empty() ? "its registry has not been asked for its digest yet" : problem),
                    "name the image as " + read->name() + "@sha256:…", true};
}

std::string image_on_host(const Spec& spec, const std::string& image, bool lent) {
  if (!lent || spec.constraints.image_tags) return image;
  const auto read = parse_image_reference(image);
  const std::string digest = read ? digest_of(spec, *read, image) : "";
  return digest.empty() ? image : read->name() + "@" + digest;
}

}  // namespace gridctl::job

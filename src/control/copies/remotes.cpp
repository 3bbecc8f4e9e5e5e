// SPDX-License-Identifier: Apache-2.0
#include "control/copies/remotes.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "control/reach/connect_agent.hpp"
#include "sched/residency.hpp"
#include "store/dir_place.hpp"
#include "store/place.hpp"
#include "transfer/host_place.hpp"
#include "transfer/s3.hpp"

namespace gridctl::control {

namespace {

constexpr std::string_view k_dir = "dir:", k_ssh = "ssh://", k_s3 = "s3://";
constexpr Duration k_reach = std::chrono::seconds{20};  // login, agent upload, hello
constexpr const char* k_hint = "gridctl store add NAME dir:/path | ssh://provider/path | s3://bucket/prefix";

Error no_url(std::string_view url, const std::string& why) {
  return make_error(Code::usage, "'" + sanitize(url, 200) + "' is not a valid remote: " + why, k_hint);
}

Result<PlaceUrl> directory_url(std::string_view url) {
  os::Path path = os::Path(std::string(url.substr(k_dir.size()))).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // a slash at its end
  if (!path.is_absolute()) return no_url(url, "the path must be absolute");
  if (path == path.root_path()) return no_url(url, "it needs a directory of its own");
  return PlaceUrl{PlaceKind::directory, "", path.native()};
}

}  // namespace

Result<PlaceUrl> parse_place_url(std::string_view url) {
  if (url.starts_with(k_dir)) return directory_url(url);
  const bool is_host = url.starts_with(k_ssh), is_bucket = url.starts_with(k_s3);
  if (!is_host && !is_bucket) return no_url(url, "it starts with none of dir:, ssh:// and s3://");
  const std::string_view rest = url.substr(is_host ? k_ssh.size() : k_s3.size());
  const std::size_t slash = rest.find('/');
  PlaceUrl parsed{is_host ? PlaceKind::host : PlaceKind::bucket, std::string(rest.substr(0, slash)), ""};
  if (slash != std::string_view::npos) parsed.path = std::string(rest.substr(slash + 1));
  if (parsed.where.empty()) return no_url(url, is_host ? "it names no provider" : "it names no bucket");
  if (is_host && parsed.path.empty()) return no_url(url, "it names no directory of the provider");
  const os::Path path(parsed.path);
  if (is_host && std::find(path.begin(), path.end(), os::Path("..")) != path.end())
    return no_url(url, "its directory contains '..'");
  return parsed;
}

std::string to_text(const PlaceUrl& url) {
  if (url.kind == PlaceKind::directory) return std::string(k_dir) + url.path;
  return std::string(url.kind == PlaceKind::host ? k_ssh : k_s3) + url.where + (url.path.empty() ? "" : "/" + url.path);
}

std::string failure_domain_of(const registry::Place& place) {
  const Result<PlaceUrl> url = parse_place_url(place.url);
  if (!url) return place.url;
  if (url->kind == PlaceKind::directory) return place.url;
  return std::string(url->kind == PlaceKind::host ? k_ssh : k_s3) + place.endpoint + "/" + url->where;
}

Result<std::vector<PlaceOffer>> place_offers(registry::Registry& registry) {
  TRY_ASSIGN(const std::vector<registry::Place> places, registry.places());
  std::vector<PlaceOffer> offers;
  for (const registry::Place& place : places) {
    PlaceOffer offer{place.name, failure_domain_of(place), place.trouble_at.has_value(), place.location, place.lent};
    const Result<PlaceUrl> url = parse_place_url(place.url);
    if (url && url->kind == PlaceKind::host) {
      const Result<registry::Provider> provider = registry.provider({url->where});
      if (!provider && provider.error().code != Code::not_found) return provider.error();
      offer.region = provider ? provider->region : "";
      offer.lent = provider ? sched::is_lent(provider->host_class, provider->labels) : true;
    }
    offers.push_back(std::move(offer));
  }
  return offers;
}

namespace {
// By its name, or else by what its address is to ssh, where that is only one's.
Result<registry::Provider> provider_named(registry::Registry& registry, const std::string& name) {
  Result<registry::Provider> named = registry.provider({name});
  if (named || named.error().code != Code::not_found) return named;
  TRY_ASSIGN(std::vector<registry::Provider> all, registry.providers());
  std::erase_if(
      all, [&](const registry::Provider& one) { return one.alias != name && one.address != name && one.host != name; });
  return all.size() == 1 ? Result<registry::Provider>(std::move(all.front())) : named;
}
}  // namespace

Result<RemoteAccess> access_to(registry::Registry& registry, const registry::Place& place) {
  RemoteAccess access{place, std::nullopt, {}};
  TRY_ASSIGN(access.controller, registry.controller_id());
  TRY_ASSIGN(const PlaceUrl url, parse_place_url(place.url));
  if (url.kind == PlaceKind::host) {
    TRY_ASSIGN(access.provider, provider_named(registry, url.where));
  }
  return access;
}

namespace {
Result<std::unique_ptr<store::Backend>> open_bucket(const registry::Place& place, os::Clock& clock) {
  TRY_ASSIGN(const transfer::S3Place bucket,
             transfer::parse_s3_place(place.url, place.endpoint, place.region, place.profile));
  transfer::S3Options options;
  options.clock = &clock;
  return transfer::open_s3(bucket, options);
}
}  // namespace

Result<std::unique_ptr<store::Backend>> open_place(const RemoteAccess& access, const Paths& paths, os::Clock& clock,
                                                   bool marked) {
  TRY_ASSIGN(const PlaceUrl url, parse_place_url(access.place.url));
  if (url.kind == PlaceKind::directory)
    return store::open_dir_place(url.path, marked ? store::k_mark_name : std::string_view());
  if (url.kind == PlaceKind::bucket) return open_bucket(access.place, clock);
  if (!access.provider) return make_error(Code::internal, "it is unknown how to reach the remote's provider");
  const auto open = [provider = *access.provider, paths, controller = access.controller, &clock] {
    return open_bulk(provider, paths, controller, clock.boot() + k_reach, clock);
  };
  return transfer::open_host_place({access.provider->name.value, url.path, marked}, open, clock);
}

Result<std::vector<std::string>> places_on(registry::Registry& registry, const HostName& provider) {
  TRY_ASSIGN(const std::vector<registry::Place> places, registry.places());
  std::vector<std::string> names;
  for (const registry::Place& place : places) {
    const Result<PlaceUrl> url = parse_place_url(place.url);
    if (url && url->kind == PlaceKind::host && url->where == provider.value) names.push_back(place.name);
  }
  return names;
}

Result<std::vector<RemoteAccess>> places_with(registry::Registry& registry, const JobId& job, CheckpointSeq seq) {
  TRY_ASSIGN(const std::vector<registry::Copy> copies, registry.copies_of(job));
  TRY_ASSIGN(const std::vector<registry::Place> places, registry.places());
  std::vector<std::pair<PlaceKind, RemoteAccess>> found;
  for (const registry::Place& place : places) {
    const bool has = std::any_of(copies.begin(), copies.end(), [&](const registry::Copy& copy) {
      return copy.place == place.name && copy.seq == seq;
    });
    if (!has) continue;
    Result<RemoteAccess> access = access_to(registry, place);
    if (!access && access.error().code == Code::not_found) continue;  // its provider was forgotten
    TRY(access);
    TRY_ASSIGN(const PlaceUrl url, parse_place_url(place.url));
    found.emplace_back(url.kind, *std::move(access));
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<RemoteAccess> nearest;
  for (auto& [kind, access] : found) nearest.push_back(std::move(access));
  return nearest;
}

}  // namespace gridctl::control

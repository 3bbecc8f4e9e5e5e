// SPDX-License-Identifier: Apache-2.0
#include "control/copies/remotes.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "sched/geo/residency.hpp"
#include "store/dir_remote.hpp"
#include "store/remote.hpp"
#include "transfer/host_remote.hpp"
#include "transfer/s3.hpp"

namespace gridctl::control {

namespace {

constexpr std::string_view k_dir = "dir:", k_ssh = "ssh://", k_s3 = "s3://";
constexpr Duration k_reach = std::chrono::seconds{20};  // login, agent upload, hello
constexpr const char* k_hint = "gridctl store add NAME dir:/path | ssh://provider/path | s3://bucket/prefix";

Error no_url(std::string_view url, const std::string& why) {
  return make_error(Code::usage, "'" + sanitize(url, 200) + "' is not a valid remote: " + why, k_hint);
}

Result<RemoteUrl> directory_url(std::string_view url) {
  os::Path path = os::Path(std::string(url.substr(k_dir.size()))).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // a slash at its end
  if (!path.is_absolute()) return no_url(url, "the path must be absolute");
  if (path == path.root_path()) return no_url(url, "the remote needs its own directory");
  return RemoteUrl{RemoteKind::directory, "", path.native()};
}

}  // namespace

Result<RemoteUrl> parse_remote_url(std::string_view url) {
  if (url.starts_with(k_dir)) return directory_url(url);
  const bool is_host = url.starts_with(k_ssh), is_bucket = url.starts_with(k_s3);
  if (!is_host && !is_bucket) return no_url(url, "it does not start with dir:, ssh:// or s3://");
  const std::string_view rest = url.substr(is_host ? k_ssh.size() : k_s3.size());
  const std::size_t slash = rest.find('/');
  RemoteUrl parsed{is_host ? RemoteKind::host : RemoteKind::bucket, std::string(rest.substr(0, slash)), ""};
  if (slash != std::string_view::npos) parsed.path = std::string(rest.substr(slash + 1));
  if (parsed.where.empty()) return no_url(url, is_host ? "it does not name a provider" : "it does not name a bucket");
  if (is_host && parsed.path.empty()) return no_url(url, "it does not name a directory on the provider");
  const os::Path path(parsed.path);
  if (is_host && std::find(path.begin(), path.end(), os::Path("..")) != path.end())
    return no_url(url, "its directory contains '..'");
  return parsed;
}

std::string to_text(const RemoteUrl& url) {
  if (url.kind == RemoteKind::directory) return std::string(k_dir) + url.path;
  return std::string(url.kind == RemoteKind::host ? k_ssh : k_s3) + url.where + (url.path.empty() ? "" : "/" + url.path);
}

std::string failure_domain_of(const registry::Remote& remote) {
  const Result<RemoteUrl> url = parse_remote_url(remote.url);
  if (!url) return remote.url;
  if (url->kind == RemoteKind::directory) return remote.url;
  return std::string(url->kind == RemoteKind::host ? k_ssh : k_s3) + remote.endpoint + "/" + url->where;
}

Result<std::vector<RemoteOffer>> remote_offers(registry::AllRecords& registry) {
  TRY_ASSIGN(const std::vector<registry::Remote> remotes, registry.remotes());
  std::vector<RemoteOffer> offers;
  for (const registry::Remote& remote : remotes) {
    RemoteOffer offer{remote.name, failure_domain_of(remote), remote.trouble_at.has_value(), remote.location, remote.lent};
    const Result<RemoteUrl> url = parse_remote_url(remote.url);
    if (url && url->kind == RemoteKind::host) {
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
// Finds a provider by its name, or by its ssh address if only one provider has it.
Result<registry::Provider> provider_named(registry::HostRecords& registry, const std::string& name) {
  Result<registry::Provider> named = registry.provider({name});
  if (named || named.error().code != Code::not_found) return named;
  TRY_ASSIGN(std::vector<registry::Provider> all, registry.providers());
  std::erase_if(
      all, [&](const registry::Provider& one) { return one.alias != name && one.address != name && one.host != name; });
  return all.size() == 1 ? Result<registry::Provider>(std::move(all.front())) : named;
}
}  // namespace

Result<RemoteAccess> access_to(registry::HostRecords& registry, const registry::Remote& remote) {
  RemoteAccess access{remote, std::nullopt, {}};
  TRY_ASSIGN(access.controller, registry.controller_id());
  TRY_ASSIGN(const RemoteUrl url, parse_remote_url(remote.url));
  if (url.kind == RemoteKind::host) {
    TRY_ASSIGN(access.provider, provider_named(registry, url.where));
  }
  return access;
}

namespace {
Result<std::unique_ptr<store::Backend>> open_bucket(const registry::Remote& remote, os::Clock& clock) {
  TRY_ASSIGN(const transfer::S3Remote bucket,
             transfer::parse_s3_remote(remote.url, remote.endpoint, remote.region, remote.profile));
  transfer::S3Options options;
  options.clock = &clock;
  return transfer::open_s3(bucket, options);
}
}  // namespace

Result<std::unique_ptr<store::Backend>> open_remote(const RemoteAccess& access, AgentNetwork& net, os::Clock& clock,
                                                   bool marked) {
  TRY_ASSIGN(const RemoteUrl url, parse_remote_url(access.remote.url));
  if (url.kind == RemoteKind::directory)
    return store::open_dir_remote(url.path, marked ? store::k_mark_name : std::string_view());
  if (url.kind == RemoteKind::bucket) return open_bucket(access.remote, clock);
  if (!access.provider) return make_error(Code::internal, "no way to reach the remote's provider is known");
  const auto open = [provider = *access.provider, &net, &clock] { return net.open(provider, clock.boot() + k_reach); };
  return transfer::open_host_remote({access.provider->name.value, url.path, marked}, open, clock);
}

Result<std::vector<std::string>> remotes_on(registry::CopyRecords& registry, const HostName& provider) {
  TRY_ASSIGN(const std::vector<registry::Remote> remotes, registry.remotes());
  std::vector<std::string> names;
  for (const registry::Remote& remote : remotes) {
    const Result<RemoteUrl> url = parse_remote_url(remote.url);
    if (url && url->kind == RemoteKind::host && url->where == provider.value) names.push_back(remote.name);
  }
  return names;
}

Result<std::vector<RemoteAccess>> remotes_with(registry::AllRecords& registry, const JobId& job, CheckpointSeq seq) {
  TRY_ASSIGN(const std::vector<registry::Copy> copies, registry.copies_of(job));
  TRY_ASSIGN(const std::vector<registry::Remote> remotes, registry.remotes());
  std::vector<std::pair<RemoteKind, RemoteAccess>> found;
  for (const registry::Remote& remote : remotes) {
    const bool has = std::any_of(copies.begin(), copies.end(), [&](const registry::Copy& copy) {
      return copy.remote == remote.name && copy.seq == seq;
    });
    if (!has) continue;
    Result<RemoteAccess> access = access_to(registry, remote);
    if (!access && access.error().code == Code::not_found) continue;  // its provider was forgotten
    TRY(access);
    TRY_ASSIGN(const RemoteUrl url, parse_remote_url(remote.url));
    found.emplace_back(url.kind, *std::move(access));
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<RemoteAccess> nearest;
  for (auto& [kind, access] : found) nearest.push_back(std::move(access));
  return nearest;
}

}  // namespace gridctl::control

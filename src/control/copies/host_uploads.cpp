// SPDX-License-Identifier: Apache-2.0
#include "control/copies/host_uploads.hpp"

#include <algorithm>
#include <utility>

#include "crypto/sha256.hpp"
#include "os/log.hpp"
#include "store/record.hpp"
#include "store/stored_tree.hpp"
#include "store/tree.hpp"
#include "transfer/host_upload.hpp"

namespace gridctl::control {

namespace {

constexpr std::uint64_t k_pack_min = 1u << 20;  // bytes; less is sent sooner than asked for
constexpr std::size_t k_names_max = 2'000'000;  // 8 TiB of full chunks
constexpr Duration k_upload_reach = std::chrono::seconds{10};
// Leaves a host alone for this long if the remote is not reachable from it, or if it lies.
constexpr Duration k_pause_min = std::chrono::minutes{10}, k_pause_max = std::chrono::hours{24};

}  // namespace

HostUploads::HostUploads(With with, const registry::Checkpoint& checkpoint) : with_(with), checkpoint_(checkpoint) {}

Result<void> HostUploads::find_host() {
  TRY_ASSIGN(const std::vector<registry::AttemptRecord> attempts, with_.registry.attempts(checkpoint_.job));
  const auto attempt = std::ranges::find(attempts, checkpoint_.epoch, &registry::AttemptRecord::epoch);
  if (attempt == attempts.end()) return make_error(Code::not_found, "its attempt is not known");
  TRY_ASSIGN(host_, with_.registry.provider(attempt->provider));
  TRY_ASSIGN(const registry::Job job, with_.registry.job(checkpoint_.job));
  limit_ = job.spec.checkpoint.upload_limit;
  return list_blobs();
}

Result<void> HostUploads::list_blobs() {
  const Digest& root = checkpoint_.root;
  TRY_ASSIGN(const store::Tree tree, store::tree_at(with_.chunks, root));
  blobs_.emplace(with_.key.storage_id(root), root);
  for (const store::Chunk& chunk : tree.unique_chunks())
    blobs_.emplace(with_.key.storage_id(chunk.digest), chunk.digest);
  auto& names = with_.memory.names;
  if (names.size() + blobs_.size() > k_names_max) names.clear();
  for (const auto& [id, digest] : blobs_) names.emplace(store::base_id(id), digest);  // the next may differ from these
  return {};
}

// An id says nothing about the content, so a pack that was not seen before is read first.
Result<Digest> HostUploads::name_of(const store::BaseId& base) {
  const auto known = with_.memory.names.find(base);
  if (known != with_.memory.names.end()) return known->second;
  TRY_ASSIGN(const Bytes content, with_.chunks.get_base(base));
  const Digest name = crypto::sha256(content);
  with_.memory.names.emplace(base, name);
  return name;
}

Result<void> HostUploads::upload(const store::PackFile& pack, const std::function<bool()>& go_on) {
  const auto name_base = [this](const store::BaseId& base) { return name_of(base); };
  TRY_ASSIGN(const std::optional<store::PackRecipe> recipe, store::recipe_of(pack, with_.key, blobs_, name_base));
  if (!recipe) return {};
  const std::string name = store::object_name(store::NeededPack{pack.id, pack.size});
  TRY_ASSIGN(const std::optional<store::SignedPut> request, with_.remote.sign_put(name, recipe->content));
  if (!request) return make_error(Code::unsupported, "the remote does not support signed requests");
  if (!link_.link) {
    TRY_ASSIGN(link_, with_.net.open(*host_, with_.clock.boot() + k_upload_reach));
    if (!link_.uploads) return make_error(Code::unsupported, "its agent does not support uploads");
  }
  wire::UploadRequest order{{checkpoint_.job, checkpoint_.epoch, checkpoint_.host_number}, {}, {}, 0};
  order.url = request->url;
  order.headers = request->headers;
  return transfer::upload_from_host(*link_.link, with_.clock, std::move(order), *recipe,
                                    wire::upload_time_max(pack.size, limit_), go_on);
}

void HostUploads::put(const store::PackFile& pack, const std::function<bool()>& go_on) {
  if (given_up_ || checkpoint_.host_number == 0 || pack.size < k_pack_min) return;
  const Result<void> found = std::exchange(looked_, true) ? Result<void>() : find_host();
  given_up_ = !found || with_.clock.boot() < with_.memory.hosts[host_->name].not_before;
  if (given_up_) return;
  const BootTime began = with_.clock.boot();
  const Result<void> done = upload(pack, go_on);
  UploadMemory::Host& host = with_.memory.hosts[host_->name];
  if (done) {
    host = {};
    return;
  }
  const Error& error = done.error();
  os::log(os::LogLevel::info, "provider " + host_->name.value + " does not send a pack of checkpoint " +
                                  checkpoint_name(checkpoint_.job, checkpoint_.seq) + ": " + error.one_line());
  // The base of the difference is missing there; the next pack may have another base. The answer takes no time.
  if (error.code == Code::not_found && with_.clock.boot() - began < k_upload_reach) return;
  given_up_ = true;
  if (error.code == Code::cancelled) return;
  host.pause = std::clamp(2 * host.pause, k_pause_min, k_pause_max);
  host.not_before = with_.clock.boot() + host.pause;
}

}  // namespace gridctl::control

// SPDX-License-Identifier: Apache-2.0
#include "store/fingerprints.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "crypto/poly_hash.hpp"
#include "crypto/sha256.hpp"
#include "os/entries.hpp"
#include "os/mutex.hpp"
#include "os/random.hpp"

namespace gridctl::store {
namespace {

using crypto::PolyHash;
using crypto::PolyValue;

constexpr std::string_view k_fingerprints_label = "gridctl/fingerprints/1";
constexpr std::size_t k_header = sizeof(PolyValue), k_record = sizeof(Digest) + sizeof(PolyValue);
constexpr std::uint64_t k_file_max = 96u << 20;  // bytes; as many chunks as a manifest can hold

os::Path prints_in(const os::Path& store) { return store / "fingerprints"; }

os::Path file_of(const os::Path& store, const Cipher& cipher, const Digest& root) {
  return prints_in(store) / to_hex(cipher.storage_id(root));
}

// The root's own id is not used: a file is not a blob, and a blob is not a file.
Digest seal_id(const Cipher& cipher, const Digest& root) {
  return cipher.storage_id(crypto::Sha256().update(as_bytes(k_fingerprints_label)).update(root.bytes).finish());
}

PolyValue random_key() {
  PolyValue key;
  std::ranges::copy(os::random_bytes(key.size()), key.begin());
  return key;
}

}  // namespace

struct Fingerprints::State {
  explicit State(const PolyValue& at) : key(at), hash(at) {}

  PolyValue key;
  PolyHash hash;
  std::unordered_map<Digest, PolyValue> known;  // not changed while a scan runs
  os::Mutex mutex;
  std::unordered_map<Digest, PolyValue> next GRIDCTL_GUARDED_BY(mutex);

  void add(const Digest& digest, const PolyValue& value) {
    const os::MutexLock lock(mutex);
    next.emplace(digest, value);
  }
};

Fingerprints::Fingerprints() : state_(PolyHash::is_supported() ? std::make_unique<State>(random_key()) : nullptr) {}
Fingerprints::Fingerprints(Fingerprints&&) noexcept = default;
Fingerprints& Fingerprints::operator=(Fingerprints&&) noexcept = default;
Fingerprints::~Fingerprints() = default;

bool Fingerprints::recognise(const Digest& before, ByteView content) {
  if (state_ == nullptr) return false;
  const auto known = state_->known.find(before);
  if (known == state_->known.end() || state_->hash.of(content) != known->second) return false;
  state_->add(before, known->second);
  return true;
}

void Fingerprints::note(const Digest& digest, ByteView content, const Digest* before) {
  if (state_ == nullptr || content.size() < k_fingerprint_min || (before != nullptr && *before != digest)) return;
  state_->add(digest, state_->hash.of(content));
}

void Fingerprints::keep(const Entry& entry) {
  if (state_ == nullptr) return;
  for (const Chunk& chunk : entry.chunks)
    if (const auto known = state_->known.find(chunk.digest); known != state_->known.end())
      state_->add(chunk.digest, known->second);
}

void Fingerprints::end_scan(bool success) {
  if (state_ == nullptr) return;
  const os::MutexLock lock(state_->mutex);
  if (success) state_->known.swap(state_->next);
  state_->next.clear();
}

Fingerprints Fingerprints::load(const os::Path& store, const Cipher& cipher, const Digest& root) {
  Fingerprints made;
  if (made.state_ == nullptr) return made;
  const Result<std::string> sealed = os::read_file(file_of(store, cipher, root), k_file_max);
  if (!sealed || sealed->size() < k_header + k_sealing_bytes) return made;
  const std::size_t length = sealed->size() - k_sealing_bytes;
  const std::optional<Bytes> plain =
      cipher.open(seal_id(cipher, root), static_cast<std::uint32_t>(length), as_bytes(*sealed));
  if (!plain || plain->size() != length || (length - k_header) % k_record != 0) return made;
  ByteView rest = *plain;
  const auto take = [&rest](auto& into) {
    std::ranges::copy(rest.first(into.size()), into.begin());
    rest = rest.subspan(into.size());
  };
  PolyValue key;
  take(key);
  made.state_ = std::make_unique<State>(key);
  while (!rest.empty()) {
    Digest digest;
    PolyValue value;
    take(digest.bytes);
    take(value);
    made.state_->known.emplace(digest, value);
  }
  return made;
}

Result<void> Fingerprints::save(const os::Path& store, const Cipher& cipher, const Digest& root) const {
  if (state_ == nullptr || state_->known.empty()) return {};
  std::string plain(as_text(state_->key));
  plain.reserve(k_header + state_->known.size() * k_record);
  for (const auto& [digest, value] : state_->known) (plain += as_text(digest.bytes)) += as_text(value);
  const Bytes sealed = cipher.seal(seal_id(cipher, root), static_cast<std::uint32_t>(plain.size()), as_bytes(plain));
  TRY(os::make_directories(prints_in(store)));
  return os::write_file_atomically(file_of(store, cipher, root), as_text(sealed));
}

Result<void> sweep_fingerprints(const os::Path& store, const std::function<bool(const Digest& id)>& live) {
  if (!os::exists(prints_in(store))) return {};
  TRY_ASSIGN(const auto names, os::list_directory(prints_in(store)));
  for (const std::string& name : names) {
    const Result<Digest> id = parse_digest(name);
    if (!id || !live(*id)) TRY(os::remove_file(prints_in(store) / name));
  }
  return {};
}

}  // namespace gridctl::store

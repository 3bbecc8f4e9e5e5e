// SPDX-License-Identifier: Apache-2.0
#include "control/copies/chunks.hpp"

#include <string>
#include <utility>

#include "os/entries.hpp"
#include "os/random.hpp"

namespace gridctl::control {
namespace {

constexpr const char* k_mend = "gridctl key import FILE";

std::string name_of(const store::KeyId& id) { return to_hex(ByteView{id.bytes}); }

// Writes the key unless another process was first. Returns false if a key already exists.
Result<bool> write_new(const os::Path& file, const store::StoreKey& key) {
  const os::Path beside = file.parent_path() / ("." + file.filename().native() + ".tmp-" + os::random_id(12));
  TRY(os::make_directories(file.parent_path()));
  TRY(os::write_file_durably(beside, key.to_text()));
  const Result<void> linked = os::link_file(beside, file);
  TRY(os::remove_file(beside));
  if (!linked && !os::exists(file)) return linked.error();
  TRY(os::sync_directory(file.parent_path()));
  return linked.has_value();
}

Result<store::StoreKey> key_for_writing(const Paths& paths) {
  for (const bool first : {true, false}) {
    TRY_ASSIGN(std::optional<store::StoreKey> key, load_key(paths));
    if (key) return *std::move(key);
    TRY_ASSIGN(const store::KeyId wanted, store::ChunkStore::key_of(paths.chunk_store()));
    if (wanted && first) continue;  // both may have been made since we looked for the key
    if (wanted) {
      return make_error(
          Code::state_unreadable,
          "the store is encrypted with key " + name_of(wanted) + ", and " + paths.store_key().native() + " is missing",
          k_mend);
    }
    if (first) TRY(write_new(paths.store_key(), store::StoreKey::make()));
  }
  return make_error(Code::io, "the new key " + paths.store_key().native() + " is missing");
}

}  // namespace

Result<std::optional<store::StoreKey>> load_key(const Paths& paths) {
  const auto text = os::read_file(paths.store_key(), store::k_key_file_max);
  if (!text && text.error().code == Code::not_found) return std::optional<store::StoreKey>();
  if (!text) return text.error();
  auto key = store::parse_key(*text);
  if (key) return std::optional(*std::move(key));
  Error error = std::move(key).error();
  error.code = Code::state_unreadable;
  return std::move(error).with_context("while reading the key " + paths.store_key().native()).with_hint(k_mend);
}

Result<store::ChunkStore> open_chunks(const Paths& paths) {
  TRY_ASSIGN(store::StoreKey key, key_for_writing(paths));
  store::StoreOptions options;
  options.cipher = std::make_shared<const store::StoreKey>(std::move(key));
  return store::ChunkStore::open(paths.chunk_store(), options);
}

Result<void> install_key(const Paths& paths, const store::StoreKey& key) {
  const os::Path file = paths.store_key();
  TRY_ASSIGN(const store::KeyId wanted, store::ChunkStore::key_of(paths.chunk_store()));
  if (wanted && wanted != key.id()) {
    return make_error(Code::usage,
                      "the store is encrypted with key " + name_of(wanted) + ", not with key " + name_of(key.id()));
  }
  const auto present = load_key(paths);
  if (present && *present) {
    if ((*present)->id() == key.id()) return {};
    if (!wanted || (*present)->id() == wanted)
      return make_error(Code::exists, "there is another key already: " + name_of((*present)->id()));
    TRY(os::rename_path(file, file.native() + "." + name_of((*present)->id())));
  } else if (!present) {
    if (!wanted) return present.error();
    TRY(os::rename_path(file, file.native() + ".unreadable"));
  }
  TRY_ASSIGN(const bool written, write_new(file, key));
  return written ? Result<void>() : make_error(Code::exists, "another process has just created a key");
}

}  // namespace gridctl::control

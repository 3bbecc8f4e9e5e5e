// SPDX-License-Identifier: Apache-2.0
#include "store/remote.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "os/random.hpp"
#include "store/big_endian.hpp"

namespace gridctl::store {
namespace {

constexpr std::string_view k_mark_line = "gridctl-remote 1", k_key_word = "key ", k_keeper_word = "keeper ";
constexpr std::size_t k_mark_max = 4096;  // bytes
constexpr std::size_t k_keeper_max = 64;  // characters
constexpr std::size_t k_probe_bytes = 1000;

std::string key_text(const KeyId& key) { return to_hex(ByteView{key.bytes}); }

Error odd(const std::string& what) { return make_error(Code::io, "the remote does not behave as required: " + what); }

Result<void> probe(Backend& remote, const std::string& name) {
  const Bytes content = os::random_bytes(k_probe_bytes), other = os::random_bytes(k_probe_bytes);
  TRY_ASSIGN(const bool written, remote.put_new(name, content));
  if (!written) return odd("a new name is already taken");
  TRY_ASSIGN(const bool again, remote.put_new(name, other));
  if (again) return odd("it let a second writer replace what a first one had written");
  TRY_ASSIGN(const Bytes back, read_object(remote, name, 2 * k_probe_bytes));
  if (back != content) return odd("it returned different bytes than were written");
  TRY_ASSIGN(const std::vector<Object> listed, remote.list(name));
  if (listed != std::vector<Object>{{name, content.size()}}) return odd("the object just written is not listed");
  return {};
}

}  // namespace

std::string to_text(const RemoteMark& mark) {
  return std::string(k_mark_line) + "\n" + std::string(k_key_word) + key_text(mark.key) + "\n" +
         std::string(k_keeper_word) + mark.keeper.value + "\n";
}

Result<RemoteMark> parse_mark(std::string_view text) {
  const std::vector<std::string> lines = split_lines(text);
  const auto is_id = [](std::string_view id) {
    return !id.empty() && id.size() <= k_keeper_max &&
           std::ranges::all_of(id, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
  };
  if (lines.size() == 3 && lines[0] == k_mark_line && lines[1].starts_with(k_key_word) &&
      lines[2].starts_with(k_keeper_word) && is_id(lines[2].substr(k_keeper_word.size()))) {
    const std::optional<Bytes> key = parse_hex(std::string_view(lines[1]).substr(k_key_word.size()));
    if (key && key->size() == sizeof(KeyId))
      return RemoteMark{{first_bytes<16>(*key)}, {lines[2].substr(k_keeper_word.size())}};
  }
  return make_error(Code::state_unreadable,
                    "its object '" + std::string(k_mark_name) + "' was not written by this gridctl");
}

Result<std::optional<RemoteMark>> read_mark(Backend& remote) {
  const Result<Bytes> content = read_object(remote, k_mark_name, k_mark_max);
  if (!content && content.error().code == Code::not_found) return std::optional<RemoteMark>();
  if (!content) return content.error();
  TRY_ASSIGN(RemoteMark mark, parse_mark(as_text(*content)));
  return std::optional(std::move(mark));
}

Result<bool> write_mark(Backend& remote, const RemoteMark& mark) {
  return remote.put_new(k_mark_name, as_bytes(to_text(mark)));
}

Result<void> check_mark(Backend& remote, const RemoteMark& ours) {
  TRY_ASSIGN(const std::optional<RemoteMark> mark, read_mark(remote));
  if (!mark) return make_error(Code::refused, "it is no longer marked as a remote: its contents are gone");
  if (mark->key != ours.key)
    return make_error(Code::refused, "it now keeps copies of another store, with key " + key_text(mark->key));
  if (mark->keeper != ours.keeper)
    return make_error(Code::refused, "another state directory, " + mark->keeper.value + ", now keeps its copies there");
  return {};
}

Result<void> try_remote(Backend& remote) {
  const std::string name = "probe-" + os::random_id(12);
  Result<void> tried = probe(remote, name);
  const Result<void> removed = remote.remove(name);
  if (!tried) return tried;
  TRY(removed);
  const Result<Bytes> gone = remote.read(name, 0, 1);
  if (gone || gone.error().code != Code::not_found) return odd("a removed object is still there");
  return {};
}

Result<RemoteListing> list_remote(Backend& remote) {
  TRY_ASSIGN(const std::vector<Object> objects, remote.list(""));
  RemoteListing listing;
  for (const Object& object : objects) {
    if (const auto pack = parse_pack_object(object.name)) {
      listing.packs[*pack] = object.size;
      listing.pack_bytes += object.size;
    } else if (const auto record = parse_record_name(object.name)) {
      listing.records.push_back(*record);
    } else if (object.name != k_mark_name) {
      ++listing.others;
    }
  }
  std::ranges::sort(listing.records);
  return listing;
}

Result<CopyRecord> read_record(Backend& remote, const RecordName& name, const StoreKey& key) {
  TRY_ASSIGN(const Bytes sealed, read_object(remote, object_name(name), k_record_max));
  return open_record(name, sealed, key);
}

Result<Bytes> read_object(Backend& remote, std::string_view name, std::uint64_t offset, std::size_t size) {
  Bytes bytes;
  while (bytes.size() < size) {
    const std::size_t wanted = std::min(size - bytes.size(), k_object_read_max);
    TRY_ASSIGN(const Bytes piece, remote.read(name, offset + bytes.size(), wanted));
    if (piece.size() > wanted) return make_error(Code::protocol_violation, "the remote sent more than was asked for");
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    if (piece.size() < wanted) break;
  }
  return bytes;
}

Result<Bytes> read_object(Backend& remote, std::string_view name, std::size_t bytes_max) {
  TRY_ASSIGN(Bytes whole, read_object(remote, name, 0, bytes_max + 1));
  if (whole.size() > bytes_max) return make_error(Code::io, "object '" + std::string(name) + "' is too large");
  return whole;
}

}  // namespace gridctl::store

// SPDX-License-Identifier: Apache-2.0
#include "store/record.hpp"

#include <algorithm>
#include <span>

#include "base/numbers.hpp"
#include "crypto/sealing.hpp"
#include "os/random.hpp"
#include "store/big_endian.hpp"
#include "store/pack.hpp"

namespace gridctl::store {
namespace {

constexpr std::string_view k_record_magic = "GRIDCOPY", k_record_label = "gridctl/record/1", k_pack_ending = ".pack";
constexpr std::uint16_t k_record_version = 1;
constexpr std::size_t k_header_bytes = 28;  // magic, version, reserved, id of the key
constexpr std::size_t k_job_max = 32;       // characters of a job's id

void put_text(Bytes& out, std::string_view text) {
  put_big_endian(out, static_cast<std::uint16_t>(text.size()));
  put_bytes(out, as_bytes(text));
}

std::string read_text(Reader& in) {
  const auto size = in.number<std::uint16_t>();
  return std::string(as_text(in.bytes(size)));
}

Bytes to_plain(const CopyRecord& record) {
  Bytes out;
  put_text(out, record.job.value);
  put_big_endian(out, record.seq.value);
  put_big_endian(out, record.epoch.value);
  put_big_endian(out, record.attempt.value);
  put_bytes(out, record.root.bytes);
  put_big_endian(out, static_cast<std::uint64_t>(record.created_at.ms));
  put_big_endian(out, record.bytes);
  put_big_endian(out, record.files);
  put_text(out, record.job_name);
  put_text(out, record.how);
  put_big_endian(out, static_cast<std::uint32_t>(record.packs.size()));
  for (const NeededPack& pack : record.packs) {
    put_bytes(out, pack.id.bytes);
    put_big_endian(out, pack.size);
  }
  return out;
}

Error damaged_record(const RecordName& name, std::string_view why) {
  return make_error(Code::checkpoint_damaged,
                    "the record of " + checkpoint_name(name.job, name.seq) + " " + std::string(why));
}

Result<CopyRecord> parse_plain(const RecordName& name, ByteView plain) {
  Reader in(plain);
  CopyRecord record;
  record.job = {read_text(in)};
  record.seq = {in.number<std::uint64_t>()};
  record.epoch = {in.number<std::uint64_t>()};
  record.attempt = {in.number<std::uint64_t>()};
  record.root = in.digest();
  record.created_at = {static_cast<std::int64_t>(in.number<std::uint64_t>())};
  record.bytes = in.number<std::uint64_t>();
  record.files = in.number<std::uint64_t>();
  record.job_name = read_text(in);
  record.how = read_text(in);
  const auto count = in.number<std::uint32_t>();
  if (!in.good() || count == 0 || count > k_record_packs_max || in.left() != count * (sizeof(Digest) + 8))
    return damaged_record(name, "cannot be read");
  for (std::uint32_t i = 0; i < count; ++i) {
    NeededPack pack;
    pack.id = in.digest();
    pack.size = in.number<std::uint64_t>();
    if (pack.size > k_object_max || (i > 0 && pack.id <= record.packs.back().id))
      return damaged_record(name, "is inconsistent");
    record.packs.push_back(pack);
  }
  if (RecordName{record.job, record.seq} != name) return damaged_record(name, "belongs to another checkpoint");
  return record;
}

Bytes header_of(const KeyId& key) {
  Bytes header;
  put_bytes(header, as_bytes(k_record_magic));
  put_big_endian(header, k_record_version);
  put_big_endian(header, std::uint16_t{0});
  put_bytes(header, key.bytes);
  return header;
}

Bytes extra_of(const RecordName& name, ByteView header) {
  Bytes extra;
  put_bytes(extra, as_bytes(k_record_label));
  put_bytes(extra, header);
  put_bytes(extra, as_bytes(object_name(name)));
  return extra;
}

Result<void> check_header(const RecordName& name, ByteView sealed, const StoreKey& key) {
  if (sealed.size() < k_header_bytes + k_sealing_bytes || sealed.size() > k_record_max)
    return damaged_record(name, "does not have the size of a record");
  Reader in(sealed);
  if (as_text(in.bytes(k_record_magic.size())) != k_record_magic)
    return damaged_record(name, "does not begin like a record");
  const auto version = in.number<std::uint16_t>(), reserved = in.number<std::uint16_t>();
  if (version != k_record_version || reserved != 0)
    return make_error(Code::unsupported, "the record of " + checkpoint_name(name.job, name.seq) + " has version " +
                                             std::to_string(version) + "; this gridctl knows version 1");
  const ByteView id = in.bytes(sizeof(KeyId));
  if (std::equal(id.begin(), id.end(), key.id().bytes.begin())) return {};
  return damaged_record(name, "belongs to another store key, " + to_hex(id));
}

}  // namespace

std::string object_name(const RecordName& name) {
  return std::string(k_record_prefix) + name.job.value + "/" + std::to_string(name.seq.value);
}

std::optional<RecordName> parse_record_name(std::string_view object) {
  if (!object.starts_with(k_record_prefix)) return std::nullopt;
  object.remove_prefix(k_record_prefix.size());
  const std::size_t slash = object.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash > k_job_max) return std::nullopt;
  const std::string_view job = object.substr(0, slash), number = object.substr(slash + 1);
  const auto in_id = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  RecordName name{{std::string(job)}, {}};
  if (!std::ranges::all_of(job, in_id) || !parse_into(number, name.seq.value) || number[0] == '0') return std::nullopt;
  return name;
}

std::string object_name(const NeededPack& pack) { return std::string(k_pack_prefix) + pack_name(pack.id); }

std::optional<Digest> parse_pack_object(std::string_view object) {
  if (!object.starts_with(k_pack_prefix) || !object.ends_with(k_pack_ending)) return std::nullopt;
  object.remove_prefix(k_pack_prefix.size());
  object.remove_suffix(k_pack_ending.size());
  const Result<Digest> id = parse_digest(object);
  return id ? std::optional(*id) : std::nullopt;
}

Bytes seal_record(const CopyRecord& record, const StoreKey& key) {
  GRIDCTL_CHECK(record.packs.size() <= k_record_packs_max && record.job_name.size() <= k_record_text_max &&
                record.how.size() <= k_record_text_max);
  const Bytes header = header_of(key.id()), plain = to_plain(record), nonce = os::random_bytes(crypto::k_gcm_nonce);
  Bytes out = header;
  put_bytes(out, nonce);
  const std::size_t front = out.size();
  out.resize(front + plain.size() + crypto::k_gcm_tag);
  crypto::gcm_seal(key.key_for(k_record_label).bytes, nonce, extra_of({record.job, record.seq}, header), plain,
                   std::span(out).subspan(front));
  return out;
}

Result<CopyRecord> open_record(const RecordName& name, ByteView sealed, const StoreKey& key) {
  TRY(check_header(name, sealed, key));
  const ByteView header = sealed.first(k_header_bytes), nonce = sealed.subspan(k_header_bytes, crypto::k_gcm_nonce),
                 body = sealed.subspan(k_header_bytes + crypto::k_gcm_nonce);
  Bytes plain(body.size() - crypto::k_gcm_tag);
  if (!crypto::gcm_open(key.key_for(k_record_label).bytes, nonce, extra_of(name, header), body, plain))
    return damaged_record(name, "was not written under this name");
  return parse_plain(name, plain);
}

}  // namespace gridctl::store

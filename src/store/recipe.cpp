// SPDX-License-Identifier: Apache-2.0
#include "store/recipe.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "crypto/sealing_small.hpp"
#include "store/big_endian.hpp"
#include "store/codec.hpp"
#include "store/tree.hpp"

namespace gridctl::store {
namespace {

Error no_recipe(const char* why) {
  return make_error(Code::protocol_violation, std::string("this is not the recipe of a pack: ") + why);
}

template <std::size_t n>
std::array<std::byte, n> fixed(Reader& in) {
  std::array<std::byte, n> out{};
  const ByteView taken = in.bytes(n);
  std::copy(taken.begin(), taken.end(), out.begin());
  return out;
}

RecipeBlob read_blob(Reader& in, std::uint64_t offset) {
  RecipeBlob blob;
  blob.digest = in.digest();
  blob.entry.id = in.digest();
  blob.entry.offset = offset;
  blob.entry.length = in.number<std::uint32_t>();
  blob.entry.plain_length = in.number<std::uint32_t>();
  blob.entry.encoding.codec = static_cast<Codec>(in.number<std::uint8_t>());
  blob.entry.encoding.parameter = in.number<std::uint16_t>();
  blob.key = in.digest();
  blob.nonce = fixed<12>(in);
  const Digest base = in.digest();
  blob.entry.base.bytes = fixed<12>(in);
  if (blob.entry.base) blob.base = base;
  return blob;
}

// Returns the content as the store encoded it. The best encoding follows from the content alone.
Result<Bytes> encoded(const RecipeBlob& blob, const ReadBlob& read) {
  TRY_ASSIGN(Bytes plain, read(blob.digest));
  if (plain.size() != blob.entry.plain_length)
    return make_error(Code::checkpoint_damaged, "chunk " + to_hex(blob.digest) + " has another length");
  if (blob.entry.encoding.codec == Codec::raw) return plain;
  std::optional<Encoded> made;
  if (blob.base) {
    TRY_ASSIGN(Bytes base, read(*blob.base));
    if (base.size() == plain.size()) made = encode_difference(plain, std::move(base));
  } else {
    made = encode(plain);
  }
  if (made && made->encoding == blob.entry.encoding) return std::move(made->bytes);
  return make_error(Code::unsupported, "chunk " + to_hex(blob.digest) + " is encoded differently here");
}

Bytes sealed(const RecipeBlob& blob, ByteView content) {
  Bytes out(content.size() + k_sealing_bytes);
  std::copy(blob.nonce.begin(), blob.nonce.end(), out.begin());
  crypto::gcm_seal_small(blob.key.bytes, blob.nonce, sealing_context(blob.entry.id, blob.entry.plain_length), content,
                         std::span(out).subspan(blob.nonce.size()));
  return out;
}

}  // namespace

Bytes encode(const PackRecipe& recipe) {
  Bytes out;
  put_bytes(out, recipe.key.bytes);
  put_big_endian(out, recipe.size);
  put_bytes(out, recipe.content.bytes);
  put_big_endian(out, static_cast<std::uint32_t>(recipe.blobs.size()));
  for (const RecipeBlob& blob : recipe.blobs) {
    put_bytes(out, blob.digest.bytes);
    put_bytes(out, blob.entry.id.bytes);
    put_big_endian(out, blob.entry.length);
    put_big_endian(out, blob.entry.plain_length);
    put_big_endian(out, static_cast<std::uint8_t>(blob.entry.encoding.codec));
    put_big_endian(out, blob.entry.encoding.parameter);
    put_bytes(out, blob.key.bytes);
    put_bytes(out, blob.nonce);
    put_bytes(out, blob.base.value_or(Digest{}).bytes);
    put_bytes(out, blob.entry.base.bytes);
  }
  return out;
}

Result<PackRecipe> parse_recipe(ByteView bytes) {
  if (bytes.size() > k_recipe_bytes_max) return no_recipe("it is too long");
  Reader in(bytes);
  PackRecipe recipe;
  recipe.key.bytes = fixed<16>(in);
  recipe.size = in.number<std::uint64_t>();
  recipe.content = in.digest();
  const auto count = in.number<std::uint32_t>();
  if (!in.good() || count == 0 || recipe.size > k_recipe_pack_max) return no_recipe("its sizes are not valid");
  std::uint64_t offset = k_pack_header_bytes;
  while (in.good() && in.left() > 0) {
    RecipeBlob blob = read_blob(in, offset);
    offset += blob.entry.length;
    const bool fits = in.good() && blob.entry.plain_length > 0 && blob.entry.plain_length <= k_blob_max &&
                      blob.entry.length > k_sealing_bytes && blob.entry.encoding.codec <= Codec::difference_planes &&
                      is_difference(blob.entry.encoding.codec) == blob.base.has_value();
    if (!fits || recipe.blobs.size() == count || offset > recipe.size) return no_recipe("a blob in it is not valid");
    recipe.blobs.push_back(std::move(blob));
  }
  if (recipe.blobs.size() != count) return no_recipe("blobs are missing");
  return recipe;
}

Result<void> remake_pack(const PackRecipe& recipe, const ReadBlob& read, const WritePart& write) {
  crypto::Sha256 hash;
  const auto give = [&](ByteView part) {
    hash.update(part);
    return write(part);
  };
  std::vector<PackEntry> entries;
  for (const RecipeBlob& blob : recipe.blobs) entries.push_back(blob.entry);
  TRY(give(pack_header(entries, recipe.key)));
  for (const RecipeBlob& blob : recipe.blobs) {
    TRY_ASSIGN(const Bytes content, encoded(blob, read));
    if (content.size() + k_sealing_bytes != blob.entry.length)
      return make_error(Code::unsupported, "chunk " + to_hex(blob.digest) + " is encoded to another length here");
    TRY(give(sealed(blob, content)));
  }
  TRY(give(pack_end(entries, recipe.key).bytes));
  if (hash.finish() == recipe.content) return {};
  return make_error(Code::unsupported, "the rebuilt pack differs here");
}

}  // namespace gridctl::store

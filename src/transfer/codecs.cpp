// SPDX-License-Identifier: Apache-2.0
#include "transfer/codecs.hpp"

#include <array>
#include <utility>

namespace gridctl::transfer {
namespace {

constexpr std::array k_ours{store::Codec::zstd, store::Codec::planes};
constexpr std::string_view k_word = "codec-";

constexpr double k_memory_bytes = 64 << 20;    // older measurements fade
constexpr double k_evidence_bytes = 16 << 20;  // the first bytes go into buffers and tell nothing of the link
constexpr double k_allowance = 0.02;           // of the link's time may be spent in vain: content may change
constexpr int k_refusals_max = 15;             // then a chunk is tried again

std::string word_of(store::Codec codec) { return std::string(k_word) + std::to_string(static_cast<int>(codec)); }
std::uint32_t bit_of(store::Codec codec) {
  const auto number = static_cast<unsigned>(codec);
  return number < 32 ? 1u << number : 0;
}

}  // namespace

Codecs Codecs::ours() {
  Codecs codecs;
  for (const store::Codec codec : k_ours) codecs.bits_ |= bit_of(codec);
  return codecs;
}

Codecs Codecs::of(const std::vector<std::string>& features) {
  Codecs codecs;
  for (const store::Codec codec : k_ours)  // what we do not know we cannot send
    for (const std::string& word : features)
      if (word == word_of(codec)) codecs.bits_ |= bit_of(codec);
  return codecs;
}

std::vector<std::string> Codecs::words() const {
  std::vector<std::string> words;
  for (const store::Codec codec : k_ours)
    if (includes(codec)) words.push_back(word_of(codec));
  return words;
}

bool Codecs::includes(store::Codec codec) const { return codec == store::Codec::raw || (bits_ & bit_of(codec)) != 0; }

Result<Bytes> unpack(Parcel parcel, std::size_t plain_size, Codecs agreed) {
  if (!agreed.includes(parcel.encoding.codec))
    return make_error(Code::protocol_violation, "a chunk came with codec " +
                                                    std::to_string(static_cast<int>(parcel.encoding.codec)) +
                                                    ", which was not negotiated");
  if (parcel.encoding.codec != store::Codec::raw) return store::decode(parcel.encoding, parcel.bytes, plain_size);
  if (parcel.bytes.size() == plain_size) return std::move(parcel.bytes);
  return make_error(Code::checkpoint_damaged, "a chunk of " + std::to_string(plain_size) + " bytes came with " +
                                                  std::to_string(parcel.bytes.size()));
}

void EncodingWorth::Rate::add(double more_bytes, double more_seconds) {
  bytes += more_bytes;
  seconds += more_seconds;
}

bool EncodingWorth::wanted() {
  const os::MutexLock lock(mutex_);
  if (link_.bytes < k_evidence_bytes || encoding_.bytes == 0) return true;
  const double link_seconds_per_byte = link_.seconds / link_.bytes;
  const double saved_seconds = (saved_ + k_allowance * encoding_.bytes) * link_seconds_per_byte;
  if (encoding_.seconds <= saved_seconds || refused_ >= k_refusals_max) {
    refused_ = 0;
    return true;
  }
  ++refused_;
  return false;
}

void EncodingWorth::encoded(std::size_t plain, std::size_t stored, Duration took) {
  const os::MutexLock lock(mutex_);
  encoding_.add(static_cast<double>(plain), seconds(took));
  saved_ += static_cast<double>(plain) - static_cast<double>(stored);
  if (encoding_.bytes < k_memory_bytes) return;
  encoding_ = {encoding_.bytes / 2, encoding_.seconds / 2};
  saved_ /= 2;
}

void EncodingWorth::sent(std::size_t bytes, Duration took) {
  const os::MutexLock lock(mutex_);
  link_.add(static_cast<double>(bytes), seconds(took));
  if (link_.bytes >= k_memory_bytes) link_ = {link_.bytes / 2, link_.seconds / 2};
}

Parcel pack(Bytes plain, Codecs agreed, EncodingWorth& worth, const os::Clock& clock) {
  if (agreed.words().empty() || !worth.wanted()) return {std::move(plain), {}};
  const BootTime began = clock.boot();
  std::optional<store::Encoded> encoded = store::encode(plain);
  const bool good = encoded && agreed.includes(encoded->encoding.codec) && encoded->bytes.size() < plain.size();
  worth.encoded(plain.size(), good ? encoded->bytes.size() : plain.size(), clock.boot() - began);
  if (!good) return {std::move(plain), {}};
  return {std::move(encoded->bytes), encoded->encoding};
}

}  // namespace gridctl::transfer

// SPDX-License-Identifier: Apache-2.0
// Handles chunks in encoded form: which encodings the two sides agreed on, and whether encoding is worth its time on a
// link.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"
#include "os/mutex.hpp"
#include "store/codec.hpp"

namespace gridctl::transfer {

// Holds bytes in the form in which they travel.
struct Parcel {
  Bytes bytes;
  store::Encoding encoding;  // raw: the bytes are the content
};

// States which codecs one side decodes. Announced by words of the handshake, "codec-N": gridctl-agent(7).
class Codecs {
 public:
  Codecs() = default;  // none: everything travels plain
  [[nodiscard]] static Codecs ours();
  [[nodiscard]] static Codecs of(const std::vector<std::string>& features);
  [[nodiscard]] std::vector<std::string> words() const;
  [[nodiscard]] bool includes(store::Codec codec) const;  // raw always is

 private:
  std::uint32_t bits_ = 0;  // bit N: codec N
};

// Returns the content of a parcel from a peer. protocol_violation for a codec that `agreed` lacks, checkpoint_damaged
// if it is not an encoding of exactly `plain_size` bytes. The content itself is not verified.
[[nodiscard]] Result<Bytes> unpack(Parcel parcel, std::size_t plain_size, Codecs agreed);

// Compares the cost of encoding with its savings on this link, as the sender measures them: encoding that pays on an
// uplink slows down a LAN, and no user should have to configure it. Any thread.
class EncodingWorth {
 public:
  // Decides for the next chunk. True until the link is known; if it does not pay, still true occasionally, because
  // contents differ.
  [[nodiscard]] bool wanted();
  void encoded(std::size_t plain, std::size_t stored, Duration took);
  void sent(std::size_t bytes, Duration took);

 private:
  // Holds sums in which the past fades.
  struct Rate {
    double bytes = 0, seconds = 0;
    void add(double more_bytes, double more_seconds);
  };
  os::Mutex mutex_;
  Rate encoding_ GRIDCTL_GUARDED_BY(mutex_), link_ GRIDCTL_GUARDED_BY(mutex_);
  double saved_ GRIDCTL_GUARDED_BY(mutex_) = 0;  // bytes, of those in encoding_
  int refused_ GRIDCTL_GUARDED_BY(mutex_) = 0;
};

// Encodes if that is agreed on, worth it, and makes the chunk smaller.
[[nodiscard]] Parcel pack(Bytes plain, Codecs agreed, EncodingWorth& worth, const os::Clock& clock);

}  // namespace gridctl::transfer

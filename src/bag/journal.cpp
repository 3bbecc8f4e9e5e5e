// SPDX-License-Identifier: Apache-2.0
#include "bag/journal.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "wire/frame.hpp"

namespace gridctl::bag {

namespace {

constexpr std::size_t k_head = 8;  // bytes of length and checksum

void put(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
void put_signed(std::string& out, std::int64_t value) {
  put(out, (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
}
void put_fixed(std::string& out, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) out += static_cast<char>(value >> (8 * i));
}
std::uint32_t fixed_at(std::string_view text, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<unsigned char>(text[at + i])} << (8 * i);
  return value;
}

// Reads numbers and text. Missing or excessive bytes make the reader bad, and every later read gives 0.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  std::uint64_t number() {
    if (!text_.empty() && static_cast<unsigned char>(text_.front()) < 0x80) {  // nearly all of a journal
      const auto byte = static_cast<unsigned char>(text_.front());
      text_.remove_prefix(1);
      return byte;
    }
    return long_number();
  }
  std::int64_t signed_number() {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  std::string text() {
    const std::uint64_t size = number();
    if (size > text_.size()) return bad_ = true, "";
    std::string out(text_.substr(0, size));
    text_.remove_prefix(size);
    return out;
  }
  // Reads a count of items that follow, each of at least one byte.
  std::uint64_t count() {
    const std::uint64_t count = number();
    if (count > text_.size()) bad_ = true;
    return bad_ ? 0 : count;
  }
  // Reads a number that older records do not have.
  std::uint64_t added() { return text_.empty() ? 0 : number(); }
  [[nodiscard]] bool done() const { return !bad_ && text_.empty(); }

 private:
  std::uint64_t long_number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && !text_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(text_.front());
      text_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    bad_ = true;
    text_ = {};
    return 0;
  }

  std::string_view text_;
  bool bad_ = false;
};

enum class Kind : std::uint8_t { begun, joined, ordered, told, closed, resumed, rebased, capped };
static_assert(std::variant_size_v<Record> == static_cast<std::size_t>(Kind::capped) + 1);

void put(std::string& out, const Worker& worker) {
  put(out, worker.number);
  put(out, worker.epoch);
}
Worker worker_of(Reader& in) {
  const auto number = static_cast<std::uint32_t>(in.number());
  return {number, in.number()};
}

// The flags stand for properties that most results share, which take no bytes: an output that begins where the last one
// ended, no status, nothing lost.
constexpr std::uint64_t k_status = 1, k_output_elsewhere = 2, k_more_output = 4, k_several = 8, k_end_shift = 4, k_end_mask = 7, k_files = 128;

void put(std::string& out, const wire::TaskResult& one, const wire::TaskResult& before) {
  const bool elsewhere = one.offset != before.output_end();
  const bool more = one.error_bytes > 0 || one.dropped > 0;
  put(out, (one.exit_code != 0 || one.signal != 0 ? k_status : 0) | (elsewhere ? k_output_elsewhere : 0) |
               (more ? k_more_output : 0) | (one.count != 1 ? k_several : 0) | (one.file_bytes > 0 ? k_files : 0) |
               static_cast<std::uint64_t>(one.end) << k_end_shift);
  put_signed(out, static_cast<std::int64_t>(one.index - before.index));
  put_signed(out, static_cast<std::int64_t>(one.order - before.order));
  put_signed(out, one.began.ms - before.began.ms);
  put(out, one.ms);
  put_signed(out, std::int64_t{one.peak_kib} - std::int64_t{before.peak_kib});
  put(out, one.bytes);
  if (one.exit_code != 0 || one.signal != 0) {
    put(out, one.exit_code);
    put(out, one.signal);
  }
  if (elsewhere) put(out, one.offset);
  if (more) {
    put(out, one.error_bytes);
    put(out, one.dropped);
  }
  if (one.count != 1) put(out, one.count);
  if (one.file_bytes > 0) put(out, one.file_bytes);
}

void read_result(Reader& in, const wire::TaskResult& before, wire::TaskResult& one) {
  const std::uint64_t flags = in.number();
  one.end = static_cast<wire::TaskEnd>(std::min<std::uint64_t>(flags >> k_end_shift & k_end_mask,
                                                               static_cast<std::uint64_t>(wire::TaskEnd::no_space)));
  one.index = before.index + static_cast<std::uint64_t>(in.signed_number());
  one.order = before.order + static_cast<std::uint64_t>(in.signed_number());
  one.began.ms = before.began.ms + in.signed_number();
  one.ms = static_cast<std::uint32_t>(in.number());
  one.peak_kib = static_cast<std::uint32_t>(std::int64_t{before.peak_kib} + in.signed_number());
  one.bytes = static_cast<std::uint32_t>(in.number());
  if ((flags & k_status) != 0) {
    one.exit_code = static_cast<std::uint8_t>(in.number());
    one.signal = static_cast<std::uint8_t>(in.number());
  }
  one.offset = (flags & k_output_elsewhere) != 0 ? in.number() : before.output_end();
  if ((flags & k_more_output) != 0) {
    one.error_bytes = static_cast<std::uint32_t>(in.number());
    one.dropped = in.number();
  }
  if ((flags & k_several) != 0) one.count = in.number();
  if ((flags & k_files) != 0) one.file_bytes = in.number();
}

struct Writer {
  std::string& out;
  void operator()(const Begun& record) {
    put(out, record.tasks);
    put(out, record.retries);
    if (record.raises) put(out, 1);
  }
  void operator()(const Joined& record) {
    put(out, record.worker);
    put(out, record.attempt);
    put(out, record.host.size());
    out += record.host;
    if (record.level > 0) put(out, record.level);
  }
  void operator()(const Ordered& record) {
    put(out, record.worker);
    put(out, static_cast<std::uint64_t>(record.kind));
    put(out, record.number);
    put(out, record.ranges.size());
    Index before = 0;
    for (const Range& range : record.ranges) {
      put_signed(out, static_cast<std::int64_t>(range.first - before));
      put(out, range.count);
      before = range.end();
    }
  }
  void operator()(const Told& record) {
    put(out, record.worker);
    put(out, record.from);
    put(out, record.results.size());
    wire::TaskResult before;
    for (const wire::TaskResult& one : record.results) {
      put(out, one, before);
      before = one;
    }
  }
  void operator()(const Closed& record) {
    put(out, record.worker);
    put(out, record.suspects.size());
    for (const Index one : record.suspects) put(out, one);
  }
  void operator()(const Resumed&) {}
  void operator()(const Rebased& record) {
    put(out, record.worker);
    put(out, record.orders);
    put(out, record.results);
  }
  void operator()(const Capped& record) { put(out, record.level); }
};

Record read(Kind kind, Reader& in) {
  switch (kind) {
    case Kind::begun: {
      Begun record{in.number(), 1};
      record.retries = in.number();
      record.raises = in.added() != 0;
      return record;
    }
    case Kind::joined: {
      Joined record{worker_of(in), in.number(), {}};
      record.host = in.text();
      record.level = in.added();
      return record;
    }
    case Kind::ordered: {
      Ordered record{worker_of(in), static_cast<wire::OrderKind>(in.number() % 3), {}, in.number()};
      Index before = 0;
      for (std::uint64_t left = in.count(); left > 0; --left) {
        const Index first = before + static_cast<std::uint64_t>(in.signed_number());
        record.ranges.push_back({first, in.number()});
        before = record.ranges.back().end();
      }
      return record;
    }
    case Kind::told: {
      Told record{worker_of(in), in.number(), {}};
      record.results.resize(in.count());
      const wire::TaskResult* before = nullptr;
      for (wire::TaskResult& one : record.results) {
        read_result(in, before == nullptr ? wire::TaskResult{} : *before, one);
        before = &one;
      }
      return record;
    }
    case Kind::closed: {
      Closed record{worker_of(in), {}};
      for (std::uint64_t left = in.count(); left > 0; --left) record.suspects.push_back(in.number());
      return record;
    }
    case Kind::resumed: return Resumed{};
    case Kind::rebased: {
      Rebased record{worker_of(in), in.number(), 0};
      record.results = in.number();
      return record;
    }
    case Kind::capped: return Capped{in.number()};
  }
  return Resumed{};
}

// Returns the record that begins at `at`, and its length with the head, or nullopt if there is none.
std::optional<std::pair<Record, std::size_t>> record_at(std::string_view file, std::size_t at) {
  if (file.size() - at < k_head + 1) return std::nullopt;
  const std::size_t size = fixed_at(file, at);
  if (size == 0 || size > k_record_max || size > file.size() - at - k_head) return std::nullopt;
  const std::string_view body = file.substr(at + k_head, size);
  if (wire::crc32(body) != fixed_at(file, at + 4)) return std::nullopt;
  const auto kind = static_cast<unsigned char>(body.front());
  if (kind >= std::variant_size_v<Record>) return std::nullopt;
  Reader in(body.substr(1));
  Record record = read(static_cast<Kind>(kind), in);
  if (!in.done()) return std::nullopt;
  return std::pair{std::move(record), k_head + size};
}

}  // namespace

std::string encode(const Record& record) {
  std::string body(1, static_cast<char>(record.index()));
  std::visit(Writer{body}, record);
  std::string out;
  put_fixed(out, static_cast<std::uint32_t>(body.size()));
  put_fixed(out, wire::crc32(body));
  return out + body;
}

Scan scan(std::string_view file, const std::function<void(const Record&)>& take) {
  Scan found;
  std::size_t at = 0;
  if (file.starts_with(k_magic)) at = k_magic.size();
  else if (!file.empty()) found.bad_bytes = std::min(file.size(), k_magic.size());
  found.end = at;
  while (at < file.size()) {
    if (const auto one = record_at(file, at)) {
      take(one->first);
      ++found.records;
      at += one->second;
      found.end = at;
    } else {
      ++at;
      ++found.bad_bytes;
    }
  }
  return found;
}

}  // namespace gridctl::bag

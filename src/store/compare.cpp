// SPDX-License-Identifier: Apache-2.0
#include "store/compare.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "store/formats.hpp"

namespace gridctl::store {
namespace {

constexpr std::size_t k_window = 1u << 20;  // bytes compared at a time; a multiple of every width

// Reads a file of a tree through its chunks; keeps the last one.
class TreeFile {
 public:
  TreeFile(const Entry& entry, ChunkReader& chunks) : entry_(&entry), chunks_(&chunks) {
    std::uint64_t offset = 0;
    for (const Chunk& chunk : entry.chunks) {
      starts_.push_back(offset);
      offset += chunk.size;
    }
  }
  [[nodiscard]] const Entry& entry() const { return *entry_; }
  [[nodiscard]] ReadAt reader() {
    return [this](std::uint64_t offset, std::size_t size) { return read(offset, size); };
  }

  Result<Bytes> read(std::uint64_t offset, std::size_t size) {
    Bytes out;
    while (size > 0 && offset < entry_->size) {
      const std::size_t index = chunk_at(offset);
      if (!loaded_ || *loaded_ != index) {
        TRY_ASSIGN(content_, chunks_->read(entry_->chunks[index].digest));
        if (content_.size() != entry_->chunks[index].size)
          return make_error(Code::checkpoint_damaged, "a chunk has another size than the manifest says");
        loaded_ = index;
      }
      const auto from = static_cast<std::size_t>(offset - starts_[index]);
      const std::size_t taken = std::min(size, content_.size() - from);
      const auto begin = content_.begin() + static_cast<std::ptrdiff_t>(from);
      out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(taken));
      offset += taken;
      size -= taken;
    }
    return out;
  }

  // Returns the chunk that begins there, if any.
  [[nodiscard]] const Chunk* chunk_from(std::uint64_t offset) const {
    if (offset >= entry_->size) return nullptr;
    const std::size_t index = chunk_at(offset);
    return starts_[index] == offset ? &entry_->chunks[index] : nullptr;
  }

 private:
  [[nodiscard]] std::size_t chunk_at(std::uint64_t offset) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(starts_, offset) - starts_.begin()) - 1;
  }
  const Entry* entry_;
  ChunkReader* chunks_;
  std::vector<std::uint64_t> starts_;
  std::optional<std::size_t> loaded_;
  Bytes content_;
};

template <class Number>
Number load(const std::byte* at) {
  Number value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

float half(std::uint16_t bits) {
  const auto sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = bits >> 10 & 31, mantissa = bits & 0x3ff;
  if (exponent == 0) return (sign != 0 ? -1.0F : 1.0F) * std::ldexp(static_cast<float>(mantissa), -24);
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

struct NumberType {
  std::string_view name;
  std::size_t width;
  double (*value)(const std::byte*);  // of floating-point numbers
};
constexpr NumberType k_bytes{"", 1, nullptr};
constexpr NumberType k_number_types[] = {
    {"F64", 8, [](const std::byte* at) { return load<double>(at); }},
    {"F32", 4, [](const std::byte* at) { return static_cast<double>(load<float>(at)); }},
    {"BF16", 2,
     [](const std::byte* at) {
       return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(at)) << 16));
     }},
    {"F16", 2, [](const std::byte* at) { return static_cast<double>(half(load<std::uint16_t>(at))); }},
    {"I64", 8, nullptr},
    {"U64", 8, nullptr},
    {"I32", 4, nullptr},
    {"U32", 4, nullptr},
    {"I16", 2, nullptr},
    {"U16", 2, nullptr}};

const NumberType& type_of(const std::string& name) {
  const auto* found = std::find_if(std::begin(k_number_types), std::end(k_number_types),
                                   [&](const NumberType& t) { return t.name == name; });
  return found == std::end(k_number_types) ? k_bytes : *found;
}

// Holds sums over the numbers of one tensor.
struct Sums {
  double before = 0, change = 0;  // squares
  std::uint64_t finite = 0;

  void add(const NumberType& type, ByteView a, ByteView b, Difference& into) {
    for (std::size_t at = 0; at + type.width <= a.size(); at += type.width) {
      ++into.count;
      const bool same = std::memcmp(&a[at], &b[at], type.width) == 0;
      into.changed += same ? 0 : 1;
      if (type.value == nullptr) continue;
      const double x = type.value(&a[at]), y = same ? x : type.value(&b[at]);
      if (!std::isfinite(x) || !std::isfinite(y)) continue;
      ++finite;
      before += x * x;
      change += (y - x) * (y - x);
      into.largest = std::max(into.largest, std::abs(y - x));
    }
  }
};

class Comparison {
 public:
  Comparison(const Tree& before, const Tree& after, ChunkReader& chunks)
      : before_(before), after_(after), chunks_(chunks) {}

  Result<std::vector<Difference>> run() {
    std::set<std::string> paths;
    for (const Tree* tree : {&before_, &after_})
      for (const Entry& entry : tree->entries)
        if (entry.kind == EntryKind::file) paths.insert(entry.path);
    for (const std::string& path : paths) TRY(compare_files(path, file(before_, path), file(after_, path)));
    return std::move(found_);
  }

 private:
  static const Entry* file(const Tree& tree, const std::string& path) {
    const Entry* entry = tree.find(path);
    return entry == nullptr || entry->kind != EntryKind::file ? nullptr : entry;
  }

  // Returns the tensors of a file, or one without a name: the file itself.
  static std::vector<Tensor> tensors(TreeFile& of) {
    const std::uint64_t size = of.entry().size;
    const Result<Bytes> first = of.read(0, 4);
    if (first) {
      const Format format = guess_format(of.entry().path, size, *first);
      if (auto found = tensors_of(format, size, of.reader()); found && !found->empty()) return std::move(*found);
    }
    return {Tensor{{}, {}, {0, size}}};
  }

  Result<void> compare_files(const std::string& path, const Entry* before, const Entry* after) {
    if (before == nullptr || after == nullptr) {
      found_.push_back({path, {}, {}, before == nullptr ? Change::added : Change::removed,
                        before == nullptr ? 0 : before->size, after == nullptr ? 0 : after->size});
      return {};
    }
    TreeFile a(*before, chunks_), b(*after, chunks_);
    std::map<std::string, Tensor> old;
    for (Tensor& tensor : tensors(a)) old.emplace(tensor.name, std::move(tensor));
    for (const Tensor& tensor : tensors(b)) {
      Difference one{path, tensor.name, tensor.type, Change::none, 0, tensor.at.end - tensor.at.begin};
      const auto former = old.extract(tensor.name);
      if (former.empty()) one.change = Change::added;
      else TRY(compare_tensors(a, former.mapped(), b, tensor, one));
      found_.push_back(std::move(one));
    }
    for (const auto& [name, tensor] : old)
      found_.push_back({path, name, tensor.type, Change::removed, tensor.at.end - tensor.at.begin, 0});
    return {};
  }

  static const Chunk* same_chunk(const TreeFile& a, std::uint64_t in_a, const TreeFile& b, std::uint64_t in_b) {
    const Chunk *one = a.chunk_from(in_a), *other = b.chunk_from(in_b);
    return one != nullptr && other != nullptr && *one == *other ? one : nullptr;
  }

  // Returns true if that many bytes come from the same chunks.
  static bool are_same(const TreeFile& a, std::uint64_t in_a, const TreeFile& b, std::uint64_t in_b,
                       std::uint64_t length) {
    for (std::uint64_t done = 0; done < length;) {
      const Chunk* same = same_chunk(a, in_a + done, b, in_b + done);
      if (same == nullptr || same->size > length - done) return false;
      done += same->size;
    }
    return true;
  }

  Result<void> compare_tensors(TreeFile& a, const Tensor& before, TreeFile& b, const Tensor& after, Difference& one) {
    one.bytes_before = before.at.end - before.at.begin;
    if (one.bytes_before != one.bytes_after || before.type != after.type) {
      one.change = Change::resized;
      return {};
    }
    if (are_same(a, before.at.begin, b, after.at.begin, one.bytes_after)) return {};
    const NumberType& type = type_of(one.type);
    Sums sums;
    for (std::uint64_t done = 0; done < one.bytes_after;) {
      const Chunk* same =
          type.value == nullptr ? same_chunk(a, before.at.begin + done, b, after.at.begin + done) : nullptr;
      if (same != nullptr && same->size <= one.bytes_after - done) {
        one.count += same->size / type.width;
        done += same->size;
        continue;
      }
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(k_window, one.bytes_after - done));
      TRY_ASSIGN(const Bytes x, a.read(before.at.begin + done, size));
      TRY_ASSIGN(const Bytes y, b.read(after.at.begin + done, size));
      if (x.size() != size || y.size() != size)
        return make_error(Code::checkpoint_damaged, "a file is shorter than its manifest says");
      sums.add(type, x, y, one);
      done += size;
    }
    if (one.changed == 0) return {};
    one.change = Change::changed;
    one.measured = sums.finite > 0;
    const auto finite = static_cast<double>(std::max<std::uint64_t>(sums.finite, 1));
    one.rms_before = std::sqrt(sums.before / finite);
    one.rms_change = std::sqrt(sums.change / finite);
    return {};
  }

  const Tree &before_, &after_;
  ChunkReader& chunks_;
  std::vector<Difference> found_;
};

}  // namespace

Result<std::vector<Difference>> compare(const Tree& before, const Tree& after, ChunkReader& chunks) {
  return Comparison(before, after, chunks).run();
}

}  // namespace gridctl::store

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "store/formats.hpp"

namespace gridctl::store {
namespace {

constexpr std::size_t k_tensors_max = 1'000'000;
constexpr std::size_t k_shape_max = 64;  // dimensions
constexpr std::size_t k_dtype_max = 16;  // bytes of a type's name
constexpr std::uint64_t k_length_bytes = 8;

Error torn_tensors(std::string why) { return make_error(Code::checkpoint_damaged, "safetensors: " + std::move(why)); }

struct Type {
  std::string_view name;
  unsigned bits;
};
constexpr std::array k_types{Type{"BOOL", 8},    Type{"U8", 8},      Type{"I8", 8},      Type{"F8_E5M2", 8},
                             Type{"F8_E4M3", 8}, Type{"F8_E8M0", 8}, Type{"I16", 16},    Type{"U16", 16},
                             Type{"F16", 16},    Type{"BF16", 16},   Type{"I32", 32},    Type{"U32", 32},
                             Type{"F32", 32},    Type{"F64", 64},    Type{"I64", 64},    Type{"U64", 64},
                             Type{"C64", 64},    Type{"F4", 4},      Type{"F6_E2M3", 6}, Type{"F6_E3M2", 6}};

// Parses the small part of JSON that a safetensors header uses: an object of objects, no deeper nesting.
class Header {
 public:
  explicit Header(std::string_view text) : rest_(text) {}

  Result<std::vector<Tensor>> parse() {
    std::vector<Tensor> tensors;
    TRY(expect('{'));
    if (!take('}')) {
      do {
        TRY_ASSIGN(std::string name, string());
        TRY(expect(':'));
        if (name == "__metadata__") {
          TRY(metadata());
          continue;
        }
        TRY_ASSIGN(Tensor one, tensor());
        one.name = std::move(name);
        if (tensors.size() == k_tensors_max) return torn_tensors("too many tensors");
        tensors.push_back(std::move(one));
      } while (take(','));
      TRY(expect('}'));
    }
    skip_space();
    if (!rest_.empty()) return torn_tensors("bytes after the header's object");
    return tensors;
  }

 private:
  void skip_space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }
  bool take(char wanted) {
    skip_space();
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  Result<void> expect(char wanted) {
    if (take(wanted)) return {};
    return torn_tensors(std::string("'") + wanted + "' expected in the header");
  }

  // Escapes are kept unchanged: names are only compared and shown.
  Result<std::string> string() {
    TRY(expect('"'));
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] == '\\') {
        ++i;
      } else if (rest_[i] == '"') {
        std::string text(rest_.substr(0, i));
        rest_.remove_prefix(i + 1);
        return text;
      }
    }
    return torn_tensors("unfinished text in the header");
  }

  Result<std::uint64_t> number() {
    skip_space();
    std::uint64_t value = 0;
    std::size_t digits = 0;
    for (; digits < rest_.size() && is_digit(rest_[digits]); ++digits) {
      if (value > (UINT64_MAX - 9) / 10) return torn_tensors("number too large");
      value = value * 10 + static_cast<std::uint64_t>(rest_[digits] - '0');
    }
    if (digits == 0) return torn_tensors("number expected in the header");
    rest_.remove_prefix(digits);
    return value;
  }

  Result<std::vector<std::uint64_t>> numbers() {
    std::vector<std::uint64_t> values;
    TRY(expect('['));
    if (take(']')) return values;
    do {
      TRY_ASSIGN(const std::uint64_t value, number());
      if (values.size() == k_shape_max) return torn_tensors("too many dimensions");
      values.push_back(value);
    } while (take(','));
    TRY(expect(']'));
    return values;
  }

  Result<void> metadata() {
    TRY(expect('{'));
    if (take('}')) return {};
    do {
      TRY(string());
      TRY(expect(':'));
      TRY(string());
    } while (take(','));
    return expect('}');
  }

  Result<Tensor> tensor() {  // still without its name
    std::string dtype;
    std::vector<std::uint64_t> shape, offsets;
    TRY(expect('{'));
    do {
      TRY_ASSIGN(const std::string key, string());
      TRY(expect(':'));
      if (key == "dtype") {
        TRY_ASSIGN(dtype, string());
      } else if (key == "shape") {
        TRY_ASSIGN(shape, numbers());
      } else if (key == "data_offsets") {
        TRY_ASSIGN(offsets, numbers());
      } else {
        return torn_tensors("unknown key in a tensor");
      }
    } while (take(','));
    TRY(expect('}'));
    if (offsets.size() != 2 || offsets[0] > offsets[1]) return torn_tensors("data offsets are not an interval");
    TRY(check_length(dtype, shape, offsets[1] - offsets[0]));
    return Tensor{{}, std::move(dtype), {offsets[0], offsets[1]}};
  }

  static Result<void> check_length(const std::string& dtype, const std::vector<std::uint64_t>& shape,
                                   std::uint64_t length) {
    if (dtype.empty() || dtype.size() > k_dtype_max) return torn_tensors("tensor without a type");
    const auto type = std::ranges::find(k_types, dtype, &Type::name);
    if (type == k_types.end()) return {};  // a newer type: the offsets must do
    unsigned __int128 bits = type->bits;
    for (const std::uint64_t dimension : shape) {
      bits *= dimension;
      if (bits > (static_cast<unsigned __int128>(UINT64_MAX) << 3)) return torn_tensors("shape too large");
    }
    if (bits != static_cast<unsigned __int128>(length) * 8) return torn_tensors("shape does not fit the data offsets");
    return {};
  }

  std::string_view rest_;
};

}  // namespace

Result<std::vector<Tensor>> safetensors_tensors(std::uint64_t file_size, const ReadAt& read) {
  TRY_ASSIGN(const Bytes prefix, read(0, k_length_bytes));
  if (prefix.size() != k_length_bytes) return torn_tensors("shorter than its header length");
  std::uint64_t length = 0;  // little endian, as the format has it
  for (std::size_t i = k_length_bytes; i-- > 0;) length = length << 8 | static_cast<std::uint64_t>(prefix[i]);
  if (length < 2 || length > k_safetensors_header_max) return torn_tensors("implausible header length");
  if (length > file_size - k_length_bytes) return torn_tensors("file ends within its header");
  TRY_ASSIGN(const Bytes header, read(k_length_bytes, static_cast<std::size_t>(length)));
  if (header.size() != length) return torn_tensors("file ends within its header");
  TRY_ASSIGN(std::vector<Tensor> tensors, Header(as_text(header)).parse());
  sort_by_place(tensors);
  const std::uint64_t data_begin = k_length_bytes + length;
  std::uint64_t end = 0;
  for (Tensor& tensor : tensors) {
    if (tensor.at.begin != end) return torn_tensors("gap or overlap between tensors");
    end = tensor.at.end;
    if (end > file_size - data_begin) return torn_tensors("file ends within its tensors");
    tensor.at.begin += data_begin;
    tensor.at.end += data_begin;
  }
  if (end != file_size - data_begin) return torn_tensors("file is longer than its tensors");
  return tensors;
}

}  // namespace gridctl::store

// SPDX-License-Identifier: Apache-2.0
#include "base/record.hpp"

#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace gridctl {

using nlohmann::json;
using Kind = record::Value::Kind;

namespace record {

namespace {
constexpr std::int64_t k_ns_in_us = 1000, k_ns_in_ms = 1'000'000;

std::int64_t ns_in_unit(std::string_view key) {
  return key.ends_with("_ns") ? 1 : key.ends_with("_us") ? k_ns_in_us : k_ns_in_ms;
}
}  // namespace

std::int64_t in_unit(Duration duration, std::string_view key) { return duration.count() / ns_in_unit(key); }
Duration of_unit(std::int64_t count, std::string_view key) { return Duration{count * ns_in_unit(key)}; }

}  // namespace record

namespace {
constexpr Duration k_duration_max = std::chrono::hours{10 * 366 * 24};  // ten years, as in job files
constexpr std::string_view k_id_first = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view k_id_rest = "abcdefghijklmnopqrstuvwxyz0123456789-";
constexpr std::string_view k_op_first = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view k_op_rest = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@+-";

bool matches(std::string_view id, std::size_t bytes_max, std::string_view first, std::string_view rest) {
  return !id.empty() && id.size() <= bytes_max && first.find(id[0]) != std::string_view::npos &&
         id.find_first_not_of(rest) == std::string_view::npos;
}

// Returns whether the text can appear in JSON without escapes.
bool needs_no_escape(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c != '"' && c != '\\'; });
}

constexpr std::size_t k_spare_max = 1024;           // values
thread_local std::vector<record::Value> t_spare{};  // memory for the next document

// Builds values from the parser's events (a handler of RapidJSON). A later member with the same name wins.
class Builder {
 public:
  Builder(std::size_t text_size, std::size_t depth_max) : depth_max_(depth_max), values_(std::exchange(t_spare, {})) {
    texts_.reserve(text_size);  // a text is never longer than it is written: none of them moves
  }
  ~Builder() {
    values_.clear();
    if (values_.capacity() <= k_spare_max) t_spare = std::move(values_);
  }
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;
  bool Null() { return add(Kind::null); }
  bool Bool(bool value) { return add(Kind::boolean, value ? 1 : 0); }
  // Numbers are kept as text: the parser's own arithmetic overflows on numbers that a host may have crafted.
  bool RawNumber(const char* text, unsigned size, bool) {
    const std::string_view number(text, size);
    if (number.find_first_of(".eE") == std::string_view::npos) {
      std::int64_t integer = 0;
      std::uint64_t natural = 0;
      if (number[0] != '-' && parse_into(number, natural))
        return add(Kind::unsigned_integer, 0, natural, static_cast<double>(natural));
      if (parse_into(number, integer)) return add(Kind::integer, integer, 0, static_cast<double>(integer));
    }
    double real = 0;
    if (!parse_into(number, real)) real = std::strtod(std::string(number).c_str(), nullptr);  // tiny, or too big
    if (std::isfinite(real)) return add(Kind::real, 0, 0, real);
    problem_ = "has a number that is too big";
    return false;
  }
  bool Int(int) { return false; }  // these are not asked for
  bool Int64(std::int64_t) { return false; }
  bool Uint(unsigned) { return false; }
  bool Uint64(std::uint64_t) { return false; }
  bool Double(double) { return false; }
  bool String(const char* text, unsigned size, bool) {
    add(Kind::text);
    return keep({text, size}, values_.back().text);
  }
  bool Key(const char* name, unsigned size, bool) { return keep({name, size}, name_); }
  bool StartObject() { return start(Kind::object); }
  bool StartArray() { return start(Kind::list); }
  bool EndObject(unsigned) { return end(); }
  bool EndArray(unsigned) { return end(); }
  // Returns the fault of the text, or nothing.
  [[nodiscard]] std::string parse(std::string_view text) {
    rapidjson::MemoryStream in(text.data(), text.size());
    rapidjson::ParseResult parsed = reader_.Parse<k_strict>(in, *this);
    if (!parsed.IsError() && in.Tell() == text.size()) return {};
    if (!problem_.empty()) return problem_;
    if (!parsed.IsError()) parsed.Set(rapidjson::kParseErrorDocumentRootNotSingular, in.Tell());  // a NUL, and more
    std::string why = rapidjson::GetParseError_En(parsed.Code());
    if (why.ends_with('.')) why.pop_back();
    return "is not valid JSON: " + why + " (byte " + std::to_string(parsed.Offset()) + ")";
  }
  [[nodiscard]] const record::Value& root() const { return values_.front(); }

 private:
  bool add(Kind kind, std::int64_t integer = 0, std::uint64_t unsigned_integer = 0, double real = 0) {
    if (!open_.empty()) ++values_[open_.back()].count;
    values_.push_back({kind, 0, 1, std::exchange(name_, {}), {}, integer, unsigned_integer, real});
    return true;
  }
  bool start(Kind kind) {
    add(kind);
    open_.push_back(values_.size() - 1);
    if (open_.size() <= depth_max_) return true;
    problem_ = "is nested too deep";
    return false;
  }
  bool end() {
    values_[open_.back()].span = static_cast<std::uint32_t>(values_.size() - open_.back());
    open_.pop_back();
    return true;
  }
  bool keep(std::string_view text, std::string_view& kept) {
    for (std::size_t at = text.find(k_of_surrogate); at != std::string_view::npos;
         at = text.find(k_of_surrogate, at + 1))
      if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0xA0) {
        problem_ = "has half a surrogate pair";  // the parser takes the escape of the second half alone
        return false;
      }
    texts_ += text;
    kept = std::string_view(texts_).substr(texts_.size() - text.size());
    return true;
  }

  static constexpr char k_of_surrogate = '\xED';  // with A0 and more after it
  static constexpr unsigned k_strict = rapidjson::kParseValidateEncodingFlag | rapidjson::kParseNumbersAsStringsFlag;
  rapidjson::Reader reader_;
  const std::size_t depth_max_;
  std::vector<record::Value> values_;
  std::string texts_;
  std::vector<std::size_t> open_;  // objects and lists around what comes
  std::string_view name_;
  std::string problem_;
};
}  // namespace

RecordWriter::~RecordWriter() {
  const auto by_name = [](const Begun& a, const Begun& b) { return a.key < b.key; };
  if (!std::is_sorted(members_.begin(), members_.end(), by_name)) {
    const std::size_t begin = members_.front().at;
    const std::string written = out_.substr(begin);
    std::vector<std::pair<Begun, std::size_t>> parts;  // each with its end
    parts.reserve(members_.size());
    for (std::size_t i = 0; i < members_.size(); ++i)
      parts.emplace_back(members_[i], i + 1 < members_.size() ? members_[i + 1].at - 1 : out_.size());
    std::ranges::stable_sort(parts, [&](const auto& a, const auto& b) { return by_name(a.first, b.first); });
    out_.resize(begin);
    for (const auto& [member, end] : parts) {
      if (out_.size() > begin) out_ += ',';
      out_.append(written, member.at - begin, end - member.at);
    }
  }
  out_ += '}';
}

void RecordWriter::begin(std::string_view key) {
  if (!members_.empty()) out_ += ',';
  members_.push_back({key, out_.size()});
  put(key);
  out_ += ':';
}

namespace {
template <class Number>
void append_digits(std::string& out, Number value) {
  char text[24];
  out.append(text, std::to_chars(text, std::end(text), value).ptr);
}
}  // namespace

void RecordWriter::put(std::int64_t value) { append_digits(out_, value); }
void RecordWriter::put(std::uint64_t value) { append_digits(out_, value); }

void RecordWriter::put(double value) {
  if (!std::isfinite(value)) {
    out_ += "null";
    return;
  }
  char text[32];
  const double size = std::abs(value);
  const bool fixed = size == 0 || (size >= 1e-4 && size < 1e15);
  const auto end =
      std::to_chars(text, std::end(text), value, fixed ? std::chars_format::fixed : std::chars_format::scientific);
  out_.append(text, end.ptr);
  if (fixed && std::find(text, end.ptr, '.') == end.ptr) out_ += ".0";
}

void RecordWriter::put(std::string_view value) {
  if (needs_no_escape(value)) out_.append(1, '"').append(value).append(1, '"');
  else out_ += json(value).dump(-1, ' ', false, json::error_handler_t::replace);
}

namespace {
bool ascends(const record::Value& object) {
  const record::Value* one = object.first();
  for (std::uint32_t i = 1; i < object.count; ++i) {
    const record::Value* next = one->next();
    if (next->name <= one->name) return false;
    one = next;
  }
  return true;
}
}  // namespace

RecordReader::RecordReader(const record::Value& object, std::string_view what, const ReadRules& rules)
    : object_(&object), ascends_(ascends(object)), next_(object.first()), what_(what), rules_(&rules) {
  if (object.kind != Kind::object) fail("is not an object");
}

RecordReader::RecordReader(const record::Value& object, std::string_view key, const RecordReader& outer)
    : object_(&object),
      ascends_(ascends(object)),
      next_(object.first()),
      what_(key),
      outer_(&outer),
      rules_(outer.rules_) {
  if (object.kind != Kind::object) fail("is not an object");
}

std::string RecordReader::where() const {
  return outer_ == nullptr ? std::string(what_) : outer_->where() + "." + std::string(what_);
}

void RecordReader::fail(const std::string& what) const { throw BadRecord(where() + " " + what); }

void RecordReader::refuse(const char* key, const char* why) const {
  fail(std::string("has a '") + key + "' that " + why);
}

const record::Value* RecordReader::member(std::string_view key) const {
  if (ascends_) {  // as our own writer leaves it: most members are asked for in this order, too
    if (passed_ == object_->count || key < next_->name) next_ = object_->first(), passed_ = 0;
    for (; passed_ < object_->count; ++passed_, next_ = next_->next())
      if (const int order = next_->name.compare(key); order >= 0) return order == 0 ? next_ : nullptr;
    return nullptr;
  }
  const record::Value* found = nullptr;
  const record::Value* one = object_->first();
  for (std::uint32_t i = 0; i < object_->count; ++i, one = one->next())
    if (one->name == key) found = one;
  return found;
}

const record::Value* RecordReader::find(const char* key) const {
  const record::Value* found = member(key);
  return found == nullptr || found->kind == Kind::null ? nullptr : found;
}

bool RecordReader::is_number(const char* key) const {
  const record::Value* found = find(key);
  return found != nullptr && found->is_number();
}

const record::Value* RecordReader::required(const char* key) const {
  if (rules_->absent_is_unknown) return find(key);
  const record::Value* found = member(key);
  if (found == nullptr) fail(std::string("lacks '") + key + "'");
  return found;
}

void RecordReader::each(const record::Value& list, const char* key, std::size_t count_max,
                        const std::function<void(const record::Value&)>& take) const {
  if (list.kind != Kind::list) refuse(key, "is not a list");
  if (list.count > count_max) fail("has more than " + std::to_string(count_max) + " '" + key + "'");
  const record::Value* one = list.first();
  for (std::uint32_t i = 0; i < list.count; ++i, one = one->next()) take(*one);
}

void RecordReader::each_named(const record::Value& object, const char* key, std::size_t count_max,
                              const std::function<void(const std::string&, const record::Value&)>& take) const {
  if (object.kind != Kind::object) refuse(key, "is not an object");
  if (object.count > count_max) fail(std::string("has too many '") + key + "'");
  const record::Value* one = object.first();
  for (std::uint32_t i = 0; i < object.count; ++i, one = one->next()) {
    const std::string name(one->name);
    if (rules_->foreign && (name.empty() || name.size() > rules_->text_max || name.find('\0') != std::string::npos))
      fail(std::string("has a bad name in '") + key + "'");
    take(name, *one);
  }
}

void RecordReader::take(const record::Value& in, const char* key, bool& value) const {
  if (in.kind != Kind::boolean) refuse(key, "is not true or false");
  value = in.integer != 0;
}

void RecordReader::take(const record::Value& in, const char* key, std::uint64_t& value, std::uint64_t max) const {
  if (in.kind != Kind::unsigned_integer || in.unsigned_integer > max) refuse(key, "is not a number within its limits");
  value = in.unsigned_integer;
}

void RecordReader::take(const record::Value& in, const char* key, std::int64_t& value, std::int64_t min,
                        std::int64_t max) const {
  const bool fits = in.kind == Kind::unsigned_integer ? in.unsigned_integer <= static_cast<std::uint64_t>(INT64_MAX)
                                                      : in.kind == Kind::integer;
  const auto number = in.kind == Kind::integer ? in.integer : static_cast<std::int64_t>(in.unsigned_integer);
  if (!fits || number < min || number > max) refuse(key, "is not a number within its limits");
  value = number;
}

void RecordReader::take(const record::Value& in, const char* key, double& value, double min, double max) const {
  const double number = in.is_number() ? in.real : NAN;
  if (!std::isfinite(number) || number < min || number > max) refuse(key, "is not a number within its limits");
  value = number;
}

void RecordReader::take(const record::Value& in, const char* key, std::string& value, std::size_t bytes_max) const {
  if (in.kind != Kind::text) refuse(key, "is not text");
  if (in.text.size() > bytes_max) refuse(key, "is too long");
  if (rules_->foreign && !rules_->any_text && in.text.find('\0') != std::string::npos)
    fail(std::string("has a '") + key + "' with a NUL character");
  value = in.text;
}

void RecordReader::take(const record::Value& in, const char* key, Digest& value) const {
  const Result<Digest> digest = parse_digest(in.text);
  if (!digest) refuse(key, "is not a digest");
  value = *digest;
}

void RecordReader::take(const record::Value& in, const char* key, Duration& value) const {
  std::int64_t count = 0;
  const std::int64_t max = record::in_unit(rules_->foreign ? k_duration_max : Duration::max(), key);
  take(in, key, count, rules_->foreign ? 0 : -max, max);
  value = record::of_unit(count, key);
}

void RecordReader::check_id(const char* key, const std::string& id, bool operation) const {
  if (operation ? !matches(id, 128, k_op_first, k_op_rest) : !matches(id, 64, k_id_first, k_id_rest))
    refuse(key, operation ? "is not an operation id" : "is not an id");
}

std::string write_object(const std::function<void(RecordWriter&)>& write) {
  std::string out;
  {
    RecordWriter writer(out);
    write(writer);
  }
  return out;
}

Result<void> read_object(std::string_view text, std::string_view what, const ReadRules& rules, Code code,
                         const std::function<void(RecordReader&)>& read) {
  const auto refuse = [&](const std::string& why) { return make_error(code, sanitize(why, 300)); };
  try {
    Builder builder(text.size(), rules.depth_max);
    if (const std::string problem = builder.parse(text); !problem.empty())
      return refuse(std::string(what) + " " + problem);
    RecordReader reader(builder.root(), what, rules);
    read(reader);
    return {};
  } catch (const BadRecord& problem) {
    return refuse(problem.what());
  }
}

}  // namespace gridctl

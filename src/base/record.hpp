// SPDX-License-Identifier: Apache-2.0
// Defines once how a struct is written as JSON and read back. For each struct that travels or is stored there is
//
//   template <class R>
//   void fields(R& r, Of<R, StopRequest>& m) {
//     r("job", m.job)("epoch", m.epoch)("grace_ms", m.grace);
//   }
//
// in the namespace of the struct, in the .cpp file that parses it. A RecordWriter and a RecordReader both run it. A
// member is a bool, number, text, id, digest or time, a list, set or map of those, or a struct that has `fields`
// itself. The key of a duration ends with its unit: "_ms", "_us" or "_ns". Limits follow the member, and only a reader
// checks them: (max) for unsigned numbers and for bytes of text, (min, max) for other numbers, (count_max, limits of an
// element...) for lists and maps. A reader throws BadRecord; write_record and read_record turn that into an Error.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace gridctl {

struct BadRecord : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Holds the rules of a reader.
struct ReadRules {
  bool absent_is_unknown = false;    // what is absent or null keeps its default; else it must be there
  bool foreign = true;               // a stranger wrote it: ids fit file names, durations and numbers without limits
                                     // of their own are not negative, and no text has a NUL
  std::size_t text_max = 64 * 1024;  // bytes of a text without a limit of its own
  std::size_t count_max = 4096;      // of a list or map without one
  std::size_t depth_max = 32;        // of nesting
  bool any_text = false;             // a NUL in a text is borne all the same
};
inline constexpr ReadRules k_own_rules{false, false, SIZE_MAX, SIZE_MAX, 64};     // what we stored ourselves
inline constexpr ReadRules k_lenient_rules{true, false, SIZE_MAX, SIZE_MAX, 64};  // the same, by any version

template <class R, class T>
using Of = typename R::template Member<T>;

namespace record {
template <class T>
struct Shape : std::false_type {};
template <class T, class A>
struct Shape<std::vector<T, A>> : std::true_type {
  static constexpr bool is_map = false;
};
template <class T, class C, class A>
struct Shape<std::set<T, C, A>> : std::true_type {
  static constexpr bool is_map = false;
};
template <class T, class C, class A>
struct Shape<std::map<std::string, T, C, A>> : std::true_type {
  static constexpr bool is_map = true;
};
template <class T>
struct IsNumberId : std::false_type {};
template <class Tag>
struct IsNumberId<NumberId<Tag>> : std::true_type {};
template <class T>
struct IsStringId : std::false_type {};
template <class Tag>
struct IsStringId<StringId<Tag>> : std::true_type {};

[[nodiscard]] std::int64_t in_unit(Duration duration, std::string_view key);  // counted in the unit of the key
[[nodiscard]] Duration of_unit(std::int64_t count, std::string_view key);

// Represents one value of a parsed document. Its members or elements follow it in one array, each before its own.
struct Value {
  enum class Kind : std::uint8_t { null, boolean, integer, unsigned_integer, real, text, list, object };
  Kind kind = Kind::null;
  std::uint32_t count = 0;  // members or elements
  std::uint32_t span = 1;   // values that it is made of, itself among them
  std::string_view name{};  // of a member
  std::string_view text{};
  std::int64_t integer = 0;  // of integers; a boolean as 0 or 1
  std::uint64_t unsigned_integer = 0;
  double real = 0;  // of all numbers

  [[nodiscard]] bool is_number() const {
    return kind == Kind::integer || kind == Kind::unsigned_integer || kind == Kind::real;
  }
  [[nodiscard]] const Value* first() const { return this + 1; }
  [[nodiscard]] const Value* next() const { return this + span; }
};
}  // namespace record

class RecordWriter {
 public:
  static constexpr bool reads = false;
  template <class T>
  using Member = const T;

  // Begins an object at the end of `out`; the destructor ends it, with its members sorted by name.
  explicit RecordWriter(std::string& out) : out_(out) {
    out_ += '{';
    members_.reserve(k_members_usual);
  }
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;
  ~RecordWriter();

  template <class T, class... Limits>
  RecordWriter& operator()(const char* key, const T& value, const Limits&...) {
    begin(key);
    write(key, value);
    return *this;
  }
  // The member is required, whatever the rules.
  template <class T, class... Limits>
  RecordWriter& must(const char* key, const T& value, const Limits&...) {
    return (*this)(key, value);
  }
  // The member is newer than the first version of the format: always written, read if present.
  template <class T, class... Limits>
  RecordWriter& added(const char* key, const T& value, const Limits&...) {
    return (*this)(key, value);
  }
  // The member is omitted while it equals `absent`.
  template <class T, class... Limits>
  RecordWriter& unless(const char* key, const T& value, const std::type_identity_t<T>& absent, const Limits&...) {
    return value == absent ? *this : (*this)(key, value);
  }
  // The member is omitted while it has no value.
  template <class T, class... Limits>
  RecordWriter& maybe(const char* key, const std::optional<T>& value, const Limits&...) {
    return value ? (*this)(key, *value) : *this;
  }
  // The member is null while it has no value.
  template <class T, class... Limits>
  RecordWriter& null_or(const char* key, const std::optional<T>& value, const Limits&...) {
    if (value) return (*this)(key, *value);
    begin(key);
    out_ += "null";
    return *this;
  }
  RecordWriter& id(const char* key, const std::string& value) { return (*this)(key, value); }
  // Writes an enumeration by its names: a table (base/names.hpp), or a function that names and one that parses; see
  // `scan`.
  template <class E, class Name, class... Parse>
  RecordWriter& word(const char* key, const E& value, Name name, const Parse&...) {
    return (*this)(key, std::string(name(value)));
  }
  // Reads a word; an unknown word, or none, means `otherwise`.
  template <class E, class Name, class Parse>
  RecordWriter& word_or(const char* key, const E& value, Name name, const Parse&, const std::type_identity_t<E>&) {
    return word(key, value, name);
  }
  // Stores a map as a list of {"name","value"}: names from the other side never become keys.
  template <class Pairs, class... Limits>
  RecordWriter& pairs(const char* key, const Pairs& pairs, const Limits&...) {
    begin(key);
    list(pairs, [&](const auto& pair) { RecordWriter{out_}("name", pair.first)("value", pair.second); });
    return *this;
  }
  // Stores an instant in RFC 3339; otherwise, a WallTime is in milliseconds.
  RecordWriter& stamp(const char* key, const WallTime& time) { return (*this)(key, format_rfc3339(time)); }
  // Handles members of an object without its own struct: `inner` is called with its writer or reader.
  template <class Inner>
  RecordWriter& object(const char* key, Inner inner) {
    begin(key);
    RecordWriter writer(out_);
    inner(writer);
    return *this;
  }
  // Writes `number` alone if the rest of `value` adds nothing.
  template <class N, class T>
  RecordWriter& short_or(const char* key, const N& number, const T& value, bool is_short) {
    return is_short ? (*this)(key, number) : (*this)(key, value);
  }
  RecordWriter& assume(const char*, std::string_view) { return *this; }
  RecordWriter& check(bool, const char*) { return *this; }

 private:
  static constexpr std::size_t k_members_usual = 16;
  struct Begun {
    std::string_view key;  // outlives the writer
    std::size_t at;        // in `out_`
  };
  void begin(std::string_view key);
  void put(bool value) { out_ += value ? "true" : "false"; }
  void put(std::int64_t value);
  void put(std::uint64_t value);
  void put(double value);
  void put(std::string_view value);

  template <class List, class Write>
  void list(const List& list, Write write_one) {
    out_ += '[';
    for (const auto& one : list) {
      if (out_.back() != '[') out_ += ',';
      write_one(one);
    }
    out_ += ']';
  }

  template <class T>
  void write(const char* key, const T& value) {
    if constexpr (std::same_as<T, bool> || std::same_as<T, std::string>) put(value);
    else if constexpr (std::unsigned_integral<T>) put(static_cast<std::uint64_t>(value));
    else if constexpr (std::signed_integral<T>) put(static_cast<std::int64_t>(value));
    else if constexpr (std::floating_point<T>) put(static_cast<double>(value));
    else if constexpr (record::IsNumberId<T>::value || record::IsStringId<T>::value) write(key, value.value);
    else if constexpr (std::same_as<T, Digest>) put(to_hex(value));
    else if constexpr (std::same_as<T, Duration>) put(record::in_unit(value, key));
    else if constexpr (std::same_as<T, BootTime>) put(value.ns);
    else if constexpr (std::same_as<T, WallTime>) put(value.ms);
    else if constexpr (!record::Shape<T>::value) {
      RecordWriter inner(out_);
      fields(inner, value);
    } else if constexpr (record::Shape<T>::is_map) {
      RecordWriter inner(out_);
      for (const auto& [name, one] : value) {
        inner.begin(name);
        inner.write(key, one);
      }
    } else {
      list(value, [&](const auto& one) { write(key, one); });
    }
  }

  std::string& out_;
  std::vector<Begun> members_;
};

class RecordReader {
 public:
  static constexpr bool reads = true;
  template <class T>
  using Member = T;

  // REQUIRES: all outlive this. `what` names the object in errors.
  RecordReader(const record::Value& object, std::string_view what, const ReadRules& rules);

  template <class T, class... Limits>
  RecordReader& operator()(const char* key, T& value, const Limits&... limits) {
    if (const record::Value* found = required(key)) read(*found, key, value, limits...);
    return *this;
  }
  template <class T, class... Limits>
  RecordReader& must(const char* key, T& value, const Limits&... limits) {
    if (find(key) == nullptr) fail(std::string("lacks '") + key + "'");
    return (*this)(key, value, limits...);
  }
  template <class T, class... Limits>
  RecordReader& added(const char* key, T& value, const Limits&... limits) {
    if (const record::Value* found = find(key)) read(*found, key, value, limits...);
    return *this;
  }
  template <class T, class... Limits>
  RecordReader& unless(const char* key, T& value, const std::type_identity_t<T>&, const Limits&... limits) {
    return added(key, value, limits...);
  }
  template <class T, class... Limits>
  RecordReader& maybe(const char* key, std::optional<T>& value, const Limits&... limits) {
    if (const record::Value* found = find(key)) read(*found, key, value.emplace(), limits...);
    return *this;
  }
  template <class T, class... Limits>
  RecordReader& null_or(const char* key, std::optional<T>& value, const Limits&... limits) {
    return maybe(key, value, limits...);
  }
  // Reads a text that must be valid as a file name.
  RecordReader& id(const char* key, std::string& value) {
    (*this)(key, value);
    check_id(key, value, false);
    return *this;
  }
  template <class E, class Name, class Parse>
  RecordReader& word(const char* key, E& value, const Name&, const Parse& parse) {
    std::string name(assumed_key_ == key ? assumed_word_ : "");
    if (name.empty() || find(key) != nullptr) (*this)(key, name);
    if (const auto known = parse(name)) value = *known;
    else if (!rules_->absent_is_unknown || !name.empty()) fail(std::string("names an unknown ") + key);
    return *this;
  }
  template <class E, class Table>
  RecordReader& word(const char* key, E& value, const Table& names) {
    return word(key, value, names, [&](std::string_view name) { return names.find(name); });
  }
  template <class E, class Name, class Parse>
  RecordReader& word_or(const char* key, E& value, const Name&, const Parse& parse,
                        const std::type_identity_t<E>& otherwise) {
    std::string name;
    added(key, name);
    value = parse(name).value_or(otherwise);
    return *this;
  }
  template <class Pairs, class... Limits>
  RecordReader& pairs(const char* key, Pairs& pairs, std::size_t count_max, std::size_t name_max,
                      const Limits&... limits) {
    const record::Value* list = required(key);
    if (list == nullptr) return *this;
    each(*list, key, count_max, [&](const record::Value& one) {
      std::pair<std::string, typename Pairs::value_type::second_type> entry;
      RecordReader(one, key, *this)("name", entry.first, name_max)("value", entry.second, limits...);
      pairs.insert(pairs.end(), std::move(entry));
    });
    return *this;
  }
  RecordReader& stamp(const char* key, WallTime& time) {
    std::string text;
    (*this)(key, text);
    time = parse_rfc3339(text).value_or(WallTime{});
    return *this;
  }
  template <class Inner>
  RecordReader& object(const char* key, Inner inner) {
    if (const record::Value* found = required(key)) {
      RecordReader reader(*found, key, *this);
      inner(reader);
    }
    return *this;
  }
  template <class N, class T>
  RecordReader& short_or(const char* key, N& number, T& value, bool) {
    return is_number(key) ? (*this)(key, number) : (*this)(key, value);
  }
  // From here on, including inside members, the word `word` stands for an absent `key`. It outlives this.
  RecordReader& assume(const char* key, std::string_view word) {
    assumed_key_ = key;
    assumed_word_ = word;
    return *this;
  }
  // Requires a relation between members; `what` completes "the request …".
  RecordReader& check(bool holds, const char* what) {
    if (!holds) fail(what);
    return *this;
  }
  [[noreturn]] void fail(const std::string& what) const;

 private:
  template <class T>
  using Bounds = std::numeric_limits<T>;

  [[nodiscard]] const record::Value* member(std::string_view key) const;  // the last of that name; nullptr: none
  [[nodiscard]] const record::Value* find(const char* key) const;         // nullptr when absent or null
  [[nodiscard]] const record::Value* required(const char* key) const;     // nullptr only where absence is allowed
  [[nodiscard]] bool is_number(const char* key) const;
  // Reads an object within another one.
  RecordReader(const record::Value& object, std::string_view key, const RecordReader& outer);
  [[nodiscard]] std::string where() const;
  [[noreturn]] void refuse(const char* key, const char* why) const;
  void each(const record::Value& list, const char* key, std::size_t count_max,
            const std::function<void(const record::Value&)>& take) const;
  void each_named(const record::Value& object, const char* key, std::size_t count_max,
                  const std::function<void(const std::string&, const record::Value&)>& take) const;
  void take(const record::Value& in, const char* key, bool& value) const;
  void take(const record::Value& in, const char* key, std::uint64_t& value, std::uint64_t max) const;
  void take(const record::Value& in, const char* key, std::int64_t& value, std::int64_t min, std::int64_t max) const;
  void take(const record::Value& in, const char* key, double& value, double min, double max) const;
  void take(const record::Value& in, const char* key, std::string& value, std::size_t bytes_max) const;
  void take(const record::Value& in, const char* key, Digest& value) const;
  void take(const record::Value& in, const char* key, Duration& value) const;
  void check_id(const char* key, const std::string& id, bool operation) const;

  void read(const record::Value& in, const char* key, std::string& value, std::size_t bytes_max) const {
    take(in, key, value, bytes_max);
  }
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) void read(const record::Value& in, const char* key, T& value,
                                             std::uint64_t max) const {
    std::uint64_t number = 0;
    take(in, key, number, std::min<std::uint64_t>(max, Bounds<T>::max()));
    value = static_cast<T>(number);
  }
  template <std::signed_integral T>
  void read(const record::Value& in, const char* key, T& value, std::int64_t min, std::int64_t max) const {
    std::int64_t number = 0;
    take(in, key, number, min, max);
    value = static_cast<T>(number);
  }
  void read(const record::Value& in, const char* key, double& value, double min, double max) const {
    take(in, key, value, min, max);
  }
  template <class T, class... Limits>
  requires record::Shape<T>::value void read(const record::Value& in, const char* key, T& value, std::size_t count_max,
                                             const Limits&... limits) const {
    value.clear();
    if constexpr (record::Shape<T>::is_map)
      each_named(in, key, count_max,
                 [&](const std::string& name, const record::Value& one) { read(one, key, value[name], limits...); });
    else
      each(in, key, count_max, [&](const record::Value& one) {
        typename T::value_type element{};
        read(one, key, element, limits...);
        value.insert(value.end(), std::move(element));
      });
  }
  template <class T>
  void read(const record::Value& in, const char* key, T& value) const {
    if constexpr (std::same_as<T, bool> || std::same_as<T, Digest> || std::same_as<T, Duration>) take(in, key, value);
    else if constexpr (std::same_as<T, std::string>) take(in, key, value, rules_->text_max);
    else if constexpr (std::unsigned_integral<T>) read(in, key, value, Bounds<T>::max());
    else if constexpr (std::signed_integral<T>)
      read(in, key, value, rules_->foreign ? 0 : std::int64_t{Bounds<T>::min()}, std::int64_t{Bounds<T>::max()});
    else if constexpr (std::same_as<T, double>)
      take(in, key, value, rules_->foreign ? 0 : -Bounds<double>::max(), Bounds<double>::max());
    else if constexpr (std::same_as<T, BootTime>)
      read(in, key, value.ns, rules_->foreign ? 0 : INT64_MIN, rules_->foreign ? INT64_MAX / 2 : INT64_MAX);
    else if constexpr (std::same_as<T, WallTime>) read(in, key, value.ms);
    else if constexpr (record::Shape<T>::value) read(in, key, value, rules_->count_max);
    else if constexpr (record::IsNumberId<T>::value) read(in, key, value.value);
    else if constexpr (record::IsStringId<T>::value) {
      read(in, key, value.value);
      if (rules_->foreign) check_id(key, value.value, std::same_as<T, OpId>);
    } else {
      RecordReader inner(in, key, *this);
      inner.assumed_key_ = assumed_key_;
      inner.assumed_word_ = assumed_word_;
      fields(inner, value);
    }
  }

  const record::Value* object_;
  bool ascends_ = false;               // no member has a name that comes before that of an earlier one, or equals it
  mutable const record::Value* next_;  // where the next member is looked for first, when it does
  mutable std::uint32_t passed_ = 0;   // members before that
  std::string_view what_;
  const RecordReader* outer_ = nullptr;
  const ReadRules* rules_;
  std::string_view assumed_key_, assumed_word_;
};

// Returns the parse function of an enumeration without gaps that has a name for each value up to `last`.
template <class E, class Name>
[[nodiscard]] auto scan(Name name, E last) {
  return [name, last](std::string_view text) -> Result<E> {
    for (int i = 0; i <= static_cast<int>(last); ++i)
      if (name(static_cast<E>(i)) == text) return static_cast<E>(i);
    return make_error(Code::protocol_violation, "a word that is not known");
  };
}

// Writes one line of JSON; invalid UTF-8 becomes U+FFFD.
[[nodiscard]] std::string write_object(const std::function<void(RecordWriter&)>& write);
// Parses one object and passes it on. Errors have `code` and say what was wrong with `what`, on one line.
[[nodiscard]] Result<void> read_object(std::string_view text, std::string_view what, const ReadRules& rules, Code code,
                                       const std::function<void(RecordReader&)>& read);

template <class T>
[[nodiscard]] std::string write_record(const T& value) {
  return write_object([&](RecordWriter& writer) { fields(writer, value); });
}

template <class T>
[[nodiscard]] Result<T> read_record(std::string_view text, std::string_view what, const ReadRules& rules, Code code) {
  T value{};
  TRY(read_object(text, what, rules, code, [&](RecordReader& reader) { fields(reader, value); }));
  return value;
}

// Declares a struct whose `fields` are in one .cpp file and used in others: in that file, and in a header.
#define GRIDCTL_FIELDS(type)                        \
  template void fields(RecordWriter&, const type&); \
  template void fields(RecordReader&, type&);
#define GRIDCTL_FIELDS_ELSEWHERE(type)                     \
  template <class R>                                       \
  void fields(R& r, Of<R, type>& value);                   \
  extern template void fields(RecordWriter&, const type&); \
  extern template void fields(RecordReader&, type&);

}  // namespace gridctl

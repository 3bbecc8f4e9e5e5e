// SPDX-License-Identifier: Apache-2.0
// Inside wire only: strict reading of JSON objects that a peer sent. A Fields method throws Violation for what is
// missing, mistyped or over a limit; read_object turns that, and what the JSON library throws, into an Error.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "wire/messages.hpp"

namespace gridctl::wire {

struct Violation {
  std::string what;
};

class Fields {
 public:
  // REQUIRES: `object` outlives this. `where` names the object in errors.
  Fields(const nlohmann::json& object, std::string where);

  [[nodiscard]] bool has(const char* key) const;  // present and not null
  [[nodiscard]] bool flag(const char* key) const;
  [[nodiscard]] std::uint64_t number(const char* key, std::uint64_t max = ~std::uint64_t{0}) const;
  [[nodiscard]] std::int64_t integer(const char* key, std::int64_t min, std::int64_t max) const;
  [[nodiscard]] double real(const char* key) const;  // finite and not negative
  [[nodiscard]] std::string text(const char* key, std::size_t bytes_max = k_text_max) const;
  [[nodiscard]] Digest digest(const char* key) const;
  [[nodiscard]] std::optional<Digest> optional_digest(const char* key) const;
  [[nodiscard]] BootTime boot_time(const char* key) const;
  [[nodiscard]] Duration duration(const char* key) const;  // "…_ms"; not negative, at most ten years
  [[nodiscard]] std::string id(const char* key) const;     // fits a file name: [a-z0-9][a-z0-9-]{0,63}
  [[nodiscard]] JobId job() const { return {id("job")}; }
  [[nodiscard]] Epoch epoch(const char* key = "epoch") const { return {number(key)}; }
  [[nodiscard]] OpId op() const;  // [A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}, under "id"
  [[nodiscard]] std::vector<std::string> texts(const char* key, std::size_t count_max = k_list_max) const;
  [[nodiscard]] std::map<std::string, std::string> text_map(const char* key) const;
  [[nodiscard]] Metrics metrics(const char* key) const;
  [[nodiscard]] std::vector<Digest> digests(const char* key, std::size_t count_max) const;
  [[nodiscard]] std::vector<std::uint32_t> indexes(const char* key, std::size_t count_max) const;
  [[nodiscard]] Fields object(const char* key) const;
  template <class T>
  [[nodiscard]] std::vector<T> list(const char* key, std::size_t count_max, T (*read)(const Fields&)) const {
    std::vector<T> values;
    each(key, count_max, [&](const Fields& element) { values.push_back(read(element)); });
    return values;
  }
  [[noreturn]] void fail(const std::string& what) const;

 private:
  [[nodiscard]] const nlohmann::json& at(const char* key) const;
  [[nodiscard]] const nlohmann::json& array(const char* key, std::size_t count_max) const;
  void each(const char* key, std::size_t count_max, const std::function<void(const Fields&)>& visit) const;

  const nlohmann::json* object_;
  std::string where_;
};

[[nodiscard]] Result<void> read_object(std::string_view text, std::string_view what,
                                       const std::function<void(const Fields&)>& read);

template <class T>
[[nodiscard]] Result<T> parse_message(std::string_view text, std::string_view what, T (*read)(const Fields&)) {
  T value;
  TRY(read_object(text, what, [&](const Fields& fields) { value = read(fields); }));
  return value;
}

// The same for a request: its "op" must be `op`.
template <class T>
[[nodiscard]] Result<T> parse_request(std::string_view text, std::string_view op, T (*read)(const Fields&)) {
  T value;
  TRY(read_object(text, op, [&](const Fields& fields) {
    if (fields.text("op") != op) fields.fail("is another request");
    value = read(fields);
  }));
  return value;
}

// One line of JSON; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string dump(const nlohmann::json& value);
[[nodiscard]] std::int64_t to_ms(Duration duration);

// Shared between message files.
[[nodiscard]] nlohmann::json spec_json(const AttemptSpec& spec);
[[nodiscard]] AttemptSpec read_spec(const Fields& fields);
[[nodiscard]] nlohmann::json gang_json(const Gang& gang);
[[nodiscard]] Gang read_gang(const Fields& fields);
[[nodiscard]] nlohmann::json error_json(const Error& error);
[[nodiscard]] Error read_error(const Fields& fields);

}  // namespace gridctl::wire

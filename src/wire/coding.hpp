// SPDX-License-Identifier: Apache-2.0
// Converts messages to and from JSON, by their `fields` (base/record.hpp). Inside wire only.
#pragma once

#include <string>
#include <string_view>

#include "base/record.hpp"
#include "wire/frame.hpp"
#include "wire/messages.hpp"

namespace gridctl {

GRIDCTL_FIELDS_ELSEWHERE(Error)

}  // namespace gridctl

namespace gridctl::wire {

inline constexpr std::size_t k_features_max = 256;  // names in a hello
inline constexpr ReadRules k_peer_rules{false, true, k_text_max, k_list_max, k_json_depth_max};

// Refuses anything that is not an object, lacks a member or exceeds a limit.
[[nodiscard]] Result<void> read_peer(std::string_view text, std::string_view what,
                                     const std::function<void(RecordReader&)>& read);

template <class T>
[[nodiscard]] std::string encode_request(std::string_view op, const T& request) {
  return write_object([&](RecordWriter& writer) {
    fields(writer, request);
    writer("op", std::string(op));
  });
}

template <class T>
[[nodiscard]] Result<T> parse_message(std::string_view text, std::string_view what) {
  T value{};
  TRY(read_peer(text, what, [&](RecordReader& reader) { fields(reader, value); }));
  return value;
}

// Decodes a request: its "op" must be `op`.
template <class T>
[[nodiscard]] Result<T> parse_request(std::string_view text, std::string_view op) {
  T value{};
  TRY(read_peer(text, op, [&](RecordReader& reader) {
    std::string name;
    reader("op", name).check(name == op, "is another request");
    fields(reader, value);
  }));
  return value;
}

// Define what GRIDCTL_MESSAGE declares: for a request with the operation `op`; for another message, which errors call
// `what`.
#define GRIDCTL_REQUEST(type, parse, op)                              \
  std::string encode(const type& m) { return encode_request(op, m); } \
  Result<type> parse(std::string_view text) { return parse_request<type>(text, op); }
#define GRIDCTL_REPLY(type, parse, what)                        \
  std::string encode(const type& m) { return write_record(m); } \
  Result<type> parse(std::string_view text) { return parse_message<type>(text, what); }

// Shared between message files: see there.
GRIDCTL_FIELDS_ELSEWHERE(AttemptSpec)
GRIDCTL_FIELDS_ELSEWHERE(Gang)
GRIDCTL_FIELDS_ELSEWHERE(BagSpec)
GRIDCTL_FIELDS_ELSEWHERE(LogRequest)

template <class R>
void fields(R& r, Of<R, CheckpointRef>& ref) {
  r("job", ref.job)("epoch", ref.epoch)("number", ref.number);
}

}  // namespace gridctl::wire

// SPDX-License-Identifier: Apache-2.0
#include "wire/stream.hpp"

#include "base/names.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "wire/coding.hpp"

namespace gridctl::wire {

namespace {
constexpr int k_stream_signal_max = 64;
constexpr std::size_t k_digest_digits = 64;
constexpr std::size_t k_env_max = 16, k_env_bytes_max = 1024;
constexpr std::uint64_t k_rank_max = 255;

constexpr Names<EntryType, EntryType::link> k_entry_types{"file", "directory", "link"};
constexpr Names<StreamKind, StreamKind::put> k_stream_kinds{"port", "exec", "list", "status", "get", "put"};
}  // namespace

template <class R>
void fields(R& r, Of<R, EnterRequest>& m) {
  r.maybe("job", m.job).maybe("epoch", m.epoch);
  r.check(m.job.has_value() == m.epoch.has_value(), "names a job without an epoch, or an epoch without a job");
}

template <class R>
void fields(R& r, Of<R, AllowRequest>& m) {
  r("ports", m.ports, k_ports_max);
}

template <class R>
void fields(R& r, Of<R, Terminal>& m) {
  r("columns", m.columns, k_terminal_side_max)("rows", m.rows, k_terminal_side_max);
}

template <class R>
void fields(R& r, Of<R, StreamOpen>& m) {
  r.word("kind", m.kind, k_stream_kinds);
  r.unless("port", m.port, 0).unless("command", m.command, {}, k_arguments_max, k_arguments_bytes_max);
  r.maybe("terminal", m.terminal).unless("env", m.env, {}, k_env_max, k_env_bytes_max).unless("errors", m.errors, 0);
  r.unless("rank", m.rank, 0, k_rank_max).unless("path", m.path, "", k_stream_path_max).unless("offset", m.offset, 0);
  r.unless("digest", m.digest, "", k_digest_digits).unless("mode", m.mode, 0644, 07777);
}

template <class R>
void fields(R& r, Of<R, StreamAnswer>& m) {
  r.unless("offset", m.offset, 0).unless("bytes", m.bytes, 0);
}

template <class R>
void fields(R& r, Of<R, StreamNote>& m) {
  r.unless("ping", m.ping, 0).unless("pong", m.pong, 0).unless("credit", m.credit, 0).maybe("terminal", m.terminal);
  r.unless("signal", m.signal, 0, 0, k_stream_signal_max);
}

template <class R>
void fields(R& r, Of<R, StreamEnd>& m) {
  r.maybe("error", m.error).maybe("exit_code", m.exit_code, 0, 255).maybe("signal", m.signal, 1, k_stream_signal_max);
}

template <class R>
void fields(R& r, Of<R, StreamEntry>& m) {
  r("path", m.path, k_stream_path_max).word("type", m.type, k_entry_types);
  r.unless("bytes", m.bytes, 0).unless("mode", m.mode, 0644, 07777).unless("target", m.target, "", k_stream_path_max);
}

GRIDCTL_REQUEST(EnterRequest, parse_enter, k_enter_operation)
GRIDCTL_REQUEST(AllowRequest, parse_allow, k_allow_operation)
GRIDCTL_REQUEST(StreamOpen, parse_stream_open, k_open_operation)
GRIDCTL_REPLY(StreamAnswer, parse_stream_answer, "answer to an open")
GRIDCTL_REPLY(StreamNote, parse_stream_note, "stream event")
GRIDCTL_REPLY(StreamEnd, parse_stream_end, "end of a stream")
GRIDCTL_REPLY(StreamEntry, parse_stream_entry, "directory entry")

std::vector<std::uint16_t> parse_ports(std::string_view text) {
  std::vector<std::uint16_t> ports;
  for (const std::string& word : split(text, ',')) {
    const auto port = parse_number<std::uint16_t>(word);
    if (port && *port > 0 && ports.size() < k_ports_max) ports.push_back(*port);
  }
  return ports;
}

}  // namespace gridctl::wire

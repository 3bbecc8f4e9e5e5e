// SPDX-License-Identifier: Apache-2.0
// Defines streams: many flows of bytes over one connection, with credit for each; gridctl-agent(7), STREAMS. Feature
// word "streams" of the agent.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "wire/message.hpp"

namespace gridctl::wire {

inline constexpr std::string_view k_streams_feature = "streams";
inline constexpr std::string_view k_enter_operation = "enter";
inline constexpr std::string_view k_allow_operation = "allow";
inline constexpr std::string_view k_open_operation = "open";

inline constexpr std::size_t k_streams_max = 2048;     // of one conversation
inline constexpr std::size_t k_stream_piece = 32 * 1024;  // bytes of one data frame: others wait no longer than for these
inline constexpr std::size_t k_arguments_max = 4096;
inline constexpr std::size_t k_arguments_bytes_max = 128 * 1024;
inline constexpr std::size_t k_ports_max = 256;
inline constexpr std::size_t k_stream_path_max = 4096;
inline constexpr std::uint16_t k_terminal_side_max = 4096;  // rows or columns

// The connection becomes a conversation of streams: with a running attempt, or without a job with the host's user.
struct EnterRequest {
  std::optional<JobId> job{};
  std::optional<Epoch> epoch{};
};

// Before the controller's first frame, the agent tells the process inside the attempt which ports may be opened.
struct AllowRequest {
  std::vector<std::uint16_t> ports;
};

enum class StreamKind : std::uint8_t {
  port,    // a connection to 127.0.0.1:`port`
  exec,    // a program
  list,    // what lies at `path`: a line of JSON for each entry (StreamEntry)
  status,  // the first of these lines
  get,     // the bytes of the file `path`, from `offset`
  put,     // bytes for the file `path`, from `offset`
};

struct Terminal {
  std::uint16_t columns = 80, rows = 24;
  bool operator==(const Terminal&) const = default;
};

struct StreamOpen {
  StreamKind kind = StreamKind::exec;
  std::uint16_t port = 0;
  std::vector<std::string> command{};        // exec; empty: the user's shell
  std::optional<Terminal> terminal{};        // exec: with a terminal of this size
  std::map<std::string, std::string> env{};  // exec: TERM and the like
  std::uint32_t errors = 0;                  // exec: the stream that carries standard error; 0: none
  std::uint32_t rank = 0;                    // exec: whose environment, counted within the host
  std::string path{};
  std::uint64_t offset = 0;
  std::string digest{};  // get and put: SHA-256 of the bytes before `offset`, in hexadecimal digits
  unsigned mode = 0644;  // put: permission bits
};

// Answers an open that was carried out.
struct StreamAnswer {
  std::uint64_t offset = 0;  // get and put: where the bytes begin
  std::uint64_t bytes = 0;   // get: size of the file
};

// Defines an event on a stream; the first two concern the conversation, on stream 0.
struct StreamNote {
  std::uint64_t ping = 0, pong = 0;
  std::uint64_t credit = 0;
  std::optional<Terminal> terminal{};
  int signal = 0;  // for the program of an exec
};

// Ends one direction. An error ends both: the stream was reset.
struct StreamEnd {
  std::optional<Error> error{};
  std::optional<int> exit_code{};  // exec
  std::optional<int> signal{};     // exec: that killed the program
};

enum class EntryType : std::uint8_t { file, directory, link };
struct StreamEntry {
  std::string path;  // relative to the path asked for; empty: that itself
  EntryType type = EntryType::file;
  std::uint64_t bytes = 0;
  unsigned mode = 0644;
  std::string target{};  // of a link
};

GRIDCTL_MESSAGE(EnterRequest, parse_enter)
GRIDCTL_MESSAGE(AllowRequest, parse_allow)
GRIDCTL_MESSAGE(StreamOpen, parse_stream_open)
GRIDCTL_MESSAGE(StreamAnswer, parse_stream_answer)
GRIDCTL_MESSAGE(StreamNote, parse_stream_note)
GRIDCTL_MESSAGE(StreamEnd, parse_stream_end)
GRIDCTL_MESSAGE(StreamEntry, parse_stream_entry)

// Parses the ports that a job declares, as GRIDCTL_FORWARD_PORTS lists them: "8888,6006". Skips anything that is not a
// port.
[[nodiscard]] std::vector<std::uint16_t> parse_ports(std::string_view text);

}  // namespace gridctl::wire

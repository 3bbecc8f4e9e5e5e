// SPDX-License-Identifier: Apache-2.0
#include "control/follow/read_output.hpp"

#include <optional>
#include <string>

#include "control/follow/log_file.hpp"
#include "control/reach/pace.hpp"
#include "control/reach/request.hpp"
#include "control/reach/paths.hpp"
#include "wire/insight.hpp"
#include "wire/messages.hpp"

namespace gridctl::control {

namespace {

constexpr std::uint32_t k_read = 512 * 1024;
constexpr std::uint32_t k_first_stream = 100;
// A ring holds far less than is kept here: a host that answers beyond this limit is not sending the job's output.
constexpr std::uint32_t k_answers_max = 2 * static_cast<std::uint32_t>(k_log_bytes_max / k_read);
constexpr std::uint32_t k_short_answers_max = 256;  // before a gap of the ring, or at its end while the job writes
constexpr int k_events_max = 10'000;                // between two pieces of one answer

// Receives the data of one answer, up to its end record.
Result<std::string> receive_piece(wire::Link& link, BootTime deadline) {
  std::string bytes;
  for (int events = 0; events < k_events_max;) {
    TRY_ASSIGN(const wire::Frame frame, link.receive(deadline));
    if (frame.kind == wire::FrameKind::event) {
      ++events;
      continue;
    }
    if (frame.kind == wire::FrameKind::end) {
      TRY_ASSIGN(const wire::EndRecord record, wire::parse_end(frame.payload));
      if (record.error) return *record.error;
      return bytes;
    }
    if (frame.kind != wire::FrameKind::data || bytes.size() + frame.payload.size() > k_read)
      return make_error(Code::protocol_violation, "the agent sent more output than was asked for");
    bytes += frame.payload;
  }
  return make_error(Code::protocol_violation, "the agent sends only events");
}

}  // namespace

Result<void> read_output(wire::Link& link, os::Clock& clock, JobFolders& folders, const OutputOf& what,
                         std::uint64_t end) {
  std::optional<std::uint64_t> before;
  std::uint32_t short_answers = 0;
  for (std::uint32_t stream = k_first_stream;; ++stream) {
    TRY_ASSIGN(const std::uint64_t offset, folders.log_next_offset(what.job, what.attempt, what.rank));
    if (offset >= end) return {};
    if (before == offset || stream - k_first_stream > k_answers_max || short_answers > k_short_answers_max)
      return make_error(Code::protocol_violation, "the host repeats the job's output without end");
    before = offset;
    const wire::LogRequest request{what.job, what.epoch, offset, k_read};
    const std::string question = what.rank == k_metrics_rank ? wire::encode_metrics(request) : wire::encode(request);
    TRY_ASSIGN(const std::string payload, ask(link, stream, question, clock.boot() + k_work_answer));
    TRY_ASSIGN(const wire::LogReply reply, wire::parse_log_reply(payload));
    TRY_ASSIGN(const std::string bytes, receive_piece(link, clock.boot() + k_work_answer));
    if (bytes.empty()) return {};
    if (bytes.size() < k_read) ++short_answers;
    TRY(folders.log_append(what.job, what.attempt, what.rank, reply.offset, bytes));
  }
}

}  // namespace gridctl::control

// SPDX-License-Identifier: Apache-2.0
// Frames and messages, in both directions.
#include <span>
#include <string>

#include "base/inventory.hpp"
#include "fuzz/target.hpp"
#include "wire/bench.hpp"
#include "wire/frame.hpp"
#include "wire/health.hpp"
#include "wire/messages.hpp"
#include "wire/network.hpp"
#include "wire/remote.hpp"
#include "wire/upload.hpp"

namespace gridctl::wire {
namespace {

// What was accepted can be said again, and is understood in the same way.
template <auto parse>
void repeats(std::string_view input) {
  const auto first = parse(input);
  if (!first) return;
  const std::string said = encode(*first);
  const auto second = parse(said);
  PROMISE(second);
  PROMISE(encode(*second) == said);
}

template <auto parse>
void accepts(std::string_view input) {
  static_cast<void>(parse(input));
}

// The first byte chooses who reads the rest, 'a' the first parser. A bare message, as in tests/data, is read by all.
using Parser = void (*)(std::string_view);
void to_parser(std::string_view input, std::span<const Parser> parsers) {
  if (input.starts_with('{')) {
    for (const Parser parse : parsers) parse(input);
  } else if (!input.empty()) {
    const auto letter = static_cast<unsigned char>(input.front() - 'a');
    parsers[letter % parsers.size()](input.substr(1));
  }
}

}  // namespace

FUZZ_TARGET(frames) {
  if (input.empty()) return;
  const auto first = static_cast<unsigned char>(input.front());
  Decoder decoder((first & 1) != 0);
  const std::size_t piece = 1 + first / 2;
  input.remove_prefix(1);
  while (!input.empty()) {
    decoder.feed(as_bytes(input.substr(0, piece)));
    input.remove_prefix(std::min(piece, input.size()));
    for (;;) {
      const Result<std::optional<Frame>> frame = decoder.next();
      if (!frame) {
        PROMISE(!decoder.next());  // broken once, broken for ever
        return;
      }
      if (!*frame) break;
      PROMISE((*frame)->payload.size() <= k_frame_max);
      Decoder again(false);
      const std::string bytes = encode(**frame);
      again.feed(as_bytes(bytes));
      const auto same = again.next();
      PROMISE(same && *same && **same == **frame);
    }
  }
}

FUZZ_TARGET(messages) {
  static constexpr Parser k_parsers[] = {repeats<parse_controller_hello>,
                                         repeats<parse_agent_hello>,
                                         repeats<parse_prepare>,
                                         repeats<parse_prepare_reply>,
                                         repeats<parse_attempt_spec>,
                                         repeats<parse_start>,
                                         repeats<parse_start_reply>,
                                         repeats<parse_stop>,
                                         repeats<parse_clean>,
                                         repeats<parse_standby>,
                                         repeats<parse_poll>,
                                         repeats<parse_poll_reply>,
                                         repeats<parse_attempt_status>,
                                         repeats<parse_log>,
                                         repeats<parse_log_reply>,
                                         repeats<parse_have>,
                                         repeats<parse_have_reply>,
                                         repeats<parse_put>,
                                         repeats<parse_get>,
                                         repeats<parse_end>,
                                         accepts<parse_manifest_request>,
                                         repeats<parse_remote_request>,
                                         repeats<parse_remote_stored>,
                                         repeats<parse_upload>};
  static_cast<void>(request_name(input));
  static_cast<void>(payload_error(input));
  to_parser(input, k_parsers);
}

FUZZ_TARGET(measuring_messages) {
  static constexpr Parser k_parsers[] = {
      accepts<parse_bench_stage>,  accepts<parse_bench_devices>, accepts<parse_bench_begin>,
      accepts<parse_bench_seed>,   accepts<parse_bench_host>,    accepts<parse_health_request>,
      accepts<parse_health_reply>, accepts<parse_health_report>, accepts<parse_ping>,
      accepts<parse_pong>,         accepts<parse_sink>,          accepts<parse_sink_reply>,
      accepts<parse_source>,       accepts<parse_listen>,        accepts<parse_listen_reply>,
      accepts<parse_connect>,      accepts<parse_link_result>,   accepts<parse_reach>,
      accepts<parse_reach_reply>};
  to_parser(input, k_parsers);
}

}  // namespace gridctl::wire

namespace gridctl {

FUZZ_TARGET(inventory) {
  const Result<Inventory> first = parse_inventory(input);
  if (!first) return;
  const Result<Inventory> second = parse_inventory(to_json(*first));
  PROMISE(second);
  PROMISE(*second == *first);
}

}  // namespace gridctl

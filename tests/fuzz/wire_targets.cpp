// SPDX-License-Identifier: Apache-2.0
// Frames and messages, in both directions.
#include <string>

#include "base/inventory.hpp"
#include "fuzz/target.hpp"
#include "wire/bench.hpp"
#include "wire/frame.hpp"
#include "wire/health.hpp"
#include "wire/messages.hpp"
#include "wire/network.hpp"
#include "wire/place.hpp"

namespace gridctl::wire {
namespace {

// What was accepted can be said again, and is understood in the same way.
template <class T>
void repeats(const Result<T>& first, Result<T> (*parse)(std::string_view)) {
  if (!first) return;
  const std::string said = encode(*first);
  const Result<T> second = parse(said);
  PROMISE(second);
  PROMISE(encode(*second) == said);
}

template <class T>
void accepts(std::string_view input, Result<T> (*parse)(std::string_view)) {
  static_cast<void>(parse(input));
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
  static_cast<void>(request_name(input));
  static_cast<void>(payload_error(input));
  repeats(parse_controller_hello(input), parse_controller_hello);
  repeats(parse_agent_hello(input), parse_agent_hello);
  repeats(parse_prepare(input), parse_prepare);
  repeats(parse_prepare_reply(input), parse_prepare_reply);
  repeats(parse_attempt_spec(input), parse_attempt_spec);
  repeats(parse_start(input), parse_start);
  repeats(parse_start_reply(input), parse_start_reply);
  repeats(parse_stop(input), parse_stop);
  repeats(parse_clean(input), parse_clean);
  repeats(parse_standby(input), parse_standby);
  repeats(parse_poll(input), parse_poll);
  repeats(parse_poll_reply(input), parse_poll_reply);
  repeats(parse_attempt_status(input), parse_attempt_status);
  repeats(parse_log(input), parse_log);
  repeats(parse_log_reply(input), parse_log_reply);
  repeats(parse_have(input), parse_have);
  repeats(parse_have_reply(input), parse_have_reply);
  repeats(parse_put(input), parse_put);
  repeats(parse_get(input), parse_get);
  repeats(parse_end(input), parse_end);
  accepts(input, parse_manifest_request);
  repeats(parse_place_request(input), parse_place_request);
  repeats(parse_place_stored(input), parse_place_stored);
}

FUZZ_TARGET(measuring_messages) {
  accepts(input, parse_bench_stage);
  accepts(input, parse_bench_devices);
  accepts(input, parse_bench_begin);
  accepts(input, parse_bench_seed);
  accepts(input, parse_bench_host);
  accepts(input, parse_health_request);
  accepts(input, parse_health_reply);
  accepts(input, parse_health_report);
  accepts(input, parse_ping);
  accepts(input, parse_pong);
  accepts(input, parse_sink);
  accepts(input, parse_sink_reply);
  accepts(input, parse_source);
  accepts(input, parse_listen);
  accepts(input, parse_listen_reply);
  accepts(input, parse_connect);
  accepts(input, parse_link_result);
  accepts(input, parse_reach);
  accepts(input, parse_reach_reply);
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

// SPDX-License-Identifier: Apache-2.0
#include "wire/guest.hpp"

#include <algorithm>
#include <cctype>

#include "base/names.hpp"
#include "base/numbers.hpp"
#include "base/rates_record.hpp"
#include "base/record.hpp"
#include "wire/coding.hpp"

namespace gridctl::wire {

namespace {
constexpr Names<Egress, Egress::none> k_egress{"filtered", "open", "none"};
constexpr Names<ClosedBy, ClosedBy::heat> k_closed_by{"owner", "battery", "heat"};
constexpr int k_day = 24 * 60;               // minutes
constexpr std::size_t k_registry_shown = 80;  // characters of a bad one
}  // namespace

std::string_view egress_name(Egress egress) { return k_egress(egress); }
Result<Egress> parse_egress(std::string_view name) {
  for (const Egress one : {Egress::filtered, Egress::open, Egress::none})
    if (egress_name(one) == name) return one;
  return make_error(Code::usage, "egress must be filtered, open or none");
}

template <class R>
void fields(R& r, Of<R, GuestTerms>& m) {
  r.id("controller", m.controller.value)("who", m.who).maybe("paused_until_ms", m.paused_until_ms);
  r.maybe("from_minute", m.from_minute).maybe("to_minute", m.to_minute);
  r.word("egress", m.egress, egress_name, parse_egress)("reclaim", m.reclaim);
  r.maybe("disk_bytes", m.disk_bytes).maybe("max_job_ms", m.max_job_ms).maybe("cpus", m.cpus);
  r.maybe("memory_bytes", m.memory_bytes).unless("registries", m.registries, {}).unless("rates", m.rates, Rates{});
  r.maybe("up_bits", m.up_bits).maybe("idle_ms", m.idle_ms).maybe("gpu_watts", m.gpu_watts).maybe("heat_celsius", m.heat_celsius);
  r.unless("on_battery", m.on_battery, false);
  r.check(m.from_minute.value_or(0) < k_day && m.to_minute.value_or(0) < k_day, "has hours beyond a day");
}

template <class R>
void fields(R& r, Of<R, RekeyRequest>& m) {
  r("part", m.part);
}

template <class R>
void fields(R& r, Of<R, RekeyReply>& m) {
  r("part", m.part);
}

GRIDCTL_REQUEST(RekeyRequest, parse_rekey, k_rekey_operation)
GRIDCTL_REPLY(RekeyReply, parse_rekey_reply, k_rekey_operation)

bool GuestTerms::is_open_at(int minute) const {
  if (!from_minute || !to_minute || *from_minute == *to_minute) return true;
  const bool after = minute >= *from_minute, before = minute < *to_minute;
  return *from_minute < *to_minute ? after && before : after || before;
}

std::optional<int> GuestTerms::minutes_left(int minute) const {
  if (!from_minute || !to_minute || *from_minute == *to_minute || !is_open_at(minute)) return std::nullopt;
  return *to_minute > minute ? *to_minute - minute : *to_minute + k_day - minute;
}

bool GuestTerms::allows_registry(std::string_view registry) const {
  if (registries.empty()) return std::ranges::find(k_public_registries, registry) != k_public_registries.end();
  return std::ranges::find(registries, registry) != registries.end();
}

Result<void> check_registry(std::string_view registry) {
  const std::string_view host = registry.substr(0, registry.find(':'));
  const bool has_port = host.size() < registry.size();
  const auto fits = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0 || (c >= 'a' && c <= 'z') || c == '-' || c == '.'; };
  const bool named = !host.empty() && std::ranges::all_of(host, fits) && host.front() != '.' && host.front() != '-' &&
                     (host == k_local_images ? !has_port : host.find('.') != std::string_view::npos);
  if (named && (!has_port || parse_number<std::uint16_t>(registry.substr(host.size() + 1)))) return {};
  return make_error(Code::usage, "'" + std::string(registry.substr(0, k_registry_shown)) +
                                     "' is not a registry: name hosts, such as docker.io,ghcr.io");
}

std::string_view closed_by_name(ClosedBy by) { return k_closed_by(by); }

std::string encode(const Closed& closed) {
  return std::to_string(closed.until.ms) + " " + std::to_string(closed.since.ms) + " " + std::string(k_closed_by(closed.by)) + " " + closed.why + "\n";
}

std::optional<Closed> parse_closed(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  Closed closed;
  for (std::int64_t* number : {&closed.until.ms, &closed.since.ms}) {
    const std::size_t end = text.find(' ');
    if (end == std::string_view::npos || !parse_into(text.substr(0, end), *number)) return std::nullopt;
    text.remove_prefix(end + 1);
  }
  const std::size_t end = text.find(' ');
  const auto by = k_closed_by.find(text.substr(0, end));
  if (end == std::string_view::npos || !by) return std::nullopt;
  closed.by = *by;
  closed.why = text.substr(end + 1);
  return closed;
}

std::string encode(const GuestTerms& terms) { return write_record(terms); }
Result<GuestTerms> parse_guest_terms(std::string_view text) {
  return read_record<GuestTerms>(text, "terms of a lent host", k_lenient_rules, Code::state_unreadable);
}

}  // namespace gridctl::wire

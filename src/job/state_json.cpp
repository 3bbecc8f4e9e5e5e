// SPDX-License-Identifier: Apache-2.0
// The stored form of a job's state.
#include <array>
#include <nlohmann/json.hpp>

#include "job/state.hpp"

namespace gridctl::job {

using nlohmann::json;

namespace {

json of(const std::optional<WallTime>& time) { return time ? json(time->ms) : json(nullptr); }
std::optional<WallTime> time_of(const json& in) {
  if (in.is_null()) return std::nullopt;
  return WallTime{in.get<std::int64_t>()};
}

json of(const End& e) {
  return {{"kind", end_kind_name(e.kind)},
          {"exit_code", e.exit_code},
          {"signal", e.signal},
          {"detail", e.detail},
          {"rank", e.rank},
          {"last", e.last},
          {"at", of(e.at)}};
}

End end_of(const json& in) {
  End e;
  const auto name = in.at("kind").get<std::string>();
  bool known = false;
  for (int i = 0; i <= static_cast<int>(EndKind::not_started); ++i)
    if (end_kind_name(static_cast<EndKind>(i)) == name) e.kind = static_cast<EndKind>(i), known = true;
  if (!known) throw std::runtime_error("unknown end '" + name + "'");
  e.exit_code = in.at("exit_code").get<int>();
  e.signal = in.at("signal").get<int>();
  e.detail = in.at("detail").get<std::string>();
  e.rank = in.value("rank", 0);
  e.last = in.value("last", "");
  if (const auto at = in.find("at"); at != in.end()) e.at = time_of(*at);
  return e;
}

Part part_of(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(Part::collected); ++i)
    if (part_name(static_cast<Part>(i)) == name) return static_cast<Part>(i);
  throw std::runtime_error("unknown part '" + name + "'");
}

json of(const Member& m) {
  return {{"rank", m.rank},
          {"host", m.host.value},
          {"engine", engine_name(m.engine)},
          {"gpus", m.gpu_uuids},
          {"cpus", m.cpus},
          {"memory_bytes", m.memory_bytes},
          {"price", m.price_per_hour},
          {"part", part_name(m.part)},
          {"end", m.end ? of(*m.end) : json(nullptr)},
          {"doing", m.doing},
          {"address", m.address}};
}

// `part`: of states stored before members had one.
Member member_of(const json& in, Part part) {
  Member m;
  m.part = in.contains("part") ? part_of(in.at("part").get<std::string>()) : part;
  if (const auto end = in.find("end"); end != in.end() && !end->is_null()) m.end = end_of(*end);
  m.doing = in.value("doing", "");
  m.address = in.value("address", "");
  m.rank = in.at("rank").get<int>();
  m.host = {in.at("host").get<std::string>()};
  m.engine = parse_engine(in.at("engine").get<std::string>()).value_or(EngineKind::process);
  m.gpu_uuids = in.at("gpus").get<std::vector<std::string>>();
  m.cpus = in.at("cpus").get<double>();
  m.memory_bytes = in.at("memory_bytes").get<std::uint64_t>();
  m.price_per_hour = in.at("price").get<double>();
  return m;
}

json of(const Attempt& a) {
  json members = json::array();
  for (const Member& m : a.members) members.push_back(of(m));
  return {{"number", a.number.value},
          {"epoch", a.epoch.value},
          {"members", members},
          {"resumed_from", a.resumed_from.value},
          {"why", a.placement_reason},
          {"started_at", of(a.started_at)},
          {"last_saved_at", of(a.last_saved_at)}};
}

Attempt attempt_of(const json& in, Part part) {
  Attempt a;
  a.number = {in.at("number").get<std::uint64_t>()};
  a.epoch = {in.at("epoch").get<std::uint64_t>()};
  for (const json& m : in.at("members")) a.members.push_back(member_of(m, part));
  if (a.members.empty()) throw std::runtime_error("an attempt without members");
  a.resumed_from = {in.at("resumed_from").get<std::uint64_t>()};
  a.placement_reason = in.at("why").get<std::string>();
  a.started_at = time_of(in.at("started_at"));
  a.last_saved_at = time_of(in.at("last_saved_at"));
  return a;
}

json of(const Move& m) {
  return {{"why", m.why}, {"since", m.since.ms}, {"after", m.after}, {"saved", m.saved}, {"host", m.host.value}};
}

Move move_of(const json& in) {
  return {in.at("why").get<std::string>(),
          {in.at("since").get<std::int64_t>()},
          in.at("after").get<std::uint64_t>(),
          in.at("saved").get<bool>(),
          {in.value("host", "")}};
}

struct PhaseWriter {
  json operator()(const Waiting& p) const {
    return {{"phase", "waiting"}, {"backoff_ns", p.backoff.count()}, {"why", p.why}, {"detail", p.detail}};
  }
  json operator()(const Launching& p) const {
    return {{"phase", "launching"}, {"attempt", of(p.attempt)},        {"placed_at", p.placed_at.ms},
            {"doing", p.doing},     {"doing_since", p.doing_since.ms}, {"connected", p.connected},
            {"port", p.port},       {"token", p.token}};
  }
  json operator()(const Running& p) const {
    return {{"phase", "running"}, {"attempt", of(p.attempt)}, {"move", p.move ? of(*p.move) : json(nullptr)}};
  }
  json operator()(const Stopping& p) const {
    return {{"phase", "stopping"},
            {"attempt", of(p.attempt)},
            {"grace_ns", p.grace.count()},
            {"moving", p.moving},
            {"cause", p.cause ? of(*p.cause) : json(nullptr)}};
  }
  json operator()(const Collecting& p) const {
    return {{"phase", "collecting"}, {"attempt", of(p.attempt)}, {"end", of(p.end)}, {"moving", p.moving}};
  }
  json operator()(const Done& p) const {
    return {{"phase", "done"},
            {"state", state_name(p.state)},
            {"exit_code", p.exit_code ? json(*p.exit_code) : json(nullptr)},
            {"at", p.at.ms}};
  }
};

// What states stored before there were moves do not have is read as absent.
Phase phase_of(const json& in) {
  const auto name = in.at("phase").get<std::string>();
  if (name == "waiting")
    return Waiting{Duration{in.at("backoff_ns").get<std::int64_t>()}, in.at("why").get<std::string>(),
                   in.at("detail").get<std::string>()};
  if (name == "launching")
    return Launching{attempt_of(in.at("attempt"), Part::placed),
                     {in.value("placed_at", std::int64_t{0})},
                     in.value("doing", ""),
                     {in.value("doing_since", std::int64_t{0})},
                     in.value("connected", false),
                     in.value("port", 0),
                     in.value("token", "")};
  if (name == "running") {
    Running running{attempt_of(in.at("attempt"), Part::running), {}};
    if (in.contains("move") && !in.at("move").is_null()) running.move = move_of(in.at("move"));
    return running;
  }
  if (name == "stopping") {
    Stopping stopping{attempt_of(in.at("attempt"), Part::running),
                      Duration{in.at("grace_ns").get<std::int64_t>()},
                      in.value("moving", ""),
                      {}};
    if (const auto cause = in.find("cause"); cause != in.end() && !cause->is_null()) stopping.cause = end_of(*cause);
    return stopping;
  }
  if (name == "collecting")
    return Collecting{attempt_of(in.at("attempt"), Part::ended), end_of(in.at("end")), in.value("moving", "")};
  if (name != "done") throw std::runtime_error("unknown phase '" + name + "'");
  Done done;
  done.state = parse_state_name(in.at("state").get<std::string>()).value_or(JobState::failed);
  if (!in.at("exit_code").is_null()) done.exit_code = in.at("exit_code").get<int>();
  done.at = {in.at("at").get<std::int64_t>()};
  return done;
}

State state_of(const json& in) {
  State s;
  s.id = {in.at("id").get<std::string>()};
  const json& policy = in.at("policy");
  s.policy.lost_after = Duration{policy.at("lost_after_ns").get<std::int64_t>()};
  s.policy.max_failures = policy.at("max_failures").get<int>();
  s.policy.restart_on = policy.at("restart_on").get<std::vector<int>>();
  s.policy.fail_on = policy.at("fail_on").get<std::vector<int>>();
  s.policy.lease = Duration{policy.at("lease_ns").get<std::int64_t>()};
  s.phase = phase_of(in.at("at"));
  s.reason = in.at("reason").get<std::string>();
  s.reason_text = in.at("reason_text").get<std::string>();
  s.epoch = {in.at("epoch").get<std::uint64_t>()};
  s.attempts = {in.at("attempts").get<std::uint64_t>()};
  s.head = {in.at("head").get<std::uint64_t>()};
  if (!in.at("restore").is_null()) s.restore = CheckpointSeq{in.at("restore").get<std::uint64_t>()};
  for (const json& f : in.at("failures"))
    s.failures.push_back({{f.at("host").get<std::string>()},
                          f.at("exit_code").get<int>(),
                          f.at("signal").get<int>(),
                          {f.value("restored", std::uint64_t{0})},
                          f.value("last", "")});
  if (const auto suspects = in.find("suspects"); suspects != in.end())
    for (const json& seq : *suspects) s.suspects.push_back({seq.get<std::uint64_t>()});
  s.proven = {in.value("proven", std::uint64_t{0})};
  s.gone_back = in.value("gone_back", 0);
  s.restarts_in_row = in.at("restarts_in_row").get<int>();
  for (const json& a : in.at("avoided"))
    s.avoided.push_back({{a.at("host").get<std::string>()}, a.at("reason").get<std::string>()});
  for (const json& l : in.at("loose_ends"))
    s.pending_cleanups.push_back({{l.at("host").get<std::string>()},
                                  {l.at("epoch").get<std::uint64_t>()},
                                  {l.at("attempt").get<std::uint64_t>()},
                                  l.at("stale").get<bool>(),
                                  l.value("rank", 0)});
  s.recoveries = in.at("recoveries").get<int>();
  s.lost = Duration{in.at("lost_ns").get<std::int64_t>()};
  s.start_failures_in_row = in.at("start_failures_in_row").get<int>();
  s.recovering = in.at("recovering").get<bool>();
  s.limit = in.value("limit", "");
  s.limit_text = in.value("limit_text", "");
  s.failures_max = in.value("failures_max", 0.0);
  s.late = in.value("late", false);
  s.overtaken = in.value("overtaken", "");
  if (const auto told = in.find("expected"); told != in.end() && !told->is_null())
    s.expected = Expected{told->at("seconds").get<double>(), told->at("usd").get<double>()};
  if (!in.at("cancel_ns").is_null()) s.cancel = Duration{in.at("cancel_ns").get<std::int64_t>()};
  return s;
}

}  // namespace

std::string to_json(const State& s) {
  json out{{"id", s.id.value},
           {"policy",
            {{"lost_after_ns", s.policy.lost_after.count()},
             {"max_failures", s.policy.max_failures},
             {"restart_on", s.policy.restart_on},
             {"fail_on", s.policy.fail_on},
             {"lease_ns", s.policy.lease.count()}}},
           {"at", std::visit(PhaseWriter{}, s.phase)},
           {"reason", s.reason},
           {"reason_text", s.reason_text},
           {"epoch", s.epoch.value},
           {"attempts", s.attempts.value},
           {"head", s.head.value},
           {"restore", s.restore ? json(s.restore->value) : json(nullptr)},
           {"restarts_in_row", s.restarts_in_row},
           {"recoveries", s.recoveries},
           {"lost_ns", s.lost.count()},
           {"start_failures_in_row", s.start_failures_in_row},
           {"recovering", s.recovering},
           {"cancel_ns", s.cancel ? json(s.cancel->count()) : json(nullptr)},
           {"limit", s.limit},
           {"limit_text", s.limit_text},
           {"failures_max", s.failures_max},
           {"late", s.late},
           {"overtaken", s.overtaken}};
  if (s.expected) out["expected"] = {{"seconds", s.expected->seconds}, {"usd", s.expected->usd}};
  out["failures"] = json::array();
  for (const Failure& f : s.failures)
    out["failures"].push_back({{"host", f.host.value},
                               {"exit_code", f.exit_code},
                               {"signal", f.signal},
                               {"restored", f.restored.value},
                               {"last", f.last}});
  out["suspects"] = json::array();
  for (const CheckpointSeq seq : s.suspects) out["suspects"].push_back(seq.value);
  out["proven"] = s.proven.value;
  out["gone_back"] = s.gone_back;
  out["avoided"] = json::array();
  for (const Avoided& a : s.avoided) out["avoided"].push_back({{"host", a.host.value}, {"reason", a.reason}});
  out["loose_ends"] = json::array();
  for (const PendingCleanup& l : s.pending_cleanups)
    out["loose_ends"].push_back({{"host", l.host.value},
                                 {"epoch", l.epoch.value},
                                 {"attempt", l.attempt.value},
                                 {"stale", l.stale},
                                 {"rank", l.rank}});
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<State> parse_state(std::string_view text) {
  try {
    return state_of(json::parse(text));
  } catch (const std::exception& e) {
    return make_error(Code::state_unreadable, std::string("a job's stored state cannot be read: ") + e.what());
  }
}

}  // namespace gridctl::job

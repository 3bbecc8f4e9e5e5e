// SPDX-License-Identifier: Apache-2.0
#include "control/serve/balancer_text.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace gridctl::control {

namespace {
using std::chrono::milliseconds;

std::string in_ms(Duration time) {
  return std::to_string(std::chrono::duration_cast<milliseconds>(time).count()) + "ms";
}

// Quotes one word of the configuration, so that nothing in it has a special meaning.
std::string in_quotes(std::string_view text, bool is_format) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') quoted += "'\\''";
    else quoted += c;
    if (c == '%' && is_format) quoted += c;
  }
  return quoted + "'";
}

std::string probe(const job::Service& service) {
  std::string text = "  option httpchk\n  http-check send meth " + std::string(service.probe_body.empty() ? "GET" : "POST") +
                     " uri " + (service.path.empty() ? "/" : service.path);
  for (const auto& [name, value] : service.probe_headers) text += " hdr " + name + " " + in_quotes(value, true);
  if (!service.probe_body.empty()) text += " body " + in_quotes(service.probe_body, false);
  return text + "\n  http-check expect status " + (service.path.empty() ? "100-599" : "200-399") + "\n";
}

// Sets `txn.key`, which selects a replica; a request without a key may go to any.
std::string key_rules(job::Affinity affinity) {
  if (affinity == job::Affinity::session)
    return "  http-request set-var(txn.key) req.cook(gridctl-session)\n"
           "  http-request set-var(txn.key) req.hdr(x-session-id) if { req.hdr(x-session-id) -m found }\n"
           "  http-request set-var(txn.fresh) uuid() unless { var(txn.key) -m found }\n"
           "  http-request set-var(txn.key) var(txn.fresh) unless { var(txn.key) -m found }\n"
           "  http-response add-header Set-Cookie \"gridctl-session=%[var(txn.fresh)]; Path=/; HttpOnly; SameSite=Lax\" "
           "if { var(txn.fresh) -m found }\n";
  if (affinity == job::Affinity::none) return "";
  // A conversation keeps its key while it grows: the system's message and the first message after it.
  std::string text = "  http-request set-var(txn.key) req.body,bytes(0,256) if METH_POST\n";
  for (const auto& [name, path] : {std::pair{"role", "$.messages[0].role"}, {"first", "$.messages[0].content"},
                                   {"second", "$.messages[1].content"}, {"prompt", "$.prompt"}})
    text += "  http-request set-var(txn." + std::string(name) + ") req.body,json_query('" + path +
            "'),bytes(0,1024) if METH_POST\n";
  for (const char* name : {"prompt", "first"})
    text += "  http-request set-var(txn.key) var(txn." + std::string(name) + ") if { var(txn." + name + ") -m found }\n";
  return text + "  http-request set-var(txn.key) var(txn.first),concat(,txn.second,) if { var(txn.role) -m str system "
                "developer } { var(txn.first) -m found }\n";
}

// A draining server leaves the ring. A server much busier than the others passes a prompt on, because another replica
// computes it before this one gets to it. A session stays.
std::string balance(job::Affinity affinity) {
  if (affinity == job::Affinity::none) return "  balance leastconn\n";
  return std::string("  balance hash var(txn.key)\n  hash-type consistent\n") +
         (affinity == job::Affinity::prefix ? "  hash-balance-factor 125\n" : "");
}

std::string backend(const job::Service& service, int replicas) {
  const Duration quick = std::min<Duration>(service.every, milliseconds{250});
  std::string text = "backend b\n" + balance(service.affinity) + probe(service) +
                     "  http-request disable-l7-retry unless { var(txn.safe) -m bool }\n"
                     "  http-response set-status 503 if { status 425 504 } { res.hdr(x-gridctl-wait) -m found }\n"
                     "  http-response del-header x-gridctl-wait\n"
                     "  server wait unix@" +
                     std::string(k_wait_socket) +
                     " backup\n"
                     "  default-server check inter " +
                     in_ms(service.every) + " fastinter " + in_ms(quick) + " downinter " +
                     in_ms(std::min<Duration>(service.every, milliseconds{500})) + " fall 2 rise 2 disabled\n";
  for (int replica = 1; replica <= replicas; ++replica)
    text += "  server " + server_name(replica) + " unix@" + server_socket(replica) + "\n";
  return text;
}

// Commas inside double quotes do not separate fields.
std::vector<std::string> csv_fields(std::string_view line) {
  std::vector<std::string> fields{""};
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    else if (c == ',' && !quoted) fields.emplace_back();
    else fields.back() += c;
  }
  return fields;
}

ServerState state_of(const ServerLine& line) {
  return line.status.starts_with("MAINT")   ? ServerState::out
         : line.status.starts_with("DRAIN") ? ServerState::drain
                                            : ServerState::ready;
}
}  // namespace

std::string server_name(int replica) { return "r" + std::to_string(replica); }
std::string server_socket(int replica) { return server_name(replica) + ".sock"; }

std::string balancer_config(const job::Service& service, int replicas, int listen_fd, bool has_exporter) {
  std::string text =
      "# written by gridctl, again at each start\n"
      "global\n"
      "  stats socket unix@" +
      std::string(k_admin_socket) +
      " mode 600 level admin\n"
      "  stats timeout 1m\n"
      "  maxconn 2000\n"
      "  no strict-limits\n"
      "  nbthread 1\n"
      "  tune.bufsize 131072\n"  // a request that is sent again must lie in one buffer
      "  lua-load " +
      std::string(k_hold_file) +
      "\n"
      "defaults\n"
      "  mode http\n"
      "  timeout http-request 30s\n"
      "  timeout connect 2s\n"
      "  timeout client 1h\n"  // models think long, and events may be rare
      "  timeout server 1h\n"
      "  timeout tunnel 24h\n"
      "  timeout client-fin 30s\n"
      "  timeout queue 60s\n"
      "  timeout check " +
      in_ms(service.timeout) +
      "\n"
      "  option http-no-delay\n"  // else each event of a stream is held 200 ms
      "  option http-buffer-request\n"
      "  option abortonclose\n"
      "  option redispatch 1\n"
      "  retries 5\n"  // two at a replica whose program has gone, one at the server of last resort, one at a replica
      "  retry-on conn-failure empty-response 425 503\n"
      "frontend f\n"
      "  bind fd@" +
      std::to_string(listen_fd) + "\n";
  if (!service.keys_file.empty())
    text +=
        "  http-request return status 401 content-type text/plain string \"this service needs a key\" unless "
        "{ req.hdr(authorization) -f " +
        std::string(k_bearer_file) + " } || { req.hdr(x-api-key) -f " + std::string(k_key_file) + " }\n";
  text +=
      "  http-request return status 503 hdr Retry-After 5 hdr Connection close content-type text/plain string "
      "\"the service is being stopped\" if { date,sub(proc.refuse_until) -m int lt 0 }\n";
  if (has_exporter) text += "  http-request use-service prometheus-exporter if { path /gridctl/metrics }\n";
  for (int replica = 1; replica <= replicas; ++replica)
    text += "  acl ready srv_is_up(b/" + server_name(replica) + ")\n";
  text +=
      "  http-request lua.hold " + std::to_string(replicas) + " " + std::to_string(k_hold_seconds) +
      " if !ready\n"
      "  http-request return status 429 hdr Retry-After 5 content-type text/plain string \"too many requests wait for "
      "a "
      "replica\" if { var(txn.full) -m bool }\n"
      "  http-request return status 503 hdr Retry-After 5 content-type text/plain string \"no replica is ready\" if "
      "!ready\n"
      "  http-request set-var(txn.safe) bool(true) if METH_GET || METH_HEAD || METH_OPTIONS";
  for (const std::string& prefix : service.retry_post) text += " || { path_beg " + prefix + " }";
  return text + "\n" + key_rules(service.affinity) + "  default_backend b\n" + backend(service, replicas);
}

std::string refuse_command(WallTime now) {
  return "experimental-mode on;set var proc.refuse_until int(" +
         std::to_string((now.ms + std::chrono::duration_cast<milliseconds>(k_refusal).count()) / 1000) + ")";
}

std::string hold_script() {
  return "-- written by gridctl\n"
         "local held = 0\n"
         "local function ready(txn, count)\n"
         "  for i = 1, tonumber(count) do\n"
         "    local up = txn.f:srv_is_up(\"b/r\" .. i)\n"
         "    if up == 1 or up == true then return true end\n"
         "  end\n"
         "  return false\n"
         "end\n"
         "core.register_action(\"hold\", {\"http-req\"}, function(txn, count, seconds)\n"
         "  if held >= " +
         std::to_string(k_held_max) +
         " then\n"
         "    txn:set_var(\"txn.full\", true)\n"
         "    return\n"
         "  end\n"
         "  held = held + 1\n"
         "  local stop = core.now().sec + tonumber(seconds)\n"
         "  while not ready(txn, count) and core.now().sec < stop do core.msleep(50) end\n"
         "  held = held - 1\n"
         "end, 2)\n";
}

std::vector<ServerLine> parse_stats(std::string_view csv) {
  std::vector<ServerLine> found;
  std::map<std::string, std::size_t, std::less<>> columns;
  for (const std::string& line : split(std::string(csv), '\n')) {
    const std::vector<std::string> fields =
        csv_fields(line.starts_with("# ") ? std::string_view(line).substr(2) : line);
    if (line.starts_with("# ")) {
      for (std::size_t i = 0; i < fields.size(); ++i) columns.emplace(fields[i], i);
      continue;
    }
    const auto text = [&](std::string_view name) {
      const auto column = columns.find(name);
      return column == columns.end() || column->second >= fields.size() ? std::string() : fields[column->second];
    };
    const auto number = [&](std::string_view name) { return parse_number<std::uint64_t>(text(name)).value_or(0); };
    ServerLine one{text("svname"),
                   text("status"),
                   text("check_status"),
                   number("scur"),
                   number("qcur"),
                   number("stot"),
                   number("hrsp_5xx") + number("econ") + number("eresp"),
                   number("wretr"),
                   number("wredis"),
                   number("rtime")};
    if (one.name.empty()) continue;
    if (const std::string code = text("check_code"); !one.probe.empty() && !code.empty()) one.probe += "/" + code;
    found.push_back(std::move(one));
  }
  return found;
}

std::vector<std::string> repairs(std::span<const ServerLine> found, std::span<const ServerState> wanted,
                                 const std::set<std::string>& trusted) {
  std::vector<std::string> commands;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::string name = server_name(static_cast<int>(i) + 1), server = "set server b/" + name;
    const auto line = std::ranges::find(found, name, &ServerLine::name);
    if (line == found.end() || state_of(*line) == wanted[i]) continue;
    // A server that returns counts as down until its probes pass, unless it was up a moment ago.
    commands.push_back(wanted[i] == ServerState::out ? server + " state maint"
                       : wanted[i] == ServerState::drain
                           ? server + " state drain"
                           : server + " state ready" + (trusted.contains(name) ? "" : ";" + server + " health down"));
  }
  return commands;
}

KeyFiles key_files(std::string_view text) {
  KeyFiles files;
  for (const std::string& line : split(std::string(text), '\n')) {
    const std::string key(trim(line));
    if (key.empty() || key.starts_with('#')) continue;
    files.plain += key + "\n";
    files.bearer += "Bearer " + key + "\n";
  }
  return files;
}

}  // namespace gridctl::control

// SPDX-License-Identifier: Apache-2.0
// Implements `gridctl init`: from the hosts that ssh knows to a first job that survives the loss of its host.
#include <atomic>
#include <set>
#include <thread>

#include "base/bytes.hpp"
#include "base/lines.hpp"
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "cmd/known_keys.hpp"
#include "cmd/network.hpp"
#include "cmd/ssh_names.hpp"
#include "control/fleet/register_host.hpp"
#include "os/mutex.hpp"
#include "os/process.hpp"
#include "os/terminal.hpp"
#include "ui/human.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace init {
namespace {
constexpr Duration k_timeout = std::chrono::minutes{2};  // of each host: login, upload of the agent, inventory
constexpr Duration k_drill_wait = std::chrono::minutes{10};
constexpr std::size_t k_side_by_side = 16;  // hosts that are asked at once
constexpr std::size_t k_drill_hosts = 2;    // one is lost, the other goes on

constexpr Example k_examples[] = {{"Choose among the hosts that ssh knows", "gridctl init"},
                                  {"In a script", "gridctl init --host ada --host bob --no-drill"},
                                  {"Every host that answers", "gridctl init --all"}};
constexpr Option k_options[] = {
    {"host", 0, "NAME", "register this host", "asks at a terminal", Completion::nothing, "", true},
    {"all", 0, "", "register every host that answers"},
    {"no-drill", 0, "", "do not test whether a job survives the loss of a host"}};
constexpr int k_exits[] = {3, 5, 6, 7};

using AskKeys = std::function<bool(const std::string&, std::span<const ssh::HostKey>)>;

struct Looked {
  std::string name;
  Result<control::Examined> found = make_error(Code::internal, "not asked");
};

// Asks hosts in parallel; `told` is called for each as it answers, one at a time.
std::vector<Looked> look_at(Context& context, const std::vector<std::string>& names,
                            const std::vector<registry::Provider>& known, control::AgentNetwork& net,
                            const AskKeys& ask, const std::function<void(const Looked&)>& told) {
  std::vector<Looked> all(names.size());
  std::atomic<std::size_t> next = 0;
  os::Mutex mutex;  // of told
  const auto work = [&] {
    for (std::size_t i = next++; i < names.size(); i = next++) {
      control::EnrollRequest request;
      request.provider.name = HostName{to_name(names[i])};
      request.provider.registered_at = context.now();
      request.address = names[i];
      request.accept_command = "gridctl provider register " + to_name(names[i]) + " " + shell_quote(names[i]) +
                               " --host-key HOST_KEY";
      request.others = known;
      request.ask = ask;
      const BootTime deadline = context.clock.boot() + context.timeout.value_or(k_timeout);
      all[i] = {names[i], control::enroll(net, request, context.paths(), deadline, context.clock)};
      const os::MutexLock lock(mutex);
      told(all[i]);
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < std::min(k_side_by_side, names.size()); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  return all;
}

std::string line_of(const Looked& looked) {
  if (!looked.found) return looked.name + ": " + sanitize(looked.found.error().message);
  const Inventory& has = looked.found->provider.inventory;
  return looked.name + ": " + (has.gpus.empty() ? "no GPU" : sanitize(ui::gpus(has))) + ", " + ui::number(has.cpus) +
         (has.cpus == 1 ? " CPU, " : " CPUs, ") + format_size(has.memory_bytes) +
         (probe::passed(looked.found->findings) ? "" : "; jobs cannot run on it yet");
}

bool lacks_trust(const Looked& looked) { return !looked.found && looked.found.error().code == Code::host_key_mismatch; }

// Hosts with unknown keys are asked again, one after another, with a person who compares the keys.
std::vector<Looked> look_with_person(Context& context, const std::vector<std::string>& names,
                                     const std::vector<registry::Provider>& known, control::AgentNetwork& net) {
  const AskKeys ask = asker(context);
  const auto tell = [&](const Looked& one) { context.note("  " + line_of(one)); };
  std::vector<Looked> all = look_at(context, names, known, net, {}, [&](const Looked& one) {
    if (!ask || !lacks_trust(one)) tell(one);
  });
  for (Looked& one : all)
    if (ask && lacks_trust(one)) one = std::move(look_at(context, {one.name}, known, net, ask, tell).front());
  return all;
}

// Returns the `names` that are not registered yet, and notes the others.
std::vector<std::string> not_yet(Context& context, const std::vector<std::string>& names, const std::vector<registry::Provider>& known) {
  std::vector<std::string> fresh;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(known, HostName{to_name(name)}, &registry::Provider::name);
    if (found == known.end()) fresh.push_back(name);
    else context.note(found->name.value + " is already registered, at " + sanitize(found->address));
  }
  return fresh;
}

// Returns the offered names that a person typed; all of them for an empty line.
Result<std::set<std::string>> ask_which(Context& context, const std::vector<Looked>& looked) {
  std::set<std::string> offered;
  for (const Looked& one : looked)
    if (one.found) offered.insert(one.name);
  context.write_err("which hosts to register? [all, none, or names] ");
  TRY_ASSIGN(const std::string answer, os::read_typed_line());
  const std::string text = lower(trim(answer));
  if (text.empty() || text == "all") return offered;
  std::set<std::string> chosen;
  if (text == "none") return chosen;
  for (const std::string& word : split(std::string(trim(answer)), ' '))
    if (!word.empty() && !offered.contains(word))
      return make_error(Code::usage, "'" + sanitize(word) + "' is not among the hosts that answered");
    else if (!word.empty()) chosen.insert(word);
  return chosen;
}

Result<std::vector<std::string>> candidates(const Parsed& parsed) {
  if (parsed.has("host")) return parsed.values("host");
  TRY_ASSIGN(std::vector<std::string> names, ssh_names(os::home_directory() / ".ssh" / "config"));
  if (names.empty())
    return make_error(Code::not_found, "~/.ssh/config names no host",
                      "gridctl provider register NAME ssh://user@host");
  return names;
}

Result<std::vector<HostName>> record(Context& context, registry::Registry& registry, const std::vector<Looked>& looked,
                                     const std::set<std::string>& chosen) {
  std::vector<HostName> recorded;
  for (const Looked& one : looked) {
    if (!one.found || !chosen.contains(one.name)) continue;
    TRY(registry.add_provider(one.found->provider));
    recorded.push_back(one.found->provider.name);
    context.note(one.found->provider.name.value + " is registered");
  }
  return recorded;
}

// A program of a few lines that counts and saves, and continues from what it has saved.
constexpr const char* k_counter =
    "name: first\n"
    "run: |\n"
    "  mkdir -p out\n"
    "  i=$(cat out/count 2>/dev/null || echo 0)\n"
    "  while [ $i -lt 100000 ]; do\n"
    "    i=$((i+1)); echo step $i\n"
    "    echo $i > out/next && mv out/next out/count; touch out/.commit; sleep 0.2\n"
    "  done\n"
    "checkpoint: {path: out}\n";

Result<bool> drill(Context& context) {
  const os::Path file = context.paths().root / "first.yaml";
  TRY(os::write_file_atomically(file, k_counter));
  TRY_ASSIGN(const os::Path self, os::executable_path());
  context.note("drill: starting a small job, then treating its host as lost...");
  os::RunOptions options;
  options.timeout = k_drill_wait;
  TRY_ASSIGN(const os::RunOutcome outcome,
             os::run({self.string(), "job", "drill", file.string(), "--state", context.state.string()}, options));
  context.note(sanitize_lines(trim(outcome.status.success() ? outcome.out : outcome.out + outcome.err)));
  return outcome.status.success();
}

void say_next(Context& context, const std::vector<HostName>& hosts) {
  context.print_line("Next:");
  context.print_line("  gridctl job submit -- 'hostname; echo it works'");
  context.print_line("  gridctl provider show " + hosts.front().value);
  context.print_line("  gridctl daemon install     # also follow jobs after a reboot");
}

// REQUIRES: the names in `wanted` that are not in `looked` are already registered.
std::string json_of(const std::vector<Looked>& looked, const std::vector<HostName>& recorded, const std::vector<std::string>& wanted) {
  std::string list;
  for (const std::string& name : wanted)
    if (std::ranges::find(looked, name, &Looked::name) == looked.end())
      list += (list.empty() ? "" : ",") + ("{\"host\":" + ui::quoted(name)) +
              ",\"answers\":null,\"registered\":true,\"already\":true,\"problem\":null}";
  for (const Looked& one : looked) {
    const bool is_new = one.found && std::ranges::find(recorded, one.found->provider.name) != recorded.end();
    list += (list.empty() ? "" : ",") + ("{\"host\":" + ui::quoted(one.name)) + ",\"answers\":" +
            (one.found ? "true" : "false") + ",\"registered\":" + (is_new ? "true" : "false") + ",\"already\":false,\"problem\":" +
            (one.found ? "null" : ui::quoted(one.found.error().message)) + "}";
  }
  return "{\"hosts\":[" + list + "]}";
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(std::vector<std::string> names, candidates(parsed));
  const bool may_ask = context.terminal_in && context.terminal_err && !context.json;
  if (!parsed.has("host") && !parsed.has("all") && !may_ask)
    return make_error(Code::usage, "without a terminal, name the hosts: --host NAME or --all; ssh knows " +
                                       join(names, ", "),
                      "gridctl init --all");
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const std::vector<registry::Provider> known, registry.providers());
  TRY_ASSIGN(control::SshNetwork net, network_of(context, registry));
  const std::vector<std::string> wanted = names;
  names = not_yet(context, names, known);
  if (names.empty()) {
    if (context.json) context.print_line(json_of({}, {}, wanted));
    else context.print_line("all of them are already registered; to list them: gridctl provider ls");
    return 0;
  }
  context.note("asking " + std::to_string(names.size()) + (names.size() == 1 ? " host..." : " hosts..."));
  const std::vector<Looked> looked = look_with_person(context, names, known, net);
  std::set<std::string> chosen(names.begin(), names.end());
  if (!parsed.has("host") && !parsed.has("all")) {
    TRY_ASSIGN(chosen, ask_which(context, looked));
  }
  TRY_ASSIGN(const std::vector<HostName> recorded, record(context, registry, looked, chosen));
  if (context.json) context.print_line(json_of(looked, recorded, wanted));
  for (const Looked& one : looked)  // a host that was named is wanted
    if (!one.found && one.found.error().code != Code::exists && parsed.has("host")) return one.found.error();
  if (recorded.empty() && known.empty()) return make_error(Code::not_found, "no host was registered");
  bool well = true;
  if (!parsed.has("no-drill") && recorded.size() >= k_drill_hosts) {
    TRY_ASSIGN(well, drill(context));
  }
  if (!context.json && !recorded.empty()) say_next(context, recorded);
  return well ? 0 : exit_code(Code::host_unreachable);
}
}  // namespace
}  // namespace init

const Command k_init{.noun = "init",
                     .verb = "",
                     .summary = "register the hosts that ssh knows, and try a job on them",
                     .examples = init::k_examples,
                     .description =
                         "Reads ~/.ssh/config, takes the inventory of all its hosts in parallel, and registers those "
                         "that you choose. With two or more hosts, it runs a drill: it treats a small job's host as "
                         "lost, and the job must continue on another. Then it prints what to type next.\n\n"
                         "If your ssh does not know a host's key, the command shows the key and asks whether to trust it. "
                         "It leaves hosts that are already registered as they are, so you can repeat it. Without a "
                         "terminal, it asks nothing and leaves out hosts with unknown keys: name hosts with --host, or "
                         "use --all.",
                     .options = init::k_options,
                     .exit_codes = init::k_exits,
                     .waits = true,
                     .run = init::run};

}  // namespace gridctl::cmd

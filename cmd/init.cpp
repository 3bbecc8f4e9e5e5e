// SPDX-License-Identifier: Apache-2.0
// Implements `gridctl init`: from the hosts that ssh knows to a first job that survives the loss of its host.
#include <atomic>
#include <thread>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/network.hpp"
#include "control/fleet/register_host.hpp"
#include "os/entries.hpp"
#include "os/mutex.hpp"
#include "os/process.hpp"
#include "os/terminal.hpp"
#include "store/ignore.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace init {
namespace {
constexpr Duration k_timeout = std::chrono::minutes{2};  // of each host: login, upload of the agent, inventory
constexpr Duration k_drill_wait = std::chrono::minutes{10};
constexpr std::size_t k_side_by_side = 16;  // hosts that are asked at once
constexpr std::size_t k_drill_hosts = 2;    // one is lost, the other goes on

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

constexpr std::size_t k_config_max = 4u << 20;
constexpr int k_depth_max = 8;  // of includes, as ssh has it at 16
constexpr std::string_view k_forges[] = {"github", "gitlab", "bitbucket", "codeberg", "sr.ht", "gitea", "aur."};

bool is_forge(std::string_view name) {
  return std::any_of(std::begin(k_forges), std::end(k_forges),
                     [&](std::string_view forge) { return name.find(forge) != std::string_view::npos; });
}

// Splits "Host a b" and "Host=a", with or without quotes around words.
std::vector<std::string> words_in(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false, any = false;
  for (const char c : line) {
    const bool gap = !quoted && (c == ' ' || c == '\t' || (c == '=' && words.size() <= 1 && (any || words.size() == 1)));
    if (c == '"') quoted = !quoted, any = true;
    else if (!gap) word += c, any = true;
    else if (any) words.push_back(std::move(word)), word.clear(), any = false;
  }
  if (any) words.push_back(std::move(word));
  return words;
}

// Returns the files that an Include names; a pattern may stand in the last component only.
std::vector<os::Path> included(const std::string& pattern, const os::Path& folder) {
  os::Path path = pattern.starts_with("~/") ? os::home_directory() / pattern.substr(2) : os::Path(pattern);
  if (path.is_relative()) path = folder / path;
  if (path.string().find_first_of("*?[") == std::string::npos) return {path};
  std::vector<os::Path> found;
  store::IgnorePattern glob;
  const auto names = os::list_directory(path.parent_path());
  if (!names || !store::IgnorePattern::parse("/" + path.filename().string(), glob)) return found;
  for (const std::string& name : *names)
    if (!name.starts_with('.') && glob.matches(name, false)) found.push_back(path.parent_path() / name);
  std::ranges::sort(found);
  return found;
}

// Holds the names of single hosts in the text of an ssh configuration, in its order, and the files that it includes.
// Patterns, and the usual services that run no jobs (github.com…), are left out.
struct SshNames {
  std::vector<std::string> hosts;
  std::vector<std::string> includes;
};

SshNames names_in(std::string_view text) {
  SshNames names;
  for (const std::string& line : split_lines(std::string(text))) {
    const std::string_view trimmed = trim(line);
    if (trimmed.empty() || trimmed.starts_with('#')) continue;
    const std::vector<std::string> words = words_in(trimmed);
    if (words.empty()) continue;
    const std::string key = lower(words[0]);
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (key == "include") names.includes.push_back(words[i]);
      if (key == "host" && words[i].find_first_of("*?!") == std::string::npos && !is_forge(lower(words[i])))
        names.hosts.push_back(words[i]);
    }
  }
  return names;
}

void collect(const os::Path& file, const os::Path& folder, int depth, std::vector<std::string>& into) {
  const Result<std::string> text = os::read_file(file, k_config_max);
  if (!text || depth > k_depth_max) return;
  const SshNames found = names_in(*text);
  into.insert(into.end(), found.hosts.begin(), found.hosts.end());
  for (const std::string& pattern : found.includes)
    for (const os::Path& more : included(pattern, folder)) collect(more, folder, depth + 1, into);
}

// Returns the names in a file and in the files that it includes, or nothing if there is no file.
Result<std::vector<std::string>> ssh_names(const os::Path& config) {
  std::vector<std::string> all;
  collect(config, config.parent_path(), 0, all);
  std::set<std::string> seen;
  std::erase_if(all, [&](const std::string& name) { return !seen.insert(name).second; });
  return all;
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
  std::vector<std::string> list;
  const auto add = [&](const std::string& host, std::optional<bool> answers, bool is_new, bool already) -> JsonObject {
    return JsonObject()("host", host)("answers", answers)("registered", is_new)("already", already);
  };
  for (const std::string& name : wanted)
    if (std::ranges::find(looked, name, &Looked::name) == looked.end())
      list.push_back(add(name, std::nullopt, true, true).raw("problem", "null").text());
  for (const Looked& one : looked) {
    const bool is_new = one.found && std::ranges::find(recorded, one.found->provider.name) != recorded.end();
    list.push_back(add(one.name, one.found.has_value(), is_new, false)
                       .text_or_null("problem", one.found ? "" : one.found.error().message)
                       .text());
  }
  return JsonObject().raw("hosts", "[" + join(list, ",") + "]").text();
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
  context.note("asking " + ui::counted(names.size(), "host") + "...");
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

const Command k_init{
    .name = "init",
    .summary = "register the hosts that ssh knows, and try a job on them",
    .examples = {{"Choose among the hosts that ssh knows", "gridctl init"},
                 {"In a script", "gridctl init --host ada --host bob --no-drill"},
                 {"Every host that answers", "gridctl init --all"}},
    .description =
        "Reads ~/.ssh/config, takes the inventory of all its hosts in parallel, and registers those "
        "that you choose. With two or more hosts, it runs a drill: it treats a small job's host as "
        "lost, and the job must continue on another. Then it prints what to type next.\n\n"
        "If your ssh does not know a host's key, the command shows the key and asks whether to trust it. "
        "It leaves hosts that are already registered as they are, so you can repeat it. Without a "
        "terminal, it asks nothing and leaves out hosts with unknown keys: name hosts with --host, or "
        "use --all.",
    .options = {{"host", 0, "NAME", "register this host", "asks at a terminal", Completion::nothing, "", true},
                {"all", 0, "", "register every host that answers"},
                {"no-drill", 0, "", "do not test whether a job survives the loss of a host"}},
    .exit_codes = {3, 5, 6, 7},
    .waits = true,
    .run = init::run};

}  // namespace gridctl::cmd

// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/network.hpp"
#include "cmd/findings.hpp"
#include "cmd/host_words.hpp"
#include "control/fleet/register_host.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace provider_register {
namespace {
constexpr Duration k_timeout = std::chrono::minutes{30};  // the agent over a thin link; all else has limits of seconds

constexpr Duration k_note_every = std::chrono::seconds{3};

Result<registry::Provider> described(const Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Provider provider, provider_to_reach(parsed, context.now()));
  if (parsed.has("engine")) provider.engine = parsed.value("engine");
  TRY(describe(parsed, provider));
  return provider;
}

Result<void> check_new(registry::HostRecords& registry, const registry::Provider& provider) {
  Result<registry::Provider> known = registry.provider(provider.name);
  if (known)
    return make_error(
        Code::exists, "provider " + provider.name.value + " is already registered, at " + known->address,
        "gridctl provider check " + provider.name.value + ", or gridctl provider rm " + provider.name.value);
  if (known.error().code != Code::not_found) return std::move(known).error();
  return {};
}

// Prints a line every few seconds while the agent travels over a slow link.
control::UploadProgress upload_notes(Context& context) {
  return [&context, next = context.clock.boot() + k_note_every](std::size_t sent, std::size_t total) mutable {
    if (context.clock.boot() < next) return;
    next = context.clock.boot() + k_note_every;
    context.note("putting the agent there: " + format_size(sent) + " of " + format_size(total));
  };
}

std::string accept_command(const Parsed& parsed) {
  std::string command = "gridctl provider register " + parsed.positionals[0] + " " + shell_quote(parsed.positionals[1]);
  for (const std::string& key : parsed.values("identity")) command += " -i " + shell_quote(key);
  if (parsed.has("jump")) command += " -J " + shell_quote(parsed.value("jump"));
  for (const char* option : {"engine", "gpu", "price", "region", "site", "class"})
    if (parsed.has(option)) command += " --" + std::string(option) + " " + shell_quote(parsed.value(option));
  for (const std::string& label : parsed.values("label")) command += " --label " + shell_quote(label);
  if (parsed.has("force")) command += " --force";
  if (parsed.has("state")) command += " --state " + shell_quote(parsed.value("state"));
  return command + " --host-key HOST_KEY";
}

int print_result(Context& context, const control::Examined& examined) {
  const registry::Provider& provider = examined.provider;
  if (context.json) return context.print_line(ui::provider_json(provider));
  const std::string gpus = provider.inventory->gpus.empty() ? "no GPU" : sanitize(ui::gpus(provider.inventory));
  return context.print_line(provider.name.value + " is registered: " + sanitize(provider.address) + ", " + gpus + ", " +
                            ui::number(provider.inventory->cpus) + " CPUs, " +
                            format_size(provider.inventory->memory_bytes));
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const registry::Provider provider, described(context, parsed));
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY(check_new(registry, provider));
  control::EnrollRequest request;
  request.provider = provider;
  request.address = parsed.positionals[1];
  request.host_key = parsed.value("host-key");
  request.accept_command = accept_command(parsed);
  TRY_ASSIGN(request.others, registry.providers());
  request.force = parsed.has("force");
  request.ask = asker(context);
  TRY_ASSIGN(control::SshNetwork net,
             network_of(context, registry, context.json ? control::UploadProgress() : upload_notes(context)));
  const BootTime deadline = context.clock.boot() + context.timeout.value_or(k_timeout);
  TRY_ASSIGN(const control::Examined examined,
             control::enroll(net, request, context.paths(), deadline, context.clock));
  TRY(registry.add_provider(examined.provider));
  show_findings(context, examined.findings);
  if (const HostName& other = examined.shares_machine_with; !other.empty())
    context.note(provider.name.value + " and " + other.value +
                 " are SSH servers on one machine: its hardware is counted once");
  print_result(context, examined);
  if (probe::passed(examined.findings)) return 0;
  return make_error(Code::engine, "jobs cannot run on " + provider.name.value + " until the failed checks pass",
                    "gridctl provider check " + provider.name.value);
}
}  // namespace
}  // namespace provider_register

const Command k_provider_register{
    .name = "provider register",
    .summary = "register a host that can run jobs",
    .examples = {
        {"A host that 'ssh ada' reaches", "gridctl provider register ada ada"},
        {"With all details",
         "gridctl provider register ada ssh://me@ada.example.org:2222 -i ~/.ssh/id_ed25519 --class datacenter "
         "--region DE"},
        {"In a script, give the host key", "gridctl provider register ada me@10.0.0.7 --host-key SHA256:l5Kx..."}},
    .description =
        "Logs in over SSH, pins the host key, copies the agent (a single file of a few MB) to ~/.gridctl on the host, "
        "takes an inventory and checks whether jobs can run. Each failed check comes with the command that fixes it. "
        "The host needs no root access.\n\nNames in ~/.ssh/config work as with ssh, including users, ports, keys and "
        "jump hosts. gridctl accepts an unknown host key only if you confirm it at a terminal or pass "
        "--host-key.\n\ngridctl identifies a machine by its host key and refuses to register it twice. Machines cloned "
        "from one image count as different if their host keys differ; a clone with the same key needs --force. Several "
        "SSH servers on one machine (containers with their own keys but the same machine id and boot id) are separate "
        "providers whose GPUs, CPUs and memory count once.",
    .positionals = {{"NAME"}, {"[ssh://][USER@]HOST[:PORT]"}},
    .options = {
        {"identity", 'i', "KEY", "private key file for the login", "as ssh does", Completion::file, "", true},
        {"jump", 'J', "JUMP", "jump host, as with ssh -J"},
        {"host-key", 0, "SHA256:...", "expected fingerprint of the host key; suppresses the question"},
        {"engine", 0, "ENGINE", "container engine on the host", "auto", Completion::choices,
         "auto|docker|podman|process"},
        {"gpu", 0, "SPEC", "GPUs according to the owner, such as RTX_4090:2; differences are shown"},
        {"price", 0, "USD", "hourly price of the whole host", "0"},
        {"region", 0, "REGION", "country or region, such as DE"},
        {"site", 0, "NAME", "hosts at the same site are near each other"},
        {"class", 0, "CLASS", "kind of host, which sets the expected reliability", "home", Completion::choices,
         k_host_classes},
        {"label", 'l', "K=V", "label that jobs can match", "", Completion::nothing, "", true},
        {"force", 'f', "", "register it even if it has the host key of a registered machine"}},
    .exit_codes = {5, 6, 7},
    .waits = true,
    .run = provider_register::run};

}  // namespace gridctl::cmd

// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <functional>

#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/host_words.hpp"
#include "cmd/network.hpp"
#include "control/fleet/register_host.hpp"
#include "control/reach/ways.hpp"
#include "registry/change_provider.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

Result<registry::Way> new_way(Context& context, registry::HostRecords& registry, const registry::Provider& provider,
                              registry::Way typed, const std::string& host_key, const std::string& again) {
  if (control::is_lent(provider))
    return make_error(Code::unsupported,
                      provider.name.value + " is lent: it is reached only through its relay",
                      "gridctl provider register NAME " + shell_quote(typed.address) + "   # if you have a login there");
  control::TrustRequest request;
  request.host_key = host_key;
  request.accept_command = again + " --host-key HOST_KEY";
  request.ask = asker(context);
  TRY_ASSIGN(control::SshNetwork net, network_of(context, registry));
  const BootTime deadline = context.clock.boot() + context.timeout.value_or(k_way_timeout);
  return control::try_way(net, provider, typed, request, context.paths(), deadline, context.clock);
}

namespace provider_way {
namespace {
Error not_one(const registry::Provider& provider, const std::string& address) {
  std::vector<std::string> known;
  for (const registry::Way& way : provider.ways()) known.push_back(way.address);
  return make_error(Code::not_found,
                    sanitize(address) + " is not a way to " + provider.name.value + ", which is reached at " +
                        sanitize(join(known, ", ")),
                    "gridctl provider show " + provider.name.value);
}

Result<void> remove(registry::Provider& provider, const std::string& address) {
  std::vector<registry::Way> ways = provider.ways();
  if (std::erase_if(ways, [&](const registry::Way& way) { return way.address == address; }) == 0)
    return not_one(provider, address);
  if (ways.empty())
    return make_error(Code::refused, sanitize(address) + " is the only way to " + provider.name.value,
                      "gridctl provider rm " + provider.name.value);
  provider.set_ways(std::move(ways));
  return {};
}

Result<void> check_new(const registry::Provider& provider, const std::string& address) {
  for (const registry::Way& way : provider.ways())
    if (way.address == address)
      return make_error(Code::exists, sanitize(address) + " is a way to " + provider.name.value + " already",
                        "gridctl provider way " + provider.name.value + " " + shell_quote(address) + " --rm");
  return {};
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const registry::Provider before, registry.provider(HostName{parsed.positionals[0]}));
  const std::string address = parsed.positionals[1];
  std::string told = "no longer reached at " + sanitize(address);
  std::function<Result<void>(registry::Provider&)> change = [&](registry::Provider& row) { return remove(row, address); };
  if (!parsed.has("rm")) {
    TRY(check_new(before, address));
    TRY_ASSIGN(registry::Way typed, way_typed(parsed, before, address));
    TRY_ASSIGN(registry::Way way,
               new_way(context, registry, before, std::move(typed), parsed.value("host-key"),
                       "gridctl provider way " + before.name.value + " " + shell_quote(address) +
                           (parsed.has("jump") ? " -J " + shell_quote(parsed.value("jump")) : "") +
                           (parsed.has("first") ? " --first" : "")));
    change = [&parsed, &address, way = std::move(way)](registry::Provider& row) -> Result<void> {
      TRY(check_new(row, address));
      std::vector<registry::Way> ways = row.ways();
      ways.insert(parsed.has("first") ? ways.begin() : ways.end(), way);
      row.set_ways(std::move(ways));
      return {};
    };
    told = "also reached at " + sanitize(address) + (parsed.has("first") ? ", which is tried first" : "");
  }
  const auto edit = [&](registry::Provider& row) -> Result<void> {
    TRY(change(row));
    return registry.add_host_event({0, row.name, context.now(), "way", told});
  };
  TRY_ASSIGN(const registry::Provider provider, registry::change_provider(registry, before.name, edit));
  if (context.json) return context.print_line(ui::provider_json(provider));
  return context.print_line(provider.name.value + ": " + told);
}
}  // namespace
}  // namespace provider_way

Result<registry::Way> way_typed(const Parsed& parsed, const registry::Provider& provider, const std::string& address) {
  registry::Way way;
  way.address = address;
  way.identities = provider.identities;
  if (parsed.has("identity")) {
    way.identities.clear();
    for (const std::string& key : parsed.values("identity"))
      way.identities.push_back(std::filesystem::absolute(key).string());
  }
  way.jump = parsed.value("jump");
  return way;
}

const Command k_provider_way{
    .name = "provider way",
    .summary = "add or remove a way to a host",
    .examples = {
        {"Reach a host at home by its LAN address first", "gridctl provider way ada me@192.168.1.7 --first"},
        {"From elsewhere, reach it over a jump host", "gridctl provider way ada me@10.0.0.7 -J gate.example.org"},
        {"Remove a way", "gridctl provider way ada me@192.168.1.7 --rm"}},
    .description =
        "Adds another address at which a host is reached. If nobody answers at the first one, or another machine does (the "
        "same private address in another network), gridctl tries the next. It stays with an address that worked for ten "
        "minutes, then tries the first one again. 'gridctl provider show' shows which one is in use.\n\nThe command logs in at "
        "the new address and pins the host key there, as 'provider register' does. It refuses another machine. A lent host "
        "has one way: its relay.",
    .positionals = {{"NAME", Completion::provider}, {"[ssh://][USER@]HOST[:PORT]"}},
    .options = {
        {"identity", 'i', "KEY", "private key file for the login", "those of the first way", Completion::file, "",
         true},
        {"jump", 'J', "JUMP", "jump host, as with ssh -J"},
        {"host-key", 0, "SHA256:...", "expected fingerprint of the host key there"},
        {"first", 0, "", "try this way before the others"},
        {"rm", 0, "", "remove this way"}},
    .exit_codes = {3, 5, 6, 7},
    .waits = true,
    .run = provider_way::run};

}  // namespace gridctl::cmd

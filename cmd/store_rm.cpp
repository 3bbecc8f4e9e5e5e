// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/network.hpp"
#include "cmd/store_remotes.hpp"
#include "control/copies/remote_work.hpp"

namespace gridctl::cmd {

namespace store_rm {
namespace {
// Removes the records first, because a copy that has a record must be complete.
Result<void> remove_copies(Context& context, registry::Registry& registry, const registry::Remote& remote) {
  TRY_ASSIGN(control::SshNetwork net, network_of(context, registry));
  TRY_ASSIGN(control::RemoteWork work,
             control::RemoteWork::open(context.paths(), net, registry, remote, context.clock, true));
  store::Backend& backend = *work.link().backend;
  for (const store::RecordName& name : work.listing().records) TRY(backend.remove(store::object_name(name)));
  for (const auto& [id, size] : work.listing().packs)
    TRY(backend.remove(store::object_name(store::NeededPack{id, size})));
  return backend.remove(store::k_mark_name);
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const registry::Remote remote, registry.remote(parsed.positionals[0]));
  if (parsed.has("delete"))
    TRY(remove_copies(context, registry, remote).context("while removing the copies at " + remote.name));
  TRY(registry.remove_remote(remote.name));
  return context.print_line(
      context.json ? JsonObject()("name", remote.name)("removed", true)("deleted", parsed.has("delete")).text()
                   : remote.name + " is forgotten" +
                         (parsed.has("delete") ? ", and its copies are removed"
                                               : "; its contents in " + sanitize(remote.url) + " stay"));
}
}  // namespace
}  // namespace store_rm

const Command k_store_rm{.name = "store rm",
                         .summary = "remove a remote",
                         .examples = {{"Remove a remote; its copies stay", "gridctl store rm nas"},
                                      {"Remove the remote and its copies", "gridctl store rm nas --delete"}},
                         .description =
                             "Removes a remote and the list of its copies. The copies stay there, and gridctl finds "
                             "them when you add the remote again. With --delete, gridctl removes them.",
                         .positionals = {{"NAME", Completion::remote}},
                         .options = {{"delete", 0, "", "remove its copies first"}},
                         .exit_codes = k_exits_remote,
                         .run = store_rm::run};

}  // namespace gridctl::cmd

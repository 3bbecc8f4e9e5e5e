// SPDX-License-Identifier: Apache-2.0
#include <cctype>

#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/network.hpp"
#include "cmd/store_remotes.hpp"
#include "control/copies/remote_work.hpp"
#include "os/entries.hpp"

namespace gridctl::cmd {

namespace store_add {
namespace {
constexpr std::size_t k_location_max = 32;

Result<void> check_options(const Parsed& parsed, control::RemoteKind kind) {
  for (const char* name : {"endpoint", "region", "profile"})
    if (parsed.has(name) && kind != control::RemoteKind::bucket)
      return make_error(Code::usage, "--" + std::string(name) + " is for s3:// remotes");
  for (const char* name : {"location", "lent"})
    if (parsed.has(name) && kind == control::RemoteKind::host)
      return make_error(Code::usage, "--" + std::string(name) + ": a provider says it by --region, --class and --label",
                        "gridctl provider register --help");
  const std::string location = parsed.value("location");
  const bool is_plain = std::ranges::all_of(location, [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; });
  if (parsed.has("location") && (location.empty() || location.size() > k_location_max || !is_plain))
    return make_error(Code::usage, "--location: expected a region such as DE or DE-BY, got '" +
                                       sanitize(location, k_location_max) + "'");
  return {};
}

// Requires that the parent of a directory exists, because otherwise a disk may not be mounted.
Result<void> prepare_directory(Context& context, const os::Path& path) {
  const os::Path state = std::filesystem::weakly_canonical(context.state),
                 remote = std::filesystem::weakly_canonical(path);
  if (std::mismatch(state.begin(), state.end(), remote.begin(), remote.end()).first == state.end())
    return make_error(Code::usage, path.native() + " lies in the state directory: copies there would be lost with it");
  if (!os::exists(path)) {
    if (!os::exists(path.parent_path()))
      return make_error(Code::not_found, path.parent_path().native() + " does not exist; is its disk mounted?");
    TRY(os::make_directories(path));
  }
  TRY_ASSIGN(const auto here, os::status_of(context.state));
  TRY_ASSIGN(const auto there, os::status_of(path));
  if (here && there && here->device == there->device)
    context.note("note: " + sanitize(path.native()) +
                 " is on the same disk as the state directory: its copies do not survive that disk");
  return {};
}

Result<void> remove_all(store::Backend& remote) {
  TRY_ASSIGN(const std::vector<store::Object> objects, remote.list(""));
  for (const store::Object& object : objects)  // the mark last: what is half removed is nobody's
    if (object.name != store::k_mark_name) TRY(remote.remove(object.name));
  return remote.remove(store::k_mark_name);
}

// Returns true if the remote already contains copies of this store.
Result<bool> claim(store::Backend& remote, const store::RemoteMark& ours, const Parsed& parsed) {
  TRY_ASSIGN(const std::optional<store::RemoteMark> mark, store::read_mark(remote));
  if (mark && *mark == ours) return true;
  if (mark && mark->key == ours.key) {
    if (!parsed.has("take-over"))
      return make_error(Code::refused,
                        "state directory " + mark->keeper.value + " keeps its copies there, with the same store key",
                        "--take-over when that one is gone");
    TRY(remote.remove(store::k_mark_name));
  } else if (mark) {
    if (!parsed.has("discard"))
      return make_error(Code::refused,
                        "it keeps copies of another store, of key " + to_hex(ByteView{mark->key.bytes}) + "; ours is " +
                            to_hex(ByteView{ours.key.bytes}),
                        "another directory or prefix; or --discard, which removes its contents");
    TRY(remove_all(remote));
  } else {
    TRY_ASSIGN(const std::vector<store::Object> objects, remote.list(""));
    if (!objects.empty())
      return make_error(Code::refused, "it holds something else, such as '" + sanitize(objects[0].name, 80) +
                                           "': copies need a directory or prefix of their own");
  }
  TRY_ASSIGN(const bool marked, store::write_mark(remote, ours));
  if (!marked) return make_error(Code::busy, "another gridctl has claimed it just now");
  return mark && mark->key == ours.key;
}

Result<int> run(Context& context, const Parsed& parsed) {
  registry::Remote remote;
  remote.name = parsed.positionals[0];
  TRY(check_name("a remote", remote.name));
  TRY_ASSIGN(control::RemoteUrl url, control::parse_remote_url(parsed.positionals[1]));
  TRY(check_options(parsed, url.kind));
  remote.url = control::to_text(url);
  remote.endpoint = parsed.value("endpoint");
  remote.region = parsed.value("region");
  remote.profile = parsed.value("profile");
  remote.location = parsed.value("location");
  remote.lent = parsed.has("lent");
  remote.added_at = context.now();
  if (lower(remote.endpoint).starts_with("http://"))
    context.note("warning: over http:// others on the network see and can change each request; contents are encrypted and "
                 "verified all the same");
  TRY_ASSIGN(registry::Registry registry, context.open());
  if (const auto taken = registry.remote(remote.name)) return registry.add_remote(remote).error();
  TRY_ASSIGN(const store::RemoteMark ours, control::own_mark(context.paths(), registry));
  if (url.kind == control::RemoteKind::directory) TRY(prepare_directory(context, url.path));
  TRY_ASSIGN(const control::RemoteAccess access, control::access_to(registry, remote));
  if (access.provider) {
    url.where = access.provider->name.value;
    remote.url = control::to_text(url);
  }
  TRY_ASSIGN(control::SshNetwork net, network_of(context, registry));
  TRY_ASSIGN(const auto backend, control::open_remote(access, net, context.clock, false));
  TRY(store::try_remote(*backend).context("while trying " + sanitize(remote.url)));
  TRY_ASSIGN(const bool known, claim(*backend, ours, parsed));
  TRY(registry.add_remote(remote));
  TRY(registry.note_answer(remote.name, context.now()));
  if (context.json)
    return context.print_line(JsonObject()("name", remote.name)("url", remote.url)("has_copies", known).text());
  context.print_line(remote.name + " keeps copies in " + sanitize(remote.url) +
                     (known ? ", and has some already: see `gridctl store ls " + remote.name + "`" : ""));
  return context.note("jobs with checkpoint.copies: 2 or more are copied there; `gridctl store sync " + remote.name +
                      "` copies everything that is kept");
}
}  // namespace
}  // namespace store_add

const Command k_store_add{
    .name = "store add",
    .summary = "add a remote for copies of checkpoints",
    .examples = {{"Keep copies on another disk", "gridctl store add nas dir:/mnt/nas/gridctl"},
                 {"Use it also for jobs that must stay in Germany",
                  "gridctl store add nas dir:/mnt/nas/gridctl --location DE"},
                 {"Keep copies on a provider", "gridctl store add ada ssh://ada/copies"},
                 {"Keep copies in a bucket of your own S3 server",
                  "gridctl store add lab s3://ckpt/me --endpoint https://s3.lab.example"},
                 {"Take over the remote of a lost laptop", "gridctl store add nas dir:/mnt/nas/gridctl --take-over"}},
    .description =
        "Tests the remote by writing, listing, reading and removing a small object, marks it as belonging to this "
        "store, and saves it as NAME. REMOTE is dir:/path, ssh://provider/path or s3://bucket/prefix. It must be empty "
        "or hold copies of this store. Copies are encrypted with the store's key: keep a copy of the key elsewhere too "
        "(gridctl key export).\n\nA job with constraints.region has copies only at remotes with a known, matching "
        "location. A job with sensitivity: private never has copies at remotes owned by others.\n\nssh://provider/path "
        "is a folder in the home directory of the provider's login user; ssh://provider//path is an absolute path. "
        "gridctl creates the folder if its parent exists.\n\nOnly one state directory writes to a remote. "
        "gridctl-store(5) describes what a remote can and cannot do to copies.",
    .positionals = {{"NAME"}, {"REMOTE"}},
    .options = {{"endpoint", 0, "URL", "the S3 server", "AWS"},
                {"region", 0, "NAME", "region for signing requests", "as the environment or the profile says"},
                {"profile", 0, "NAME", "profile in ~/.aws/credentials", "as the environment says"},
                {"location", 0, "REGION",
                 "location for data residency, such as DE; for ssh://, the provider's region applies", "not known"},
                {"lent", 0, "",
                 "owned by others: receives no copies of private jobs; for ssh://, the provider's label applies"},
                {"take-over", 0, "", "take it over from another state directory with the same key"},
                {"discard", 0, "", "remove the copies of a store with another key"}},
    .exit_codes = k_exits_remote,
    .run = store_add::run};

}  // namespace gridctl::cmd

// SPDX-License-Identifier: Apache-2.0
// Implements `key export` and `key import`: the store's key to a file and back.
#include "base/bytes.hpp"
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "control/copies/chunks.hpp"
#include "control/copies/newest.hpp"
#include "os/files.hpp"

namespace gridctl::cmd {

namespace key_files {
namespace {
constexpr std::uint64_t k_passphrase_file_max = 4096;  // bytes

Result<std::optional<std::string>> passphrase(const Parsed& parsed) {
  if (!parsed.has("passphrase-file")) return std::optional<std::string>();
  const std::string file = parsed.value("passphrase-file");
  TRY_ASSIGN(const std::string text, os::read_file(file, k_passphrase_file_max));
  const std::vector<std::string> lines = split_lines(text);
  if (lines.empty() || lines[0].empty())
    return make_error(Code::usage, sanitize(file) + " has no passphrase in its first line");
  return std::optional(lines[0]);
}

std::string id_text(const store::StoreKey& key) { return to_hex(ByteView{key.id().bytes}); }

// Saving a key must work even if everything else here is damaged.
std::string newest_lines(Context& context, const store::StoreKey& key) {
  const auto known = [&]() -> Result<std::vector<store::Newest>> {
    TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
    return control::newest_to_export(registry, context.paths(), key, context.now());
  };
  const Result<std::vector<store::Newest>> newest = known();
  if (newest) return store::to_text(*newest, key);
  context.note("warning: the key file does not note the newest checkpoints: " + sanitize(newest.error().one_line()));
  return "";
}

Result<int> export_key(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const std::optional<store::StoreKey> key, control::load_key(context.paths()));
  if (!key)
    return make_error(Code::not_found, "there is no key yet: gridctl creates it when it first stores something",
                      "gridctl key show");
  TRY_ASSIGN(const std::optional<std::string> secret, passphrase(parsed));
  TRY_ASSIGN(std::string text, secret ? key->to_text(*secret) : Result<std::string>(key->to_text()));
  text += newest_lines(context, *key);
  if (parsed.positionals.empty()) return context.print(text);
  const os::Path file = parsed.positionals[0];
  if (os::exists(file)) return make_error(Code::exists, sanitize(file.native()) + " exists already");
  TRY(os::write_file_durably(file, text));
  if (context.json)
    context.print_line(
        JsonObject()("key_id", id_text(*key))("file", file.native())("protected", secret.has_value()).text());
  else
    context.print_line(
        "key " + id_text(*key) + " is in " + sanitize(file.native()) +
        (secret ? ", protected by the passphrase" : "; anyone who has this file can read every checkpoint"));
  return 0;
}

Result<int> import_key(Context& context, const Parsed& parsed) {
  const os::Path file = parsed.positionals[0];
  TRY_ASSIGN(const std::string text, os::read_file(file, store::k_key_file_max));
  TRY_ASSIGN(const std::optional<std::string> secret, passphrase(parsed));
  TRY_ASSIGN(const store::StoreKey key,
             store::parse_key(text, secret).context("while reading " + sanitize(file.native())));
  TRY_ASSIGN(const std::vector<store::Newest> newest,
             store::parse_newest(text, key).context("while reading " + sanitize(file.native())));
  TRY(control::install_key(context.paths(), key));
  TRY(control::remember_newest(context.paths(), key, newest));
  return context.print_line(context.json ? JsonObject()("key_id", id_text(key)).text()
                                         : "key " + id_text(key) + " is the key of " + context.state.native());
}
constexpr std::initializer_list<int> k_exits_export = {3, 7};
}  // namespace
}  // namespace key_files

const Command k_key_export{
    .name = "key export",
    .summary = "export the key to a file",
    .examples = {{"Keep a copy where this machine cannot lose it", "gridctl key export /media/stick/gridctl.key"},
                 {"Protect the copy with a passphrase",
                  "gridctl key export gridctl.key --passphrase-file ~/.gridctl-passphrase"},
                 {"Print it on paper", "gridctl key export | lp"}},
    .description =
        "Writes the store's key to a new file that only its owner can read, or to standard "
        "output. Without the key, nobody can read the checkpoints: keep a copy on another "
        "machine. A passphrase makes the file useless to a thief.\n\nThe file also notes the "
        "newest checkpoint of each job that a remote keeps. A new machine that imports it "
        "notices when a remote shows an older one as the newest. Export the key again now and "
        "then: the file knows nothing newer than itself.",
    .positionals = {{"FILE", Completion::file, false}},
    .options = {{"passphrase-file",
                0,
                "FILE",
                "protect it with the passphrase in the first line of FILE",
                {},
                Completion::file}},
    .exit_codes = key_files::k_exits_export,
    .run = key_files::export_key};
const Command k_key_import{
    .name = "key import",
    .summary = "import a key from a file",
    .examples = {{"On a new machine, before its first checkpoint or next to a copied store",
                  "gridctl key import gridctl.key"},
                 {"Import a protected key", "gridctl key import gridctl.key --passphrase-file ~/.gridctl-passphrase"}},
    .description =
        "Makes the key in FILE, written by `gridctl key export`, the key of this state directory. Refused if the store "
        "is encrypted with another key. If the current key does not match the store, gridctl keeps it as a backup.",
    .positionals = {{"FILE", Completion::file}},
    .options =
        {{"passphrase-file", 0, "FILE", "read the passphrase from the first line of FILE", {}, Completion::file}},
    .exit_codes = key_files::k_exits_export,
    .run = key_files::import_key};

}  // namespace gridctl::cmd

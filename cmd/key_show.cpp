// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"
#include "cmd/commands.hpp"
#include "control/copies/chunks.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace key_show {
namespace {
// Holds what the store of this state directory says about its key.
struct StoreSays {
  std::string_view word, text;
};
StoreSays compare(const store::KeyId& of_store, const std::optional<store::StoreKey>& key) {
  if (!of_store) return {"open", "not encrypted yet"};
  if (key && key->id() == of_store) return {"encrypted", "encrypted with this key"};
  return {"locked", "encrypted with another key; its content cannot be read"};
}

Result<int> run(Context& context, const Parsed&) {
  const control::Paths paths = context.paths();
  TRY_ASSIGN(const std::optional<store::StoreKey> key, control::load_key(paths));
  TRY_ASSIGN(const store::KeyId of_store, store::ChunkStore::key_of(paths.chunk_store()));
  const auto name = [](const store::KeyId& id) { return to_hex(ByteView{id.bytes}); };
  const StoreSays says = compare(of_store, key);
  if (context.json) {
    JsonObject json;
    json.text_or_null("key_id", key ? name(key->id()) : "")("file", paths.store_key().native())("store", says.word);
    context.print_line(json.text_or_null("store_key_id", of_store ? name(of_store) : "").text());
  } else {
    ui::Facts facts;
    facts.add("key", key ? name(key->id()) : "none; gridctl creates it when it first stores something");
    facts.add("file", paths.store_key().native());
    facts.add("store", std::string(says.text));
    if (says.word == "locked") facts.add("wants", name(of_store));
    context.print(facts.render(context.out_style));
  }
  if (says.word == "locked")
    return make_error(Code::state_unreadable, "the key of the store is missing", "gridctl key import FILE");
  return 0;
}
}  // namespace
}  // namespace key_show

const Command k_key_show{.name = "key show",
                         .summary = "show the key that encrypts checkpoints",
                         .examples = {{"Check the key and whether it matches the store", "gridctl key show"}},
                         .description =
                             "Shows the id of the store's key, its file, and whether the store is encrypted with it. "
                             "The secret itself is not shown. gridctl creates the key in the state directory when it "
                             "first stores something. Only the owner can read it.",
                         .exit_codes = k_exits_state,
                         .run = key_show::run};

}  // namespace gridctl::cmd

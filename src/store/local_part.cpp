// SPDX-License-Identifier: Apache-2.0
#include "store/local_part.hpp"

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/numbers.hpp"
#include "store/pickle.hpp"
#include "store/rank_files.hpp"
#include "store/write_order.hpp"

namespace gridctl::store {

namespace {
// Returns 3 for "__3_0.distcp".
std::optional<std::uint32_t> rank_of_shard(std::string_view name) {
  if (!name.starts_with("__") || !name.ends_with(k_shard)) return std::nullopt;
  name.remove_prefix(2);
  const auto rank = take_number<std::uint32_t>(name);
  return name.starts_with('_') ? rank : std::nullopt;
}

// Records where the pieces of one value are stored.
struct Pieces {
  std::set<std::vector<std::int64_t>> offsets;
  std::set<std::uint32_t> ranks;
  std::set<std::string> shards;
  std::size_t count = 0;
  bool is_tensor = true;
};

std::optional<std::vector<std::int64_t>> offset_of(const PickleValue* offset) {  // torch.Size((2, 0))
  if (offset == nullptr || !offset->is("Size") || offset->items.size() != 1) return std::nullopt;
  const PickleValue& tuple = *offset->items[0];
  if (tuple.items.size() != 1) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const PickleValue* one : tuple.items[0]->items) numbers.push_back(one->integer);
  return numbers;
}

bool is_each_ranks_own(const Pieces& pieces, std::uint32_t world) {
  return pieces.is_tensor && pieces.count == world && pieces.offsets.size() == world && pieces.ranks.size() == world &&
         *pieces.ranks.rbegin() == world - 1;
}

class LocalPart {
 public:
  LocalPart(const Tree& tree, RankRange ranks, std::uint32_t world, const ReadFile& read)
      : tree_(tree), ranks_(ranks), world_(world), read_(read) {}

  Tree run() {
    for (const Entry& entry : tree_.entries)
      if (entry.kind == EntryKind::file && base_name(entry.path) == k_metadata) leave_out_shards(entry);
    leave_out_rank_files();
    Tree part;
    for (const Entry& entry : tree_.entries)
      if (!others_.contains(entry.path)) part.entries.push_back(entry);
    renumber_writes(part.entries);
    return part;
  }

 private:
  void leave_out_shards(const Entry& metadata) {
    if (metadata.size > k_metadata_max) return;
    const Result<Bytes> content = read_(metadata);
    if (!content) return;
    const auto own = shards_of_one_rank(*content, world_);
    if (!own) return;
    const std::string folder = metadata.path.substr(0, metadata.path.size() - k_metadata.size());
    for (const std::string& name : *own)
      if (!ranks_.has(rank_of_shard(name).value_or(ranks_.first))) others_.insert(folder + name);
  }

  void leave_out_rank_files() {
    const MemberTree all{"", 0, world_, &tree_, {}};
    for (const auto& [family, present] : rank_families(std::span(&all, 1))) {
      if (present.size() != world_ || base_name(family.before).starts_with("zero_pp_rank_") ||
          base_name(family.before).starts_with("bf16_zero_pp_rank_"))
        continue;
      for (const std::uint32_t rank : present)
        if (!ranks_.has(rank)) others_.insert(family.name_of(rank));
    }
  }

  const Tree& tree_;
  const RankRange ranks_;
  const std::uint32_t world_;
  const ReadFile& read_;
  std::set<std::string> others_;
};
}  // namespace

Result<std::set<std::string>> shards_of_one_rank(ByteView metadata, std::uint32_t world) {
  TRY_ASSIGN(const Pickle pickle, Pickle::parse(metadata));
  const auto unknown = [](const char* what) { return make_error(Code::unsupported, std::string("metadata with ") + what); };
  const PickleValue* stored = pickle.root().is("Metadata") ? pickle.root().field("storage_data") : nullptr;
  if (stored == nullptr || stored->kind != PickleValue::Kind::dictionary)
    return unknown("no list of the places of its parts");
  std::map<std::string_view, Pieces> values;
  for (std::size_t i = 0; i + 1 < stored->items.size(); i += 2) {
    const PickleValue *name = stored->items[i]->field("fqn"), *file = stored->items[i + 1]->field("relative_path");
    if (name == nullptr || file == nullptr) return unknown("a value without a location");
    const auto rank = rank_of_shard(file->text);
    if (!rank || *rank >= world) return unknown("shards with unknown names");
    Pieces& pieces = values[name->text];
    const auto offset = offset_of(stored->items[i]->field("offset"));
    pieces.is_tensor = pieces.is_tensor && offset.has_value();
    if (offset) pieces.offsets.insert(*offset);
    pieces.ranks.insert(*rank);
    pieces.shards.insert(file->text);
    ++pieces.count;
  }
  std::set<std::string> own, shared;
  for (const auto& [name, pieces] : values)
    (is_each_ranks_own(pieces, world) ? own : shared).insert(pieces.shards.begin(), pieces.shards.end());
  for (const std::string& name : shared) own.erase(name);
  return own;
}

Tree local_part(const Tree& tree, RankRange ranks, std::uint32_t world, const ReadFile& read) {
  return world < 2 ? tree : LocalPart(tree, ranks, world, read).run();
}

}  // namespace gridctl::store

// SPDX-License-Identifier: Apache-2.0
#include "base/names.hpp"
#include "store/compare.hpp"

#include "base/bytes.hpp"
#include "cmd/checkpoint_lookup.hpp"
#include "cmd/commands.hpp"
#include "control/copies/chunks.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace checkpoint_diff {
namespace {
constexpr Names<store::Change, store::Change::removed> name_of{"same", "changed", "resized", "added", "removed"};

double share(const store::Difference& one) {
  return one.count == 0 ? 0 : static_cast<double>(one.changed) / static_cast<double>(one.count);
}

// Returns how far the numbers moved, relative to their earlier values.
std::optional<double> relative(const store::Difference& one) {
  if (!one.measured || one.rms_before <= 0) return std::nullopt;
  return one.rms_change / one.rms_before;
}

std::string json_of(const store::Difference& one) {
  JsonObject json;
  json("path", one.path)("tensor", one.tensor)("type", one.type)("change", name_of(one.change));
  json("bytes_before", one.bytes_before)("bytes_after", one.bytes_after)("count", one.count)("changed", one.changed);
  for (const auto& [key, value] :
       {std::pair{"rms_before", one.rms_before}, {"rms_change", one.rms_change}, {"largest", one.largest}})
    if (one.measured) json.raw(key, ui::number(value, 3));
  return json.text();
}

std::string size_of(const store::Difference& one) {
  if (one.change != store::Change::resized) return format_size(std::max(one.bytes_before, one.bytes_after));
  return format_size(one.bytes_before) + " -> " + format_size(one.bytes_after);
}

ui::Table table_of(const std::vector<store::Difference>& changes) {
  ui::Table table({{.title = "WHAT"},
                   {.title = "SIZE", .right = true},
                   {.title = "TYPE"},
                   {.title = "CHANGED", .right = true},
                   {.title = "RMS", .right = true},
                   {.title = "LARGEST", .right = true},
                   {.title = "TENSOR", .shrinks = true}});
  for (const store::Difference& one : changes) {
    const bool counted = one.change == store::Change::changed;
    const std::optional<double> moved = relative(one);
    table.add({std::string(name_of(one.change)), size_of(one), one.type.empty() ? "-" : one.type,
               counted ? ui::number(share(one) * 100, 3) + " %" : "-", moved ? ui::number(*moved * 100, 3) + " %" : "-",
               one.measured ? ui::number(one.largest, 3) : "-",
               one.path + (one.tensor.empty() ? "" : ": " + one.tensor)});
  }
  return table;
}

std::string summary_of(const std::vector<store::Difference>& all) {
  std::uint64_t changed = 0, same = 0, changed_bytes = 0, same_bytes = 0;
  for (const store::Difference& one : all) {
    const bool is_same = one.change == store::Change::none;
    ++(is_same ? same : changed);
    (is_same ? same_bytes : changed_bytes) += std::max(one.bytes_before, one.bytes_after);
  }
  if (changed == 0) return "the same: " + std::to_string(same) + " tensors and files, " + format_size(same_bytes);
  return "different: " + std::to_string(changed) + " tensors and files, " + format_size(changed_bytes) +
         "; the same: " + std::to_string(same) + ", " + format_size(same_bytes);
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const registry::Checkpoint before, find_checkpoint(registry, parsed.positionals[0]));
  TRY_ASSIGN(const registry::Checkpoint after, find_checkpoint(registry, parsed.positionals[1]));
  TRY_ASSIGN(store::ChunkStore chunks, control::open_chunks(context.paths()));
  TRY_ASSIGN(const store::Tree former, tree_of(chunks, before));
  TRY_ASSIGN(const store::Tree newer, tree_of(chunks, after));
  TRY_ASSIGN(std::vector<store::Difference> all, store::compare(former, newer, chunks));
  if (context.json) {
    JsonObject json;
    json("before", checkpoint_name(before.job, before.seq))("after", checkpoint_name(after.job, after.seq));
    return context.print_line(json.raw("differences", json_list(all, json_of)).text());
  }
  const std::string summary = summary_of(all);
  std::erase_if(all, [](const store::Difference& one) { return one.change == store::Change::none; });
  if (!all.empty()) context.print(table_of(all).render(context.columns_out(), context.out_style));
  return context.print_line(summary);
}
}  // namespace
}  // namespace checkpoint_diff

const Command k_checkpoint_diff{
    .name = "checkpoint diff",
    .summary = "show which tensors changed, and by how much",
    .examples = {{"Show which tensors changed between two checkpoints of a job, and by how much",
                  "gridctl checkpoint diff train-gpt@3 train-gpt@7"},
                 {"Check whether two runs reached the same weights", "gridctl checkpoint diff run-a run-b"}},
    .description =
        "Compares two checkpoints: safetensors files tensor by tensor, torch.save archives entry by entry, other files "
        "as a whole. gridctl unpickles nothing, so it recognises number types only in safetensors files. CHANGED is "
        "the share of numbers (or bytes) that differ. RMS is the root mean square of the differences, in per cent of "
        "that of the old numbers. LARGEST is the largest difference. Chunks common to both are not read. --json also "
        "lists what is equal.",
    .positionals = {{"BEFORE", Completion::checkpoint}, {"AFTER", Completion::checkpoint}},
    .exit_codes = k_exits_checkpoint,
    .run = checkpoint_diff::run};

}  // namespace gridctl::cmd

// SPDX-License-Identifier: Apache-2.0
#include "store/compare.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "cmd/checkpoint_lookup.hpp"
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "control/copies/chunks.hpp"
#include "ui/human.hpp"
#include "ui/json.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace checkpoint_diff {
namespace {
constexpr Example k_examples[] = {
    {"Show which tensors changed between two checkpoints of a job, and by how much",
     "gridctl checkpoint diff train-gpt@3 train-gpt@7"},
    {"Check whether two runs reached the same weights", "gridctl checkpoint diff run-a run-b"}};
constexpr Positional k_positionals[] = {{"BEFORE", Completion::checkpoint}, {"AFTER", Completion::checkpoint}};

std::string_view name_of(store::Change change) {
  switch (change) {
    case store::Change::none: return "same";
    case store::Change::changed: return "changed";
    case store::Change::resized: return "resized";
    case store::Change::added: return "added";
    case store::Change::removed: return "removed";
  }
  return "same";
}

double share(const store::Difference& one) {
  return one.count == 0 ? 0 : static_cast<double>(one.changed) / static_cast<double>(one.count);
}

// How far the numbers moved, in units of what they were.
std::optional<double> relative(const store::Difference& one) {
  if (!one.measured || one.rms_before <= 0) return std::nullopt;
  return one.rms_change / one.rms_before;
}

std::string json_of(const store::Difference& one) {
  std::string text = "{\"path\":" + ui::quoted(one.path) + ",\"tensor\":" + ui::quoted(one.tensor) +
                     ",\"type\":" + ui::quoted(one.type) + ",\"change\":" + ui::quoted(name_of(one.change)) +
                     ",\"bytes_before\":" + std::to_string(one.bytes_before) +
                     ",\"bytes_after\":" + std::to_string(one.bytes_after) + ",\"count\":" + std::to_string(one.count) +
                     ",\"changed\":" + std::to_string(one.changed);
  if (one.measured)
    text += ",\"rms_before\":" + ui::number(one.rms_before, 3) + ",\"rms_change\":" + ui::number(one.rms_change, 3) +
            ",\"largest\":" + ui::number(one.largest, 3);
  return text + "}";
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
    std::string text = "{\"before\":" + ui::quoted(checkpoint_name(before.job, before.seq)) +
                       ",\"after\":" + ui::quoted(checkpoint_name(after.job, after.seq)) + ",\"differences\":[";
    bool first = true;
    for (const store::Difference& one : all) {
      text += (first ? "" : ",") + json_of(one);
      first = false;
    }
    context.print_line(text + "]}");
    return 0;
  }
  const std::string summary = summary_of(all);
  std::erase_if(all, [](const store::Difference& one) { return one.change == store::Change::none; });
  if (!all.empty()) context.print(table_of(all).render(context.columns_out(), context.out_style));
  context.print_line(summary);
  return 0;
}
}  // namespace
}  // namespace checkpoint_diff

const Command k_checkpoint_diff{
    .noun = "checkpoint",
    .verb = "diff",
    .summary = "show which tensors changed, and by how much",
    .examples = checkpoint_diff::k_examples,
    .description =
        "Compares two checkpoints: safetensors files tensor by tensor, torch.save archives entry by entry, other files "
        "as a whole. gridctl unpickles nothing, so it knows number types only in safetensors files. CHANGED is the "
        "share of numbers (or bytes) that differ. RMS is the root mean square of the differences, in per cent of that "
        "of the old numbers. LARGEST is the largest difference. Chunks common to both are not read. --json also lists "
        "what is equal.",
    .positionals = checkpoint_diff::k_positionals,
    .exit_codes = k_exits_checkpoint,
    .run = checkpoint_diff::run};

}  // namespace gridctl::cmd

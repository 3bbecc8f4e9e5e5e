// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "cmd/store_places.hpp"
#include "control/copies/chunks.hpp"
#include "control/copies/copy_plan.hpp"
#include "control/copies/remotes.hpp"
#include "store/place.hpp"
#include "ui/human.hpp"
#include "ui/json.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace store_ls {
namespace {
constexpr Example k_examples[] = {
    {"List remotes and missing copies", "gridctl store ls"},
    {"List the checkpoints at one remote", "gridctl store ls nas"},
    {"List remotes with problems", "gridctl store ls --json | jq -r '.[] | select(.trouble) | .name'"}};
constexpr Positional k_positionals[] = {{"NAME", Completion::place, false}};

struct Line {
  registry::Place place;
  control::PlaceOffer offer{};
  std::size_t copies = 0, due = 0, missing = 0;
  std::vector<control::RefusedJob> refused{};
};

Result<std::vector<Line>> lines_of(registry::Registry& registry) {
  TRY_ASSIGN(const auto places, registry.places());
  if (places.empty()) return std::vector<Line>{};  // what could be copied is looked up for nobody
  TRY_ASSIGN(const auto copyable, registry.copyable());
  TRY_ASSIGN(const auto copies, registry.copies());
  TRY_ASSIGN(const std::vector<control::PlaceOffer> offers, control::place_offers(registry));
  std::vector<Line> lines;
  for (const registry::Place& place : places) {
    Line line{place};
    for (const control::PlaceOffer& offer : offers)
      if (offer.name == place.name) line.offer = offer;
    line.refused = control::refused_at(line.offer, copyable);
    line.copies = static_cast<std::size_t>(std::count_if(
        copies.begin(), copies.end(), [&](const registry::Copy& copy) { return copy.place == place.name; }));
    line.due = control::due_at(place.name, offers, copyable, copies).size();
    line.missing = control::missing_at(line.offer, copyable, copies).size();
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string time_or_null(const std::optional<WallTime>& time) {
  return time ? ui::quoted(format_rfc3339(*time)) : "null";
}

std::string location_text(const control::PlaceOffer& offer) {
  const std::string where = offer.region.empty() ? "-" : offer.region;
  return offer.lent ? where + ", lent" : where;
}

std::string json_of(const Line& line) {
  const registry::Place& place = line.place;
  std::string refused;
  for (const control::RefusedJob& one : line.refused)
    refused += (refused.empty() ? "" : ",") + ("{\"job_id\":" + ui::quoted(one.job.value)) +
               ",\"reason\":" + ui::quoted(one.why) + "}";
  return "{\"name\":" + ui::quoted(place.name) + ",\"url\":" + ui::quoted(place.url) +
         ",\"endpoint\":" + (place.endpoint.empty() ? "null" : ui::quoted(place.endpoint)) +
         ",\"copies\":" + std::to_string(line.copies) + ",\"due\":" + std::to_string(line.due) +
         ",\"missing\":" + std::to_string(line.missing) +
         ",\"added_at\":" + ui::quoted(format_rfc3339(place.added_at)) +
         ",\"answered_at\":" + time_or_null(place.answered_at) +
         ",\"trouble_since\":" + time_or_null(place.trouble_at) +
         ",\"trouble\":" + (place.trouble.empty() ? "null" : ui::quoted(place.trouble)) +
         ",\"location\":" + (line.offer.region.empty() ? "null" : ui::quoted(line.offer.region)) +
         ",\"lent\":" + (line.offer.lent ? "true" : "false") + ",\"refused\":[" + refused + "]}";
}

int print_places(Context& context, const std::vector<Line>& lines) {
  if (context.json) {
    std::string list = "[";
    for (const Line& line : lines) list += (list.size() > 1 ? "," : "") + json_of(line);
    context.print_line(list + "]");
    return 0;
  }
  if (lines.empty()) {
    context.note("no remotes yet; add one with: gridctl store add NAME dir:/path");
    return 0;
  }
  ui::Table table({{.title = "NAME"},
                   {.title = "URL", .shrinks = true},
                   {.title = "LOCATION"},
                   {.title = "COPIES", .right = true},
                   {.title = "DUE", .right = true},
                   {.title = "MISSING", .right = true},
                   {.title = "ANSWERED", .right = true},
                   {.title = "TROUBLE", .shrinks = true}});
  for (const Line& line : lines)
    table.add({line.place.name, line.place.url, location_text(line.offer), std::to_string(line.copies),
               std::to_string(line.due), std::to_string(line.missing), ui::age(line.place.answered_at, context.now()),
               line.place.trouble.empty() ? "-" : line.place.trouble},
              {ui::Paint::bold});
  context.print(table.render(context.columns_out(), context.out_style));
  for (const Line& line : lines)
    for (const control::RefusedJob& one : line.refused)
      context.note(sanitize("copies of job " + one.job.value + " do not go to " + line.place.name + ": " + one.why));
  return 0;
}

// What the place itself says, record by record.
struct Found {
  store::RecordName name;
  std::optional<store::CopyRecord> record;
  bool whole = false;  // all packs are listed
  std::string problem;
};

Result<std::vector<Found>> look_at(Context& context, registry::Registry& registry, const registry::Place& place) {
  TRY_ASSIGN(const std::optional<store::StoreKey> key, control::load_key(context.paths()));
  if (!key) return make_error(Code::state_unreadable, "there is no store key", "gridctl key import FILE");
  TRY_ASSIGN(const control::RemoteAccess access, control::access_to(registry, place));
  TRY_ASSIGN(const auto backend, control::open_place(access, context.paths(), context.clock));
  TRY_ASSIGN(const store::PlaceListing there, store::list_place(*backend));
  std::vector<Found> found;
  for (const store::RecordName& name : there.records) {
    Found one{name, {}, false, ""};
    Result<store::CopyRecord> record = store::read_record(*backend, name, *key);
    if (!record && record.error().code != Code::checkpoint_damaged && record.error().code != Code::unsupported)
      return record.error();
    if (record) {
      one.whole = std::all_of(record->packs.begin(), record->packs.end(), [&](const store::NeededPack& pack) {
        const auto listed = there.packs.find(pack.id);
        return listed != there.packs.end() && listed->second == pack.size;
      });
      one.problem = one.whole ? "" : "packs are missing";
      one.record = *std::move(record);
    } else {
      one.problem = record.error().one_line();
    }
    found.push_back(std::move(one));
  }
  return found;
}

std::string json_of(const Found& found) {
  std::string text = "{\"checkpoint_id\":" + ui::quoted(checkpoint_name(found.name.job, found.name.seq)) +
                     ",\"job_id\":" + ui::quoted(found.name.job.value);
  if (found.record)
    text += ",\"job_name\":" + ui::quoted(found.record->job_name) +
            ",\"created_at\":" + ui::quoted(format_rfc3339(found.record->created_at)) +
            ",\"bytes\":" + std::to_string(found.record->bytes) + ",\"files\":" + std::to_string(found.record->files) +
            ",\"packs\":" + std::to_string(found.record->packs.size());
  return text + ",\"whole\":" + (found.whole ? "true" : "false") +
         ",\"problem\":" + (found.problem.empty() ? "null" : ui::quoted(found.problem)) + "}";
}

int print_found(Context& context, const std::vector<Found>& all) {
  if (context.json) {
    std::string list = "[";
    for (const Found& found : all) list += (list.size() > 1 ? "," : "") + json_of(found);
    context.print_line(list + "]");
    return 0;
  }
  if (all.empty()) {
    context.note("it keeps no copies yet");
    return 0;
  }
  ui::Table table({{.title = "CHECKPOINT", .width_min = 15},
                   {.title = "JOB", .shrinks = true},
                   {.title = "AGE", .right = true},
                   {.title = "SIZE", .right = true},
                   {.title = "FILES", .right = true},
                   {.title = "STATE", .shrinks = true}});
  for (const Found& found : all) {
    const bool read = found.record.has_value();
    table.add(
        {checkpoint_name(found.name.job, found.name.seq), read ? found.record->job_name : "-",
         read ? ui::age(found.record->created_at, context.now()) : "-", read ? format_size(found.record->bytes) : "-",
         read ? std::to_string(found.record->files) : "-", found.problem.empty() ? "whole" : found.problem},
        {ui::Paint::bold});
  }
  context.print(table.render(context.columns_out(), context.out_style));
  return 0;
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  if (parsed.positionals.empty()) {
    TRY_ASSIGN(const std::vector<Line> lines, lines_of(registry));
    return print_places(context, lines);
  }
  TRY_ASSIGN(const registry::Place place, registry.place(parsed.positionals[0]));
  TRY_ASSIGN(const std::vector<Found> found, look_at(context, registry, place));
  return print_found(context, found);
}
}  // namespace
}  // namespace store_ls

const Command k_store_ls{
    .noun = "store",
    .verb = "ls",
    .summary = "list remotes, or the checkpoints at one",
    .examples = store_ls::k_examples,
    .description =
        "Without a name, gridctl contacts no remote. COPIES counts checkpoints that the remote acknowledged. DUE "
        "counts those that are still to be copied because their jobs ask for copies. MISSING counts everything that "
        "may be there and is not; `gridctl store sync` copies it. The list names jobs whose copies must not be there, "
        "with the reason. LOCATION comes from gridctl store add --location, or is the provider's region.\n\nWith a "
        "name, gridctl reads the remote's records, decrypts and verifies each, and checks that its packs exist. "
        "`gridctl store check` also reads the packs.",
    .positionals = store_ls::k_positionals,
    .exit_codes = k_exits_place,
    .run = store_ls::run};

}  // namespace gridctl::cmd

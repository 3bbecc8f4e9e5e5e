// SPDX-License-Identifier: Apache-2.0

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "cmd/checkpoint_remote.hpp"
#include "cmd/commands.hpp"
#include "cmd/network.hpp"
#include "cmd/store_remotes.hpp"
#include "control/copies/chunks.hpp"
#include "control/copies/copy_plan.hpp"
#include "control/copies/remotes.hpp"
#include "store/remote.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace store_ls {
namespace {
struct Line {
  registry::Remote remote;
  control::RemoteOffer offer{};
  std::size_t copies = 0, due = 0, missing = 0;
  std::vector<control::RefusedJob> refused{};
};

Result<std::vector<Line>> lines_of(registry::Registry& registry) {
  TRY_ASSIGN(const auto remotes, registry.remotes());
  if (remotes.empty()) return std::vector<Line>{};  // what could be copied is looked up for nobody
  TRY_ASSIGN(const auto copyable, registry.copyable());
  TRY_ASSIGN(const auto copies, registry.copies());
  TRY_ASSIGN(const std::vector<control::RemoteOffer> offers, control::remote_offers(registry));
  std::vector<Line> lines;
  for (const registry::Remote& remote : remotes) {
    Line line{remote};
    for (const control::RemoteOffer& offer : offers)
      if (offer.name == remote.name) line.offer = offer;
    line.refused = control::refused_at(line.offer, copyable);
    line.copies = static_cast<std::size_t>(std::ranges::count(copies, remote.name, &registry::Copy::remote));
    line.due = control::due_at(remote.name, offers, copyable, copies).size();
    line.missing = control::missing_at(line.offer, copyable, copies).size();
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string location_text(const control::RemoteOffer& offer) {
  const std::string where = offer.region.empty() ? "-" : offer.region;
  return offer.lent ? where + ", lent" : where;
}

std::string json_of(const Line& line) {
  const registry::Remote& remote = line.remote;
  JsonObject json;
  json("name", remote.name)("url", remote.url).text_or_null("endpoint", remote.endpoint);
  json("copies", line.copies)("due", line.due)("missing", line.missing)("added_at", remote.added_at);
  json("answered_at", remote.answered_at)("trouble_since", remote.trouble_at).text_or_null("trouble", remote.trouble);
  json.text_or_null("location", line.offer.region)("lent", line.offer.lent);
  const auto refused = [](const control::RefusedJob& one) {
    return JsonObject()("job_id", one.job.value)("reason", one.why).text();
  };
  return json.raw("refused", json_list(line.refused, refused)).text();
}

int print_remotes(Context& context, const std::vector<Line>& lines) {
  if (context.json) return context.print_line(json_list(lines, [](const Line& line) { return json_of(line); }));
  if (lines.empty()) return context.note("no remotes yet; add one with: gridctl store add NAME dir:/path");
  ui::Table table({{.title = "NAME"},
                   {.title = "URL", .shrinks = true},
                   {.title = "LOCATION"},
                   {.title = "COPIES", .right = true},
                   {.title = "DUE", .right = true},
                   {.title = "MISSING", .right = true},
                   {.title = "ANSWERED", .right = true},
                   {.title = "TROUBLE", .shrinks = true}});
  for (const Line& line : lines)
    table.add({line.remote.name, line.remote.url, location_text(line.offer), std::to_string(line.copies),
               std::to_string(line.due), std::to_string(line.missing), ui::age(line.remote.answered_at, context.now()),
               line.remote.trouble.empty() ? "-" : line.remote.trouble},
              {ui::Paint::bold});
  context.print(table.render(context.columns_out(), context.out_style));
  for (const Line& line : lines)
    for (const control::RefusedJob& one : line.refused)
      context.note(sanitize("copies of job " + one.job.value + " are not sent to " + line.remote.name + ": " + one.why));
  return 0;
}

// Holds the remote's own list, record by record.
struct Found {
  store::RecordName name;
  std::optional<store::CopyRecord> record;
  bool whole = false;  // all packs are listed
  std::string problem;
};

Result<std::vector<Found>> look_at(Context& context, registry::HostRecords& registry, const registry::Remote& remote) {
  TRY_ASSIGN(const std::optional<store::StoreKey> key, control::load_key(context.paths()));
  if (!key) return make_error(Code::state_unreadable, "there is no store key", "gridctl key import FILE");
  TRY_ASSIGN(const control::RemoteAccess access, control::access_to(registry, remote));
  TRY_ASSIGN(control::SshNetwork net, network_of(context, registry));
  TRY_ASSIGN(const auto backend, control::open_remote(access, net, context.clock));
  TRY_ASSIGN(const store::RemoteListing there, store::list_remote(*backend));
  std::vector<Found> found;
  for (const store::RecordName& name : there.records) {
    Found one{name, {}, false, ""};
    Result<store::CopyRecord> record = store::read_record(*backend, name, *key);
    if (!record && record.error().code != Code::checkpoint_damaged && record.error().code != Code::unsupported)
      return record.error();
    if (record) {
      one.whole = is_whole(*record, there);
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
  JsonObject json;
  json("checkpoint_id", checkpoint_name(found.name.job, found.name.seq))("job_id", found.name.job.value);
  if (const auto& record = found.record)
    json("job_name", record->job_name)("created_at", record->created_at)("bytes", record->bytes)(
        "files", record->files)("packs", record->packs.size());
  return json("whole", found.whole).text_or_null("problem", found.problem).text();
}

int print_found(Context& context, const std::vector<Found>& all) {
  if (context.json) return context.print_line(json_list(all, [](const Found& found) { return json_of(found); }));
  if (all.empty()) return context.note("it keeps no copies yet");
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
  return context.print(table.render(context.columns_out(), context.out_style));
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  if (parsed.positionals.empty()) {
    TRY_ASSIGN(const std::vector<Line> lines, lines_of(registry));
    return print_remotes(context, lines);
  }
  TRY_ASSIGN(const registry::Remote remote, registry.remote(parsed.positionals[0]));
  TRY_ASSIGN(const std::vector<Found> found, look_at(context, registry, remote));
  return print_found(context, found);
}
}  // namespace
}  // namespace store_ls

const Command k_store_ls{
    .name = "store ls",
    .summary = "list remotes, or the checkpoints at one",
    .examples = {{"List remotes and missing copies", "gridctl store ls"},
                 {"List the checkpoints at one remote", "gridctl store ls nas"},
                 {"List remotes with problems", "gridctl store ls --json | jq -r '.[] | select(.trouble) | .name'"}},
    .description =
        "Without a name, gridctl contacts no remote. COPIES counts checkpoints that the remote acknowledged. DUE "
        "counts those that are still to be copied because their jobs ask for copies. MISSING counts everything that "
        "may be there and is not; `gridctl store sync` copies it. The list names jobs whose copies must not be there, "
        "with the reason. LOCATION comes from gridctl store add --location, or is the provider's region.\n\nWith a "
        "name, gridctl reads the remote's records, decrypts and verifies each, and checks that its packs exist. "
        "`gridctl store check` also reads the packs.",
    .positionals = {{"NAME", Completion::remote, false}},
    .exit_codes = k_exits_remote,
    .run = store_ls::run};

}  // namespace gridctl::cmd

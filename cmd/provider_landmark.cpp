// SPDX-License-Identifier: Apache-2.0

#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "control/measure/landmarks.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace provider_landmark {
namespace {
std::string degrees(double value) {
  std::string text = std::to_string(value);
  text.resize(text.size() - 2);  // 1e-4 degrees are ten metres
  return text;
}

std::string row_json(const control::LandmarkRow& row) {
  JsonObject json;
  json("name", row.mark.name).raw("latitude", degrees(row.mark.at.latitude));
  json.raw("longitude", degrees(row.mark.at.longitude))("address", row.address);
  return json.text_or_null("country", row.mark.country).text();
}

Result<int> list(Context& context, const std::vector<control::LandmarkRow>& rows) {
  if (context.json) return context.print_line(json_list(rows, row_json));
  if (rows.empty())
    return context.note("no landmarks yet; gridctl provider landmark add NAME LATITUDE LONGITUDE ADDRESS");
  ui::Table table({{.title = "NAME"},
                   {.title = "LATITUDE", .right = true},
                   {.title = "LONGITUDE", .right = true},
                   {.title = "ADDRESS", .shrinks = true},
                   {.title = "COUNTRY"}});
  for (const control::LandmarkRow& row : rows)
    table.add({row.mark.name, degrees(row.mark.at.latitude), degrees(row.mark.at.longitude), row.address,
               row.mark.country.empty() ? "-" : row.mark.country});
  return context.print(table.render(context.columns_out(), context.out_style));
}

Result<int> run(Context& context, const Parsed& parsed) {
  const std::string& action = parsed.positionals[0];
  const control::Paths paths = context.paths();
  TRY_ASSIGN(std::vector<control::LandmarkRow> rows, control::read_landmarks(paths));
  if (action == "ls" && parsed.positionals.size() == 1) return list(context, rows);
  if (action == "ls" || parsed.positionals.size() < 2 || (action == "rm" && parsed.positionals.size() != 2))
    return make_error(Code::usage, "usage: landmark ls, landmark rm NAME, landmark add NAME LATITUDE LONGITUDE ADDRESS",
                      "gridctl provider landmark --help");
  const std::string& name = parsed.positionals[1];
  const auto former =
      std::ranges::find_if(rows, [&](const control::LandmarkRow& row) { return row.mark.name == name; });
  if (action == "rm") {
    if (former == rows.end())
      return make_error(Code::not_found, "no landmark is called '" + sanitize(name) + "'",
                        "gridctl provider landmark ls");
    const control::LandmarkRow gone = *former;
    rows.erase(former);
    TRY(control::write_landmarks(paths, std::move(rows)));
    return context.print_line(context.json ? row_json(gone) : "landmark " + name + " is forgotten");
  }
  std::vector<std::string> words(parsed.positionals.begin() + 1, parsed.positionals.end());
  if (parsed.has("country")) words.push_back(parsed.value("country"));
  TRY_ASSIGN(const control::LandmarkRow row, control::parse_landmark(words));
  TRY_ASSIGN(registry::Registry registry, context.open());  // makes the state directory where there is none
  if (const std::string provider = row.provider(); !provider.empty()) TRY(registry.provider(HostName{provider}));
  if (former != rows.end()) rows.erase(former);
  rows.push_back(row);
  TRY(control::write_landmarks(paths, std::move(rows)));
  return context.print_line(context.json ? row_json(row)
                                         : "landmark " + name + " at " + degrees(row.mark.at.latitude) + ", " +
                                               degrees(row.mark.at.longitude));
}
}  // namespace
}  // namespace provider_landmark

const Command k_provider_landmark{
    .name = "provider landmark",
    .summary = "known positions, to check where hosts are",
    .examples = {{"This machine is in Berlin", "gridctl provider landmark add home 52.52N 13.40E @here --country DE"},
                 {"A provider of yours is in Frankfurt and measures the others",
                  "gridctl provider landmark add fra 50.11N 8.68E @ada --country DE"},
                 {"A server that hosts may connect to",
                  "gridctl provider landmark add syd 33.87S 151.21E www.example.org:443"},
                 {"List the landmarks", "gridctl provider landmark ls"}},
    .description =
        "Lists, adds and removes landmarks, which the state directory keeps in its file 'landmarks'. ADDRESS is @here "
        "(this machine), @PROVIDER (a provider whose position you know) or HOST:PORT. Round trips between landmarks "
        "and hosts limit how far away a host can be; 'gridctl provider links' compares that with the declared "
        "region.\n\n@here and @PROVIDER measure the hosts. A host can lengthen a round trip but cannot shorten it. For "
        "HOST:PORT, the hosts connect by themselves and send nothing; their answers can count against them but never "
        "in their favour. gridctl contacts only addresses in the list.\n\nLATITUDE and LONGITUDE are in degrees, such "
        "as 33.87S 151.21E. Put '--' before negative numbers.",
    .positionals = {{"ACTION", Completion::choices, true, "add|ls|rm"},
                    {"NAME", Completion::nothing, false},
                    {"LATITUDE", Completion::nothing, false},
                    {"LONGITUDE", Completion::nothing, false},
                    {"ADDRESS", Completion::nothing, false}},
    .options = {{"country", 0, "CODE", "the landmark's country, such as DE"}},
    .exit_codes = k_exits_job,
    .run = provider_landmark::run};

}  // namespace gridctl::cmd

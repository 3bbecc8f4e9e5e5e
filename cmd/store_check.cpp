// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/network.hpp"
#include "cmd/store_remotes.hpp"
#include "control/copies/remote_work.hpp"

namespace gridctl::cmd {

namespace store_check {
namespace {
constexpr std::size_t k_findings_shown = 50;

Result<double> share_of(const Parsed& parsed) {
  if (parsed.has("all")) return 1.0;
  if (!parsed.has("share")) return 0.1;
  std::string text = parsed.value("share");
  if (text.ends_with('%')) text.pop_back();
  if (const auto percent = parse_number<double>(text); percent && *percent >= 0 && *percent <= 100)
    return *percent / 100;
  return make_error(Code::usage, "--share " + sanitize(parsed.value("share")) + " is not between 0% and 100%");
}

struct Outcome {
  store::RemoteCheck check;
  std::optional<control::RemoteWork::Repair> repair;
  [[nodiscard]] bool is_sound() const { return repair ? repair->failed.empty() : check.findings.empty(); }
};

Result<Outcome> look(Context& context, const Parsed& parsed, double share) {
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const registry::Remote remote, registry.remote(parsed.positionals[0]));
  TRY_ASSIGN(control::SshNetwork net, network_of(context, registry));
  TRY_ASSIGN(control::RemoteWork work,
             control::RemoteWork::open(context.paths(), net, registry, remote, context.clock, true));
  Outcome outcome;
  {
    ProgressLine line(context, "reading back from " + remote.name);
    TRY_ASSIGN(outcome.check, work.check(share, line.teller()));
  }
  if (parsed.has("repair")) {
    TRY_ASSIGN(outcome.repair, work.repair(outcome.check));
  }
  TRY(registry.note_answer(remote.name, context.now()));
  return outcome;
}

std::string json_of(const Outcome& outcome) {
  const store::RemoteCheck& check = outcome.check;
  JsonObject json;
  json("records", check.records)("packs", check.packs)("packs_read", check.packs_read)("bytes_read", check.bytes_read);
  json.raw("findings", json_list(check.findings));
  if (const auto& repair = outcome.repair)
    json.raw("repaired", json_list(repair->done)).raw("failed", json_list(repair->failed));
  return json.text();
}

void print_lines(Context& context, const char* mark, const std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < lines.size() && i < k_findings_shown; ++i)
    context.print_line(std::string(mark) + sanitize(lines[i]));
  if (lines.size() > k_findings_shown)
    context.print_line(std::string(mark) + "and " + std::to_string(lines.size() - k_findings_shown) + " more");
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const double share, share_of(parsed));
  TRY_ASSIGN(const Outcome outcome, look(context, parsed, share));
  const store::RemoteCheck& check = outcome.check;
  if (context.json) {
    context.print_line(json_of(outcome));
  } else {
    print_lines(context, "damaged: ", check.findings);
    if (outcome.repair) {
      print_lines(context, "repaired: ", outcome.repair->done);
      print_lines(context, "not repaired: ", outcome.repair->failed);
    }
    context.print_line(std::to_string(check.records) + " records, " + std::to_string(check.packs) + " packs; read " +
                       std::to_string(check.packs_read) + " of them, " + format_size(check.bytes_read) + ": " +
                       (check.findings.empty() ? "sound" : std::to_string(check.findings.size()) + " findings"));
  }
  if (outcome.is_sound()) return 0;
  const std::string& name = parsed.positionals[0];
  return make_error(Code::checkpoint_damaged, "not everything at " + name + " is as it should be",
                    outcome.repair ? "" : "gridctl store check " + name + " --all --repair");
}
}  // namespace
}  // namespace store_check

const Command k_store_check{
    .name = "store check",
    .summary = "verify copies at a remote",
    .examples = {{"Check that everything is there, and read a tenth of it", "gridctl store check nas"},
                 {"Read everything", "gridctl store check nas --all"},
                 {"Repair both sides", "gridctl store check nas --all --repair"}},
    .description =
        "Lists the remote, reads every record, checks that every required pack exists, and reads and verifies a share "
        "of the packs. gridctl believes nothing the remote says without verifying its hash or seal.\n\nWith --repair, "
        "gridctl first restores the chunks that are damaged here from the remote, and then rewrites those that are "
        "damaged there. It reports whatever is intact on neither side, and leaves it as it is.",
    .positionals = {{"NAME", Completion::remote}},
    .options = {{"share", 0, "PERCENT", "share of the data to read, chosen at random", "10%"},
                {"all", 0, "", "read everything"},
                {"repair", 0, "", "repair each side from the other"}},
    .exit_codes = k_exits_remote,
    .run = store_check::run};

}  // namespace gridctl::cmd

// SPDX-License-Identifier: Apache-2.0
#include "cmd/findings.hpp"

#include "base/text.hpp"
#include "control/measure/network_record.hpp"
#include "control/measure/unmeasured.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

std::string finding_text(ui::Style style, const probe::Finding& finding) {
  const std::string mark = finding.ok         ? style(ui::Paint::green, "ok  ")
                           : finding.required ? style(ui::Paint::red, "FAIL")
                                              : style(ui::Paint::yellow, "warn");
  std::string text = "  " + mark + "  " + sanitize(finding.point) + ": " + sanitize(finding.detail) + "\n";
  if (!finding.ok && !finding.fix.empty()) text += "        fix: " + sanitize(finding.fix) + "\n";
  return text;
}

std::vector<probe::Finding> findings_of(const registry::Provider& provider) {
  std::optional<EngineKind> wanted;
  if (Result<EngineKind> engine = parse_engine(provider.engine); engine) wanted = *engine;
  std::vector<probe::Finding> findings = probe::preflight(provider.inventory, wanted);
  // The user cannot repair anything here: the finding is reported when the host is registered or checked, not at each
  // look.
  std::erase_if(findings, [](const probe::Finding& finding) { return finding.point == "isolation"; });
  return findings;
}

void show_findings(Context& context, const std::vector<probe::Finding>& findings) {
  if (context.json) return;
  for (const probe::Finding& finding : findings) context.write_err(finding_text(context.err_style, finding));
}

void show_problems(Context& context, const std::vector<probe::Finding>& findings) {
  if (context.json) return;
  for (const probe::Finding& finding : findings)
    if (!finding.ok) context.write_err(finding_text(context.err_style, finding));
}

std::vector<probe::Finding> health_findings(const Result<control::CheckedHealth>& health, const HostName& name) {
  if (!health) return {{"health", false, health.error().one_line(), "gridctl provider check " + name.value, false}};
  std::vector<probe::Finding> findings;
  for (const sched::Change& change : health->changes)
    if (change.kind == "cleared")
      findings.push_back({"health", true,
                          (change.unit.empty() ? "" : change.unit + ": ") + "quarantine lifted: " + change.text, "",
                          true});
  bool well = true;
  for (const auto& [unit, standing] : health->standing.units) {
    if (standing.state != sched::UnitState::quarantined) continue;
    well = false;
    findings.push_back({"health", false, (unit.empty() ? "" : unit + ": ") + "quarantined: " + standing.text,
                        "fix it, then gridctl provider check " + name.value, true});
  }
  for (const auto& [gpu, who] : health->standing.busy)
    findings.push_back({"health", false, gpu + ": " + who, "", false});
  if (well) findings.push_back({"health", true, "no problems found", "", true});
  return findings;
}

std::vector<probe::Finding> bench_findings(const control::BenchReport& report) {
  std::vector<probe::Finding> findings;
  for (const control::GpuBench& gpu : report.gpus) {
    const std::string who = gpu.gpu.uuid.empty() ? gpu.gpu.name : gpu.gpu.uuid;
    for (const sched::GpuFinding& one : gpu.verdict.findings)
      if (one.kind != sched::VerdictKind::ok)
        findings.push_back({std::string(sched::verdict_name(one.kind)), false, who + ": " + one.text, "",
                            one.kind == sched::VerdictKind::mismatch});
  }
  for (const std::string& problem : report.problems) findings.push_back({"not measured", false, problem, "", false});
  return findings;
}

Result<void> show_measured(Context& context, registry::HostRecords& registry, const HostName& name) {
  TRY_ASSIGN(auto lines, control::health_lines(registry, name, context.now()));
  TRY_ASSIGN(const std::optional<control::BenchReport> bench, control::load_bench_report(registry, name));
  TRY_ASSIGN(const auto unmeasured, control::load_unmeasured(registry));
  if (bench) lines.emplace_back("bench", bench->summary());
  else if (const auto why = unmeasured.find(name.value); why != unmeasured.end())
    lines.emplace_back("bench", "not possible before the first job; GPUs are used all the same: " + sanitize(why->second));
  TRY_ASSIGN(const std::string network, control::network_line(registry, context.paths(), name));
  if (!network.empty()) lines.emplace_back("network", network);
  if (lines.empty()) return {};
  ui::Facts facts;
  for (const auto& [label, text] : lines) facts.add(label, text);
  context.print(facts.render(context.out_style));
  return {};
}

std::string findings_json(const std::vector<probe::Finding>& findings) {
  return json_list(findings, [](const probe::Finding& finding) {
    JsonObject json;
    json("point", finding.point)("ok", finding.ok)("required", finding.required)("detail", finding.detail);
    return json.text_or_null("fix", finding.fix).text();
  });
}

}  // namespace gridctl::cmd

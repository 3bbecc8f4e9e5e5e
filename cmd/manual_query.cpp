// SPDX-License-Identifier: Apache-2.0
// Writes gridctl-query(7), from the table that the parser uses.
#include <algorithm>

#include "base/text.hpp"
#include "cmd/help.hpp"
#include "sched/query/query_fields.hpp"

namespace gridctl::cmd {

namespace {
std::string_view kind_of(const sched::Field& field) {
  switch (field.unit) {
    case sched::Unit::text:
    case sched::Unit::part:
    case sched::Unit::gpu_name:
    case sched::Unit::region: return "text";
    case sched::Unit::flag: return "true or false";
    case sched::Unit::gpu_spec: return "GPUs";
    case sched::Unit::version:
    case sched::Unit::capability: return "version";
    default: return sched::unit_name(field.unit).empty() ? "number" : sched::unit_name(field.unit);
  }
}

std::string field_entry(const sched::Field& field) {
  std::string text =
      ".TP\n.BR " + roff(field.name) + " \" (" + roff(kind_of(field)) + ")\"\n" + roff(field.meaning) + ".";
  if (!field.aliases.empty()) {
    std::string others(field.aliases);
    std::ranges::replace(others, ' ', ',');
    text += "\nAlso: " + roff(join(split(others, ','), ", ")) + ".";
  }
  return text + "\n";
}

constexpr std::string_view k_head =
    ".SH NAME\ngridctl\\-query \\- query language for providers\n"
    ".SH EXAMPLES\n.nf\n"
    "gridctl provider ls 'gpu_name=RTX_4090 num_gpus>=2 reliability>0.98 region in [DE,FI]' \\-o price\n"
    "gridctl provider ls '24GB.. rentable mtbf>=7d' \\-o 'total_flops\\-,price'\n"
    "gridctl provider ls 'A100:40GB..80GB:2 not class=market inet_up>=500Mbps' \\-\\-json\n"
    ".fi\n.PP\nIn a job file:\n.PP\n.RS 4\n.nf\n"
    "constraints: gpu_ram>=24 cuda_vers>=12.1 geolocation notin [CN,VN]\n"
    "constraints: {class: [datacenter], query: 'pcie_bw>10 verified'}\n"
    ".fi\n.RE\n"
    ".SH DESCRIPTION\n"
    "A query is a sequence of terms, separated by blanks or commas, that must all hold:\n.I FIELD OPERATOR VALUE.\n"
    "The language is Vast.ai's. gridctl accepts Vast.ai's field names as well as its own.\n"
    ".SS Operators\n"
    "= (==), != (<>), <, <=, >, >=, in, notin (not in), and Vast.ai's words eq neq lt lte gt gte nin.\n"
    "in and notin take a list: [DE,FI]. A term after\n.B not\nor\n.B !\nis negated.\n"
    "A flag may stand alone: rentable, !datacenter.\n"
    ".SS Values\n"
    "Text comparisons ignore case; '_' and '\\-' count as blanks; quotes keep blanks together.\n"
    "Numbers are in the unit of their field, or have a unit: 24GB, 512GiB, 1Gbps, 7d, 90m, 98%, $0.5.\n"
    "Ranges include both ends: 16GB..24GB, 2.., ..8.\n"
    "FIELD = any always holds.\n"
    "GPU memory is nominal: a card sold with 24 GB matches gpu_ram>=24 although its driver reports 23.99 GiB.\n"
    ".PP\n"
    "A term about an unknown value never holds, whatever its operator, and even after not:\n"
    "a host without a region is neither in DE nor outside it. A missing label is empty.\n"
    "Until a host has been observed, reliability and mtbf are those of its class.\n"
    ".SS GPUs\n"
    "dstack's notation, vendor:names:memory:count with each part optional, may follow gpu= or stand alone:\n"
    "A100:2..4, 24GB.., nvidia:H100,H200:8.\n"
    ".SS Order\n"
    "\\-o price,num_gpus\\- sorts by price, and by descending number of GPUs where prices are equal. Unknown values "
    "come "
    "last.\n"
    ".SH FIELDS\n";
}  // namespace

std::string query_page_body() {
  std::string out(k_head);
  for (const sched::Field& field : sched::query_fields()) out += field_entry(field);
  out += ".SS Vast.ai fields without meaning in gridctl\n";
  for (const sched::Foreign& foreign : sched::foreign_fields())
    out += ".TP\n.B " + roff(foreign.name) + "\n" + roff(foreign.why) + ".\n";
  return out + ".SH SEE ALSO\n.BR gridctl\\-provider (1),\n.BR gridctl\\-job (1)\n";
}

}  // namespace gridctl::cmd

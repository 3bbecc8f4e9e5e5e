// SPDX-License-Identifier: Apache-2.0
// Writes gridctl-agents(7): everything that a program that drives gridctl needs to know, on one page.
#include "cmd/help.hpp"

namespace gridctl::cmd {

namespace {
struct Section {
  std::string_view title, text;  // roff
};
constexpr Section k_sections[] = {
    {"NAME", "gridctl\\-agents \\- for programs that drive gridctl\n"},
    {"DESCRIPTION",
     "A program gets its first job done with five commands, and this page is all that it needs. No command asks a "
     "question "
     "when standard input is not a terminal. Every command takes\n.BR \\-\\-json ;\nit then prints JSON on standard "
     "output, and "
     "an error as one object on standard error.\n.PP\nRegister a host, once. Without the fingerprint of its host key "
     "the "
     "command fails, prints the fingerprint and changes nothing:\n.PP\n.nf\n"
     "gridctl provider register ada ssh://me@ada.example.org \\-\\-host\\-key SHA256:... \\-\\-json\n.fi\n"
     ".PP\nTry a job without starting it; exit code 4 means that no host can run it, with a reason for "
     "each:\n.PP\n.nf\n"
     "gridctl job submit \\-n hello \\-\\-gpu 1 \\-\\-dry\\-run \\-\\-json \\-\\- nvidia\\-smi\n.fi\n"
     ".PP\nStart it; the answer has its\n.BR job_id :\n.PP\n.nf\n"
     "gridctl job submit \\-n hello \\-\\-gpu 1 \\-d \\-\\-json \\-\\- nvidia\\-smi\n.fi\n"
     ".PP\nWait for its end; the exit code is 0 if the job succeeded and 1 if its program failed:\n.PP\n.nf\n"
     "gridctl job watch JOB_ID \\-\\-no\\-logs \\-\\-timeout 2h\n.fi\n"
     ".PP\nRead what it printed, and fetch what it wrote:\n.PP\n.nf\n"
     "gridctl job logs JOB_ID\ngridctl job pull JOB_ID results\n.fi\n"},
    {"WHAT IS SAFE TO REPEAT",
     "Commands that only look (ls, show, logs, events, explain, doctor, plan, check) change nothing. Of those that "
     "change something,\n.B job apply\nwith a job file may be repeated freely: while a job with that name has the same "
     "content and waits, runs or has succeeded, nothing happens.\n.B job submit\nstarts another job each time. "
     "Cancelling a job that has ended, draining a drained host and pausing a paused job change nothing.\n"},
    {"WHAT COSTS MONEY",
     "Only a job that is placed costs money: its hosts' prices per hour, for the time it holds them.\n"
     ".B job submit \\-\\-dry\\-run\nsays what the hosts that a job would get cost per hour, and\n.B plan train\nwhat "
     "a "
     "training would cost.\n"
     ".B budget\nin the job file and\n.B gridctl budget set\nlimit it; a job that has used up its budget saves a "
     "checkpoint and "
     "stops with exit code 9.\n.B job show \\-\\-json\nhas the cost so far.\n"},
    {"HOW TO STOP",
     "Ending a command by a signal or by\n.B \\-\\-timeout\n(exit code 124) never ends the job.\n.B job cancel JOB_ID "
     "\\-\\-wait\nends it, and keeps what it saved; its checkpoint and its files stay, and\n.B job resume "
     "JOB_ID\ncontinues from the newest checkpoint.\n.B provider drain NAME\nmoves all jobs from a host.\n"},
    {"EXIT CODES AND ERRORS",
     "0 success, 1 the program of the job failed, 2 usage or job file, 3 no such thing, 4 no host can run it, 5 a host "
     "or the network failed, 6 login or host key, 7 state directory, 8 damaged checkpoint, 9 budget, deadline or "
     "cancellation, 70 internal error, 124 time is up, 130 interrupted. Any other code is a failure. An error object "
     "has\n.B code\n(a stable word),\n.BR message ,\n.B hint\n(a command that helps, or null) and\n.BR retry :\nnever, "
     "same_host_later, other_host or needs_user. Messages are for people; decide by code and retry.\n"},
    {"SEE ALSO",
     ".BR gridctl (1),\n.BR gridctl\\-job (5),\n.BR gridctl\\-query (7),\n.BR gridctl\\-exit\\-codes (7)\n"}};
}  // namespace

std::string agents_page_body() {
  std::string out;
  for (const Section& section : k_sections)
    out += ".SH " + std::string(section.title) + "\n" + std::string(section.text);
  return out;
}

}  // namespace gridctl::cmd

// SPDX-License-Identifier: Apache-2.0
// Prints receipts for the researcher's commands and the owner's.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cmd/command.hpp"
#include "cmd/context.hpp"
#include "lend/receipt.hpp"

namespace gridctl::cmd {

// Holds a chain as one side keeps it, and the result of its check.
struct CheckedChain {
  std::string chain, name;  // the invitation, and the other side in words
  lend::ChainReport report;
  std::string note;  // what the other side has said; empty: nothing
};

inline constexpr std::string_view k_receipt_formats = "jsonl|csv";
inline constexpr Option k_receipt_format_option{"format", 0, "FORMAT", "one line for each receipt, as it was signed, or a table for other programs",
                                                "jsonl", Completion::choices, k_receipt_formats};
inline constexpr Option k_receipt_job_option{"job", 0, "JOB", "only those of this job"};

// Reads a file written by `export`, by chains; "-": standard input.
[[nodiscard]] Result<std::map<std::string, std::vector<std::string>>> read_exported(const std::string& file);
// Returns text such as "the host asks 0.004000 USD, and 0.002000 is counted here (why): gridctl receipts ls --job ID"; empty if
// none is disputed or they cannot be read, which `receipts ls` reports.
[[nodiscard]] std::string disputes_of(const Context& context, const JobId& job);
// Prints good receipts, as a table or as JSON. `job`: empty for all.
int print_receipts(Context& context, const std::vector<CheckedChain>& chains, const std::string& job);
// Prints the result of the check of each chain. An error names the first that differs from what was signed.
[[nodiscard]] Result<int> print_checked(Context& context, const std::vector<CheckedChain>& chains);
// Prints receipts as they were signed, including damaged ones, or as a table.
void print_exported(Context& context, const std::vector<std::string>& lines, const std::string& format, bool first);

}  // namespace gridctl::cmd

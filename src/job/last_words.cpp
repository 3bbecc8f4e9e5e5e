// SPDX-License-Identifier: Apache-2.0
#include "job/last_words.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/names.hpp"
#include "base/text.hpp"

namespace gridctl::job {

namespace {

constexpr std::size_t k_lines_max = 400;    // of the output, from its end
constexpr std::size_t k_trailers_max = 60;  // lines that may follow the last words
constexpr std::size_t k_word_max = 120;     // bytes of an exception's name
constexpr std::string_view k_shell_says = "Killed";
constexpr int k_killed = 128 + 9;           // how a shell reports SIGKILL

bool is_one_of(std::string_view text, std::span<const std::string_view> heads) {
  return std::ranges::any_of(heads, [&](std::string_view head) { return text.starts_with(head); });
}

bool has_part(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Matches a complete word, in any case.
bool has_word(std::string_view text, std::string_view word) {
  const std::string low = lower(text);
  const auto goes_on = [&](std::size_t at) { return at < low.size() && (is_digit(low[at]) || is_letter(low[at])); };
  for (std::size_t at = low.find(word); at != std::string::npos; at = low.find(word, at + 1))
    if ((at == 0 || !goes_on(at - 1)) && !goes_on(at + word.size())) return true;
  return false;
}

// --- Table ----------------------------------------------------------------------------------------------------------

enum class In : std::uint8_t {
  exception,  // "NAME: MESSAGE": the name ends with `name`, the message contains `text`
  word,       // the same, and the message contains `text` as a word of its own, in any case
  line,       // the line contains `text`: words that nothing else prints
  end,        // the line ends with `text`, after the ": " of a program
  killed,     // a shell's "Killed", believed with exit code 137 only
};
struct Pattern {
  In in;
  std::string_view name, text, cause;
  Advice advice;
};

constexpr std::string_view k_memory = "the program ran out of memory", k_gpu_memory = "the GPU ran out of memory",
                           k_host_memory = "the host is out of memory", k_disk = "the host's disk is full",
                           k_driver = "the host's GPU driver does not match the program",
                           k_broken_gpu = "a GPU of the host is faulty", k_module = "a module is missing",
                           k_nan = "a number became NaN", k_port = "a port is in use",
                           k_collective = "a collective operation failed or timed out",
                           k_kernel = "the kernel killed a process of the job";

// The first matching row counts.
constexpr auto k_patterns = std::to_array<Pattern>({
    {In::exception, "", "libcuda.so", k_driver, Advice::blame_host},
    {In::line, "", "error while loading shared libraries: libcuda.so", k_driver, Advice::blame_host},
    {In::exception, "", "CUDA driver version is insufficient", k_driver, Advice::blame_host},
    {In::exception, "", "The NVIDIA driver on your system is too old", k_driver, Advice::blame_host},
    {In::exception, "", "Found no NVIDIA driver on your system", k_driver, Advice::blame_host},
    {In::exception, "", "no CUDA-capable device is detected", k_driver, Advice::blame_host},
    {In::exception, "", "No CUDA GPUs are available", k_driver, Advice::blame_host},
    {In::exception, "", "No HIP GPUs are available", k_driver, Advice::blame_host},
    {In::exception, "", "no kernel image is available for execution", k_driver, Advice::blame_host},
    {In::exception, "", "unsupported display driver / cuda driver combination", k_driver, Advice::blame_host},
    {In::line, "", "uncorrectable ECC error encountered", k_broken_gpu, Advice::blame_host},
    {In::line, "", "NVRM: Xid", k_broken_gpu, Advice::blame_host},
    {In::line, "", "GPU has fallen off the bus", k_broken_gpu, Advice::blame_host},
    {In::exception, "java.lang.OutOfMemoryError", "", k_memory, Advice::stop},
    {In::exception, "OutOfMemoryError", "", k_gpu_memory, Advice::stop},
    {In::exception, "", "CUDA out of memory", k_gpu_memory, Advice::stop},
    {In::exception, "", "CUDA error: out of memory", k_gpu_memory, Advice::stop},
    {In::exception, "", "HIP out of memory", k_gpu_memory, Advice::stop},
    {In::exception, "", "XPU out of memory", k_gpu_memory, Advice::stop},
    {In::exception, "XlaRuntimeError", "RESOURCE_EXHAUSTED", k_gpu_memory, Advice::stop},
    {In::exception, "JaxRuntimeError", "RESOURCE_EXHAUSTED", k_gpu_memory, Advice::stop},
    {In::exception, "ResourceExhaustedError", "", k_gpu_memory, Advice::stop},
    {In::exception, "MemoryError", "", k_memory, Advice::stop},
    {In::exception, "", "DefaultCPUAllocator: can't allocate memory", k_memory, Advice::stop},
    {In::exception, "", "DefaultCPUAllocator: not enough memory", k_memory, Advice::stop},
    {In::exception, "what()", "std::bad_alloc", k_memory, Advice::stop},
    {In::line, "", "JavaScript heap out of memory", k_memory, Advice::stop},
    {In::line, "", "Out of memory: Killed process", k_kernel, Advice::blame_host},
    {In::killed, "", "", k_kernel, Advice::blame_host},
    {In::exception, "", "[Errno 12]", k_host_memory, Advice::blame_host},
    {In::end, "", "Cannot allocate memory", k_host_memory, Advice::blame_host},
    {In::exception, "", "[Errno 28]", k_disk, Advice::blame_host},
    {In::exception, "", "No space left on device", k_disk, Advice::blame_host},
    {In::end, "", "No space left on device", k_disk, Advice::blame_host},
    {In::exception, "", "[Errno 98]", k_port, Advice::restart},
    {In::exception, "", "EADDRINUSE", k_port, Advice::restart},
    {In::exception, "", "Address already in use", k_port, Advice::restart},
    {In::end, "", "Address already in use", k_port, Advice::restart},
    {In::line, "", "Watchdog caught collective operation timeout", k_collective, Advice::restart},
    {In::exception, "DistBackendError", "", k_collective, Advice::restart},
    {In::exception, "DistNetworkError", "", k_collective, Advice::restart},
    {In::exception, "", "NCCL communicator was aborted", k_collective, Advice::restart},
    {In::exception, "", "Connection closed by peer", k_collective, Advice::restart},
    {In::exception, "ModuleNotFoundError", "", k_module, Advice::stop},
    {In::exception, "ImportError", "No module named", k_module, Advice::stop},
    {In::exception, "ImportError", "cannot import name", k_module, Advice::stop},
    {In::exception, "Error", "Cannot find module", k_module, Advice::stop},
    {In::line, "", "error while loading shared libraries: ", "a library is missing", Advice::stop},
    {In::word, "FloatingPointError", "nan", k_nan, Advice::stop},
    {In::word, "ValueError", "nan", k_nan, Advice::stop},
    {In::word, "RuntimeError", "nan", k_nan, Advice::stop},
    {In::word, "AssertionError", "nan", k_nan, Advice::stop},
    {In::word, "loss is nan, stopping training", "", k_nan, Advice::stop},
});

// --- Lines -----------------------------------------------------------------------------------------------------------

// "[rank 3] " is our label, "[rank3]: " is torch's.
std::string_view without_label(std::string_view line) {
  for (const std::string_view close : {"] ", "]: "}) {
    if (!line.starts_with("[rank")) break;
    const std::size_t end = line.find(close);
    if (end == std::string_view::npos || end > 12) continue;
    const std::string_view number = trim(line.substr(5, end - 5));
    if (!number.empty() && std::ranges::all_of(number, is_digit)) line.remove_prefix(end + close.size());
  }
  return line;
}

// Returns true for lines that programs and launchers print after the reason, or that continue the reason.
bool is_trailer(std::string_view line) {
  static constexpr auto k_heads = std::to_array<std::string_view>({
      "wandb:", "Aborted", "make: ***", "srun: ", "slurmstepd: ", "[W", "CUDA kernel errors might be",
      "For debugging consider passing", "Compile with `TORCH_USE_CUDA_DSA`", "Device-side assertion tracking",
      "Search for `cudaError", "Exception raised from ", "frame #", "Last error:", "ncclSystemError:",
      "ncclRemoteError:", "ncclInternalError:", "ncclUnhandledCudaError:", "If reserved but unallocated memory",
      "\tat ", "\t... ", "Node.js v", "terminate called after throwing", "<omitting python frames>",
      "To suppress this"});
  return trim(line).empty() || is_one_of(line, k_heads);
}

// Returns an exception's name and message; empty if the line has none: such names have no blanks and a typical ending.
std::pair<std::string_view, std::string_view> as_exception(std::string_view line) {
  if (line.starts_with("Exception in thread \"")) {
    const std::size_t end = line.find("\" ", 21);
    if (end != std::string_view::npos) line.remove_prefix(end + 2);
  }
  if (line.starts_with("  what():")) return {"what()", line.substr(9)};
  const std::size_t colon = std::min(line.find(": "), line.size());
  std::string_view name = line.substr(0, colon);
  if (colon == line.size() && name.ends_with(':')) name.remove_suffix(1);
  const bool is_name = !name.empty() && name.size() <= k_word_max && std::ranges::all_of(name, [](char c) {
    return is_digit(c) || is_letter(c) || c == '_' || c == '.';
  });
  const bool is_raised = name.ends_with("Error") || name.ends_with("Exception") || name.ends_with("Warning");
  if (!is_name || !is_raised) return {};
  return {name, colon == line.size() ? std::string_view{} : line.substr(colon + 2)};
}

bool fits(const Pattern& row, std::string_view line, int exit_code) {
  const auto [name, message] = as_exception(line);
  switch (row.in) {
    case In::exception: return !name.empty() && name.ends_with(row.name) && has_part(message, row.text);
    case In::word:
      return row.text.empty() ? lower(line).starts_with(row.name)
                              : !name.empty() && name.ends_with(row.name) && has_word(message, row.text);
    case In::line: return has_part(line, row.text);
    case In::end: return line.ends_with(row.text) && has_part(line.substr(0, line.size() - row.text.size()), ": ");
    case In::killed:
      return exit_code == k_killed && (line == k_shell_says || (has_part(line, ": line ") && has_part(line, " Killed ")));
  }
  return false;
}

// Torch's elastic launcher prints its own summary after the words of the ranks.
void drop_summary(std::vector<std::string_view>& lines) {
  const auto found = std::ranges::find_if(lines, [](std::string_view line) {
    return has_part(line, "torch/distributed/elastic/multiprocessing/api.py") || has_part(line, "ChildFailedError");
  });
  if (found == lines.end()) return;
  auto first = found;  // of its own traceback
  while (first != lines.begin() && ((first - 1)->starts_with(' ') || (first - 1)->starts_with("Traceback "))) --first;
  lines.erase(first, lines.end());
}

LastWords judge_lines(std::vector<std::string_view> lines, int exit_code) {
  drop_summary(lines);
  std::size_t skipped = 0;
  for (auto at = lines.rbegin(); at != lines.rend() && skipped <= k_trailers_max; ++at, ++skipped) {
    for (const Pattern& row : k_patterns)
      if (fits(row, *at, exit_code)) return {row.advice, std::string(row.cause), sanitize(trim(*at), k_last_line_max)};
    if (!is_trailer(*at)) break;
  }
  return {};
}

}  // namespace

LastWords judge_last_words(std::string_view output, int exit_code) {
  std::vector<std::pair<std::string_view, std::vector<std::string_view>>> ranks;  // lines by their label
  std::vector<std::string> all = split_lines(output);
  if (all.size() > k_lines_max) all.erase(all.begin(), all.end() - k_lines_max);
  for (const std::string& text : all) {
    const std::string_view line = text;
    const std::string_view rest = without_label(line), label = line.substr(0, line.size() - rest.size());
    auto found = std::ranges::find(ranks, label, [](const auto& rank) { return rank.first; });
    if (found == ranks.end()) found = ranks.insert(ranks.end(), {label, {}});
    found->second.push_back(rest);
  }
  // A rank whose peer has died reports that it could not reach the peer: the peer's own words count first.
  LastWords words;
  for (auto& [label, lines] : ranks) {
    LastWords one = judge_lines(std::move(lines), exit_code);
    if (one.advice != Advice::none && (words.advice == Advice::none || words.cause == k_collective))
      words = std::move(one);
  }
  return words;
}

bool makes_directory(std::string_view output, std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::vector<std::string> all = split_lines(output);
  const auto last =
      std::ranges::find_if(all.rbegin(), all.rend(), [](const std::string& line) { return !trim(line).empty(); });
  if (path.empty() || last == all.rend()) return false;
  const std::string_view line = trim(without_label(*last));
  const bool says = (has_part(line, "mkdir: ") && line.ends_with("File exists")) ||
                    as_exception(line).first.ends_with("FileExistsError");
  // The path is in quotes of any kind, alone or below the working directory.
  const std::size_t at = line.rfind(path);
  if (!says || at == std::string_view::npos || at == 0) return false;
  const char before = line[at - 1], after = at + path.size() < line.size() ? line[at + path.size()] : '\'';
  const auto is_name = [](char c) { return is_digit(c) || is_letter(c) || c == '_' || c == '-' || c == '.'; };
  return !is_name(before) && !is_name(after) && after != '/';
}

std::string in_words(const LastWords& words) {
  return words.advice == Advice::none ? "" : words.cause + " (\"" + words.line + "\")";
}

}  // namespace gridctl::job

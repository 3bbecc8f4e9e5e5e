// SPDX-License-Identifier: Apache-2.0
#include "cmd/bag_files.hpp"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "cmd/bag_reader.hpp"
#include "cmd/json_text.hpp"
#include "control/follow/results.hpp"

namespace gridctl::cmd {

namespace {

constexpr std::uint64_t k_piece_max = 1u << 20;  // bytes copied at once
constexpr std::size_t k_head_max = 64, k_path_max = 4096;

// One file behind the output of a task, as gridctl-agent(7) has it; a host wrote it, and may lie.
struct PackedFile {
  std::string path;
  std::uint32_t mode = 0;
  std::uint64_t size = 0, begin = 0;  // of its content, behind the offset of the task
};

bool stays_below(const std::string& path) {
  if (path.empty() || path.starts_with('/') || path.find('\0') != std::string::npos) return false;
  const std::vector<std::string> parts = split(path, '/');
  return std::none_of(parts.begin(), parts.end(), [](const std::string& one) { return one.empty() || one == "." || one == ".."; });
}

Result<PackedFile> packed_at(const BagReader& reader, const TaskEnded& task, std::uint64_t at, std::uint64_t end) {
  const Error bad = make_error(Code::checkpoint_damaged, "the files of task " + std::to_string(task.index) + " cannot be read");
  TRY_ASSIGN(const std::string head, reader.read(task, at, k_head_max + k_path_max));
  const std::size_t line = head.find('\n');
  if (line == std::string::npos) return bad;
  const std::vector<std::string> words = split(head.substr(0, line), ' ');
  std::size_t length = 0;
  PackedFile file;
  if (words.size() != 3 || !parse_into(words[0], length) || length > k_path_max || !parse_into(words[2], file.size)) return bad;
  if (words[1].size() > 4 || words[1].find_first_not_of("01234567") != std::string::npos) return bad;
  for (const char digit : words[1]) file.mode = file.mode * 8 + static_cast<std::uint32_t>(digit - '0');
  file.path = head.substr(line + 1, length);
  file.begin = at + line + 1 + length;
  if (!stays_below(file.path) || file.begin > end || file.size > end - file.begin) return bad;
  return file;
}

struct PulledFiles {
  std::uint64_t files = 0, bytes = 0;
};

Result<void> pull_task(const BagReader& reader, const TaskEnded& task, const os::Path& directory, PulledFiles& pulled) {
  const std::uint64_t end = task.result.output_end() - task.result.offset;
  std::uint64_t at = end - task.result.file_bytes;
  while (at < end) {
    TRY_ASSIGN(const PackedFile file, packed_at(reader, task, at, end));
    const os::Path path = directory / file.path;
    TRY(os::make_directories(path.parent_path(), 0755));
    TRY_ASSIGN(const os::Fd fd, os::open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, (file.mode & 0755) | 0600));
    for (std::uint64_t done = 0; done < file.size;) {
      TRY_ASSIGN(const std::string text, reader.read(task, file.begin + done, std::min(k_piece_max, file.size - done)));
      if (text.empty()) return make_error(Code::io, "the output of the bag has shrunk");
      TRY(os::write_all(fd.get(), as_bytes(text)));
      done += text.size();
    }
    at = file.begin + file.size;
    ++pulled.files;
    pulled.bytes += file.size;
  }
  return {};
}

}  // namespace

Result<int> pull_task_files(Context& context, const registry::Job& job, const std::optional<std::string>& tasks,
                            const os::Path& directory) {
  BagReader reader(context.paths().bag_of(job.id));
  TRY_ASSIGN(const auto by_index, reader.ended(static_cast<std::uint64_t>(job.spec.workload.tasks), tasks));
  PulledFiles pulled;
  for (const auto& [index, task] : by_index)
    TRY(pull_task(reader, task, job.spec.tasks->folder ? directory / std::to_string(index) : directory, pulled));
  if (context.json)
    return context.print_line(JsonObject()("job_id", job.id.value)("directory", std::filesystem::absolute(directory).string())(
                                  "bytes", pulled.bytes)("files", pulled.files)
                                  .text());
  return context.print_line(job.name + ": " + control::files_in_words(pulled.files, pulled.bytes, {}) + " in " + directory.string());
}

}  // namespace gridctl::cmd

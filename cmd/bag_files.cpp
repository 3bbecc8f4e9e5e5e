// SPDX-License-Identifier: Apache-2.0
#include "cmd/bag_files.hpp"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>

#include "cmd/bag_reader.hpp"
#include "cmd/json_text.hpp"
#include "control/follow/results.hpp"
#include "os/entries.hpp"
#include "store/scan.hpp"

namespace gridctl::cmd {

namespace {

constexpr std::uint64_t k_piece_max = 1u << 20;  // bytes copied at once
struct PulledFiles {
  std::uint64_t files = 0, bytes = 0;
};

Result<void> pull_task(const BagReader& reader, const TaskEnded& task, const os::Path& directory, PulledFiles& pulled) {
  return control::each_file(reader, task, [&](const control::TaskFile& file) -> Result<void> {
    const os::Path path = directory / file.path;
    TRY(os::make_directories(path.parent_path(), 0755));
    TRY_ASSIGN(const os::Fd fd, os::open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, (file.mode & 0755) | 0600));
    for (std::uint64_t done = 0; done < file.size;) {
      TRY_ASSIGN(const std::string text, reader.read(task, file.begin + done, std::min(k_piece_max, file.size - done)));
      if (text.empty()) return make_error(Code::io, "the output of the bag has shrunk");
      TRY(os::write_all(fd.get(), as_bytes(text)));
      done += text.size();
    }
    ++pulled.files;
    pulled.bytes += file.size;
    return {};
  });
}

}  // namespace

Result<int> pull_task_files(Context& context, const registry::Job& job, const std::optional<std::string>& tasks,
                            const os::Path& directory) {
  BagReader reader(context.paths().bag_of(job.id));
  TRY_ASSIGN(const auto by_index, reader.ended(static_cast<std::uint64_t>(job.spec.workload.tasks), tasks));
  PulledFiles pulled;
  for (const auto& [index, task] : by_index)
    TRY(pull_task(reader, task, job.spec.tasks->folder ? directory / std::to_string(index) : directory, pulled));
  os::set_attribute(directory, store::k_pulled_attribute);
  if (context.json)
    return context.print_line(JsonObject()("job_id", job.id.value)("directory", std::filesystem::absolute(directory).string())(
                                  "bytes", pulled.bytes)("files", pulled.files)
                                  .text());
  return context.print_line(job.name + ": " + control::files_in_words(pulled.files, pulled.bytes, {}) + " in " + directory.string());
}

}  // namespace gridctl::cmd

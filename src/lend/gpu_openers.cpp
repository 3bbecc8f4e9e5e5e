// SPDX-License-Identifier: Apache-2.0
#include "lend/gpu_openers.hpp"

#include <cctype>
#include <string>
#include <string_view>

#include "base/numbers.hpp"
#include "os/entries.hpp"

namespace gridctl::lend {

namespace {

constexpr Duration k_young = std::chrono::seconds{30};
constexpr std::size_t k_name_max = 256;

// CUDA opens nvidia-uvm, graphics nvidia0 and its kin, ROCm kfd, and everything else on a GPU a render node.
bool is_gpu(std::string_view path) {
  constexpr std::string_view k_nvidia = "/dev/nvidia";
  if (path.starts_with("/dev/dri/renderD") || path == "/dev/kfd") return true;
  if (!path.starts_with(k_nvidia) || path.size() == k_nvidia.size()) return false;
  return std::isdigit(static_cast<unsigned char>(path[k_nvidia.size()])) != 0 || path.substr(k_nvidia.size()) == "-uvm";
}

}  // namespace

bool GpuOpeners::has_gpu(const os::Path& process) const {
  std::error_code failed;
  for (std::filesystem::directory_iterator file(process / "fd", failed), end; !failed && file != end; file.increment(failed)) {
    std::error_code gone;
    const os::Path target = std::filesystem::read_symlink(file->path(), gone);
    if (!gone && target.native().size() <= k_name_max && is_gpu(target.native())) return true;
  }
  return false;
}

bool GpuOpeners::look() {
  const auto names = os::list_directory(proc_);
  if (!names) return false;
  const BootTime now = clock_.boot();
  std::map<int, Process> present;
  bool news = false;
  for (const std::string& name : *names) {
    const auto pid = parse_number<int>(name);
    if (!pid) continue;
    const auto found = known_.find(*pid);
    // Processes of the first look are as old as can be.
    Process process = found != known_.end() ? found->second : Process{begun_ ? now : BootTime{}, !begun_};
    if (!process.counted && now - process.seen < k_young && has_gpu(proc_ / name)) news = process.counted = true;
    present.emplace(*pid, process);
  }
  known_ = std::move(present);
  begun_ = true;
  return news;
}

}  // namespace gridctl::lend

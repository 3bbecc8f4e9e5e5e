// SPDX-License-Identifier: Apache-2.0
#include "agent/gpu_look.hpp"

#include <algorithm>

#include "agent/use_meter.hpp"
#include "base/use_record.hpp"
#include "os/process.hpp"
#include "probe/gpu_use.hpp"
#include "probe/health.hpp"

namespace gridctl::agent {

namespace {
constexpr std::uint64_t k_look_bytes = 256 * 1024;
constexpr int k_tool_share = 20;  // a tool that takes long is asked so many times its own time later
}  // namespace

template <class R>
void fields(R& r, Of<R, GpuLook::Entry>& m) {
  r("use", m.use)("uuid", m.uuid);
}

template <class R>
void fields(R& r, Of<R, GpuLook>& m) {
  r("at_ns", m.at)("boot_id", m.boot_id)("gpus", m.gpus)("hung", m.hung)("next_ns", m.next);
}

namespace {
GpuLook read_look(const os::Path& file) {
  const auto text = os::read_file(file, k_look_bytes);
  if (!text) return {};
  auto look = read_record<GpuLook>(*text, "the use of GPUs", k_lenient_rules, Code::state_unreadable);
  return look && look->boot_id == os::boot_id() ? *std::move(look) : GpuLook{};
}
}  // namespace

GpuLook look_at_gpus(const os::Path& folder, os::Clock& clock) {
  const os::Path file = folder / "gpus";
  GpuLook look = read_look(file);
  if (clock.boot() < look.next || !os::make_directories(folder)) return look;
  const auto lock = os::FileLock::try_acquire(folder / "lock");
  if (!lock || !*lock) return look;
  look = read_look(file);
  const BootTime asked = clock.boot();
  if (asked < look.next || !probe::may_try({look.hung, look.at}, asked)) return look;
  const probe::ToolAnswer answer = probe::ask_tools({}, {probe::nvidia_use_call()}).front();
  const BootTime now = clock.boot();
  look.hung = answer.found && !answer.answered ? look.hung + 1 : 0;
  look.boot_id = os::boot_id();
  look.at = now;
  look.next = now + std::max<Duration>(k_use_every - std::chrono::seconds{1}, (now - asked) * k_tool_share);
  look.gpus.clear();
  for (auto& [uuid, use] : probe::read_nvidia_use(answer)) look.gpus.push_back({uuid, use});
  for (auto& [uuid, use] : probe::kernel_gpu_use(probe::HostFiles{})) look.gpus.push_back({uuid, use});
  (void)os::write_file_atomically(file, write_record(look));  // at worst another connection asks, too
  return look;
}

}  // namespace gridctl::agent

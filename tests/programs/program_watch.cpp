// SPDX-License-Identifier: Apache-2.0
// The agent's watch of a checkpoint directory by itself, for kills.py: program_watch FOLDER NAME watches FOLDER/NAME
// and keeps snapshots in FOLDER/attempt/snap until it is killed. Prints a line when it has begun.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdio>

#include "agent/checkpoints.hpp"

int main(int argc, char** argv) {
  using namespace gridctl;
  if (argc != 3) {
    std::fputs("usage: program_watch FOLDER NAME\n", stderr);
    return 2;
  }
  const os::Path folder = argv[1];
  agent::AttemptDir attempt{folder / "attempt"};
  if (!os::make_directories(attempt.snapshots())) return 1;
  wire::AttemptSpec spec;
  spec.restore = Digest{};
  agent::JobView view;
  view.checkpoint_base = folder;
  view.checkpoint_relative = argv[2];
  const os::Fd changed(::eventfd(0, EFD_CLOEXEC));
  agent::CheckpointWatch watch(attempt, spec, view, os::system_clock(), changed.get());
  watch.restored();
  watch.start();
  std::puts("watching");
  std::fflush(stdout);
  for (;;) {
    std::uint64_t count = 0;
    if (::read(changed.get(), &count, sizeof count) < 0) return 1;
    for (const wire::HostCheckpoint& one : watch.list())
      std::fprintf(stderr, "%llu %s%s\n", static_cast<unsigned long long>(one.number), one.how.c_str(),
                   one.provisional ? " provisional" : "");
  }
}

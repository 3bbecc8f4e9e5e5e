// SPDX-License-Identifier: Apache-2.0
#include "agent/folder_watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

namespace gridctl::agent {

namespace {
bool watch(const os::Fd& events, const os::Path& folder) {
  return ::inotify_add_watch(events.get(), folder.c_str(), IN_MOVED_TO | IN_CREATE) >= 0;
}
}  // namespace

FolderWatch::FolderWatch() { open(); }

void FolderWatch::open() {
  events_ = os::Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  for (const os::Path& folder : folders_)
    if (events_.valid() && !watch(events_, folder)) events_.reset();
}

void FolderWatch::add(const os::Path& folder) {
  folders_.push_back(folder);
  if (events_.valid() && !watch(events_, folder)) events_.reset();
}

bool FolderWatch::drain() {
  if (!events_.valid()) {
    open();  // others may have given some back
    return true;
  }
  alignas(inotify_event) char events[8192];
  bool any = false;
  while (::read(events_.get(), events, sizeof events) > 0) any = true;
  return any;
}

}  // namespace gridctl::agent

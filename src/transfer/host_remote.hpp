// SPDX-License-Identifier: Apache-2.0
// Uses a folder on a host as a remote that keeps copies (store::Backend): its agent stores what it is sent. Nothing
// that the host says is trusted; only reading back proves a copy. Uses our agent instead of SFTP: it also syncs
// folders, writes only where a name is free, and is reachable through every jump host.
#pragma once

#include <memory>
#include <string>

#include "store/backend.hpp"
#include "transfer/parallel_transfer.hpp"

namespace gridctl::transfer {

struct HostFolder {
  std::string host;    // the provider, for messages
  std::string path;    // on the host: absolute, or in its user's home
  bool marked = true;  // false: no mark is asked for, and the folder is made where its parent is there
};

// Does not contact the host yet. `open` is called when a connection is needed, and again if one broke during an
// operation; its errors are passed on. The clock must outlive the remote.
[[nodiscard]] std::unique_ptr<store::Backend> open_host_remote(HostFolder folder, MoreLinks open,
                                                              const os::Clock& clock);

}  // namespace gridctl::transfer

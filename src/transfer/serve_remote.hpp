// SPDX-License-Identifier: Apache-2.0
// Serves the host's side of a remote that keeps copies: one of its folders, as a directory remote. The controller's
// requests are checked as strictly as a host's answers.
#pragma once

#include <memory>
#include <string>

#include "os/files.hpp"
#include "store/backend.hpp"
#include "transfer/stream.hpp"
#include "wire/remote.hpp"

namespace gridctl::transfer {

class RemoteServer {
 public:
  // Relative folders are in `home`; none may be in `own`, which is the agent's. Link and clock must outlive it.
  RemoteServer(wire::Link& link, const os::Clock& clock, os::Path home, os::Path own)
      : with_{link, clock}, home_(std::move(home)), own_(std::move(own)) {}

  // Serves one request, and reads its data from the link if there is any. An operation that fails is answered with its
  // error; an error returned from here means that the link is no longer usable.
  [[nodiscard]] Result<void> handle(const wire::Frame& frame);

 private:
  [[nodiscard]] Result<os::Path> folder_of(const std::string& text) const;
  [[nodiscard]] Result<void> open(const wire::RemoteRequest& request);
  [[nodiscard]] Result<void> make(const wire::RemoteRequest& request) const;
  [[nodiscard]] Result<void> put(std::uint32_t stream, const wire::RemoteRequest& request);
  [[nodiscard]] Result<void> list(std::uint32_t stream, const wire::RemoteRequest& request);
  [[nodiscard]] Result<void> read(std::uint32_t stream, const wire::RemoteRequest& request);
  [[nodiscard]] Result<void> answer(std::uint32_t stream, const Result<void>& done);

  Conversation with_;
  os::Path home_, own_;
  os::Path folder_;  // of remote_
  bool marked_ = false;
  std::unique_ptr<store::Backend> remote_;
};

}  // namespace gridctl::transfer

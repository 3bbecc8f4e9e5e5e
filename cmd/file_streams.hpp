// SPDX-License-Identifier: Apache-2.0
// Copies files into and out of a running job, many at a time over one connection. An interrupted file continues where
// it stopped.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cmd/context.hpp"
#include "control/reach/stream_call.hpp"

namespace gridctl::cmd {

struct CopyTotal {
  std::uint64_t files = 0, bytes = 0;
};

class FileStreams {
 public:
  FileStreams(Context& context, os::Loop& loop, std::unique_ptr<control::AgentChannel> channel);

  // `into`: a directory takes the file or folder under its own name.
  [[nodiscard]] Result<CopyTotal> fetch(const std::string& path, const os::Path& into);
  [[nodiscard]] Result<CopyTotal> send(const os::Path& from, const std::string& path);

 private:
  struct Put {
    os::Path from;
    std::string to;
    unsigned mode = 0644;
    std::uint64_t bytes = 0;
  };
  using Done = std::function<void(Result<void>)>;

  [[nodiscard]] Result<std::vector<wire::StreamEntry>> list(const std::string& path, wire::StreamKind kind);
  [[nodiscard]] Result<void> work_off();
  void begin_some();
  void get(const std::string& from, const os::Path& to, const wire::StreamEntry& entry, bool afresh, const Done& done);
  void put(const Put& file, std::uint64_t offset, const Done& done);
  void put_folder(const std::string& path, const Done& done);
  [[nodiscard]] Result<void> make_links(const std::vector<wire::StreamEntry>& entries, const os::Path& top);
  [[nodiscard]] Result<void> plan_puts(const os::Path& from, const std::string& to);

  Context& context_;
  os::Loop& loop_;
  control::StreamCall call_;
  std::deque<std::function<void(const Done&)>> jobs_;
  int under_way_ = 0;
  Result<void> outcome_;
  CopyTotal total_;
};

}  // namespace gridctl::cmd

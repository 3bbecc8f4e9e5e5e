// SPDX-License-Identifier: Apache-2.0
// Manages the files of the ledger: one per user, in a folder that nobody else can empty; gridctl-agent(7), The ledger.
// No name is followed through a link, and only users' own leases are read from their files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

// Holds a file that one user has written, unread.
struct LedgerFile {
  unsigned owner = 0;
  std::string content;
};

class LedgerFolder {
 public:
  // Fails with refused unless root or we own it, and others who may write there cannot remove files of other users.
  [[nodiscard]] static Result<LedgerFolder> open(const os::Path& directory);

  // Returns every other user's file, at most 4 MiB of each.
  [[nodiscard]] Result<std::vector<LedgerFile>> others() const;

  // Holds our file, and the right to change it until this ends.
  class Own {
   public:
    [[nodiscard]] Result<std::string> read() const;
    [[nodiscard]] Result<void> write(std::string_view content) const;  // whole or not at all for who reads

   private:
    friend class LedgerFolder;
    Own(int directory, std::string name, os::Fd lock)
        : directory_(directory), name_(std::move(name)), lock_(std::move(lock)) {}
    int directory_;
    std::string name_;
    os::Fd lock_;
  };
  // Reads our file without waiting. Empty if there is none.
  [[nodiscard]] Result<std::string> own() const;
  // Fails with busy if another of our processes changes it for longer than `patience`. Must not outlive the folder.
  [[nodiscard]] Result<Own> lock_own(Duration patience, os::Clock& clock) const;

 private:
  [[nodiscard]] Result<std::optional<std::string>> own_name() const;
  explicit LedgerFolder(os::Fd directory) : directory_(std::move(directory)) {}
  os::Fd directory_;
};

}  // namespace gridctl::agent

// SPDX-License-Identifier: Apache-2.0
// Tracks each file of a checkpoint directory from look to look. A value: no I/O, no clock.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "store/listing.hpp"

namespace gridctl::whole {

using store::FileFact;

enum class Change : std::uint8_t {
  fresh,      // was not there
  replaced,   // another file under the name: renamed into place, or removed and made again
  rewritten,  // the same file, begun anew: shorter than before, or it had been whole
  continued,  // the same file goes on being written
};

struct News {
  const FileFact* file = nullptr;  // of the listing that was looked at
  Change change = Change::fresh;
  Duration gap{};  // since its change before; zero when fresh
};

class History {
 public:
  // Returns the changes since the previous look. The listing is ascending by path and must outlive the news.
  [[nodiscard]] std::vector<News> look(const std::vector<FileFact>& files, BootTime now);

  // Gets called once for each state of a file. REQUIRES: the file is in the listing of the last look.
  [[nodiscard]] const store::Inspection& inspect(const FileFact& file, const store::Inspect& inspect);
  // Returns how long the file has not changed; its first bytes are cached that long.
  [[nodiscard]] Duration unchanged_for(std::string_view path, BootTime now) const;

  // Returns true for files that are only appended to: by their name, or because they grew throughout two saves of other
  // files.
  [[nodiscard]] bool is_log(std::string_view path) const;
  // Returns true if each version arrived complete under its name and was never written there.
  [[nodiscard]] bool arrives_whole(std::string_view path) const;
  void save_ended() { ++saves_; }  // of something in the directory

  // Returns true for numbered folders that have lost files since the last write into them: they are being removed.
  [[nodiscard]] bool is_being_removed(std::string_view path) const;

 private:
  struct Known {
    FileFact fact;
    BootTime since;  // first seen so
    std::optional<store::Inspection> inspection;
    unsigned grown = 0;     // times, without anything else
    unsigned replaced = 0;  // times
    bool continued = false, ever_cut = false;
    std::uint64_t grows_since_save = 0;
  };
  [[nodiscard]] News compare(const Known& before, Known& now, const FileFact& file, BootTime at) const;
  void note_removed(const std::vector<FileFact>& files);

  std::map<std::string, Known, std::less<>> known_;
  std::map<std::string, bool, std::less<>> removing_;  // folders
  std::uint64_t saves_ = 0;
};

}  // namespace gridctl::whole

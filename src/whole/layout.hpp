// SPDX-License-Identifier: Apache-2.0
// Recognises the layouts of common frameworks: which files of a listing belong to one save, and whether all of them are
// there. Pure functions over a listing, which may be the union of several hosts' listings. A layout is one file
// (layout_*.cpp) and one line in layouts.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "store/listing.hpp"

namespace gridctl::whole {

using store::FileFact;

// Lets recognisers look into files; both functions answer from foreign bytes, and may be called repeatedly.
struct Access {
  store::Inspect inspect;  // whether a file is whole by its own format
  store::ReadListed read;
};

// Represents one folder of the checkpoint directory with everything beneath it, without temporary files. A view: the
// listing and the access must outlive it.
class Folder {
 public:
  // `files`: ascending by path, all beneath `path`; "" is the checkpoint directory itself.
  Folder(std::span<const FileFact> files, std::string path, const Access& access)
      : files_(files), path_(std::move(path)), access_(&access) {}

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool is_top() const { return path_.empty(); }
  [[nodiscard]] std::string_view base_name() const;  // last component
  [[nodiscard]] std::span<const FileFact> files() const { return files_; }
  [[nodiscard]] std::string_view name(const FileFact& file) const;  // relative to the folder
  [[nodiscard]] std::vector<const FileFact*> direct() const;        // those not in a sub-folder
  [[nodiscard]] std::vector<std::string> folders() const;           // names of the direct sub-folders, ascending
  [[nodiscard]] Folder sub(std::string_view relative) const;        // empty when there is none
  [[nodiscard]] const FileFact* find(std::string_view relative) const;
  [[nodiscard]] store::Inspection inspect(const FileFact& file) const { return access_->inspect(file); }
  // Returns the first bytes of a file, at most `max`; "" if they cannot be read.
  [[nodiscard]] std::string text(const FileFact& file, std::size_t max) const;
  // Returns the content of the archive's entry whose name ends with this, at most `max` bytes; "" if there is none.
  [[nodiscard]] std::string entry(const FileFact& archive, std::string_view name_end, std::size_t max) const;
  [[nodiscard]] std::vector<std::string> entries(const FileFact& archive) const;  // names; none when it is torn

 private:
  std::span<const FileFact> files_;
  std::string path_;
  const Access* access_;
};

// Groups files that one save writes; the group is judged alone.
struct Unit {
  std::string layout;              // "transformers"
  std::string path;                // folder or file; "." is the checkpoint directory
  std::vector<std::string> files;  // ascending
  bool whole = true;
  std::string why;    // when not; may quote foreign names
  std::string blame;  // when not: the file that is torn or missing
  bool lacking = false;  // when not: nothing is torn, but a file is not here; another host of a gang may have it
  // The format is complete, but this may be one of several things that are saved together; the others have to be
  // learned.
  bool part = false;
  // The path of the newest unit, in a file that only names it. On a host of a gang, that unit may lack files.
  std::string names{};
  Duration settle{};  // something that the layout does not name may follow within so long
};

// Returns all units of a listing, ascending by path; no file is in two of them.
[[nodiscard]] std::vector<Unit> find_units(const std::vector<FileFact>& files, const Access& access);

// Returns the layout of a file that declares itself a complete state: a torch archive with an optimizer in it. "" for
// other files.
[[nodiscard]] std::string_view self_contained(const Folder& folder, const FileFact& file);

}  // namespace gridctl::whole

// SPDX-License-Identifier: Apache-2.0
// Reads a directory into a tree: walks without following links, reads in pieces of at most 4 MiB, hashes, and notices
// files that change in the meantime.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "os/entries.hpp"
#include "os/files.hpp"
#include "store/chunk_store.hpp"
#include "store/fingerprints.hpp"
#include "store/tree.hpp"

namespace gridctl::store {

// Describes an entry as a walk sees it, without reading contents.
struct Seen {
  std::string path;
  os::FileStatus status;
};

// The attribute of a directory whose files a command has fetched from a job.
inline constexpr const char* k_pulled_attribute = "user.gridctl.pulled";

struct ScanOptions {
  bool ignore_files = false;             // honour .gitignore and .gridctlignore, leave out .git and pulled directories
  std::vector<std::string> skip_at_top;  // names left out directly below the directory (".commit")
  // Leave out, with a note, each folder below that has entries of all these names. Empty: none.
  std::vector<std::string> skip_folders_with;
  bool links_stay_inside = false;        // leave out, with a note, links that could lead out of the tree (checkpoints)
  // Absolute paths by which the job knows the directory: links into one of them become relative ones, which work
  // wherever the tree is placed.
  std::vector<std::string> known_as;
  bool tolerate_vanished = false;        // a file that is gone when it is its turn is left out with a note
  bool tolerate_growth = false;          // a file that grows while it is read is taken as it was when opened
  bool tolerate_unreadable = false;      // what cannot be read, or never rests, is left out with a note
  std::vector<std::string>* unreadable = nullptr;  // gets those of the notes that tell of such a failure
  std::uint64_t bytes_max = 0;           // give up (no_space) beyond so many bytes; 0 = no limit
  unsigned threads = 1;                  // that read and hash; large files are shared by all
  // Selects the files and links to take; directories are kept if they contain some of them. Empty: everything.
  std::function<bool(const Seen&)> only;
  // Selects the directories to enter, by path. Empty: all.
  std::function<bool(const std::string&)> enters;
  // Gets called repeatedly with the bytes read so far; an error stops the scan. Empty: not called.
  std::function<Result<void>(std::uint64_t bytes)> on_progress;
  // Gets each chunk as it is read, including equal ones; with several threads, all of them call it. An error stops the
  // scan.
  std::function<Result<void>(const Digest&, ByteView)> on_chunk;
  // Called instead of on_chunk, with the chunk at the same place in `previous`, or nullptr if there is none.
  std::function<Result<void>(const Digest&, ByteView, const Digest* before)> on_chunk_after;
  const Tree* previous = nullptr;  // of an earlier state of the same directory
  // Fingerprints of `previous`, and of this state after a successful scan. Content that they recognise is not hashed.
  Fingerprints* fingerprints = nullptr;
  // Returns the entry of a file whose content is already known, or nullptr; its chunks are taken over unread.
  std::function<const Entry*(const std::string& path)> known;
};

struct Scan {
  Tree tree;
  std::vector<std::string> notes;  // what was left out and why; foreign text
};

// Returns the folder of a path, "." at the top, and its name there.
[[nodiscard]] std::pair<std::string, std::string> split_path(const std::string& path);

// Fails with busy (retry later) if files kept changing while they were read.
[[nodiscard]] Result<Scan> scan(int directory_fd, const ScanOptions& options);
[[nodiscard]] Result<Scan> scan(const os::Path& directory, const ScanOptions& options);

// Reads one file, wherever it is, under a given name; links are followed. bad_job_file if it is not a regular file.
[[nodiscard]] Result<Entry> scan_file(const os::Path& file, const std::string& name, const ScanOptions& options);

// Returns the target of an absolute link at `path`, relative to it, if that is inside a directory known by one of these
// absolute paths; otherwise `target` unchanged.
[[nodiscard]] std::string target_inside(const std::string& path, const std::string& target,
                                        const std::vector<std::string>& known_as);

// Ascending by path, as the options want them; special files and refused names give notes. The rules for complete
// checkpoints use it too.
[[nodiscard]] Result<std::vector<Seen>> walk(int directory_fd, const ScanOptions& options,
                                             std::vector<std::string>& notes);

// Reads chunks of a tree back from the files it was made of, and checks that they have not changed.
class DirectoryChunks : public ChunkReader {
 public:
  // The descriptor and the tree must outlive the object.
  DirectoryChunks(int directory_fd, const Tree& tree);
  [[nodiscard]] Result<Bytes> read(const Digest& digest) override;  // busy when the file has changed

 private:
  struct Place {
    const Entry* entry;
    std::uint64_t offset;
    std::uint32_t size;
  };
  int directory_fd_;
  std::unordered_map<Digest, Place> places_;
  const Entry* open_entry_ = nullptr;
  os::Fd open_file_;
};

}  // namespace gridctl::store

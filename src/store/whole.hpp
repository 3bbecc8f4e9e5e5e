// SPDX-License-Identifier: Apache-2.0
// When is a checkpoint directory whole? Pure decisions over listings that the supervisor takes from time to time; the
// only look into files goes through the `inspect` callback.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "store/formats.hpp"

namespace gridctl::store {

inline constexpr std::string_view k_commit_marker = ".commit";  // directly in the checkpoint directory

struct FileFact {
  std::string path;
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0, ctime_ns = 0;
  std::uint64_t inode = 0;
  bool operator==(const FileFact&) const = default;
};

// Regular files (and links) of the checkpoint directory at one moment, ascending by path, without the marker.
struct Listing {
  std::vector<FileFact> files;
  std::optional<FileFact> marker;  // `.commit`
  bool operator==(const Listing&) const = default;
};

enum class FileState : std::uint8_t { unknown, whole, torn };  // unknown: no format we know
struct Inspection {
  FileState state = FileState::unknown;
  std::string why;  // with torn
};
using Inspect = std::function<Inspection(const FileFact&)>;
// What `inspect` does for one file: guesses the format and checks it. `read` reads that file.
[[nodiscard]] Inspection inspect_file(std::string_view path, std::uint64_t size, const ReadAt& read);

// Is somebody still writing?
enum class Writer : std::uint8_t {
  running,
  exited,  // the program ended by itself with code 0
  killed,  // killed, crashed or failed: whatever it was writing may be torn for ever
};

struct WholeRules {
  Duration quiet = std::chrono::seconds{5};             // without a change, for files of unknown format
  Duration known_quiet = std::chrono::seconds{1};       // the same when every file is of a known format and valid
  Duration temporary_stale = std::chrono::minutes{10};  // a temporary name unchanged for so long is just a name
  // The job is known to use `.commit` (its restored checkpoint was taken by it): only markers count from the start.
  bool marker_expected = false;
};

enum class Whole : std::uint8_t {
  not_yet,        // look again later
  never,          // the writer is gone and this state is not to be trusted
  nothing_new,    // the same as at the last snapshot, or no file at all
  commit_marker,  // the job says so
  format,         // all files are of known formats and valid
  quiet,          // nothing changed for the quiet time
  exit,           // the program ended by itself
};
struct Verdict {
  Whole whole = Whole::not_yet;
  std::string why;  // for people; may quote foreign names
  [[nodiscard]] bool is_whole() const { return whole >= Whole::commit_marker; }
};
// "commit-marker", "format", "quiet", "exit" as in wire::HostCheckpoint::how; "" when it is not whole.
[[nodiscard]] std::string_view how_name(Whole whole);

// Follows one checkpoint directory. A value: no I/O, no clock.
class WholeWatch {
 public:
  explicit WholeWatch(const WholeRules& rules = {}) : rules_(rules), marker_used_(rules.marker_expected) {}
  // Every look counts for quiet time, so look at least once per second. `inspect` is asked only about files whose
  // facts changed since it was last asked.
  [[nodiscard]] Verdict look(const Listing& listing, BootTime now, Writer writer, const Inspect& inspect);
  // A snapshot of exactly this listing was taken (or restored): only differences count from now on.
  void taken(const Listing& listing);
  // From the first look that found the directory changed since the last snapshot until the last change: how long its
  // writer has been at it, to a second or so.
  [[nodiscard]] Duration written_for() const { return changed_at_ - writing_since_.value_or(changed_at_); }

 private:
  [[nodiscard]] Verdict judge(const Listing& listing, BootTime now, Writer writer, const Inspect& inspect);
  [[nodiscard]] const Inspection& inspected(const FileFact& file, const Inspect& inspect);
  [[nodiscard]] Duration unchanged_for(const FileFact& file, BootTime now) const;

  struct Known {
    FileFact fact;
    BootTime since;  // first seen so
    std::optional<Inspection> inspection;
  };
  WholeRules rules_;
  std::vector<Known> known_;               // ascending by path
  BootTime changed_at_;                    // last difference between two looks
  std::optional<BootTime> writing_since_;  // first look that differed from the last snapshot
  bool looked_ = false;
  bool marker_used_ = false;  // this job says when it is whole: nothing else counts
  std::optional<Listing> last_taken_;
};

// Names of files that a writer will rename or remove: *.tmp, *.part, *.partial, *.swp, *~, .#*, tmp-* and the like.
[[nodiscard]] bool is_temporary_name(std::string_view path);

}  // namespace gridctl::store

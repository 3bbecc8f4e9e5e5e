// SPDX-License-Identifier: Apache-2.0
// Decides when a checkpoint directory is complete, and which files belong to the checkpoint. Pure decisions over
// listings that the agent takes from time to time; only `Access` looks into files. gridctl-job(5), CHECKPOINTS, says
// what is promised.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "store/listing.hpp"
#include "whole/cohort.hpp"
#include "whole/history.hpp"
#include "whole/layout.hpp"
#include "whole/read_cache.hpp"

namespace gridctl::whole {

using store::Listing;

// States whether a program is still writing.
enum class Writer : std::uint8_t {
  running,
  exited,  // the program ended by itself with code 0
  killed,  // killed, crashed or failed: whatever it was writing may be torn for ever
};

struct WholeRules {
  Duration learning_quiet = std::chrono::seconds{10};   // without a change, while nobody knows what belongs together
  Duration part_quiet = std::chrono::seconds{60};       // the same, when what is there is called a part
  Duration unknown_quiet = std::chrono::seconds{5};     // for files of unknown format of which it is known
  Duration known_quiet = std::chrono::seconds{1};       // for a file that holds a whole state, the first time
  // An incomplete file or unit that has not changed for this long is no longer being written: it will never be
  // complete.
  Duration given_up = std::chrono::seconds{60};
  Duration temporary_stale = std::chrono::minutes{10};  // a temporary name unchanged for so long is just a name
  // The directory is one host's part of a gang's checkpoint. Files that are missing here may lie on another host: the
  // part is taken without them once nothing of it has changed for `gang_quiet`, and the controller, which has all
  // parts, judges the checkpoint.
  bool of_gang = false;
  Duration gang_quiet = std::chrono::seconds{3};
  // The job is known to use `.commit` (its restored checkpoint was taken with it): only markers count from the start.
  bool marker_expected = false;
  std::string whole_when;  // glob: after a change of a file whose path or name matches, the directory is whole
};

enum class Whole : std::uint8_t {
  not_yet,        // look again later
  never,          // the writer is gone and this state is not to be trusted
  nothing_new,    // the same as at the last snapshot, or no file at all
  commit_marker,  // the job says so
  layout,         // a layout's unit is complete
  format,         // files of known formats that are known to be all, or to be enough
  learned,        // the same files have changed as in the saves before
  quiet,          // nothing changed for long enough
  exit,           // the program ended by itself
  overdue,        // nobody could tell for too long
};

inline constexpr const char* k_no_files = "no files yet";  // why of a directory without any

struct Verdict {
  Whole whole = Whole::not_yet;
  std::string why;    // for people; may quote foreign names
  std::string blame;  // when it is not whole: the file that is torn, missing, or changes too often
  std::string how;    // as in wire::HostCheckpoint::how: "transformers:checkpoint-100", "format"…; "" when not whole
  bool provisional = false;    // nobody could be sure: restored only when nothing better exists
  bool as_left = false;        // no moment of rest was found: files may change while they are copied
  store::Selection selection;  // what of the listing is whole
  [[nodiscard]] bool is_whole() const { return whole >= Whole::commit_marker; }
};

// Follows one checkpoint directory. A value: no I/O, no clock.
class WholeWatch {
 public:
  explicit WholeWatch(const WholeRules& rules = {}) : rules_(rules), marker_used_(rules.marker_expected) {}
  // Every look counts for quiet time, so look at least once per second, and soon after each change.
  [[nodiscard]] Verdict look(const Listing& listing, BootTime now, Writer writer, const Access& access);
  // Notes that a snapshot of the last look's selection was taken: only differences count from now on.
  void taken(const Listing& listing);
  // Notes content that was restored before the program starts: it is not new, and a save is expected to change it.
  void restored(const Listing& listing, BootTime now, const Access& access);
  // Returns the time from the first look that found a change since the last snapshot until the last change: how long
  // the writer has been writing, within about a second. Logs do not count.
  [[nodiscard]] Duration written_for() const {
    return std::max(Duration{}, changed_at_ - writing_since_.value_or(changed_at_));
  }
  // Sets how often the job is told to save.
  void set_interval(Duration interval) { interval_ = interval; }
  // Returns true if the last snapshot has all of this.
  [[nodiscard]] bool has_all(const Listing& listing) const { return all_taken_ && last_taken_->files == listing.files; }
  // Returns true if something has waited too long: look again soon, because any moment of rest will do.
  [[nodiscard]] bool is_overdue() const { return overdue_since_.has_value(); }

 private:
  // Holds a view of the listing, made before anything is judged.
  struct Sight {
    const Listing& listing;
    BootTime now;
    Writer writer;
    const Access& access;  // cached
    std::vector<Unit> units;
    std::set<std::string> logs, temporary;
    std::set<std::string> of_units;   // files of units that stand by themselves
    std::vector<FileFact> unknown;    // the rest, ascending
    bool moved = false;               // something but a log has changed since the last look
    bool only_logs = false;           // there is nothing else
  };
  // Describes the files that no layout knows.
  struct Rest {
    bool whole = false, provisional = false;
    bool minor = false;  // settings beside units of layouts: taken along, but no news
    Whole by = Whole::not_yet;
    std::string how, why, blame;
  };
  using Facts = std::map<std::string, FileFact, std::less<>>;

  [[nodiscard]] Sight see(const Listing& listing, BootTime now, Writer writer, const Access& access);
  [[nodiscard]] Access cached(const Access& access);
  void note_time(const Sight& sight);

  [[nodiscard]] std::optional<Verdict> judge_by_word(const Sight& sight);  // `.commit` or whole_when
  [[nodiscard]] std::optional<Verdict> by_marker(const Sight& sight);
  [[nodiscard]] std::optional<Verdict> by_file(const Sight& sight);
  [[nodiscard]] std::optional<Verdict> judge_logs(const Sight& sight);
  [[nodiscard]] bool is_new_save(const Sight& sight, const std::vector<News>& news);
  void stop_waiting();
  void note_wait(const Sight& sight, const Verdict& verdict);
  [[nodiscard]] std::optional<Verdict> take_overdue(const Sight& sight, const Verdict& refused);
  [[nodiscard]] bool ended_well(const Sight& sight, const Unit& unit) const;
  [[nodiscard]] Verdict judge(const Sight& sight);
  [[nodiscard]] bool is_given_up(const Sight& sight, const Unit& unit) const;
  [[nodiscard]] Verdict refuse(const Sight& sight, std::string why, std::string blame) const;

  [[nodiscard]] static Rest not_whole(std::string why, std::string blame);
  [[nodiscard]] Rest judge_rest(const Sight& sight);
  [[nodiscard]] std::optional<Rest> rest_is_torn(const Sight& sight, bool& spoiled);
  [[nodiscard]] bool points_to_whole(const Sight& sight, const FileFact& file) const;
  [[nodiscard]] Rest rest_while_running(const Sight& sight);
  [[nodiscard]] Rest rest_after_kill(const Sight& sight);
  [[nodiscard]] Rest rest_learned(const Sight& sight, const std::vector<std::string>& changed);
  [[nodiscard]] Rest rest_learning(const Sight& sight, const std::vector<std::string>& changed);
  [[nodiscard]] std::optional<std::string> unsure_file(const Sight& sight, const std::vector<std::string>& changed);
  // Returns the layout of files that each hold a complete state (settings beside them do not matter); "" if one does
  // not.
  [[nodiscard]] std::string enough_by_themselves(const Sight& sight, const std::vector<std::string>& changed) const;
  [[nodiscard]] std::string part_layout(const Sight& sight, const std::vector<std::string>& changed) const;

  [[nodiscard]] bool settled(const Sight& sight, const Unit& unit) const;
  [[nodiscard]] bool is_ready(const Sight& sight, const Unit& unit) const;
  [[nodiscard]] bool is_complete_here(const Sight& sight, const Unit& unit) const;
  [[nodiscard]] Facts facts_of(const Sight& sight, const Unit& unit) const;
  [[nodiscard]] Verdict compose(const Sight& sight, const Rest& rest);
  [[nodiscard]] std::optional<Verdict> judge_units(const Sight& sight, const Rest& rest,
                                                   store::Selection& selection,
                                                   std::optional<Verdict>& refused);
  void select_rest(const Sight& sight, const Rest& rest, store::Selection& selection);
  void take_before(const Sight& sight, const Facts& before, const std::vector<std::string>& now,
                   store::Selection& selection) const;

  // Holds the selection of the last look, for taken().
  struct Chosen {
    bool all = false;
    std::map<std::string, Facts> units;  // whole now, by path
    std::set<std::string> kept;          // units taken as they were before
    std::optional<Facts> rest;           // nullopt: as it was before
  };

  WholeRules rules_;
  History history_;
  Cohort cohort_;
  ReadCache reads_;
  BootTime changed_at_{};                  // last difference between two looks
  std::optional<BootTime> writing_since_;  // first look that differed from the last snapshot
  bool looked_ = false, marker_used_ = false;
  bool rest_changed_ = false;  // since the last snapshot
  bool all_taken_ = false;     // the last snapshot was of all that was listed
  std::optional<Listing> last_taken_;
  std::map<std::string, Facts> taken_units_;
  Facts taken_rest_;
  Chosen chosen_;

  Duration interval_{};
  std::optional<BootTime> waiting_since_, overdue_since_;  // for a snapshot of what lies there
  bool taken_any_ = false;                                 // in this attempt
  std::set<std::string> seen_units_;
  std::size_t saves_waited_ = 0;                           // that began meanwhile
  Duration longest_rest_{};                                // between two changes meanwhile
};

}  // namespace gridctl::whole

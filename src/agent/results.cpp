// SPDX-License-Identifier: Apache-2.0
#include "agent/results.hpp"

#include <fcntl.h>
#include <fnmatch.h>

#include <algorithm>

#include "agent/foreign_files.hpp"
#include "agent/job_view.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/entries.hpp"
#include "store/ignore.hpp"
#include "store/scan.hpp"

namespace gridctl::agent {
namespace {

constexpr unsigned k_threads = 2;  // that hash: another job may want the processors
constexpr std::uint64_t k_about_bytes_max = 16 * 1024;
constexpr std::int64_t k_young_ns = std::chrono::nanoseconds{std::chrono::hours{1}}.count();

// Selects the files that the job has made, or those that the patterns name.
class Choice {
 public:
  Choice(const Workplace& place, const std::vector<std::string>& patterns) : place_(place) {
    for (const std::string& text : patterns) {
      store::IgnorePattern pattern;
      // Patterns start at the top: "result.txt" does not match a file with that name further down.
      if (!store::IgnorePattern::parse(text.starts_with('/') ? text : "/" + text, pattern)) continue;
      patterns_.push_back(pattern);
      std::vector<std::string>& parts = leading_.emplace_back();
      for (std::string& part : split(text, '/'))
        if (!part.empty()) parts.push_back(std::move(part));
    }
    changed_only_ = patterns.empty();
  }

  // Returns whether a file in this folder may be wanted.
  [[nodiscard]] bool enters(const std::string& folder) const {
    if (is_checkpoint(folder)) return false;
    if (changed_only_) return true;
    const std::vector<std::string> parts = split(folder, '/');
    return std::ranges::any_of(leading_, [&](const std::vector<std::string>& pattern) {
      for (std::size_t i = 0; i < std::min(parts.size(), pattern.size()); ++i) {
        if (pattern[i].starts_with("**")) return true;
        if (::fnmatch(pattern[i].c_str(), parts[i].c_str(), 0) != 0) return false;
      }
      return true;
    });
  }

  [[nodiscard]] bool wants(const store::Seen& seen) const {
    if (seen.status.kind == os::FileKind::directory || is_checkpoint(seen.path)) return false;
    if (changed_only_) return seen.status.ctime_ns >= place_.began_ns;
    if (matches(seen.path, false)) return true;
    for (std::size_t slash = seen.path.find('/'); slash != std::string::npos; slash = seen.path.find('/', slash + 1))
      if (matches(std::string_view(seen.path).substr(0, slash), true)) return true;
    return false;
  }

 private:
  [[nodiscard]] bool is_checkpoint(const std::string& path) const {
    const std::string& own = place_.checkpoint_path;
    return !own.empty() && path.starts_with(own) && (path.size() == own.size() || path[own.size()] == '/');
  }
  [[nodiscard]] bool matches(std::string_view path, bool is_directory) const {
    return std::ranges::any_of(
        patterns_, [&](const store::IgnorePattern& pattern) { return pattern.matches(path, is_directory); });
  }

  const Workplace& place_;
  std::vector<store::IgnorePattern> patterns_;
  std::vector<std::vector<std::string>> leading_;  // their components
  bool changed_only_ = false;
};

store::ScanOptions scan_options(const Choice& choice, const Workplace& place) {
  store::ScanOptions options;
  options.links_stay_inside = true;
  options.known_as = place.known_as;
  options.tolerate_vanished = true;
  options.tolerate_growth = true;
  options.tolerate_unreadable = true;
  options.threads = k_threads;
  options.only = [&choice](const store::Seen& seen) { return choice.wants(seen); };
  options.enters = [&choice](const std::string& folder) { return choice.enters(folder); };
  return options;
}

std::string about_text(const Workplace& place, Duration life) {
  return std::to_string(place.began_ns) + " " + std::to_string(life.count()) + "\n" + place.checkpoint_path + "\n";
}

struct About {
  std::int64_t began_ns = 0, life_ns = 0;
  std::string checkpoint_path;
};
std::optional<About> read_about(const Path& folder) {
  const auto text = os::read_file(folder / "about", k_about_bytes_max);
  if (!text) return std::nullopt;
  const std::vector<std::string> lines = split_lines(*text);
  if (lines.size() < 2) return std::nullopt;
  About about;
  std::string_view rest = lines[0];
  const auto began = take_number<std::int64_t>(rest);
  if (!began || rest.empty()) return std::nullopt;
  const auto life = leading_number<std::int64_t>(rest.substr(1));
  if (!life) return std::nullopt;
  about.began_ns = *began;
  about.life_ns = *life;
  about.checkpoint_path = lines[1];
  return about;
}

}  // namespace

Result<std::optional<Workplace>> workplace_of(const AttemptDir& attempt, const wire::AttemptSpec& spec) {
  const unsigned launch = newest_launch(attempt);
  if (launch == 0) return std::optional<Workplace>();
  TRY_ASSIGN(const auto began, os::status_of(attempt.run(launch) / "once"));
  if (!began) return std::optional<Workplace>();
  Workplace place{attempt.work(), attempt.path / "results", began->mtime_ns, {}};
  const JobView view = view_of(attempt, spec, launch);
  // Without checkpoints, that folder is an ordinary one.
  if (view.checkpoint_base == attempt.work() && spec.checkpoints) place.checkpoint_path = view.checkpoint_relative;
  place.known_as = {view.work.native(), attempt.work().native()};
  return std::optional<Workplace>(std::move(place));
}

Result<wire::ResultsReply> gather_results(const Workplace& place, const wire::ResultsRequest& request,
                                          const std::function<Result<void>(std::uint64_t)>& on_progress) {
  TRY_ASSIGN(const os::Fd work, os::open_file(place.work, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  const Choice choice(place, request.patterns);
  store::ScanOptions options = scan_options(choice, place);
  options.on_progress = on_progress;
  wire::ResultsReply reply;
  std::vector<std::string> notes;
  const auto count = [&reply](const std::string& path, std::uint64_t bytes) {
    ++reply.files;
    reply.bytes += bytes;
    if (reply.names.size() < wire::k_result_names_max) reply.names.push_back(path);
  };
  if (request.tree) {
    TRY_ASSIGN(store::Scan scanned, store::scan(work.get(), options));
    for (const store::Entry& entry : scanned.tree.entries)
      if (entry.kind != store::EntryKind::directory) count(entry.path, entry.size);
    notes = std::move(scanned.notes);
    if (reply.files > 0) {
      const Bytes manifest = store::to_manifest(scanned.tree);
      TRY(os::write_file_atomically(place.manifest, as_text(manifest)));
      reply.root = store::root_of(manifest);
    }
  } else {
    TRY_ASSIGN(const std::vector<store::Seen> seen, store::walk(work.get(), options, notes));
    for (const store::Seen& one : seen)
      if (one.status.kind != os::FileKind::directory) count(one.path, one.status.size);
  }
  notes.resize(std::min(notes.size(), wire::k_result_notes_max));
  reply.notes = std::move(notes);
  return reply;
}

Path KeptWork::folder(const ControllerId& controller, const JobId& job, Epoch epoch) const {
  return all_ / (controller.value + "." + job.value + "." + std::to_string(epoch.value));
}

Result<void> KeptWork::take(const AttemptDir& attempt, Duration at_least) {
  TRY_ASSIGN(const wire::AttemptSpec spec, read_spec(attempt));
  const Duration life = std::max(spec.keep_work, at_least);
  if (life <= Duration{}) return {};
  TRY_ASSIGN(const auto place, workplace_of(attempt, spec));
  if (!place || !os::exists(place->work)) return {};
  TRY_ASSIGN(const wire::ResultsReply left, gather_results(*place, {attempt.job(), attempt.epoch(), {}, false}));
  if (left.files == 0) return {};
  const Path kept = folder(attempt.controller(), attempt.job(), attempt.epoch());
  TRY(os::make_directories(kept));
  TRY(os::write_file_atomically(kept / "about", about_text(*place, life)));
  // A client may have asked for them a moment ago, and will fetch them next.
  if (os::exists(place->manifest)) TRY(os::rename_path(place->manifest, kept / "results"));
  TRY(os::rename_path(place->work, kept / "work"));
  TRY_ASSIGN(const auto names, os::list_directory(all_));
  const std::string of_job = attempt.controller().value + "." + attempt.job().value + ".";
  for (const std::string& name : names)
    if (name.starts_with(of_job) && name != kept.filename()) TRY(remove_job_files(all_ / name));
  return {};
}

Result<std::optional<Workplace>> KeptWork::find(const ControllerId& controller, const JobId& job, Epoch epoch) {
  const Path kept = folder(controller, job, epoch);
  const std::optional<About> about = read_about(kept);
  if (!about || !os::exists(kept / "work")) return std::optional<Workplace>();
  return std::optional(Workplace{kept / "work", kept / "results", about->began_ns, about->checkpoint_path});
}

void KeptWork::sweep(WallTime now) {
  const auto names = os::list_directory(all_);
  if (!names) return;
  for (const std::string& name : *names) {
    const auto made = os::status_of(all_ / name / "about");
    const std::optional<About> about = read_about(all_ / name);
    if (!made || (*made && about && (*made)->mtime_ns + about->life_ns >= now.ms * 1'000'000)) continue;
    if (!*made || !about) {
      // The folder is being made at the moment, or a power cut left it.
      const auto folder = os::status_of(all_ / name);
      if (!folder || !*folder || (*folder)->mtime_ns + k_young_ns >= now.ms * 1'000'000) continue;
    }
    (void)remove_job_files(all_ / name);
  }
}

Result<Workplace> find_workplace(const AttemptDir& attempt) {
  if (os::exists(attempt.path)) {
    TRY_ASSIGN(const wire::AttemptSpec spec, read_spec(attempt));
    TRY_ASSIGN(auto place, workplace_of(attempt, spec));
    if (place) return std::move(*place);
  }
  TRY_ASSIGN(auto kept, KeptWork(attempt.agent_home()).find(attempt.controller(), attempt.job(), attempt.epoch()));
  if (kept) return std::move(*kept);
  return make_error(Code::not_found, "this host no longer has this attempt's working directory");
}

}  // namespace gridctl::agent

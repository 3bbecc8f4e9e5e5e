// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <array>
#include <csignal>
#include <deque>
#include <functional>
#include <memory>

#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/running_member.hpp"
#include "control/reach/stream_call.hpp"
#include "crypto/sha256.hpp"
#include "os/entries.hpp"
#include "os/loop.hpp"
#include "os/terminal.hpp"

namespace gridctl::cmd {

namespace job_cp {
namespace {
constexpr int k_streams_at_once = 16;                      // small files wait for round trips, not for each other
constexpr std::uint64_t k_worth_resuming = 4u << 20;       // smaller files are sent again
constexpr std::uint64_t k_list_bytes_max = 64ull << 20;
constexpr std::string_view k_copy_part = ".gridctl-part";  // as inside jobs: gridctl-agent(7)

os::Path part_here(const os::Path& path) {
  return path.parent_path() / ("." + path.filename().string() + std::string(k_copy_part));
}

std::string part_there(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(0, name) + "." + path.substr(name) + std::string(k_copy_part);
}

// The file is copied from the offset on; the digest shows the other side that both have the same bytes before it.
Result<void> say_beginning(int fd, wire::StreamOpen& open) {
  if (open.offset == 0) return {};
  crypto::Sha256 hash;
  std::array<std::byte, 64 * 1024> buffer;
  for (std::uint64_t at = 0; at < open.offset;) {
    const std::size_t wanted = std::min<std::uint64_t>(buffer.size(), open.offset - at);
    TRY_ASSIGN(const std::size_t count, os::read_at(fd, std::span(buffer).first(wanted), at));
    if (count == 0) break;
    hash.update(ByteView{buffer}.first(count));
    at += count;
  }
  open.digest = to_hex(hash.finish());
  return os::set_position(fd, open.offset);
}

// A path from the host stays below the folder that it is copied into.
bool stays_inside(const std::string& path) {
  if (path.starts_with('/')) return false;
  const auto parts = split(path, '/');
  return std::ranges::none_of(parts, [](const std::string& part) { return part == ".." || part == "."; });
}

Error failed_end(const wire::StreamEnd& end, const std::string& what) {
  return Error(*end.error).with_context("while copying " + what);
}

struct CopyTotal {
  std::uint64_t files = 0, bytes = 0;
};

// Copies files into and out of a running job, many at a time over one connection. An interrupted file continues where
// it stopped.
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

FileStreams::FileStreams(Context& context, os::Loop& loop, std::unique_ptr<control::AgentChannel> channel)
    : context_(context), loop_(loop), call_(loop, context.clock, std::move(channel)) {
  call_.on_lost = [this](const Error& why) {
    outcome_ = why;
    loop_.stop();
  };
}

Result<std::vector<wire::StreamEntry>> FileStreams::list(const std::string& path, wire::StreamKind kind) {
  wire::StreamOpen open;
  open.kind = kind;
  open.path = path;
  TRY_ASSIGN(os::Fd lines, os::open_memory());
  TRY_ASSIGN(const os::Fd reader, os::duplicate(lines.get()));
  transfer::StreamEnds ends;
  ends.sink = std::move(lines);
  transfer::StreamEvents events;
  std::optional<wire::StreamEnd> ended;
  events.closed = [&](const wire::StreamEnd& end) {
    ended = end;
    loop_.stop();
  };
  call_.streams().open(open, std::move(ends), std::move(events));
  const auto stop = loop_.on_signal(SIGINT, [this] { loop_.stop(); });
  loop_.run();
  TRY(outcome_);
  if (!ended) return make_error(Code::interrupted, "interrupted");
  if (ended->error) return *ended->error;
  TRY_ASSIGN(const os::FileStatus size, os::status_of(reader.get()));
  if (size.size > k_list_bytes_max) return make_error(Code::protocol_violation, "the host sent an endless list");
  std::string text(size.size, '\0');
  TRY(os::read_exactly(reader.get(), reinterpret_cast<std::byte*>(text.data()), text.size(), 0));
  std::vector<wire::StreamEntry> entries;
  for (const std::string& line : split_lines(text)) {
    TRY_ASSIGN(wire::StreamEntry entry, wire::parse_stream_entry(line));
    if (!stays_inside(entry.path))
      return make_error(Code::protocol_violation, "the host named a path outside the directory");
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) return make_error(Code::not_found, sanitize(path) + " is neither a file nor a directory");
  return entries;
}

Result<void> FileStreams::work_off() {
  begin_some();
  const auto stop = loop_.on_signal(SIGINT, [this] {
    outcome_ = make_error(Code::interrupted, "interrupted; repeat the command to continue with large files");
    loop_.stop();
  });
  if (under_way_ > 0) loop_.run();
  return outcome_;
}

void FileStreams::begin_some() {
  while (under_way_ < k_streams_at_once && !jobs_.empty() && outcome_) {
    const auto job = std::move(jobs_.front());
    jobs_.pop_front();
    ++under_way_;
    job([this](Result<void> done) {
      --under_way_;
      if (!done && outcome_) outcome_ = std::move(done);
      loop_.post([this] {
        begin_some();
        if (under_way_ == 0) loop_.stop();
      });
    });
  }
}

Result<CopyTotal> FileStreams::fetch(const std::string& path, const os::Path& into) {
  TRY_ASSIGN(const std::vector<wire::StreamEntry> entries, list(path, wire::StreamKind::list));
  std::error_code failed;
  os::Path top = into;
  const os::Path name = os::Path(path).lexically_normal();
  const std::string last = (name.has_filename() ? name : name.parent_path()).filename().string();
  if (std::filesystem::is_directory(into, failed) && !last.empty() && last != ".." && last != ".") top = into / last;
  for (const wire::StreamEntry& entry : entries) {
    const os::Path to = entry.path.empty() ? top : top / entry.path;
    if (entry.type == wire::EntryType::directory) TRY(os::make_directories(to, 0755));
    if (entry.type != wire::EntryType::file) continue;
    const std::string from = entry.path.empty() ? path : path + "/" + entry.path;
    jobs_.emplace_back([this, from, to, entry](const Done& done) { get(from, to, entry, false, done); });
  }
  TRY(work_off());
  TRY(make_links(entries, top));
  return total_;
}

// Links are made last, so that nothing is written through them.
Result<void> FileStreams::make_links(const std::vector<wire::StreamEntry>& entries, const os::Path& top) {
  for (const wire::StreamEntry& entry : entries) {
    if (entry.type != wire::EntryType::link) continue;
    const os::Path to = entry.path.empty() ? top : top / entry.path;
    TRY(os::remove_file(to));
    std::error_code failed;
    std::filesystem::create_symlink(entry.target, to, failed);
    if (failed) return errno_error(failed.value(), "cannot make the link " + sanitize(to.string()));
  }
  return {};
}

void FileStreams::get(const std::string& from, const os::Path& to, const wire::StreamEntry& entry, bool afresh,
                      const Done& done) {
  const os::Path part = part_here(to);
  const int empty = afresh || entry.bytes < k_worth_resuming ? O_TRUNC : 0;
  Result<os::Fd> opened = os::open_file(part, O_RDWR | O_CREAT | O_NOFOLLOW | empty);
  const Result<os::FileStatus> status = opened ? os::status_of(opened->get()) : opened.error();
  Result<os::Fd> copy = status ? os::duplicate(opened->get()) : status.error();
  if (!copy) return done(std::move(copy).error());
  wire::StreamOpen open;
  open.kind = wire::StreamKind::get;
  open.path = from;
  open.offset = status->size;
  if (const Result<void> ready = say_beginning(opened->get(), open); !ready) return done(ready);
  transfer::StreamEnds ends;
  ends.sink = *std::move(opened);
  transfer::StreamEvents events;
  auto broken = std::make_shared<bool>(false);
  events.sink_broken = [broken] { *broken = true; };
  events.closed = [=, this, written = std::make_shared<os::Fd>(*std::move(copy))](const wire::StreamEnd& end) {
    if (end.error && end.error->code == Code::refused && open.offset > 0) return get(from, to, entry, true, done);
    if (end.error) return done(failed_end(end, sanitize(from)));
    if (*broken) return done(make_error(Code::no_space, "cannot write " + sanitize(to.string()) + ": the disk is full"));
    ++total_.files;
    total_.bytes += entry.bytes;
    const Result<void> moded = os::set_mode(written->get(), entry.mode & 0777);
    done(moded ? os::rename_path(part, to) : moded);
  };
  call_.streams().open(open, std::move(ends), std::move(events));
}

Result<CopyTotal> FileStreams::send(const os::Path& from, const std::string& path) {
  std::error_code failed;
  const os::Path source = std::filesystem::canonical(from, failed);
  if (failed) return make_error(Code::not_found, sanitize(from.string()) + " does not exist here");
  std::string to = path;
  const auto there = list(path.empty() ? "." : path, wire::StreamKind::status);
  if (!there && there.error().code != Code::not_found) return there.error();
  const bool folder = there && there->front().type == wire::EntryType::directory;
  if (folder || path.ends_with('/') || path.empty())
    to = (path.empty() ? "" : path.ends_with('/') ? path : path + "/") + source.filename().string();
  TRY(plan_puts(source, to));
  TRY(work_off());
  return total_;
}

Result<void> FileStreams::plan_puts(const os::Path& from, const std::string& to) {
  TRY_ASSIGN(const auto status, os::status_of(from));
  if (!status) return {};  // it has gone meanwhile
  if (status->kind == os::FileKind::directory) {
    jobs_.emplace_back([this, to](const Done& done) { put_folder(to + "/", done); });
    TRY_ASSIGN(const std::vector<std::string> names, os::list_directory(from));
    for (const std::string& name : names) TRY(plan_puts(from / name, to + "/" + name));
    return {};
  }
  if (status->kind != os::FileKind::regular) {
    context_.note("skipped, not a regular file: " + sanitize(from.string()));
    return {};
  }
  std::uint64_t offset = 0;
  if (status->size >= k_worth_resuming) {
    const auto part = list(part_there(to), wire::StreamKind::status);
    if (part && part->front().bytes <= status->size) offset = part->front().bytes;
  }
  const Put file{from, to, status->mode, status->size};
  jobs_.emplace_back([this, file, offset](const Done& done) { put(file, offset, done); });
  return {};
}

void FileStreams::put_folder(const std::string& path, const Done& done) {
  wire::StreamOpen open;
  open.kind = wire::StreamKind::put;
  open.path = path;
  transfer::StreamEvents events;
  events.closed = [done, path](const wire::StreamEnd& end) {
    done(end.error ? Result<void>(failed_end(end, sanitize(path))) : Result<void>());
  };
  const std::uint32_t id = call_.streams().open(open, {}, std::move(events));
  call_.streams().finish(id, {});
}

void FileStreams::put(const Put& file, std::uint64_t offset, const Done& done) {
  Result<os::Fd> source = os::open_file(file.from, O_RDONLY | O_NOFOLLOW);
  if (!source) return done(std::move(source).error());
  wire::StreamOpen open;
  open.kind = wire::StreamKind::put;
  open.path = file.to;
  open.mode = file.mode;
  open.offset = offset;
  if (const Result<void> ready = say_beginning(source->get(), open); !ready) return done(ready);
  transfer::StreamEnds ends;
  ends.source = *std::move(source);
  transfer::StreamEvents events;
  events.closed = [=, this](const wire::StreamEnd& end) {
    if (end.error && end.error->code == Code::refused && offset > 0) return put(file, 0, done);
    if (end.error) return done(failed_end(end, sanitize(file.to)));
    ++total_.files;
    total_.bytes += file.bytes;
    done({});
  };
  call_.streams().open(open, std::move(ends), std::move(events));
}

struct Side {
  std::string job;   // empty: a path on this machine
  std::string path;
};
// A colon after a slash belongs to a local path, as with scp.
Side side_of(const std::string& text) {
  const std::size_t colon = text.find(':'), slash = text.find('/');
  if (colon == std::string::npos || colon == 0 || slash < colon) return {"", text};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

Result<int> run(Context& context, const Parsed& parsed) {
  const Side from = side_of(parsed.positionals[0]), to = side_of(parsed.positionals[1]);
  if (from.job.empty() == to.job.empty())
    return make_error(Code::usage, "either the source or the destination must be in a job: ID:PATH",
                      "gridctl job cp @last:out/loss.csv .");
  TRY_ASSIGN(const std::optional<std::uint64_t> rank, parsed.whole("rank"));
  TRY_ASSIGN(const std::optional<std::uint64_t> attempt, parsed.whole("attempt"));
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const JobId id, registry.resolve(from.job.empty() ? to.job : from.job));
  TRY_ASSIGN(const RunningMember member, running_member(registry, id, rank, attempt));
  os::Loop loop;
  TRY_ASSIGN(auto channel, enter(context, loop, member.provider, whom(member)));
  FileStreams streams(context, loop, std::move(channel));
  TRY_ASSIGN(const CopyTotal total, to.job.empty() ? streams.fetch(from.path.empty() ? "." : from.path, to.path)
                                                   : streams.send(from.path, to.path));
  if (context.json)
    return context.print_line(JsonObject()("job_id", id.value)("files", total.files)("bytes", total.bytes).text());
  return context.note(ui::counted(total.files, "file") + ", " +
                      format_size(total.bytes));
}
}  // namespace
}  // namespace job_cp

const Command k_job_cp{
    .name = "job cp",
    .summary = "copy files into or out of a running job",
    .examples = {{"Copy a file out of a running job", "gridctl job cp train-gpt:out/loss.csv ."},
                 {"Put a file into its working directory", "gridctl job cp config.yaml train-gpt:"},
                 {"Copy a folder from the host of rank 3", "gridctl job cp --rank 3 train-gpt:/tmp/traces traces"}},
    .description =
        "Copies a file or a folder between this machine and a running job. ID:PATH is a path as the job sees it; a "
        "relative one starts in its working directory. If the destination is a directory, the source keeps its own "
        "name in it. A file appears only when it is complete, and repeating the command continues a large file where "
        "an earlier one stopped.\n\n'gridctl job pull' gets the outputs of a job, also after its end.",
    .positionals = {{"SOURCE", Completion::file}, {"DESTINATION", Completion::file}},
    .options = {k_rank_option, k_attempt_option},
    .exit_codes = {3, 5, 6, 7, 130},
    .run = job_cp::run};

}  // namespace gridctl::cmd

// SPDX-License-Identifier: Apache-2.0
#include "agent/uploads.hpp"

#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/text.hpp"
#include "crypto/sha256.hpp"
#include "os/log.hpp"
#include "os/priority.hpp"
#include "os/process.hpp"

namespace gridctl::agent {
namespace {

using wire::FrameKind;

constexpr Duration k_sign_of_life = std::chrono::seconds{5};  // while the pack is on its way
constexpr const char* k_connect_s = "10";                     // name lookup, TCP and TLS
constexpr const char* k_slow_s = "60";                        // without a KiB a second either way
constexpr std::size_t k_answer_max = 16u << 10;               // bytes of what the place and curl say
static_assert(wire::k_upload_recipe_max == store::k_recipe_bytes_max);

std::string curl_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// Uses a file, because every user of the host can see arguments.
std::string configuration(const wire::UploadRequest& request, int body_fd, std::uint64_t bytes, std::uint64_t limit) {
  const auto longest = std::chrono::ceil<std::chrono::seconds>(wire::upload_time_max(bytes, limit)).count();
  std::string text = "url = " + curl_quoted(request.url) + "\n";
  for (const auto& [name, value] : request.headers) text += "header = " + curl_quoted(name + ": " + value) + "\n";
  if (limit > 0) text += "limit-rate = " + std::to_string(limit) + "\n";
  text += "upload-file = \"/proc/self/fd/" + std::to_string(body_fd) + "\"\n";
  return text + "silent\nshow-error\nproto = \"=http,https\"\nspeed-limit = 1024\nspeed-time = " + k_slow_s +
         "\nconnect-timeout = " + k_connect_s + "\nmax-time = " + std::to_string(longest) +
         "\nwrite-out = \"\\n%{http_code}\"\n";
}

// Runs curl, which ends with this object.
class Curl {
 public:
  static Result<std::unique_ptr<Curl>> start(const wire::UploadRequest& request, const os::Fd& body,
                                             std::uint64_t bytes, std::uint64_t limit) {
    auto curl = std::make_unique<Curl>();
    TRY_ASSIGN(const os::Fd settings, os::memory_with(as_bytes(configuration(request, body.get(), bytes, limit))));
    TRY_ASSIGN(auto ends, os::make_pipe());
    curl->output_ = std::move(ends.first);
    os::SpawnOptions options;
    options.stdin_fd = settings.get();
    options.stdout_fd = options.stderr_fd = ends.second.get();
    options.keep_fds = {body.get()};
    options.die_with_parent = true;
    TRY_ASSIGN(curl->pid_, os::spawn({"curl", "--disable", "--config", "-"}, options));
    return curl;
  }
  ~Curl() {
    if (pid_ == 0) return;
    if (const auto process = os::identify(pid_)) static_cast<void>(os::send_signal(*process, 9));
    static_cast<void>(os::wait(pid_));
  }

  // Returns true when curl has finished its output; waits for k_sign_of_life at most.
  Result<bool> listen() {
    TRY_ASSIGN(const bool ready, os::wait_ready(output_.get(), true, false, k_sign_of_life));
    if (!ready) return false;
    char part[4096];
    const ssize_t got = ::read(output_.get(), part, sizeof part);
    if (got > 0) said_.append(part, std::min<std::size_t>(static_cast<std::size_t>(got), k_answer_max - said_.size()));
    return got <= 0;
  }

  Result<void> outcome() {
    TRY_ASSIGN(const os::ExitStatus status, os::wait(std::exchange(pid_, 0)));
    const std::size_t line = said_.rfind('\n');
    const std::string code = line == std::string::npos ? "" : said_.substr(line + 1);
    std::string words = sanitize(trim(said_.substr(0, line)), 300);
    if (!status.success())
      return make_error(Code::host_unreachable, "curl exited with " + std::to_string(status.code) + ": " + words);
    if (is_one_of(code, {"200"})) return {};
    return make_error(Code::refused, "the remote answered " + sanitize(code, 10) + " " + words);
  }

 private:
  os::Fd output_;
  int pid_ = 0;
  std::string said_;
};

// Provides chunks and manifests of the host's checkpoints of one attempt.
class Found {
 public:
  Found(HostSnapshots& snapshots, const wire::CheckpointRef& checkpoint)
      : snapshots_(snapshots), checkpoints_(snapshots.all_like(checkpoint)) {}

  Result<Bytes> read(const Digest& digest) {
    for (const wire::CheckpointRef& one : checkpoints_) {
      Result<Bytes> chunk = snapshots_.chunk(one, digest);
      if (!chunk && chunk.error().code == Code::not_found) continue;
      if (chunk && one.number != checkpoints_.front().number) others_.insert(one.number);
      return chunk;
    }
    Result<Bytes> manifest = snapshots_.manifest(checkpoints_.front());
    if (manifest && crypto::sha256(*manifest) == digest) return manifest;
    return make_error(Code::not_found, "this host does not have chunk " + to_hex(digest) + " any more");
  }
  [[nodiscard]] const std::set<std::uint64_t>& others() const { return others_; }  // that something was read from

 private:
  HostSnapshots& snapshots_;
  const std::vector<wire::CheckpointRef> checkpoints_;
  std::set<std::uint64_t> others_;
};

}  // namespace

Result<os::Fd> Uploads::make(const wire::CheckpointRef& checkpoint, const store::PackRecipe& recipe) {
  TRY_ASSIGN(os::Fd body, os::open_memory());
  Found found(snapshots_, checkpoint);
  const auto read = [&](const Digest& digest) { return found.read(digest); };
  const auto write = [&](ByteView part) { return os::write_all(body.get(), part); };
  Result<void> made;
  std::thread([&] {  // of its own, for a thread that has become modest stays so
    os::work_modestly();
    made = store::remake_pack(recipe, read, write);
  })
      .join();
  TRY(made);
  if (const Result<void> noted = snapshots_.needed(checkpoint, found.others()); !noted)
    os::log(os::LogLevel::warn, "cannot note which snapshots are needed: " + noted.error().one_line());
  return body;
}

Result<void> Uploads::handle(const wire::Frame& frame) {
  // Without a readable request, the length of the following data is unknown.
  TRY_ASSIGN(const wire::UploadRequest request, wire::parse_upload(frame.payload));
  TRY_ASSIGN(const Bytes recipe, with_.data(frame.stream, request.recipe_bytes));
  const auto refuse = [&](const Error& error) {
    return with_.send(FrameKind::reply, frame.stream, wire::error_payload(error));
  };
  if (!os::find_program("curl"))
    return refuse(make_error(Code::unsupported, "this host has no curl", "install curl there"));
  const Result<store::PackRecipe> parsed = store::parse_recipe(recipe);
  if (!parsed) return refuse(parsed.error());
  const Result<os::Fd> body = make(request.checkpoint, *parsed);
  if (!body) return refuse(body.error());
  const Result<std::unique_ptr<Curl>> curl =
      Curl::start(request, *body, parsed->size, snapshots_.upload_limit(request.checkpoint));
  if (!curl) return refuse(curl.error());
  TRY(with_.send(FrameKind::reply, frame.stream, "{}"));
  wire::EndRecord end;
  for (;;) {
    const Result<bool> ended = (*curl)->listen();
    if (!ended) return with_.send_error_end(frame.stream, ended.error());
    if (*ended) break;
    TRY(with_.send(FrameKind::data, frame.stream, "."));
    ++end.bytes;
  }
  if (const Result<void> outcome = (*curl)->outcome(); !outcome) end.error = outcome.error();
  return with_.send(FrameKind::end, frame.stream, wire::encode(end));
}

}  // namespace gridctl::agent

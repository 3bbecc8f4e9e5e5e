// SPDX-License-Identifier: Apache-2.0
#include "control/serve/balancer.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "base/text.hpp"
#include "os/log.hpp"
#include "os/net.hpp"
#include "os/process.hpp"
#include "os/ready.hpp"

namespace gridctl::control {

namespace {
using std::chrono::milliseconds;
constexpr Duration k_answer_patience = milliseconds{500};
constexpr std::size_t k_answer_max = 1 << 20, k_words_max = 4096;  // bytes
constexpr Duration k_soon_ended = std::chrono::seconds{2};         // who ends so soon is started ever more seldom:
constexpr Duration k_pause_first = milliseconds{200}, k_pause_max = std::chrono::seconds{10};
constexpr Duration k_start_patience = std::chrono::seconds{5};  // until it answers
}  // namespace

Result<os::Path> find_balancer() {
  if (const std::optional<os::Path> found = os::find_program("haproxy")) return *found;
  for (const char* const path : {"/usr/sbin/haproxy", "/usr/local/sbin/haproxy"})  // not in everybody's PATH
    if (os::exists(path)) return os::Path(path);
  return make_error(Code::unsupported, "services need the program haproxy on this machine, but it is not installed",
                    "sudo apt-get install haproxy");
}

Result<std::string> ask_balancer(const os::Path& socket, const std::string& command, os::Clock& clock) {
  TRY_ASSIGN(const os::Fd fd, os::connect_local(socket));
  TRY(os::write_all(fd.get(), as_bytes(command + "\n")));  // a command is shorter than the socket's buffer
  const BootTime deadline = clock.boot() + k_answer_patience;
  std::string answer;
  std::array<std::byte, 16384> piece{};
  while (answer.size() < k_answer_max) {
    std::array<os::Poll, 1> poll{{{fd.get(), {true, false}, {}}}};
    TRY_ASSIGN(const bool ready, os::wait_any(poll, deadline, clock));
    if (!ready) return make_error(Code::timed_out, "haproxy does not answer");
    TRY_ASSIGN(const os::Moved moved, os::read_now(fd.get(), piece));
    answer.append(reinterpret_cast<const char*>(piece.data()), moved.bytes);
    if (moved.closed) return answer;
  }
  return make_error(Code::protocol_violation, "haproxy sends an endless answer");
}

namespace {
bool has_exporter(const os::Path& program) {
  os::RunOptions options;
  options.output_max = k_words_max * 4;
  const Result<os::RunOutcome> told = os::run({program.string(), "-vv"}, options);
  return told && told->out.find("prometheus-exporter") != std::string::npos;
}
}  // namespace

Balancer::Balancer(os::Clock& clock, os::Path program, job::Service service, int replicas, int listen_fd)
    : clock_(clock),
      program_(std::move(program)),
      service_(std::move(service)),
      replicas_(replicas),
      listen_fd_(listen_fd),
      has_exporter_(has_exporter(program_)) {}

Balancer::~Balancer() {
  if (pid_ < 0) return;
  if (const auto child = os::identify(pid_)) (void)os::send_signal(*child, SIGKILL);
  (void)os::wait(pid_);
}

Result<void> Balancer::write_files() {
  TRY(os::write_file_atomically(os::Path(k_hold_file), hold_script()));
  if (!service_.keys_file.empty()) {
    TRY_ASSIGN(const std::string text, os::read_file(service_.keys_file, k_answer_max));
    const KeyFiles keys = key_files(text);
    TRY(os::write_file_atomically(os::Path(k_key_file), keys.plain));
    TRY(os::write_file_atomically(os::Path(k_bearer_file), keys.bearer));
  }
  return os::write_file_atomically("haproxy.cfg", balancer_config(service_, replicas_, listen_fd_, has_exporter_));
}

void Balancer::start(BootTime now) {
  if (now < not_before_) return;
  const Result<void> written = write_files();
  os::SpawnOptions options;
  options.keep_fds = {listen_fd_};
  options.new_group = true;
  options.die_with_parent = true;
  const Result<int> pid = written ? os::spawn({program_.string(), "-db", "-q", "-f", "haproxy.cfg"}, options)
                                  : Result<int>(written.error());
  started_ = now;
  if (pid) {
    pid_ = *pid;
    return;
  }
  trouble_ = pid.error().one_line();
  ended(now);
}

void Balancer::ended(BootTime now) {
  for (const ServerLine& line : std::exchange(lines_, {}))
    if (line.is_up()) trusted_.insert(line.name);
  pid_ = -1;
  pause_ = now - started_ < k_soon_ended ? std::clamp(pause_ * 2, k_pause_first, k_pause_max) : Duration{};
  not_before_ = now + pause_;
  if (pause_ < std::chrono::seconds{1}) return;
  // HAProxy explains an error only with -c: its output while it runs is not kept.
  os::RunOptions options;
  options.output_max = k_words_max;
  const Result<os::RunOutcome> check = os::run({program_.string(), "-c", "-f", "haproxy.cfg"}, options);
  if (check && !check->status.success())
    trouble_ = "haproxy refuses its configuration: " + sanitize(std::string(trim(check->err)));
  else if (trouble_.empty()) trouble_ = "haproxy keeps exiting";
  os::log(os::LogLevel::warn, trouble_);
}

void Balancer::distrust(const std::string& server) {
  const auto line = std::ranges::find(lines_, server, &ServerLine::name);
  if (line == lines_.end() || !line->is_up()) return;
  line->status = "DOWN";
  (void)ask_balancer(os::Path(k_admin_socket), "set server b/" + server + " health down", clock_);
}

bool Balancer::any_up() const {
  return std::ranges::any_of(lines_, [](const ServerLine& line) { return line.name.starts_with('r') && line.is_up(); });
}

const ServerLine* Balancer::line(const std::string& name) const {
  const auto found = std::ranges::find(lines_, name, &ServerLine::name);
  return found == lines_.end() ? nullptr : &*found;
}

bool Balancer::is_up(int replica) const {
  const ServerLine* const found = line(server_name(replica));
  return found != nullptr && found->is_up();
}

bool Balancer::is_drained(int replica) const {
  const ServerLine* const found = line(server_name(replica));
  return found != nullptr && !found->is_up() && !found->status.starts_with("DOWN") && found->under_way == 0;
}

// Held clients are connections of the frontend only.
std::uint64_t Balancer::under_way() const {
  const ServerLine* const all = line("BACKEND");
  const ServerLine* const front = line("FRONTEND");
  if (all == nullptr || front == nullptr) return 0;
  return any_up() ? all->under_way : front->under_way;
}

std::uint64_t Balancer::requests() const {
  const ServerLine* const all = line("BACKEND");
  return all == nullptr ? 0 : all->requests;
}

void Balancer::keep(std::span<const ServerState> wanted, bool refuses) {
  const BootTime now = clock_.boot();
  if (pid_ >= 0)
    if (const auto status = os::try_wait(pid_); !status || *status) {
      os::log(os::LogLevel::warn, "haproxy exited; restarting it");
      ended(now);
    }
  if (pid_ < 0) return start(now);
  if (now < not_before_) return;
  const Result<std::string> stats = ask_balancer(os::Path(k_admin_socket), "show stat", clock_);
  if (!stats) {
    if (now - started_ < k_start_patience) return;
    trouble_ = stats.error().one_line();
    if (const auto child = os::identify(pid_)) (void)os::send_signal(*child, SIGKILL);
    return;
  }
  trouble_.clear();
  lines_ = parse_stats(*stats);
  if (refuses) (void)ask_balancer(os::Path(k_admin_socket), refuse_command(clock_.wall()), clock_);
  for (const std::string& command : repairs(lines_, wanted, std::exchange(trusted_, {})))
    if (const auto done = ask_balancer(os::Path(k_admin_socket), command, clock_); !done)
      os::log(os::LogLevel::warn, command + ": " + done.error().one_line());
}

}  // namespace gridctl::control

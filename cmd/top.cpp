// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <array>
#include <csignal>

#include "cmd/commands.hpp"
#include "cmd/follow.hpp"
#include "os/loop.hpp"
#include "os/ready.hpp"
#include "os/terminal.hpp"
#include "ui/top_view.hpp"

namespace gridctl::cmd {

namespace top {
namespace {
constexpr Duration k_refresh = std::chrono::seconds{2};
constexpr int k_in = 0, k_out = 1;
constexpr char k_ctrl_c = 3;

// Reads hosts and jobs again only after the registry has changed, because inventories of a thousand hosts take a while.
class Looker {
 public:
  Looker(Context& context, registry::Registry& registry) : context_(context), registry_(registry) {}

  Result<const ui::TopView*> look() {
    const WallTime now = context_.now();
    TRY_ASSIGN(const std::int64_t version, registry_.data_version());
    if (version != version_) {
      TRY_ASSIGN(std::vector<registry::Provider> providers, registry_.providers());
      registry::JobFilter active;
      active.active_only = true;
      TRY_ASSIGN(view_.jobs, registry_.jobs(active));
      std::erase_if(view_.jobs, registry::is_bag_worker);
      std::ranges::stable_partition(view_.jobs, [](const registry::JobRow& job) { return job.state == job::JobState::running; });
      view_.hosts.clear();
      for (registry::Provider& provider : providers) view_.hosts.push_back({std::move(provider), ""});
      version_ = version;
    }
    const bool followed = is_followed(context_);
    for (ui::TopHost& host : view_.hosts)
      host.state = host.provider.drained ? "drained" : liveness_today(host.provider, followed, now);
    view_.use = registry::read_use(context_.state, now);
    return &view_;
  }

 private:
  Context& context_;
  registry::Registry& registry_;
  ui::TopView view_;
  std::int64_t version_ = -1;
};

// Shows the alternate screen of the terminal until its end.
class Screen {
 public:
  explicit Screen(Context& context) : context_(context) { context_.print("\033[?1049h\033[?25l"); }
  ~Screen() { context_.print("\033[?25h\033[?1049l"); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  void draw(const std::vector<std::string>& lines) {
    std::string text = "\033[H";
    for (std::size_t i = 0; i < lines.size(); ++i) text += (i > 0 ? "\r\n" : "") + lines[i] + "\033[K";
    context_.print(text + "\033[J");
  }

 private:
  Context& context_;
};

Result<int> keep_showing(Context& context, Looker& looker) {
  TRY_ASSIGN(os::Fd keys, os::own_stream(k_in, O_RDONLY));
  TRY_ASSIGN(const os::RawTerminal raw, os::RawTerminal::enter(k_in));
  Screen screen(context);
  os::Loop loop;
  std::optional<Error> problem;
  const auto draw = [&] {
    Result<const ui::TopView*> view = looker.look();
    if (!view) problem = std::move(view).error();
    if (problem || context.reader_gone()) return loop.stop();
    const os::TerminalSize size = os::terminal_size(k_out);
    screen.draw(ui::top_screen(**view, context.now(), size.columns, size.rows, context.out_style, "(q ends)"));
  };
  const os::Loop::Watch typed = loop.watch(keys.get(), {true, false}, [&](os::Interest) {
    std::array<char, 64> bytes{};
    const Result<os::Moved> got = os::read_now(keys.get(), std::as_writable_bytes(std::span(bytes)));
    const std::string_view text(bytes.data(), got ? got->bytes : 0);
    if (!got || got->closed || text.find_first_of("qQ") != text.npos || text.find(k_ctrl_c) != text.npos) loop.stop();
  });
  std::vector<os::Loop::Watch> signals;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) signals.push_back(loop.on_signal(signal, [&] { loop.stop(); }));
  signals.push_back(loop.on_signal(SIGWINCH, draw));
  const os::Loop::Timer first = loop.after(Duration{0}, draw);
  const os::Loop::Timer every = loop.every(k_refresh, draw);
  loop.run();
  if (problem) return *problem;
  return 0;
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY(warn_unfollowed(context, registry));
  Looker looker(context, registry);
  const bool lasts = !context.json && !parsed.has("once") && context.terminal_in && context.terminal_out && context.redraws;
  if (lasts) return keep_showing(context, looker);
  TRY_ASSIGN(const ui::TopView* view, looker.look());
  if (context.json) return context.print_line(ui::top_json(*view, context.now()));
  for (const std::string& line : ui::top_screen(*view, context.now(), context.columns_out(), 0, context.out_style, ""))
    context.print_line(line);
  return 0;
}
}  // namespace
}  // namespace top

const Command k_top{.name = "top",
                    .summary = "show all hosts and active jobs on one screen",
                    .examples = {{"Watch all hosts and jobs; q ends it", "gridctl top"},
                                 {"Print it once", "gridctl top --once"},
                                 {"In a script", "gridctl top --json | jq '.providers[] | {name, gpu_busy_percent}'"}},
                    .description =
                        "Shows every host with its load and every job that has not ended with the use of its GPUs, their "
                        "memory and temperature, and its processors, and refreshes every two seconds until q is typed. "
                        "Hosts report figures every ten seconds while a daemon follows jobs there; a figure that is "
                        "older than a minute is shown as -. Without a terminal, or with --once or --json, the screen is "
                        "printed once.",
                    .options = {{"once", 0, "", "print it once, also on a terminal"}},
                    .exit_codes = k_exits_state,
                    .run = top::run};

}  // namespace gridctl::cmd

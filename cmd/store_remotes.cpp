// SPDX-License-Identifier: Apache-2.0
#include "cmd/store_remotes.hpp"

#include "base/bytes.hpp"
#include "base/text.hpp"

namespace gridctl::cmd {

namespace {
constexpr Duration k_redraw = std::chrono::milliseconds{200};
constexpr std::string_view k_clear_line = "\r\x1b[K";
}  // namespace

Result<std::vector<registry::Remote>> chosen_remotes(registry::CopyRecords& registry, const Parsed& parsed) {
  if (!parsed.positionals.empty()) {
    TRY_ASSIGN(registry::Remote remote, registry.remote(parsed.positionals[0]));
    return std::vector<registry::Remote>{std::move(remote)};
  }
  TRY_ASSIGN(std::vector<registry::Remote> remotes, registry.remotes());
  if (remotes.empty())
    return make_error(Code::not_found, "there are no remotes yet", "gridctl store add NAME dir:/path");
  return remotes;
}

ProgressLine::~ProgressLine() {
  if (shown_) context_.write_err(k_clear_line);
}

store::CopyProgress ProgressLine::teller() {
  if (!context_.redraws || context_.json) return {};
  return [this](std::uint64_t done, std::uint64_t total) {
    const BootTime now = context_.clock.boot();
    if (now < next_) return true;
    next_ = now + k_redraw;
    shown_ = true;
    context_.write_err(std::string(k_clear_line) + sanitize(what_) + ": " + format_size(done) + " of " +
                       format_size(total));
    return true;
  };
}

}  // namespace gridctl::cmd

// SPDX-License-Identifier: Apache-2.0
#include "transfer/host_upload.hpp"

#include <algorithm>

#include "transfer/stream.hpp"

namespace gridctl::transfer {
namespace {

constexpr std::uint32_t k_stream = 1;                       // one operation at a time
constexpr Duration k_making_max = std::chrono::minutes{2};  // of the pack, at low priority
constexpr Duration k_grace = std::chrono::seconds{30};      // the host gives up before

}  // namespace

Result<void> upload_from_host(wire::Link& link, const os::Clock& clock, wire::UploadRequest request,
                              const store::PackRecipe& recipe, Duration longest, const std::function<bool()>& go_on) {
  const Bytes content = store::encode(recipe);
  request.recipe_bytes = content.size();
  Conversation with{link, clock};
  TRY(with.send(wire::FrameKind::request, k_stream, wire::encode(request)));
  TRY(with.send_data(k_stream, content));
  with.step_max = k_making_max;
  TRY(with.reply(k_stream));
  with.step_max = Conversation{link, clock}.step_max;
  for (const BootTime over = clock.boot() + longest + k_grace;;) {
    TRY_ASSIGN(const wire::Frame frame, link.receive(std::min(over, with.deadline())));
    if (frame.kind == wire::FrameKind::event) continue;
    if (frame.stream != k_stream || (frame.kind != wire::FrameKind::data && frame.kind != wire::FrameKind::end))
      return make_error(Code::protocol_violation, "received something else while waiting for an upload");
    if (frame.kind == wire::FrameKind::data) {
      if (go_on && !go_on()) return make_error(Code::cancelled, "copying was stopped");
      continue;
    }
    TRY_ASSIGN(const wire::EndRecord end, wire::parse_end(frame.payload));
    if (end.error) return *end.error;
    return {};
  }
}

}  // namespace gridctl::transfer

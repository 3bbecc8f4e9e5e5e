// SPDX-License-Identifier: Apache-2.0
#include "control/reach/embedded_agent.hpp"

// One assembler block and two symbols per binary.
#define GRIDCTL_EMBED(arch, file, sha256)                                                                           \
  __asm__(".section .rodata\n.balign 16\n.globl gridctl_agent_" #arch "\ngridctl_agent_" #arch ":\n.incbin \"" file \
          "\"\n.globl gridctl_agent_end_" #arch "\ngridctl_agent_end_" #arch ":\n.byte 0\n.incbin \"" file          \
          ".gz\"\n.globl gridctl_agent_gz_end_" #arch "\ngridctl_agent_gz_end_" #arch ":\n.byte 0\n.previous\n");   \
  extern "C" const char gridctl_agent_##arch[], gridctl_agent_end_##arch[], gridctl_agent_gz_end_##arch[];
#include "embedded_agents.inc"
#undef GRIDCTL_EMBED

namespace gridctl::control {
namespace {

std::string_view between(const char* begin, const char* end) { return {begin, static_cast<std::size_t>(end - begin)}; }

}  // namespace

const std::vector<AgentImage>& agent_images() {
  static const std::vector<AgentImage> all{
#define GRIDCTL_EMBED(arch, file, sha256)                                  \
  {#arch, between(gridctl_agent_##arch, gridctl_agent_end_##arch), sha256, \
   between(gridctl_agent_end_##arch + 1, gridctl_agent_gz_end_##arch)},
#include "embedded_agents.inc"
#undef GRIDCTL_EMBED
  };
  return all;
}

}  // namespace gridctl::control

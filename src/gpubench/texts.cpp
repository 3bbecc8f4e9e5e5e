// SPDX-License-Identifier: Apache-2.0
#include "gpubench/texts.hpp"

// Emits one assembler block and two symbols per file; GRIDCTL_KERNELS is this folder.
#define GRIDCTL_TEXT(name, file)                                                                                 \
  __asm__(".section .rodata\n.globl gridctl_text_" #name "\ngridctl_text_" #name ":\n.incbin \"" GRIDCTL_KERNELS \
          "/" file "\"\n.globl gridctl_text_end_" #name "\ngridctl_text_end_" #name ":\n.byte 0\n.previous\n");  \
  extern "C" const char gridctl_text_##name[], gridctl_text_end_##name[];
GRIDCTL_TEXT(kernels, "kernels.cl")
GRIDCTL_TEXT(rates, "rates.cl")
GRIDCTL_TEXT(ptx70, "kernels_sm70.ptx")
GRIDCTL_TEXT(ptx80, "kernels_sm80.ptx")
GRIDCTL_TEXT(ptx90, "kernels_sm90.ptx")
#undef GRIDCTL_TEXT

namespace gridctl::gpubench {
namespace {

std::string_view between(const char* begin, const char* end) { return {begin, static_cast<std::size_t>(end - begin)}; }

}  // namespace

std::string_view kernels_text() { return between(gridctl_text_kernels, gridctl_text_end_kernels); }
std::string_view rates_text() { return between(gridctl_text_rates, gridctl_text_end_rates); }
std::string_view ptx_70() { return between(gridctl_text_ptx70, gridctl_text_end_ptx70); }
std::string_view ptx_80() { return between(gridctl_text_ptx80, gridctl_text_end_ptx80); }
std::string_view ptx_90() { return between(gridctl_text_ptx90, gridctl_text_end_ptx90); }

}  // namespace gridctl::gpubench

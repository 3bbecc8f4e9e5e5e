// SPDX-License-Identifier: Apache-2.0
// Kernels that are only timed: the peak of multiply-adds in vectors of 1 to 16, as CPUs and old GPUs need vectors and
// new GPUs do not, and reads of global memory in the same widths. With GRIDCTL_HALF also in 16 bits.
#ifdef GRIDCTL_HALF
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

// x and y feed each other, so that nothing can be left out: v*v - 1.9 neither settles nor grows, for constant data would
// draw less power than a program does. 64 multiply-adds a turn.
#define TURN4(x, y) x = mad(y, y, c); y = mad(x, x, c); x = mad(y, y, c); y = mad(x, x, c);
#define TURN16(x, y) TURN4(x, y) TURN4(x, y) TURN4(x, y) TURN4(x, y)
#define TURN64(x, y) TURN16(x, y) TURN16(x, y) TURN16(x, y) TURN16(x, y)
#define RATE(NAME, TYPE, SCALAR, SUM)                                                   \
  __kernel void NAME(__global SCALAR* out, float start, uint turns) {                   \
    const TYPE c = (TYPE)((SCALAR)-1.9f);                                               \
    TYPE x = (TYPE)((SCALAR)start);                                                     \
    TYPE y = (TYPE)((SCALAR)(start * 0.5f + (float)get_local_id(0) * 0.001f));          \
    for (uint i = 0; i < turns; ++i) {                                                  \
      TURN64(x, y)                                                                      \
    }                                                                                   \
    out[get_global_id(0)] = SUM;                                                        \
  }
#define SUM2(v) ((v).s0 + (v).s1)
#define SUM4(v) (SUM2((v).lo) + SUM2((v).hi))
#define SUM8(v) (SUM4((v).lo) + SUM4((v).hi))
#define SUM16(v) (SUM8((v).lo) + SUM8((v).hi))
RATE(rate_f32_1, float, float, y)
RATE(rate_f32_2, float2, float, SUM2(y))
RATE(rate_f32_4, float4, float, SUM4(y))
RATE(rate_f32_8, float8, float, SUM8(y))
RATE(rate_f32_16, float16, float, SUM16(y))
#ifdef GRIDCTL_HALF
RATE(rate_f16_1, half, half, y)
RATE(rate_f16_2, half2, half, SUM2(y))
RATE(rate_f16_4, half4, half, SUM4(y))
RATE(rate_f16_8, half8, half, SUM8(y))
RATE(rate_f16_16, half16, half, SUM16(y))
#endif

// Each lane reads 16 vectors, a group's width apart.
#define READ(NAME, TYPE, SUM)                                                                     \
  __kernel void NAME(__global const TYPE* from, __global float* out) {                            \
    size_t at = get_group_id(0) * get_local_size(0) * 16 + get_local_id(0);                       \
    TYPE sum = (TYPE)(0.0f);                                                                      \
    for (uint i = 0; i < 16; ++i) {                                                               \
      sum += from[at];                                                                            \
      at += get_local_size(0);                                                                    \
    }                                                                                             \
    out[get_global_id(0)] = SUM;                                                                  \
  }
READ(read_1, float, sum)
READ(read_2, float2, SUM2(sum))
READ(read_4, float4, SUM4(sum))
READ(read_8, float8, SUM8(sum))
READ(read_16, float16, SUM16(sum))

// SPDX-License-Identifier: Apache-2.0
// The kernels of gridctl-gpubench, in the common part of OpenCL C and CUDA C. What they compute is stated in
// src/probe/bench_challenge.hpp, whose checker must agree bit by bit.
#ifdef __CUDACC__
#ifndef KERNEL
#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#endif
#define DEVICE __device__ __forceinline__
#define GLOBAL
#define LOCAL __shared__
#define LANE (threadIdx.x)
#define GROUP (blockIdx.x)
#define GROUP_Y (blockIdx.y)
#define GROUPS (gridDim.x)
#define BARRIER __syncthreads()
#define ADD(where, value) atomicAdd(where, value)
#define FMA(a, b, c) __fmaf_rn(a, b, c)
#define BITS(x) __float_as_uint(x)
#define FROM_BITS(x) __uint_as_float(x)
typedef unsigned int uint;
typedef unsigned short ushort;
#else
#define KERNEL __kernel __attribute__((reqd_work_group_size(256, 1, 1))) void
#define DEVICE
#define GLOBAL __global
#define LOCAL __local
#define LANE ((uint)get_local_id(0))
#define GROUP ((uint)get_group_id(0))
#define GROUP_Y ((uint)get_group_id(1))
#define GROUPS ((uint)get_num_groups(0))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define ADD(where, value) atomic_add(where, value)
#define FMA(a, b, c) fma(a, b, c)
#define BITS(x) as_uint(x)
#define FROM_BITS(x) as_float(x)
#endif

DEVICE uint mix(uint h) {
  h ^= h >> 16;
  h *= 0x85ebca6bu;
  h ^= h >> 13;
  h *= 0xc2b2ae35u;
  return h ^ (h >> 16);
}
DEVICE uint row_key(uint low, uint high, uint row) { return mix(mix((row * 0x9e3779b1u) ^ low) + high); }
DEVICE uint word_of(uint key, uint at) { return mix(key ^ (at * 0x9e3779b1u)); }
// Byte `at` of a word as a whole number in -127..127.
DEVICE float entry_of(uint word, uint at) {
  const int value = (int)((word >> (8 * at)) & 255u) - 128;
  return (float)(value == -128 ? 0 : value);
}
DEVICE uint projection_weight(uint low, uint high, uint column) { return mix(mix(column + high) ^ low) | 1u; }
DEVICE uint element_hash(float value, uint key, uint column) {
  return mix(((uint)(int)value * 0x9e3779b1u) + (column * 0x85ebca77u ^ key));
}

// Rows row0, row0+1, … of a matrix of `words` words (4 entries each) a row, as floats.
KERNEL make_f32(GLOBAL float* out, uint low, uint high, uint row0, uint rows, uint words) {
  for (uint row = GROUP; row < rows; row += GROUPS) {
    const uint key = row_key(low, high, row0 + row);
    GLOBAL float* to = out + (size_t)row * words * 4;
    for (uint at = LANE; at < words; at += 256) {
      const uint word = word_of(key, at);
      for (uint i = 0; i < 4; ++i) to[at * 4 + i] = entry_of(word, i);
    }
  }
}

// One group takes a tile of 64 x 64 of C = A B^T (both row by row), each lane 4 x 4 of it; the tile goes into the
// answers of its rows' parts and is kept nowhere. a: rows x inner, b: columns x inner.
KERNEL gemm_f32(GLOBAL const float* a, GLOBAL const float* b, GLOBAL uint* answer, uint low, uint high, uint row0,
                uint rows_per_part, uint inner) {
  LOCAL float ta[16][68];
  LOCAL float tb[16][68];
  LOCAL uint sums[2];
  const uint lane = LANE, lx = lane & 15u, ly = lane >> 4;
  const uint tile_row = GROUP_Y * 64, tile_column = GROUP * 64;
  float sum[4][4];
  for (uint i = 0; i < 4; ++i)
    for (uint j = 0; j < 4; ++j) sum[i][j] = 0.0f;
  if (lane < 2) sums[lane] = 0;
  const uint load_row = lane >> 2, load_at = (lane & 3u) * 4;
  for (uint k = 0; k < inner; k += 16) {
    for (uint i = 0; i < 4; ++i) {
      ta[load_at + i][load_row] = a[(size_t)(tile_row + load_row) * inner + k + load_at + i];
      tb[load_at + i][load_row] = b[(size_t)(tile_column + load_row) * inner + k + load_at + i];
    }
    BARRIER;
    for (uint step = 0; step < 16; ++step)
      for (uint i = 0; i < 4; ++i)
        for (uint j = 0; j < 4; ++j) sum[i][j] = FMA(ta[step][ly * 4 + i], tb[step][lx * 4 + j], sum[i][j]);
    BARRIER;
  }
  uint hash = 0, projection = 0;
  for (uint i = 0; i < 4; ++i) {
    const uint key = row_key(low ^ 0x68bc21ebu, high, row0 + tile_row + ly * 4 + i);
    uint row_projection = 0;
    for (uint j = 0; j < 4; ++j) {
      const uint column = tile_column + lx * 4 + j;
      hash += element_hash(sum[i][j], key, column);
      row_projection += (uint)(int)sum[i][j] * projection_weight(low, high, column);
    }
    projection += row_projection * (key | 1u);
  }
  ADD(&sums[0], hash);
  ADD(&sums[1], projection);
  BARRIER;
  if (lane < 2) ADD(&answer[2 * ((row0 + tile_row) / rows_per_part) + lane], sums[lane]);
}

KERNEL fma_f32(GLOBAL uint* answer, uint low, uint high, uint group0, uint steps) {
  LOCAL uint sum[1];
  const uint lane = LANE, item = (group0 + GROUP) * 256 + lane;
  const uint key = row_key(low, high, item);
  float x0 = FROM_BITS(0x3f000000u | (word_of(key, 0) >> 9)), x1 = FROM_BITS(0x3f000000u | (word_of(key, 1) >> 9));
  float x2 = FROM_BITS(0x3f000000u | (word_of(key, 2) >> 9)), x3 = FROM_BITS(0x3f000000u | (word_of(key, 3) >> 9));
  float x4 = FROM_BITS(0x3f000000u | (word_of(key, 4) >> 9)), x5 = FROM_BITS(0x3f000000u | (word_of(key, 5) >> 9));
  float x6 = FROM_BITS(0x3f000000u | (word_of(key, 6) >> 9)), x7 = FROM_BITS(0x3f000000u | (word_of(key, 7) >> 9));
  // c in -1.9375..-1.875: x*x + c neither settles nor grows.
  const float c = -(1.875f + FROM_BITS(0x3f800000u | (word_of(key, 8) >> 9)) * 0.0625f - 0.0625f);
  if (lane == 0) sum[0] = 0;
  for (uint step = 0; step < steps; ++step) {
    x0 = FMA(x0, x0, c);
    x1 = FMA(x1, x1, c);
    x2 = FMA(x2, x2, c);
    x3 = FMA(x3, x3, c);
    x4 = FMA(x4, x4, c);
    x5 = FMA(x5, x5, c);
    x6 = FMA(x6, x6, c);
    x7 = FMA(x7, x7, c);
  }
  uint hash = mix(BITS(x0) + key);
  hash = mix(BITS(x1) + hash);
  hash = mix(BITS(x2) + hash);
  hash = mix(BITS(x3) + hash);
  hash = mix(BITS(x4) + hash);
  hash = mix(BITS(x5) + hash);
  hash = mix(BITS(x6) + hash);
  hash = mix(BITS(x7) + hash);
  BARRIER;
  ADD(&sum[0], hash);
  BARRIER;
  if (lane == 0) answer[group0 + GROUP] = sum[0];
}

// Group g fills block block0 + g. Each lane walks four chains that cannot be entered in the middle.
KERNEL fill_memory(GLOBAL uint4* memory, uint low, uint high, uint block0, uint block_words) {
  const uint lane = LANE, block = block0 + GROUP, count = block_words / 1024;
  GLOBAL uint4* to = memory + (size_t)GROUP * (block_words / 4);
  const uint key = row_key(low, high, block);
  uint4 s;
  s.x = word_of(key, lane * 4);
  s.y = word_of(key, lane * 4 + 1);
  s.z = word_of(key, lane * 4 + 2);
  s.w = word_of(key, lane * 4 + 3);
  for (uint i = 0; i < count; ++i) {
    s.x = (s.x ^ (s.x >> 15)) * 0x2c1b3c6du + 0x297a2d39u;
    s.y = (s.y ^ (s.y >> 15)) * 0x2c1b3c6du + 0x297a2d39u;
    s.z = (s.z ^ (s.z >> 15)) * 0x2c1b3c6du + 0x297a2d39u;
    s.w = (s.w ^ (s.w >> 15)) * 0x2c1b3c6du + 0x297a2d39u;
    to[(size_t)i * 256 + lane] = s;
  }
}
KERNEL hash_memory(GLOBAL const uint4* memory, GLOBAL uint* answer, uint low, uint high, uint block0,
                   uint block_words) {
  LOCAL uint sum[1];
  const uint lane = LANE, block = block0 + GROUP, count = block_words / 1024;
  GLOBAL const uint4* from = memory + (size_t)GROUP * (block_words / 4);
  const uint start = word_of(row_key(low, high, block), lane);
  uint hx = start, hy = start, hz = start, hw = start;
  if (lane == 0) sum[0] = 0;
  for (uint i = 0; i < count; ++i) {
    const uint4 w = from[(size_t)i * 256 + lane];
    hx = (hx ^ w.x) * 0x9e3779b1u;
    hy = (hy ^ w.y) * 0x9e3779b1u;
    hz = (hz ^ w.z) * 0x9e3779b1u;
    hw = (hw ^ w.w) * 0x9e3779b1u;
  }
  BARRIER;
  ADD(&sum[0], mix(hx) + 3 * mix(hy) + 5 * mix(hz) + 7 * mix(hw));
  BARRIER;
  if (lane == 0) answer[block] = sum[0];
}

// Plain traffic, to be timed. `count` vectors, a multiple of 256 * GROUPS * 16.
KERNEL read_memory(GLOBAL const float4* from, GLOBAL float* out, uint count) {
  float x = 0, y = 0, z = 0, w = 0;
  const uint share = count / GROUPS;
  GLOBAL const float4* mine = from + (size_t)GROUP * share;
  for (uint i = LANE; i < share; i += 256) {
    const float4 v = mine[i];
    x += v.x;
    y += v.y;
    z += v.z;
    w += v.w;
  }
  const float total = x + y + z + w;
  if (total == 1.2345e30f) out[GROUP] = total;  // never, but no compiler knows
}
KERNEL copy_memory(GLOBAL const float4* from, GLOBAL float4* to, uint count) {
  const uint share = count / GROUPS;
  for (uint i = LANE; i < share; i += 256) to[(size_t)GROUP * share + i] = from[(size_t)GROUP * share + i];
}

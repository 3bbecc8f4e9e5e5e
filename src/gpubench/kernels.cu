// SPDX-License-Identifier: Apache-2.0
// kernels.cl for CUDA, and the products of 16-bit matrices on tensor cores. Compiled to PTX by scripts/make-ptx, not by
// the build: no machine that builds gridctl needs CUDA.
//
// GRIDCTL_PTX 70: wmma in fp16, from compute capability 7.0. GRIDCTL_PTX 80: mma.sync in fp16 and bf16, ldmatrix and
// cp.async, from 8.0.
#include "kernels.cl"

#include <cuda_fp16.h>

// Four entries of a row at once: an entry fits into both formats without rounding.
DEVICE uint as_f16(float value) { return __half_as_ushort(__float2half_rn(value)); }
DEVICE uint as_bf16(float value) { return BITS(value) >> 16; }
#define MAKE(NAME, CONVERT)                                                        \
  KERNEL NAME(uint2* out, uint low, uint high, uint row0, uint rows, uint words) { \
    for (uint row = GROUP; row < rows; row += GROUPS) {                            \
      const uint key = row_key(low, high, row0 + row);                             \
      for (uint at = LANE; at < words; at += 256) {                                \
        const uint word = word_of(key, at);                                        \
        uint2 four;                                                                \
        four.x = CONVERT(entry_of(word, 0)) | CONVERT(entry_of(word, 1)) << 16;    \
        four.y = CONVERT(entry_of(word, 2)) | CONVERT(entry_of(word, 3)) << 16;    \
        out[(size_t)row * words + at] = four;                                      \
      }                                                                            \
    }                                                                              \
  }
MAKE(make_f16, as_f16)

// Adds a warp's share to its part of the answer.
DEVICE void add_to_answer(uint* answer, uint part, uint hash, uint projection) {
  for (uint step = 16; step > 0; step /= 2) {
    hash += __shfl_xor_sync(0xffffffffu, hash, step);
    projection += __shfl_xor_sync(0xffffffffu, projection, step);
  }
  if ((LANE & 31u) == 0) {
    atomicAdd(&answer[2 * part], hash);
    atomicAdd(&answer[2 * part + 1], projection);
  }
}

#if GRIDCTL_PTX == 70
#include <mma.h>

// A group takes 128 x 128 of C = A B^T; each of its eight warps 64 x 32 in tiles of 16 x 16.
KERNEL gemm_f16(const __half* a, const __half* b, uint* answer, uint low, uint high, uint row0, uint rows_per_part,
                uint inner) {
  using namespace nvcuda;
  // 32 and a gap, so that rows begin in different banks. Fragments are taken from multiples of 32 bytes, rows are
  // written 16 bytes at once.
  __shared__ __align__(32) __half ta[128][40], tb[128][40];
  __shared__ __align__(32) float stage[8][16][20];
  const uint lane = LANE, warp = lane >> 5, warp_row = (warp >> 2) * 64, warp_column = (warp & 3u) * 32;
  const uint tile_row = GROUP_Y * 128, tile_column = GROUP * 128;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[4][2];
  for (uint i = 0; i < 4; ++i)
    for (uint j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
  for (uint k = 0; k < inner; k += 32) {
    for (uint i = 0; i < 2; ++i) {
      const uint chunk = lane + i * 256, row = chunk >> 2, at = (chunk & 3u) * 8;
      *(uint4*)&ta[row][at] = *(const uint4*)&a[(size_t)(tile_row + row) * inner + k + at];
      *(uint4*)&tb[row][at] = *(const uint4*)&b[(size_t)(tile_column + row) * inner + k + at];
    }
    BARRIER;
    for (uint step = 0; step < 32; step += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa[4];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb[2];
      for (uint i = 0; i < 4; ++i) wmma::load_matrix_sync(fa[i], &ta[warp_row + i * 16][step], 40);
      for (uint j = 0; j < 2; ++j) wmma::load_matrix_sync(fb[j], &tb[warp_column + j * 16][step], 40);
      for (uint i = 0; i < 4; ++i)
        for (uint j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], fa[i], fb[j], sum[i][j]);
    }
    BARRIER;
  }
  // How a fragment lies in registers is nobody's business: by way of shared memory.
  uint hash = 0, projection = 0;
  for (uint i = 0; i < 4; ++i)
    for (uint j = 0; j < 2; ++j) {
      wmma::store_matrix_sync(&stage[warp][0][0], sum[i][j], 20, wmma::mem_row_major);
      __syncwarp();
      for (uint e = lane & 31u; e < 256; e += 32) {
        const uint row = row0 + tile_row + warp_row + i * 16 + (e >> 4);
        const uint column = tile_column + warp_column + j * 16 + (e & 15u);
        const float value = stage[warp][e >> 4][e & 15u];
        const uint key = row_key(low ^ 0x68bc21ebu, high, row);
        hash += element_hash(value, key, column);
        projection += (uint)(int)value * projection_weight(low, high, column) * (key | 1u);
      }
      __syncwarp();
    }
  add_to_answer(answer, (row0 + tile_row) / rows_per_part, hash, projection);
}
#endif

#if GRIDCTL_PTX == 80
MAKE(make_bf16, as_bf16)

DEVICE void copy_async(uint to_shared, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to_shared), "l"(from) : "memory");
}
DEVICE void load_matrices(uint (&r)[4], uint from_shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from_shared)
               : "memory");
}
#define MMA(NAME, TYPE)                                                                 \
  DEVICE void NAME(float(&c)[4], const uint(&a)[4], uint b0, uint b1) {                 \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE                 \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                       \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));       \
  }
MMA(mma_f16, "f16")
MMA(mma_bf16, "bf16")

// Chunks of 16 bytes of a row of 32 entries, exchanged so that eight rows read at once lie in different banks.
DEVICE uint place_of(uint row, uint chunk) { return row * 64 + ((chunk ^ ((row >> 1) & 3u)) * 16); }

// A group takes 128 x 128 of C = A B^T, 32 of the inner dimension at a time, three such slices under way; each of its
// eight warps 64 x 32 in tiles of 16 x 8.
template <bool BF16>
DEVICE void gemm_16(const ushort* a, const ushort* b, uint* answer, uint low, uint high, uint row0, uint rows_per_part,
                    uint inner) {
  __shared__ __align__(128) unsigned char slices[3][2][128 * 64];
  const uint lane = LANE, warp = lane >> 5, in_warp = lane & 31u;
  const uint warp_row = (warp >> 2) * 64, warp_column = (warp & 3u) * 32;
  const uint tile_row = GROUP_Y * 128, tile_column = GROUP * 128;
  const uint base = (uint)__cvta_generic_to_shared(slices);
  const ushort* from_a = a + (size_t)tile_row * inner;
  const ushort* from_b = b + (size_t)tile_column * inner;
  float sum[4][4][4];
#pragma unroll
  for (uint i = 0; i < 4; ++i)
#pragma unroll
    for (uint j = 0; j < 4; ++j)
#pragma unroll
      for (uint e = 0; e < 4; ++e) sum[i][j][e] = 0.0f;

  const uint count = inner / 32;
  auto fetch = [&](uint slice) {
    if (slice < count) {
      const uint to = base + (slice % 3) * 16384;
#pragma unroll
      for (uint i = 0; i < 2; ++i) {
        const uint piece = lane + i * 256, row = piece >> 2, chunk = piece & 3u;
        copy_async(to + place_of(row, chunk), from_a + (size_t)row * inner + slice * 32 + chunk * 8);
        copy_async(to + 8192 + place_of(row, chunk), from_b + (size_t)row * inner + slice * 32 + chunk * 8);
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  fetch(0);
  fetch(1);
  for (uint slice = 0; slice < count; ++slice) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    BARRIER;
    fetch(slice + 2);  // into what was read before the barrier
    const uint in_a = base + (slice % 3) * 16384, in_b = in_a + 8192;
#pragma unroll
    for (uint step = 0; step < 2; ++step) {
      uint fa[4][4], fb[2][4];
#pragma unroll
      for (uint i = 0; i < 4; ++i)
        load_matrices(fa[i], in_a + place_of(warp_row + i * 16 + (in_warp & 15u), step * 2 + (in_warp >> 4)));
#pragma unroll
      for (uint j = 0; j < 2; ++j)
        load_matrices(fb[j], in_b + place_of(warp_column + j * 16 + (in_warp & 7u) + ((in_warp >> 4) << 3),
                                             step * 2 + ((in_warp >> 3) & 1u)));
#pragma unroll
      for (uint i = 0; i < 4; ++i)
#pragma unroll
        for (uint j = 0; j < 4; ++j) {
          if (BF16) mma_bf16(sum[i][j], fa[i], fb[j >> 1][(j & 1u) * 2], fb[j >> 1][(j & 1u) * 2 + 1]);
          else mma_f16(sum[i][j], fa[i], fb[j >> 1][(j & 1u) * 2], fb[j >> 1][(j & 1u) * 2 + 1]);
        }
    }
  }
  uint hash = 0, projection = 0;
#pragma unroll
  for (uint i = 0; i < 8; ++i) {  // rows of eight: of each tile the upper half, then the lower
    const uint row = row0 + tile_row + warp_row + i * 8 + (in_warp >> 2);
    const uint key = row_key(low ^ 0x68bc21ebu, high, row);
    uint row_projection = 0;
#pragma unroll
    for (uint j = 0; j < 4; ++j)
#pragma unroll
      for (uint e = 0; e < 2; ++e) {
        const uint column = tile_column + warp_column + j * 8 + (in_warp & 3u) * 2 + e;
        const float value = sum[i >> 1][j][(i & 1u) * 2 + e];
        hash += element_hash(value, key, column);
        row_projection += (uint)(int)value * projection_weight(low, high, column);
      }
    projection += row_projection * (key | 1u);
  }
  add_to_answer(answer, (row0 + tile_row) / rows_per_part, hash, projection);
}
KERNEL gemm_f16(const ushort* a, const ushort* b, uint* answer, uint low, uint high, uint row0, uint rows_per_part,
                uint inner) {
  gemm_16<false>(a, b, answer, low, high, row0, rows_per_part, inner);
}
KERNEL gemm_bf16(const ushort* a, const ushort* b, uint* answer, uint low, uint high, uint row0, uint rows_per_part,
                 uint inner) {
  gemm_16<true>(a, b, answer, low, high, row0, rows_per_part, inner);
}
#endif

// SPDX-License-Identifier: Apache-2.0
// kernels.cl for CUDA, and the products of 16-bit matrices on tensor cores. Compiled to PTX by scripts/make-ptx, not by
// the build: no machine that builds gridctl needs CUDA.
//
// GRIDCTL_PTX 70: wmma in fp16, from compute capability 7.0. GRIDCTL_PTX 80: mma.sync in fp16 and bf16, ldmatrix and
// cp.async, from 8.0. GRIDCTL_PTX 90: wgmma and bulk copies, for compute capability 9.0 alone.
#if GRIDCTL_PTX == 90
#define KERNEL static __device__ void  // stands in the other files: what nobody calls is left out
#endif
#include "kernels.cl"

#include <cuda_fp16.h>

// Four entries of a row at once: an entry fits into both formats without rounding.
DEVICE uint as_f16(float value) { return __half_as_ushort(__float2half_rn(value)); }
DEVICE uint as_bf16(float value) { return BITS(value) >> 16; }
#if GRIDCTL_PTX != 90
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
#endif

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
// Adds a product that a library has made to the answers of its rows' parts: a group takes a row.
KERNEL hash_product(const float* c, uint* answer, uint low, uint high, uint row0, uint rows_per_part, uint columns) {
  const uint row = row0 + GROUP, key = row_key(low ^ 0x68bc21ebu, high, row);
  uint hash = 0, projection = 0;
  for (uint column = LANE; column < columns; column += 256) {
    const float value = c[(size_t)GROUP * columns + column];
    hash += element_hash(value, key, column);
    projection += (uint)(int)value * projection_weight(low, high, column);
  }
  add_to_answer(answer, row / rows_per_part, hash, projection * (key | 1u));
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

#if GRIDCTL_PTX == 90
// A and B lie in tiles of 128 rows and 64 of the inner dimension, 16 KiB each, as wgmma reads them from shared memory
// with its 128-byte swizzle: a bulk copy of one tile is all that is to be done.
constexpr uint k_tile_bytes = 128 * 128;
constexpr uint k_stages = 4, k_stage_bytes = 3 * k_tile_bytes;  // one tile of A, two of B
extern "C" __global__ void __launch_bounds__(256)
    make_wide_bf16(unsigned char* out, uint low, uint high, uint row0, uint rows, uint words) {
  for (uint row = GROUP; row < rows; row += GROUPS) {
    const uint key = row_key(low, high, row0 + row), r = row & 127u;
    unsigned char* to = out + (size_t)(row >> 7) * (words / 16) * k_tile_bytes + r * 128;
    for (uint at = LANE; at < words; at += 256) {
      const uint word = word_of(key, at), chunk = (at & 15u) >> 1;
      uint2 four;
      four.x = as_bf16(entry_of(word, 0)) | as_bf16(entry_of(word, 1)) << 16;
      four.y = as_bf16(entry_of(word, 2)) | as_bf16(entry_of(word, 3)) << 16;
      *(uint2*)(to + (size_t)(at >> 4) * k_tile_bytes + ((chunk ^ (r & 7u)) * 16) + (at & 1u) * 8) = four;
    }
  }
}

// --- barriers in shared memory; two groups of a cluster share what they fetch ----------------------------------------
DEVICE void init_barrier(uint barrier, uint count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
DEVICE void expect_bytes(uint barrier, uint bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
DEVICE void arrive_at(uint barrier, uint rank) {
  asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
               "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(barrier), "r"(rank)
               : "memory");
}
DEVICE void wait_for(uint barrier, uint parity) {
  asm volatile("{\n.reg .pred done;\nagain:\n"
               "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
               "@!done bra again;\n}" ::"r"(barrier), "r"(parity)
               : "memory");
}
DEVICE void fetch_tile(uint to, const unsigned char* from, uint barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(k_tile_bytes), "r"(barrier)
               : "memory");
}
// The tile and the barrier's count of it arrive at the same places of both groups.
DEVICE void fetch_tile_for_both(uint to, const unsigned char* from, uint barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], "
               "%4;" ::"r"(to),
               "l"(from), "r"(k_tile_bytes), "r"(barrier), "h"((ushort)3)
               : "memory");
}
DEVICE void meet_the_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Rows of 128 bytes, eight rows of them 1024 bytes apart from the next eight, 128-byte swizzle.
DEVICE unsigned long long descriptor_of(uint address) {
  return (unsigned long long)((address & 0x3ffffu) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}
#define FLOATS_8(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), "+f"(c[i + 6]), "+f"(c[i + 7])
#define FLOATS_32(i) FLOATS_8(i), FLOATS_8(i + 8), FLOATS_8(i + 16), FLOATS_8(i + 24)
// 64 x 256 of C += 16 of the inner dimension, by four warps; the first addition forgets what C was.
#define REGISTERS_128 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, " \
  "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, " \
  "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, " \
  "%59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, " \
  "%78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, " \
  "%97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, " \
  "%113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
DEVICE void wgmma_bf16(float (&c)[128], unsigned long long a, unsigned long long b, int keep) {
  asm volatile("{\n.reg .pred keeps;\nsetp.ne.b32 keeps, %130, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" REGISTERS_128
               "}, %128, %129, keeps, 1, 1, 0, 0;\n}"
               : FLOATS_32(0), FLOATS_32(32), FLOATS_32(64), FLOATS_32(96)
               : "l"(a), "l"(b), "r"(keep));
}

// A group takes 128 x 256 of C = A B^T: eight warps multiply, 64 rows each four of them, and one lane of four more
// fetches, up to four slices of 64 of the inner dimension ahead. Two groups that take the same columns fetch half of
// B's slice each, for both.
extern "C" __global__ void __launch_bounds__(384, 1) __cluster_dims__(1, 2, 1)
    gemm_wide_bf16(const unsigned char* a, const unsigned char* b, uint* answer, uint low, uint high, uint row0,
                   uint rows_per_part, uint inner) {
  extern __shared__ unsigned char raw[];
  __shared__ __align__(8) unsigned long long barriers[2 * k_stages];
  const uint slices = ((uint)__cvta_generic_to_shared(raw) + 1023u) & ~1023u;  // the swizzle counts from there
  const uint full = (uint)__cvta_generic_to_shared(barriers), empty = full + 8 * k_stages;
  const uint count = inner / 64, warps = threadIdx.x >> 7;  // 0: those that fetch, 1 and 2: those that multiply
  uint rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    for (uint i = 0; i < k_stages; ++i) {
      init_barrier(full + 8 * i, 1);
      init_barrier(empty + 8 * i, 4);  // both halves of both groups
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  meet_the_cluster();
  if (warps == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      const unsigned char* from_a = a + (size_t)GROUP_Y * count * k_tile_bytes;
      const unsigned char* from_b = b + (size_t)(GROUP * 2 + rank) * count * k_tile_bytes;
      for (uint slice = 0; slice < count; ++slice) {
        const uint stage = slice % k_stages, round = slice / k_stages;
        const uint to = slices + stage * k_stage_bytes, barrier = full + 8 * stage;
        if (round > 0) wait_for(empty + 8 * stage, (round - 1) & 1u);
        expect_bytes(barrier, k_stage_bytes);
        fetch_tile(to, from_a + (size_t)slice * k_tile_bytes, barrier);
        fetch_tile_for_both(to + (1 + rank) * k_tile_bytes, from_b + (size_t)slice * k_tile_bytes, barrier);
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    float sum[128];
#pragma unroll
    for (uint i = 0; i < 128; ++i) sum[i] = 0.0f;
    const uint lane = threadIdx.x & 127u;
    for (uint slice = 0; slice < count; ++slice) {
      const uint stage = slice % k_stages, in = slices + stage * k_stage_bytes;
      wait_for(full + 8 * stage, (slice / k_stages) & 1u);
      const unsigned long long from_a = descriptor_of(in + (warps - 1) * (k_tile_bytes / 2));
      const unsigned long long from_b = descriptor_of(in + k_tile_bytes);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (uint step = 0; step < 4; ++step)  // 16 entries are 32 bytes, 2 units of a descriptor
        wgmma_bf16(sum, from_a + step * 2, from_b + step * 2, slice + step != 0);
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
      if (slice > 0 && lane < 2) arrive_at(empty + 8 * ((slice - 1) % k_stages), lane);
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    const uint first_row = GROUP_Y * 128 + (warps - 1) * 64 + (lane >> 5) * 16 + ((lane & 31u) >> 2);
    uint hash = 0, projection = 0;
#pragma unroll
    for (uint half = 0; half < 2; ++half) {
      const uint key = row_key(low ^ 0x68bc21ebu, high, row0 + first_row + half * 8);
      uint row_projection = 0;
#pragma unroll
      for (uint i = 0; i < 64; ++i) {
        const uint column = GROUP * 256 + (i >> 1) * 8 + (lane & 3u) * 2 + (i & 1u);
        const float value = sum[(i >> 1) * 4 + half * 2 + (i & 1u)];
        hash += element_hash(value, key, column);
        row_projection += (uint)(int)value * projection_weight(low, high, column);
      }
      projection += row_projection * (key | 1u);
    }
    add_to_answer(answer, (row0 + GROUP_Y * 128) / rows_per_part, hash, projection);
  }
  meet_the_cluster();  // nothing may still arrive at a group that has ended
}
#endif

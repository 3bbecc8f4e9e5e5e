// SPDX-License-Identifier: Apache-2.0
// What tests/bench/store.py needs of us: series of checkpoints, and one process for each save or restore, as the peers
// have. Built by `ninja store_bench`.
#include <sys/resource.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "control/copies/chunks.hpp"
#include "os/files.hpp"
#include "os/priority.hpp"
#include "store/copy_out.hpp"
#include "store/file_workers.hpp"
#include "store/stored_tree.hpp"
#include "store/tree.hpp"

namespace gridctl {
namespace {

constexpr std::size_t k_megabyte = 1'000'000;

// Gaussian numbers from a generator that does not hold up the disk: sums of uniform ones.
class Gauss {
 public:
  explicit Gauss(std::uint64_t seed) : x_(seed * 0x9E3779B97F4A7C15ull + 1) {}
  float next() {
    x_ ^= x_ << 13, x_ ^= x_ >> 7, x_ ^= x_ << 17;
    std::uint64_t sum = 0;
    for (int shift = 0; shift < 64; shift += 16) sum += x_ >> shift & 0xFFFF;
    const std::uint64_t fine = x_ * 0x2545F4914F6CDD1Dull >> 44;  // low bits: without them few values would be possible
    return (static_cast<float>(sum) + static_cast<float>(fine) * 0x1p-20F - 131071.0F) / 37837.0F;
  }

 private:
  std::uint64_t x_;
};

struct Tensor {
  std::string name, dtype;
  std::vector<std::byte> bytes;
};

template <class T>
Tensor tensor(std::string name, std::string dtype, const std::vector<T>& values) {
  Tensor made{std::move(name), std::move(dtype), std::vector<std::byte>(values.size() * sizeof(T))};
  std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  return made;
}

void save(const os::Path& path, const std::vector<Tensor>& tensors) {
  std::string header = "{";
  std::size_t at = 0;
  for (const Tensor& one : tensors) {
    const std::size_t width = one.dtype == "BF16" ? 2 : 4, end = at + one.bytes.size();
    header += std::string(at == 0 ? "" : ",") + "\"" + one.name + "\":{\"dtype\":\"" + one.dtype + "\",\"shape\":[" +
              std::to_string(one.bytes.size() / width) + "],\"data_offsets\":[" + std::to_string(at) + "," +
              std::to_string(end) + "]}";
    at = end;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::ofstream file(path, std::ios::binary);
  const std::uint64_t length = header.size();
  file.write(reinterpret_cast<const char*>(&length), sizeof length) << header;
  for (const Tensor& one : tensors)
    file.write(reinterpret_cast<const char*>(one.bytes.data()), static_cast<std::streamsize>(one.bytes.size()));
}

std::vector<std::uint16_t> bf16(Gauss& random, std::size_t count) {
  std::vector<std::uint16_t> values(count);
  for (auto& value : values)
    value = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(random.next() * 0.02F) >> 16);
  return values;
}

// Weights and both moments of Adam, as they are after `steps` more steps: m forgets quickly (0.9), v slowly (0.999).
struct Trained {
  std::vector<float> weights, m, v;
  explicit Trained(std::size_t count) : weights(count), m(count), v(count) {}
  void begin(Gauss& random) {
    for (float& w : weights) w = random.next() * 0.02F;
    for (float& value : v) value = 1e-6F * (0.5F + std::abs(random.next()));
    for (float& value : m) value = random.next() * 1e-4F;
  }
  void train(Gauss& random) {
    constexpr float k_moved = 3e-4F, k_kept = 0.905F;  // 100 steps at a rate of 1e-4; 0.999 to the 100th
    for (float& w : weights) w += random.next() * k_moved;
    for (float& value : m) value = random.next() * 1e-4F;
    for (float& value : v) value = k_kept * value + (1 - k_kept) * 1e-6F * (0.5F + std::abs(random.next()));
  }
};

void make_lora(const os::Path& dir, int save_number) {
  Gauss frozen(1), random(100);
  constexpr int k_layers = 20;
  std::vector<Tensor> base;
  for (int layer = 0; layer < k_layers; ++layer)
    base.push_back(tensor("layers." + std::to_string(layer), "BF16", bf16(frozen, 500 * k_megabyte / k_layers / 2)));
  Trained adapter(k_megabyte);
  adapter.begin(random);
  for (int i = 0; i < save_number; ++i) adapter.train(random);
  save(dir / "model.safetensors", base);
  save(dir / "adapter.safetensors", {tensor("lora", "F32", adapter.weights)});
  save(dir / "optimizer.safetensors", {tensor("m", "F32", adapter.m), tensor("v", "F32", adapter.v)});
}

void make_full(const os::Path& dir, int save_number) {
  Gauss random(200);
  constexpr std::size_t k_layers = 10, k_count = 300 * k_megabyte / 12 / k_layers;
  std::vector<Tensor> weights, moments;
  for (std::size_t layer = 0; layer < k_layers; ++layer) {
    Trained part(k_count);
    part.begin(random);
    for (int i = 0; i < save_number; ++i) part.train(random);
    const std::string name = "layers." + std::to_string(layer);
    weights.push_back(tensor(name, "F32", part.weights));
    moments.push_back(tensor(name + ".m", "F32", part.m));
    moments.push_back(tensor(name + ".v", "F32", part.v));
  }
  save(dir / "model.safetensors", weights);
  save(dir / "optimizer.safetensors", moments);
}

// A tenth of them differs from save to save.
void make_small(const os::Path& dir, int save_number) {
  for (int i = 0; i < 10'000; ++i) {
    Gauss random(static_cast<std::uint64_t>(i) + (i % 10 == 0 ? 20'000u * static_cast<unsigned>(save_number) : 0u));
    const os::Path folder = dir / std::to_string(i / 100);
    if (i % 100 == 0) std::filesystem::create_directories(folder);
    std::string text;
    for (int line = 0; line < 1 + i % 60; ++line)
      text += "step " + std::to_string(line) + " loss " + std::to_string(random.next()) + "\n";
    std::ofstream(folder / (std::to_string(i) + ".txt")) << text;
  }
}

Result<store::Tree> tree_of(store::ChunkStore& chunks, const std::string& root) {
  TRY_ASSIGN(const Digest digest, parse_digest(root));
  TRY_ASSIGN(const Bytes manifest, chunks.get(digest));
  return store::parse_manifest(manifest);
}

// `previous`: the root of the save before, or empty.
Result<void> save_checkpoint(const os::Path& state, const os::Path& dir, const std::string& previous) {
  TRY_ASSIGN(store::ChunkStore chunks, control::open_chunks({state}));
  std::optional<Digest> before;
  if (!previous.empty()) {
    TRY_ASSIGN(before, parse_digest(previous));
  }
  TRY_ASSIGN(const store::StoredTree made, store::store_tree(chunks, dir, {}, before));
  std::printf("%s\n", to_hex(made.root).c_str());
  return {};
}

Result<void> restore(const os::Path& state, const std::string& root, const os::Path& dir) {
  TRY_ASSIGN(store::ChunkStore chunks, control::open_chunks({state}));
  TRY_ASSIGN(const store::Tree tree, tree_of(chunks, root));
  return store::copy_out(tree, chunks, dir, store::threads_here());
}

int usage() {
  std::fprintf(
      stderr,
      "usage: store_bench make lora|full|small NUMBER DIR | save STATE DIR [PREVIOUS] | restore STATE ROOT DIR\n");
  return 2;
}

int run(const std::vector<std::string>& words) {
  if (words.size() == 4 && words[0] == "make") {
    const int number = std::stoi(words[2]);
    std::filesystem::create_directories(words[3]);
    if (words[1] == "lora") make_lora(words[3], number);
    else if (words[1] == "full") make_full(words[3], number);
    else if (words[1] == "small") make_small(words[3], number);
    else return usage();
    return 0;
  }
  Result<void> done;
  if ((words.size() == 3 || words.size() == 4) && words[0] == "save")
    done = save_checkpoint(words[1], words[2], words.size() == 4 ? words[3] : "");
  else if (words.size() == 4 && words[0] == "restore") done = restore(words[1], words[2], words[3]);
  else return usage();
  if (!done) std::fprintf(stderr, "store_bench: %s\n", done.error().one_line().c_str());
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  std::fprintf(stderr, "peak %ld KiB\n", use.ru_maxrss);
  return done ? 0 : 1;
}

}  // namespace
}  // namespace gridctl

int main(int argc, char** argv) {
  gridctl::os::keep_freed_memory();
  return gridctl::run({argv + 1, argv + argc});
}

// SPDX-License-Identifier: Apache-2.0
// Builds the working directory of a bag's last step: the submitted files, and over them the files that the tasks left.
#include <algorithm>
#include <map>

#include "control/copies/chunks.hpp"
#include "control/follow/bag_results.hpp"
#include "crypto/sha256.hpp"
#include "store/tree.hpp"
#include "store/stored_tree.hpp"

namespace gridctl::control {

namespace {

constexpr std::size_t k_missing_named = 20;

// Records where the output of a task is. There may be a million tasks, so nothing else is kept for each.
struct Kept {
  bag::Worker worker;
  std::uint64_t offset = 0, file_bytes = 0;
  std::uint32_t bytes = 0, error_bytes = 0;
};

// Writes a file of a tree from pieces of its content.
class Writer {
 public:
  Writer(store::ChunkStore& chunks, std::string path, std::uint32_t mode) : chunks_(chunks) {
    entry_.path = std::move(path);
    entry_.mode = static_cast<std::uint16_t>((mode & 0755) | 0600);
  }
  Result<void> copy(const BagResults& from, const TaskEnded& task, std::uint64_t begin, std::uint64_t size) {
    for (const std::uint64_t end = begin + size; begin < end;) {
      TRY_ASSIGN(const std::string piece, from.read(task, begin, std::min(end - begin, store::k_chunk_max - pending_.size())));
      if (piece.empty()) return make_error(Code::io, "the output of the bag has shrunk");
      begin += piece.size();
      pending_ += piece;
      if (pending_.size() == store::k_chunk_max) TRY(flush());
    }
    return {};
  }
  Result<store::Entry> finish() {
    if (!pending_.empty()) TRY(flush());
    return std::move(entry_);
  }

 private:
  Result<void> flush() {
    const Digest digest = crypto::sha256(as_bytes(pending_));
    TRY(chunks_.put_hashed(digest, as_bytes(pending_)));
    entry_.chunks.push_back({digest, static_cast<std::uint32_t>(pending_.size())});
    entry_.size += pending_.size();
    pending_.clear();
    return {};
  }
  store::ChunkStore& chunks_;
  store::Entry entry_;
  std::string pending_;
};

// If two tasks left a file with the same name, the later task's file counts; if a folder is needed there, the folder
// wins.
Result<store::Tree> tree_of_files(std::map<std::string, store::Entry> files) {
  std::map<std::string, store::Entry> all;
  for (auto& [path, file] : files) {
    for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      store::Entry& folder = all[path.substr(0, slash)];
      folder = {store::EntryKind::directory, 0755, path.substr(0, slash), 0, {}, {}};
    }
    if (const auto known = all.find(path); known == all.end() || known->second.kind != store::EntryKind::directory)
      all[path] = std::move(file);
  }
  std::vector<store::Entry> entries;
  for (auto& [path, entry] : all) entries.push_back(std::move(entry));
  return store::make_tree(std::move(entries));
}

}  // namespace

Result<GatheredTasks> gather_tasks(const Paths& paths, const JobId& job, const job::Spec& spec,
                                   const std::optional<Digest>& below) {
  BagResults results(paths.bag_of(job));
  std::map<bag::Index, Kept> kept;
  TRY(results.read_on([&](const TaskEnded& one) {
    const wire::TaskResult& its = one.result;
    if (its.succeeded()) kept[one.index] = {one.worker, its.offset, its.file_bytes, its.bytes, its.error_bytes};
  }));
  TRY_ASSIGN(store::ChunkStore chunks, open_chunks(paths));
  std::map<std::string, store::Entry> files;
  Writer printed(chunks, k_tasks_printed, 0644);
  bag::Ranges missing;
  for (const auto& [index, one] : kept) {
    TaskEnded task{index, one.worker, {}, {}};
    task.result.offset = one.offset;
    task.result.bytes = one.bytes;
    task.result.error_bytes = one.error_bytes;
    task.result.file_bytes = one.file_bytes;
    TRY_ASSIGN(const bool here, results.has_all_of(task));
    if (!here) {
      missing.add({index, 1});
      continue;
    }
    TRY(printed.copy(results, task, 0, one.bytes));
    const std::string folder = spec.tasks->folder ? "tasks/" + std::to_string(index) + "/" : "";
    const auto keep = [&](const TaskFile& file) -> Result<void> {
      Writer content(chunks, folder + file.path, file.mode);
      TRY(content.copy(results, task, file.begin, file.size));
      TRY_ASSIGN(files[folder + file.path], content.finish());
      return {};
    };
    TRY(each_file(results, task, keep));
  }
  TRY_ASSIGN(store::Entry all_printed, printed.finish());
  if (all_printed.size > 0) files.emplace(k_tasks_printed, std::move(all_printed));
  TRY_ASSIGN(store::Tree tree, tree_of_files(std::move(files)));
  if (below) {
    TRY_ASSIGN(const store::Tree its, store::tree_at(chunks, *below));
    TRY_ASSIGN(tree, store::overlay(its, tree));
  }
  TRY_ASSIGN(const Digest root, store::put_tree(chunks, tree));
  TRY(chunks.seal());
  return GatheredTasks{root, tree.total_bytes(), bag::to_text(missing.list(), k_missing_named)};
}

}  // namespace gridctl::control

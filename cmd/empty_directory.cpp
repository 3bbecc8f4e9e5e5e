// SPDX-License-Identifier: Apache-2.0
#include "cmd/empty_directory.hpp"

#include <atomic>

#include "control/reach/disk_reserve.hpp"
#include "os/entries.hpp"
#include "store/copy_out.hpp"

namespace gridctl::cmd {

Result<void> check_empty(const os::Path& directory, std::string_view what) {
  if (!os::exists(directory)) return {};
  TRY_ASSIGN(const std::optional<os::FileStatus> status, os::status_of(directory));
  if (status && status->kind != os::FileKind::directory)
    return make_error(Code::exists, directory.string() + " exists and is not a directory");
  TRY_ASSIGN(const std::vector<std::string> names, os::list_directory(directory));
  if (names.empty() || os::exists(directory / store::k_partial_mark)) return {};
  return make_error(Code::exists, directory.string() + " is not empty: " + std::string(what) +
                                      " copied only into a new or empty directory");
}

namespace {
class Watched : public store::ChunkReader {
 public:
  explicit Watched(store::ChunkReader& chunks) : chunks_(chunks) {}
  Result<Bytes> read(const Digest& digest) override {
    Result<Bytes> bytes = chunks_.read(digest);
    if (!bytes) failed_ = true;
    return bytes;
  }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  store::ChunkReader& chunks_;
  std::atomic<bool> failed_ = false;
};
}  // namespace

Result<void> copy_into(const os::Path& directory, const store::Tree& tree, store::ChunkReader& chunks, unsigned threads,
                       const std::string& again) {
  Watched source(chunks);
  const auto copy = [&]() -> Result<void> {
    TRY(control::check_room(directory, tree.disk_bytes()));
    return store::copy_out(tree, source, directory, threads,
                           [&](std::uint64_t more) { return control::check_room(directory, more); });
  };
  Result<void> copied = copy();
  // No chunk is missing, and no state directory is damaged: the named directory cannot be filled.
  if (const Code code = copied ? Code::internal : copied.error().code;
      (code == Code::io || code == Code::not_found) && !source.failed())
    return make_error(Code::exists, copied.error().one_line());
  if (copied || copied.error().code != Code::no_space) return copied;
  return std::move(copied).error().with_hint(again + " DIR-ON-A-LARGER-DISK");
}

}  // namespace gridctl::cmd

// SPDX-License-Identifier: Apache-2.0
// What tests/bench/s3.py needs of us: `s3_bench put|get DIRECTORY PREFIX THREADS` moves the files of a directory to or
// from the bucket "bench", each thread with a connection of its own. `s3_bench make - - 0` makes the bucket.
#include <fcntl.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "crypto/sha256.hpp"
#include "http/client.hpp"
#include "os/entries.hpp"
#include "os/files.hpp"
#include "transfer/s3.hpp"
#include "transfer/s3_credentials.hpp"
#include "transfer/s3_sign.hpp"

namespace gridctl {
namespace {

std::string endpoint() { return os::environment("GRIDCTL_S3_ENDPOINT").value_or(""); }

Result<void> make_bucket() {
  TRY_ASSIGN(const transfer::S3Login login, transfer::find_s3_login({}, transfer::s3_surroundings()));
  const transfer::S3Signed ready = transfer::sign({"PUT", endpoint(), "/bench", {}, {}}, login.credentials,
                                                  {"us-east-1", os::system_clock().wall()}, to_hex(crypto::sha256({})));
  http::Request request;
  request.method = "PUT";
  request.url = ready.url;
  request.headers = ready.headers;
  request.body = http::source_of({});
  http::Client client;
  TRY_ASSIGN(const http::Answer answer, client.perform(request));
  return answer.status == 200 ? Result<void>{} : make_error(Code::refused, "no bucket");
}

Result<void> put_file(store::Backend& remote, const os::Path& path) {
  TRY_ASSIGN(const os::Fd file, os::open_file(path, O_RDONLY));
  TRY_ASSIGN(const os::FileStatus status, os::status_of(file.get()));
  return remote.put("packs/" + path.filename().native(), status.size,
                   [&](std::uint64_t offset, std::size_t size) -> Result<Bytes> {
                     Bytes bytes(size);
                     TRY_ASSIGN(const std::size_t got, os::read_at(file.get(), bytes, offset));
                     bytes.resize(got);
                     return bytes;
                   });
}

Result<void> get_file(store::Backend& remote, const store::Object& object, const os::Path& folder) {
  TRY_ASSIGN(const os::Fd file, os::open_file(folder / object.name.substr(6), O_WRONLY | O_CREAT | O_TRUNC));
  for (std::uint64_t offset = 0; offset < object.size;) {
    TRY_ASSIGN(const Bytes part, remote.read(object.name, offset, store::k_object_read_max));
    if (part.empty()) return make_error(Code::io, "it ended early");
    TRY(os::write_at(file.get(), part, offset));
    offset += part.size();
  }
  return {};
}

// Each item by whichever thread is free.
template <class Item, class Do>
int on_threads(const std::string& prefix, const std::vector<Item>& items, unsigned threads, const Do& work) {
  std::atomic<std::size_t> next = 0;
  std::atomic<int> failures = 0;
  std::vector<std::thread> crew;
  for (unsigned i = 0; i < threads; ++i)
    crew.emplace_back([&] {
      const auto remote = transfer::open_s3({"bench", prefix, endpoint(), {}, {}});
      for (std::size_t at = next++; at < items.size(); at = next++)
        if (const Result<void> done = work(**remote, items[at]); !done) {
          std::fprintf(stderr, "%s\n", done.error().one_line().c_str());
          ++failures;
        }
    });
  for (std::thread& thread : crew) thread.join();
  return failures == 0 ? 0 : 1;
}

int run(const std::string& verb, const os::Path& folder, const std::string& prefix, unsigned threads) {
  if (verb == "make") return make_bucket() ? 0 : 1;
  if (verb == "put") {
    std::vector<os::Path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
    return on_threads(prefix, files, threads,
                      [](store::Backend& remote, const os::Path& path) { return put_file(remote, path); });
  }
  const auto remote = transfer::open_s3({"bench", prefix, endpoint(), {}, {}});
  const auto objects = (*remote)->list("packs/");
  if (!objects) return 1;
  return on_threads(prefix, *objects, threads,
                    [&](store::Backend& from, const store::Object& object) { return get_file(from, object, folder); });
}

}  // namespace
}  // namespace gridctl

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  return gridctl::run(argv[1], argv[2], argv[3], static_cast<unsigned>(std::stoul(argv[4])));
}

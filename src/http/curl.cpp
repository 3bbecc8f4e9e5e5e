// SPDX-License-Identifier: Apache-2.0
#include "http/curl.hpp"

#include <dlfcn.h>

#include <string>

#include "base/text.hpp"
#include "os/process.hpp"

namespace gridctl::http {

namespace {
constexpr const char* k_hint = "sudo apt-get install libcurl4";

[[maybe_unused]] Result<void> find_in_library(Curl& into) {
  const auto fails = [] {
    const char* said = ::dlerror();
    return make_error(Code::unsupported, "libcurl cannot be used: " + sanitize(said == nullptr ? "no reason given" : said), k_hint);
  };
  void* const library = ::dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fails();
#define X(name)                                                                             \
  into.name = reinterpret_cast<decltype(into.name)>(::dlsym(library, "curl_" #name)); \
  if (into.name == nullptr) return fails();
  GRIDCTL_CURL_FUNCTIONS(X)
#undef X
  return {};
}

Result<Curl> load() {
  Curl loaded;
#ifdef GRIDCTL_CURL_LINKED
#define X(name) loaded.name = &::curl_##name;
  GRIDCTL_CURL_FUNCTIONS(X)
#undef X
#else
  TRY(find_in_library(loaded));
#endif
  if (loaded.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return make_error(Code::internal, "libcurl cannot be initialized", k_hint);
  os::ignore_broken_pipes();  // OpenSSL writes to sockets without MSG_NOSIGNAL
  return loaded;
}
}  // namespace

Result<const Curl*> curl() {
  static const Result<Curl> loaded = load();
  if (!loaded) return loaded.error();
  return &*loaded;
}

}  // namespace gridctl::http

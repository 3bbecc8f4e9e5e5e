// SPDX-License-Identifier: Apache-2.0
// Loads libcurl when the first request is sent. It brings 27 other libraries: linked to the program, they cost each command
// three times what it needs to start otherwise. A program that is linked statically has libcurl within itself.
#pragma once

#include <curl/curl.h>

#include "base/result.hpp"

namespace gridctl::http {

#define GRIDCTL_CURL_FUNCTIONS(X)                                                                                        \
  X(easy_cleanup) X(easy_getinfo) X(easy_init) X(easy_reset) X(easy_setopt) X(easy_strerror) X(getdate) X(global_init)    \
  X(multi_add_handle) X(multi_cleanup) X(multi_info_read) X(multi_init) X(multi_perform) X(multi_poll)                    \
  X(multi_remove_handle) X(slist_append) X(slist_free_all) X(version_info)

struct Curl {
#define X(name) decltype(&::curl_##name) name = nullptr;
  GRIDCTL_CURL_FUNCTIONS(X)
#undef X
};

// Returns libcurl's functions, ready for use, for as long as the program runs. Code::unsupported: the library is not installed,
// or is none that this program can use. Any thread.
[[nodiscard]] Result<const Curl*> curl();

}  // namespace gridctl::http

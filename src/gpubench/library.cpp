// SPDX-License-Identifier: Apache-2.0
#include "gpubench/library.hpp"

#include <dlfcn.h>

#include <cstring>

namespace gridctl::gpubench {

Result<void> load(const std::vector<const char*>& names, std::span<const Entry> entries) {
  void* library = nullptr;
  std::string why;
  for (const char* name : names) {
    library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    const char* said = ::dlerror();
    if (why.empty() && said != nullptr) why = said;
  }
  if (library == nullptr) return make_error(Code::unsupported, "cannot load the driver's library: " + why);
  for (const Entry& entry : entries) {
    void* address = ::dlsym(library, entry.name);
    if (address == nullptr)
      return make_error(Code::unsupported, std::string("the driver's library has no ") + entry.name);
    std::memcpy(entry.address_of_pointer, static_cast<const void*>(&address), sizeof address);
  }
  return {};
}

}  // namespace gridctl::gpubench

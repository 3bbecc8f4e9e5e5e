// SPDX-License-Identifier: Apache-2.0
// Uses neither the state directory nor a library, because scripts ask for the version often.
#include "cmd/commands.hpp"

namespace gridctl::cmd {

namespace version {
namespace {
#include "commit.inc"

struct Library {
  std::string_view name, version;
};
constexpr Library k_libraries[] = {{"libssh2", GRIDCTL_BUILT_LIBSSH2},
                                   {"openssl", GRIDCTL_BUILT_OPENSSL},
                                   {"sqlite", GRIDCTL_BUILT_SQLITE},
                                   {"libuv", GRIDCTL_BUILT_LIBUV},
                                   {"yaml-cpp", GRIDCTL_BUILT_YAML}};

Result<int> run(Context& context, const Parsed&) {
  if (!context.json) {
    context.print_line("gridctl " GRIDCTL_VERSION " (" + std::string(k_commit.substr(0, 12)) + ")");
    if (context.verbose)
      for (const Library& library : k_libraries)
        context.print_line("  " + std::string(library.name) + " " + std::string(library.version));
    return 0;
  }
  JsonObject libraries;
  for (const Library& library : k_libraries) libraries(library.name, library.version);
  return context.print_line(
      JsonObject()("version", GRIDCTL_VERSION)("commit", k_commit).raw("libraries", libraries.text()).text());
}
}  // namespace
}  // namespace version

const Command k_version{.name = "version",
                        .summary = "print the version",
                        .examples = {{"Print the version", "gridctl version"},
                                     {"Print it with the commit and the library versions", "gridctl version --json"}},
                        .description =
                            "Prints the version and the commit. With --json or --verbose, it also prints the versions "
                            "of the libraries that gridctl was built with.",
                        .run = version::run};

}  // namespace gridctl::cmd

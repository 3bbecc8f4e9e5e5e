// SPDX-License-Identifier: Apache-2.0
// Finds the files of this machine that a command after --, or an item of --each, names.
#pragma once

#include "cmd/command.hpp"
#include "cmd/context.hpp"
#include "job/spec.hpp"

namespace gridctl::cmd {

// Sends this directory with the job, and says so, if a word of the command names a file in it ("python3 train.py"), or
// an item a file or directory ("ls *.wav | ... whisper {}"), and no directory was named. A directory that is too large
// is an error that says what to type, because the program would not find its file. `items`: those of a bag, each
// followed by a NUL.
[[nodiscard]] Result<void> send_what_is_named(Context& context, const Parsed& parsed, std::string_view items, job::Spec& spec);

}  // namespace gridctl::cmd

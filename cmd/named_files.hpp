// SPDX-License-Identifier: Apache-2.0
// The files of this machine that a command after --, or an item of --each, names.
#pragma once

#include "cmd/context.hpp"
#include "job/spec.hpp"

namespace gridctl::cmd {

// Sends this directory with the job, and says so, if a word of the command names a file in it ("python3 train.py"), or an
// item a file or directory ("ls *.wav | ... whisper {}"), and no directory was named. Too large a directory is an error that
// says what to type: the program would not find its file. `items`: of a bag, each with a NUL behind it.
[[nodiscard]] Result<void> send_what_is_named(Context& context, const Parsed& parsed, std::string_view items, job::Spec& spec);

}  // namespace gridctl::cmd

// SPDX-License-Identifier: Apache-2.0
// The files of this machine that a command after -- names.
#pragma once

#include "cmd/context.hpp"
#include "job/spec.hpp"

namespace gridctl::cmd {

// Sends this directory with the job, and says so, if a word of the command names a file in it ("python3 train.py") and no
// directory was named. Too large a directory is an error that says what to type: the program would not find its file.
[[nodiscard]] Result<void> send_what_is_named(Context& context, const Parsed& parsed, job::Spec& spec);

}  // namespace gridctl::cmd

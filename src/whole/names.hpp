// SPDX-License-Identifier: Apache-2.0
// Meaning of the names of files in a checkpoint directory, by the conventions of the programs that write them. Pure.
#pragma once

#include <string>
#include <string_view>

namespace gridctl::whole {

// Files that a writer will rename or remove: *.tmp, *.part, *.partial, *.swp, *~, .#*, tmp-* and the like.
[[nodiscard]] bool is_temporary_name(std::string_view path);

// Files that are only ever appended to: *.log, *.csv, *.jsonl, events.out.tfevents.* and the like.
[[nodiscard]] bool is_log_name(std::string_view path);

// Equal for files that take each other's place from one save to the next: "step-#/model.pt" of step-100/model.pt.
// Numbers that tell members of one save apart (rank_0, -00001-of-00004, 0.pt in a numbered folder) stay.
[[nodiscard]] std::string slot_of(std::string_view path);

// "ckpt.pt", "checkpoint_100.npz", "state.json": a name under which people keep all that they resume from.
[[nodiscard]] bool names_a_whole_state(std::string_view path);

// "config.json", "args.yaml", "tokenizer.json": written once, and no part of what training changes.
[[nodiscard]] bool names_settings(std::string_view path);

// "model.pt", "optimizer.bin": a part of a state whose other parts are in other files.
[[nodiscard]] bool names_a_part(std::string_view path);

// The outermost folder of the path that has a number in its name, "" when there is none.
[[nodiscard]] std::string_view numbered_folder(std::string_view path);

}  // namespace gridctl::whole

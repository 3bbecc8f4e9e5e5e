// SPDX-License-Identifier: Apache-2.0
// Interprets the names of files in a checkpoint directory, by the conventions of the programs that write them. Pure.
#pragma once

#include <string>
#include <string_view>

namespace gridctl::whole {

// Matches files that a writer will rename or remove: *.tmp, *.part, *.partial, *.swp, *~, .#*, tmp-* and the like.
[[nodiscard]] bool is_temporary_name(std::string_view path);

// Matches files that are only appended to: *.log, *.csv, *.jsonl, events.out.tfevents.* and the like.
[[nodiscard]] bool is_log_name(std::string_view path);

// Returns the same text for files that replace each other from one save to the next: "step-#/model.pt" for
// step-100/model.pt. Numbers that distinguish members of one save (rank_0, -00001-of-00004, 0.pt in a numbered folder)
// stay.
[[nodiscard]] std::string slot_of(std::string_view path);

// Matches "ckpt.pt", "checkpoint_100.npz", "state.json": names of files that usually hold everything needed to resume.
[[nodiscard]] bool names_a_whole_state(std::string_view path);

// Matches "config.json", "args.yaml", "tokenizer.json": written once, and not changed by training.
[[nodiscard]] bool names_settings(std::string_view path);

// Matches "model.pt", "optimizer.bin": part of a state whose other parts are in other files.
[[nodiscard]] bool names_a_part(std::string_view path);

// Returns the outermost folder of the path with a number in its name, or "".
[[nodiscard]] std::string_view numbered_folder(std::string_view path);

}  // namespace gridctl::whole

// SPDX-License-Identifier: Apache-2.0
// Which GPUs a cloud's instance type stands for. gridctl runs on registered hosts, so a type says nothing there; but a
// file that asks for GPUs by a type alone must not land on a host without any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gridctl::config {

// "A100:8" of "p4d.24xlarge", "A100" where the number is not known, "" of a type with GPUs of unknown model; nullopt: a
// type without GPUs, or one that is not known.
[[nodiscard]] std::optional<std::string> gpus_of_instance(std::string_view type);

}  // namespace gridctl::config

// SPDX-License-Identifier: Apache-2.0
// Finds the GPUs of a cloud's instance type. gridctl runs on registered hosts, where a type has no meaning; but a file
// that requests GPUs only by a type must not land on a host without any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gridctl::config {

// Returns "A100:8" for "p4d.24xlarge", "A100" if the number is not known, "" for a type with GPUs of unknown model;
// nullopt: a type without GPUs, or an unknown one.
[[nodiscard]] std::optional<std::string> gpus_of_instance(std::string_view type);

}  // namespace gridctl::config

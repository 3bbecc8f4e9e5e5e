// SPDX-License-Identifier: Apache-2.0
#pragma once
namespace gridctl::sim {
[[nodiscard]] int drive(int argc, char** argv);
}

// SPDX-License-Identifier: Apache-2.0
// The same random numbers as those of `gridctl sim`: a seed means one thing.
#pragma once

#include "forecast/random.hpp"

namespace gridctl::sim {
using forecast::Random;
}

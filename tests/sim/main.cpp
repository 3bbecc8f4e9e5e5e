// SPDX-License-Identifier: Apache-2.0
// gridctl_sim: runs seeds until the time is over; see usage().
#include <cstdio>
#include <cstdlib>

#include "driver.hpp"

int main(int argc, char** argv) { return gridctl::sim::drive(argc, argv); }

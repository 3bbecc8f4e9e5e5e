// SPDX-License-Identifier: Apache-2.0
// What of a message travels: each value for itself.
#include "samples.hpp"
#include "support/json_fields.hpp"

namespace gridctl::wire::messages_fields_test {
namespace {

// What another machine advises a person to type is never shown.
TEST(MessageFields, AreEachReadForItself) {
  for (const samples::Sample& sample : samples::all())
    gridctl::testing::expect_each_value_counts(sample.name, sample.payload,
                                               [&](const std::string& text) { return sample.again(text); },
                                               "hint");
}

}  // namespace
}  // namespace gridctl::wire::messages_fields_test

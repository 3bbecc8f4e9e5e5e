// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "control/reach/link_meter.hpp"
#include "hand_clock.hpp"

namespace gridctl::control::link_meter_test {
namespace {

using namespace std::chrono_literals;
using testing::HandClock;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(LinkMeter, NotesTransfersThatTellOfTheRate) {
  HandClock clock;
  LinkMeter meter;
  EXPECT_FALSE(meter.is_busy());
  {
    LinkMeter::Transfer one(&meter, {"ada"}, true, clock);
    LinkMeter::Transfer two(&meter, {"bob"}, false, clock);
    EXPECT_TRUE(meter.is_busy());
    clock.pass(2s);
    one.moved(k_telling_bytes);
    two.moved(k_telling_bytes - 1);
  }
  EXPECT_FALSE(meter.is_busy());
  const auto notes = meter.take();
  ASSERT_THAT(notes, SizeIs(1));
  EXPECT_EQ(notes[0].host.value, "ada");
  EXPECT_TRUE(notes[0].to_host);
  EXPECT_EQ(notes[0].bytes, k_telling_bytes);
  EXPECT_EQ(notes[0].time, 2s);
  EXPECT_THAT(meter.take(), IsEmpty());
  LinkMeter::Transfer nobody(nullptr, {"ada"}, true, clock);
  nobody.moved(k_telling_bytes);
}

}  // namespace
}  // namespace gridctl::control::link_meter_test

// SPDX-License-Identifier: Apache-2.0
#include "lend/gate.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "lend/gpu_power.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::lend::gate_test {
namespace {

using gridctl::testing::IsOk;

struct GateTest : ::testing::Test {
  wire::GuestTerms terms;
  MachineState state;
  Gate gate;
  WallTime wall{1'800'000'000'000};
  BootTime boot{5'000'000'000};
  std::optional<wire::Closed> judge_after(std::int64_t seconds) {
    wall.ms += seconds * 1000;
    boot.ns += seconds * 1'000'000'000;
    return gate.judge(terms, state, wall, boot);
  }
};

TEST_F(GateTest, IsOpenWhereNothingWasAskedFor) {
  state.presence = {wall, "input at pts/1"};
  state.heat = Heat{120, "GPU 0"};
  state.gpu_program = "blender";
  state.battery = false;
  EXPECT_FALSE(judge_after(0));
  EXPECT_FALSE(judge_after(60));
}

TEST_F(GateTest, IsClosedFromTheOwnersInputUntilItIsLongAgo) {
  terms.idle_ms = 600'000;
  state.presence = {wall, "input at pts/1"};
  const auto closed = judge_after(0);
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->by, wire::ClosedBy::owner);
  EXPECT_EQ(closed->since, wall);
  EXPECT_NE(closed->why.find("input at pts/1"), std::string::npos);
  EXPECT_NE(closed->why.find("10m"), std::string::npos) << closed->why;
  const WallTime began = wall;
  const auto later = judge_after(599);
  ASSERT_TRUE(later);
  EXPECT_EQ(later->since, began);
  EXPECT_FALSE(judge_after(1));
  state.presence.last = wall;
  ASSERT_TRUE(judge_after(1));
  EXPECT_EQ(judge_after(0)->since, wall) << "it began again";
}

TEST_F(GateTest, CountsAProgramOnAGpuAsUseOnlyWhereJobsWaitForIdleness) {
  state.gpu_program = "blender";
  EXPECT_FALSE(judge_after(0)) << "reclaim is what ends jobs then";
  terms.idle_ms = 600'000;
  ASSERT_TRUE(judge_after(0));
  EXPECT_NE(judge_after(0)->why.find("blender"), std::string::npos);
}

TEST_F(GateTest, ClosesWhenItIsTooHotForHalfAMinuteAndOpensTenDegreesBelow) {
  terms.heat_celsius = 83;
  state.heat = Heat{84, "GPU 0"};
  EXPECT_FALSE(judge_after(0));
  EXPECT_FALSE(judge_after(29));
  state.heat->celsius = 83;
  EXPECT_FALSE(judge_after(2)) << "it was not above for all of the time";
  state.heat->celsius = 90;
  EXPECT_FALSE(judge_after(0));
  const auto closed = judge_after(30);
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->by, wire::ClosedBy::heat);
  EXPECT_NE(closed->why.find("90 C"), std::string::npos);
  state.heat->celsius = 74;
  EXPECT_TRUE(judge_after(60));
  state.heat.reset();
  EXPECT_TRUE(judge_after(1)) << "a sensor that is gone has not cooled down";
  state.heat = Heat{73, "GPU 0"};
  EXPECT_FALSE(judge_after(1));
}

TEST_F(GateTest, ClosesOnTheBatteryUnlessTheOwnerAllowsIt) {
  state.battery = true;
  ASSERT_TRUE(judge_after(0));
  EXPECT_EQ(judge_after(0)->by, wire::ClosedBy::battery);
  terms.on_battery = true;
  EXPECT_FALSE(judge_after(0));
  terms.on_battery = false;
  state.battery.reset();
  EXPECT_FALSE(judge_after(0)) << "a machine without one";
}

TEST(Closed, IsReadAsItWasWritten) {
  const wire::Closed closed{{17}, {4}, wire::ClosedBy::heat, "GPU 0 has 90 C"};
  EXPECT_EQ(wire::parse_closed(wire::encode(closed)), closed);
  for (const char* text : {"", "17", "17 4", "17 4 ", "17 4 heat", "17 4 moon x", "x 4 heat y"}) EXPECT_FALSE(wire::parse_closed(text)) << text;
}

struct SysTest : ::testing::Test {
  gridctl::testing::TempDir dir;
  void put(const std::string& path, const std::string& text) const {
    const os::Path file = dir / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
};

TEST_F(SysTest, OnBatteryIsAMachineThatDischargesWithoutMains) {
  EXPECT_EQ(on_battery(dir / ""), std::nullopt);
  put("class/power_supply/hidpp_battery_0/type", "Battery");
  put("class/power_supply/hidpp_battery_0/scope", "Device");
  put("class/power_supply/hidpp_battery_0/status", "Discharging");
  EXPECT_EQ(on_battery(dir / ""), std::nullopt) << "a mouse";
  put("class/power_supply/BAT0/type", "Battery");
  put("class/power_supply/BAT0/status", "Discharging");
  put("class/power_supply/AC/type", "Mains");
  put("class/power_supply/AC/online", "0");
  EXPECT_EQ(on_battery(dir / ""), true);
  put("class/power_supply/AC/online", "1");
  EXPECT_EQ(on_battery(dir / ""), false) << "a weak charger";
  put("class/power_supply/AC/online", "0");
  put("class/power_supply/BAT0/status", "Full");
  EXPECT_EQ(on_battery(dir / ""), false);
}

TEST_F(SysTest, TheHottestIsAProcessorOrAGpu) {
  put("class/hwmon/hwmon0/name", "nvme");
  put("class/hwmon/hwmon0/temp1_input", "99000");
  put("class/hwmon/hwmon1/name", "coretemp");
  put("class/hwmon/hwmon1/temp1_input", "61000");
  put("class/hwmon/hwmon1/temp2_input", "64500");
  put("class/hwmon/hwmon1/temp3_input", "999000");
  put("class/hwmon/hwmon2/name", "amdgpu");
  put("class/hwmon/hwmon2/temp1_input", "55000");
  const auto heat = hottest(dir / "");
  ASSERT_TRUE(heat);
  EXPECT_EQ(heat->celsius, 64);
  EXPECT_EQ(heat->sensor, "coretemp");
}

TEST(GpuHeat, IsReadFromTheTool) {
  const auto heat = parse_gpu_heat("0, 61\n1, 77\n2, [N/A]\nNVIDIA-SMI has failed\n");
  ASSERT_TRUE(heat);
  EXPECT_EQ(heat->celsius, 77);
  EXPECT_EQ(heat->sensor, "GPU 1");
  EXPECT_FALSE(parse_gpu_heat(""));
}

TEST(PowerLimits, AreReadFromTheTool) {
  const auto all = parse_power_limits("GPU-1, 350.00, 100.00, 400.00\nGPU-2, [N/A], 1, 2\nx, 1, 2, 3\nGPU-3, nan, 1, 2\n");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].gpu, "GPU-1");
  EXPECT_EQ(all[0].now, 350);
  EXPECT_EQ(all[0].least, 100);
  EXPECT_EQ(all[0].most, 400);
}

TEST_F(SysTest, InputAtATerminalIsTheTimeOfItsLastRead) {
  const auto terminal = [&](const std::string& name, std::int64_t read_s) {
    put(name, "");
    const timespec times[2] = {{read_s, 0}, {read_s + 500, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (dir / name).c_str(), times, 0), 0);
  };
  terminal("dev/pts/3", 1'700'000'100);
  terminal("dev/pts/0", 1'700'000'000);
  terminal("dev/pts/ptmx", 1'700'000'900);
  terminal("dev/tty2", 1'700'000'050);
  terminal("dev/ttyS0", 1'700'000'800);
  PresenceLook look(os::system_clock(), dir / "");
  const Presence told = look.look();
  EXPECT_EQ(told.sign, "input at pts/3");
  EXPECT_EQ(told.last.ms, 1'700'000'100'000);
  terminal("dev/tty2", 1'700'000'200);
  EXPECT_EQ(look.look().sign, "input at tty2");
  put("proc/interrupts", "           CPU0       CPU1\n  1:          9          3  IO-APIC   1-edge      i8042\n");
  EXPECT_EQ(look.look().sign, "keyboard or mouse") << "it was not there before";
}

TEST(Sessions, WithAScreenSayWhetherSomebodyIsThere) {
  constexpr std::string_view k_text =
      "Id=c2\nName=bob\nType=x11\nClass=user\nState=active\nIdleHint=no\nIdleSinceHint=0\n\n"
      "Id=c1\nName=gdm\nType=wayland\nClass=greeter\nState=online\nIdleHint=no\nIdleSinceHint=0\n\n"
      "Id=7\nName=bob\nType=tty\nClass=user\nState=active\nIdleHint=no\nIdleSinceHint=0\n";
  std::vector<Session> sessions = parse_sessions(k_text);
  ASSERT_EQ(sessions.size(), 2u);
  const WallTime now{1'800'000'000'000};
  EXPECT_EQ(presence_of(sessions, now).last, now);
  EXPECT_EQ(presence_of(sessions, now).sign, "bob's session c2 (x11)");
  sessions = parse_sessions("Id=c2\nName=bob\nType=wayland\nClass=user\nState=active\nIdleHint=yes\nIdleSinceHint=1799999000000000\n");
  EXPECT_EQ(presence_of(sessions, now).last.ms, 1'799'999'000'000);
  EXPECT_EQ(presence_of(parse_sessions("Id=7\nName=bob\nType=tty\nClass=user\nIdleHint=no\n"), now).last.ms, 0) << "its terminal is looked at";
  EXPECT_EQ(presence_of(parse_sessions("Id=7\nName=bob\nType=x11\nClass=user\nState=closing\nIdleHint=no\n"), now).last.ms, 0);
}

TEST(InputInterrupts, AreThoseOfKeyboardAndMouse) {
  constexpr std::string_view k_text =
      "           CPU0       CPU1\n"
      "  1:          9          3  IO-APIC   1-edge      i8042\n"
      "  8:          1          0  IO-APIC   8-edge      rtc0\n"
      " 12:        100          0  IO-APIC  12-edge      i8042\n";
  EXPECT_EQ(parse_input_interrupts(k_text), 112u);
  EXPECT_EQ(parse_input_interrupts(""), 0u);
}

}  // namespace
}  // namespace gridctl::lend::gate_test

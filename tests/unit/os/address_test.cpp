// SPDX-License-Identifier: Apache-2.0
#include "os/address.hpp"

#include <gtest/gtest.h>

#include "os/files.hpp"

namespace gridctl::os::address_test {
namespace {

TEST(AddressKind, KnowsWhatMustNotBeConnectedTo) {
  for (const char* own : {"127.0.0.1", "127.255.0.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::127.0.0.1"})
    EXPECT_EQ(address_kind(own), AddressKind::own) << own;
  for (const char* special : {"169.254.169.254", "224.0.0.1", "255.255.255.255", "fe80::1", "ff02::1",
                              "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"})
    EXPECT_EQ(address_kind(special), AddressKind::special) << special;
  for (const char* site : {"10.77.0.11", "172.31.255.1", "192.168.1.1", "100.64.0.1", "fd00::1", "::ffff:10.0.0.1"})
    EXPECT_EQ(address_kind(site), AddressKind::site) << site;
  for (const char* internet : {"8.8.8.8", "172.32.0.1", "100.128.0.1", "2001:db8::1"})
    EXPECT_EQ(address_kind(internet), AddressKind::internet) << internet;
  for (const char* none : {"", "example.com", "10.0.0", "10.0.0.1:22", "010.0.0.1", "1.2.3.4 ", "fe80::1%eth0"})
    EXPECT_EQ(address_kind(none), AddressKind::none) << none;
}

TEST(OwnAddresses, LeaveOutWhatOthersCannotReach) {
  for (const std::string& address : own_addresses()) {
    const AddressKind kind = address_kind(address);
    EXPECT_TRUE(kind == AddressKind::site || kind == AddressKind::internet) << address;
  }
}

TEST(AddressKind, ChangesExactlyAtTheEdgesOfEachRange) {
  const std::pair<const char*, AddressKind> edges[] = {
      {"0.255.255.255", AddressKind::own},
      {"1.0.0.0", AddressKind::internet},
      {"9.255.255.255", AddressKind::internet},
      {"10.0.0.0", AddressKind::site},
      {"10.255.255.255", AddressKind::site},
      {"11.0.0.0", AddressKind::internet},
      {"100.63.255.255", AddressKind::internet},
      {"100.64.0.0", AddressKind::site},
      {"100.127.255.255", AddressKind::site},
      {"100.128.0.0", AddressKind::internet},
      {"126.255.255.255", AddressKind::internet},
      {"127.0.0.0", AddressKind::own},
      {"127.255.255.255", AddressKind::own},
      {"128.0.0.0", AddressKind::internet},
      {"169.253.255.255", AddressKind::internet},
      {"169.254.0.0", AddressKind::special},
      {"169.254.255.255", AddressKind::special},
      {"169.255.0.0", AddressKind::internet},
      {"172.15.255.255", AddressKind::internet},
      {"172.16.0.0", AddressKind::site},
      {"172.31.255.255", AddressKind::site},
      {"172.32.0.0", AddressKind::internet},
      {"192.167.255.255", AddressKind::internet},
      {"192.168.0.0", AddressKind::site},
      {"192.168.255.255", AddressKind::site},
      {"192.169.0.0", AddressKind::internet},
      {"223.255.255.255", AddressKind::internet},
      {"224.0.0.0", AddressKind::special},
      {"255.255.255.255", AddressKind::special},
      {"::", AddressKind::own},
      {"::1", AddressKind::own},
      {"::2", AddressKind::own},  // 0.0.0.2 in disguise
      {"fe80::1", AddressKind::special},
      {"fec0::1", AddressKind::special},
      {"ff02::1", AddressKind::special},
      {"fc00::1", AddressKind::site},
      {"fdff::1", AddressKind::site},
      {"fbff::1", AddressKind::internet},
      {"2001:db8::1", AddressKind::internet},
      {"::ffff:10.0.0.1", AddressKind::site},
      {"::ffff:127.0.0.1", AddressKind::own},
      {"::ffff:8.8.8.8", AddressKind::internet},
      {"64:ff9b::10.0.0.1", AddressKind::site},
      {"64:ff9b::8.8.8.8", AddressKind::internet},
      {"64:ff9c::10.0.0.1", AddressKind::internet},
      {"65:ff9b::10.0.0.1", AddressKind::internet},
      {"64:fe9b::10.0.0.1", AddressKind::internet},
      {"164:ff9b::10.0.0.1", AddressKind::internet},
      {"", AddressKind::none},
      {"10.0.0", AddressKind::none},
      {"host", AddressKind::none},
      {"10.0.0.256", AddressKind::none},
  };
  for (const auto& [address, kind] : edges) EXPECT_EQ(address_kind(address), kind) << address;
}

TEST(InterfaceOf, IsTheOneThatHasTheAddress) {
  EXPECT_EQ(interface_of("127.0.0.1"), "lo");
  EXPECT_EQ(interface_of("192.0.2.77"), "");
  for (const std::string& address : own_addresses()) {
    EXPECT_NE(interface_of(address), "") << address;
    EXPECT_NE(interface_of(address), "lo") << address;
  }
}

TEST(EphemeralPortFirst, IsWhatTheKernelSays) {
  const std::string said = read_file("/proc/sys/net/ipv4/ip_local_port_range").value_or("");
  EXPECT_EQ(ephemeral_port_first(), std::stoi(said));
}

}  // namespace
}  // namespace gridctl::os::address_test

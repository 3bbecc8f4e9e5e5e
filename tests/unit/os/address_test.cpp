// SPDX-License-Identifier: Apache-2.0
#include "os/address.hpp"

#include <gtest/gtest.h>

namespace gridctl::os {
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

}  // namespace
}  // namespace gridctl::os

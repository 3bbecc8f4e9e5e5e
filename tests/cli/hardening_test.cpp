// SPDX-License-Identifier: Apache-2.0
// How the programs are built that ship: read from the programs themselves.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace gridctl::hardening_test {
namespace {

class Program {
 public:
  explicit Program(const std::string& name) {
    std::ifstream in(std::string(GRIDCTL_BINARY_DIR) + (name == "gridctl" ? "/cmd/" : "/bin/") + name, std::ios::binary);
    std::stringstream content;
    content << in.rdbuf();
    bytes_ = content.str();
  }
  [[nodiscard]] bool is_elf() const { return bytes_.size() > sizeof(Elf64_Ehdr) && bytes_.compare(0, 4, ELFMAG) == 0; }
  [[nodiscard]] Elf64_Ehdr header() const { return at<Elf64_Ehdr>(0); }
  [[nodiscard]] std::vector<Elf64_Phdr> segments(unsigned type) const {
    std::vector<Elf64_Phdr> found;
    for (unsigned i = 0; i < header().e_phnum; ++i)
      if (const auto one = at<Elf64_Phdr>(header().e_phoff + i * sizeof(Elf64_Phdr)); one.p_type == type)
        found.push_back(one);
    return found;
  }
  [[nodiscard]] bool binds_at_once() const {
    for (const Elf64_Phdr& dynamic : segments(PT_DYNAMIC))
      for (std::uint64_t i = 0; i + sizeof(Elf64_Dyn) <= dynamic.p_filesz; i += sizeof(Elf64_Dyn)) {
        const auto entry = at<Elf64_Dyn>(dynamic.p_offset + i);
        if (entry.d_tag == DT_BIND_NOW || (entry.d_tag == DT_FLAGS && (entry.d_un.d_val & DF_BIND_NOW) != 0) ||
            (entry.d_tag == DT_FLAGS_1 && (entry.d_un.d_val & DF_1_NOW) != 0))
          return true;
      }
    return false;
  }
  [[nodiscard]] bool mentions(const std::string& symbol) const {
    return bytes_.find(std::string(1, '\0') + symbol) != std::string::npos;
  }
  [[nodiscard]] std::size_t count(const std::string& code) const {
    std::size_t found = 0;
    for (std::size_t i = bytes_.find(code); i != std::string::npos; i = bytes_.find(code, i + code.size())) ++found;
    return found;
  }

 private:
  template <class T>
  [[nodiscard]] T at(std::uint64_t offset) const {
    T value{};
    if (offset + sizeof value <= bytes_.size()) std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  std::string bytes_;
};

class Hardening : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { ASSERT_TRUE(program_.is_elf()); }
  const Program program_{GetParam()};
};

TEST_P(Hardening, IsLoadedAtAnotherAddressEachTime) { EXPECT_EQ(program_.header().e_type, ET_DYN); }

TEST_P(Hardening, CannotRunItsStack) {
  ASSERT_EQ(program_.segments(PT_GNU_STACK).size(), 1u);
  EXPECT_EQ(program_.segments(PT_GNU_STACK)[0].p_flags & PF_X, 0u);
}

TEST_P(Hardening, HasNoPageThatIsWritableAndRuns) {
  for (const Elf64_Phdr& load : program_.segments(PT_LOAD)) EXPECT_NE(load.p_flags & (PF_W | PF_X), unsigned{PF_W | PF_X});
}

TEST_P(Hardening, KeepsItsTablesOfAddressesReadOnly) {
  EXPECT_EQ(program_.segments(PT_GNU_RELRO).size(), 1u);
  EXPECT_TRUE(program_.binds_at_once());
}

TEST_P(Hardening, ChecksItsStackAndItsBuffers) {
  if (!GRIDCTL_HARDENED) GTEST_SKIP() << "only in what ships: build the preset release";
  EXPECT_TRUE(program_.mentions("__stack_chk_fail"));
  EXPECT_TRUE(program_.mentions("__snprintf_chk"));
  EXPECT_TRUE(program_.mentions("_ZSt21__glibcxx_assert_failPKciS0_S0_"));
  if (program_.header().e_machine == EM_X86_64) {
    EXPECT_GT(program_.count("\xf3\x0f\x1e\xfa"), 1000u);  // endbr64
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, Hardening, ::testing::Values("gridctl", "gridctl-agent"),
                         [](const auto& one) { return std::string(one.param) == "gridctl" ? "gridctl" : "agent"; });

}  // namespace
}  // namespace gridctl::hardening_test

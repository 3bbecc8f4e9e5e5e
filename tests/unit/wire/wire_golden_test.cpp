// SPDX-License-Identifier: Apache-2.0
// Bytes that earlier versions sent: tests/data/wire/NAME.frame, with a readable twin NAME.json. A change here is a
// change of the protocol. GRIDCTL_ACCEPT=1 writes them anew and fails, so that a run that accepts is never a pass.
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "samples.hpp"
#include "wire/frame.hpp"

namespace gridctl::wire::wire_golden_test {
namespace {

std::string file_of(const std::string& name) { return std::string(GRIDCTL_SOURCE_DIR) + "/tests/data/wire/" + name; }

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  return content.str();
}

void accept(const std::string& name, const Frame& frame) {
  std::ofstream(file_of(name + ".frame"), std::ios::binary) << encode(frame);
  std::ofstream(file_of(name + ".json")) << nlohmann::json::parse(frame.payload).dump(2) << "\n";
  ADD_FAILURE() << "wrote " << name;
}

FrameKind kind_of(const std::string& name) {
  if (name.substr(0, 3) == "end") return FrameKind::end;
  return name.ends_with("-reply") ? FrameKind::reply : FrameKind::request;
}

TEST(Golden, BytesOfVersionOneAreStillWhatWeSendAndAccept) {
  const bool accepting = std::getenv("GRIDCTL_ACCEPT") != nullptr;
  for (const samples::Sample& sample : samples::all()) {
    const Frame frame{kind_of(sample.name), 5, sample.payload};
    if (accepting) {
      accept(sample.name, frame);
      continue;
    }
    const std::string bytes = read(file_of(sample.name + ".frame"));
    EXPECT_EQ(bytes, encode(frame)) << sample.name;
    Decoder decoder(false);
    decoder.feed(as_bytes(bytes));
    const Result<std::optional<Frame>> back = decoder.next();
    ASSERT_TRUE(back && back->has_value()) << sample.name;
    EXPECT_TRUE(sample.again((*back)->payload)) << sample.name;
    EXPECT_EQ(nlohmann::json::parse((*back)->payload), nlohmann::json::parse(read(file_of(sample.name + ".json"))));
  }
}

}  // namespace
}  // namespace gridctl::wire::wire_golden_test

// SPDX-License-Identifier: Apache-2.0
// That the rules can fail.
#include "rules.hpp"

#include <gmock/gmock.h>

namespace gridctl::tidy::rules_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Unnamed, NamesMeetOnlyWithinARoom) {
  const Source one{"src/os/a.cpp", "namespace {\nconstexpr int k_wait = 1;\nstruct Row {\n};\nint f() { return 1; }\n}  // namespace\n"};
  const auto with = [&one](const char* path, const char* text) { return check_unnamed({one, {path, text}}); };
  EXPECT_THAT(with("src/os/b.cpp", "namespace {\nconstexpr Duration k_wait{2};\n}  // namespace\n"), SizeIs(1));
  EXPECT_THAT(with("src/os/b.cpp", "namespace {\nstruct Row {\n};\n}  // namespace\n"), SizeIs(1));
  EXPECT_THAT(with("src/ssh/b.cpp", "namespace {\nstruct Row {\n};\n}  // namespace\n"), IsEmpty());
  EXPECT_THAT(with("src/os/b.cpp", "namespace {\nint f(int a) { return a; }\n}  // namespace\nstruct Row {\n};\n"), IsEmpty());
}

TEST(TestNamespace, IsNamedAsItsFile) {
  EXPECT_THAT(check_test_namespace({"tests/unit/os/a_test.cpp", "namespace gridctl::os {\nTEST(A, B) {}\n}\n"}), SizeIs(1));
  EXPECT_THAT(check_test_namespace({"tests/unit/os/a_test.cpp", "namespace gridctl::os::a_test {\nTEST(A, B) {}\n}\n"}), IsEmpty());
  EXPECT_THAT(check_test_namespace({"tests/unit/os/tools.cpp", "namespace gridctl::os {\nint f() {}\n}\n"}), IsEmpty());
}

TEST(WholeRegistry, IsTakenWhereAPartIsNotEnough) {
  EXPECT_THAT(check_whole_registry({"cmd/a.cpp", "int f(registry::Registry& registry);\nint g(registry::AllRecords* all);\n"}), SizeIs(2));
  EXPECT_THAT(check_whole_registry({"cmd/a.cpp", "int f(registry::HostRecords& hosts);\nregistry::Registry mine;\n"}), IsEmpty());
}

TEST(WholeRows, AreNotWrittenForOneChange) {
  EXPECT_THAT(check_whole_rows({"cmd/a.cpp", "TRY(registry.update_provider(provider));\n"}), SizeIs(1));
  EXPECT_THAT(check_whole_rows({"cmd/a.cpp", "TRY(registry::change_provider(registry, name, edit));\n"}), IsEmpty());
}

TEST(TestSubjects, AreSourcesOfTheRoomOrTheRoom) {
  const std::vector<std::string> product{"src/os/file_lock.cpp", "src/control/reach/peer.hpp", "src/wire/frame.cpp",
                                         "src/config/job_parts.hpp"};
  const auto check = [&](const std::string& path) { return check_test_subjects({path}, product); };
  EXPECT_THAT(check("tests/unit/os/file_lock_test.cpp"), IsEmpty());
  EXPECT_THAT(check("tests/unit/os/file_lock_crash_test.cpp"), IsEmpty());
  EXPECT_THAT(check("tests/unit/os/os_load_test.cpp"), IsEmpty());
  EXPECT_THAT(check("tests/unit/control/reach_faults_test.cpp"), IsEmpty());
  EXPECT_THAT(check("tests/unit/control/peer_test.cpp"), IsEmpty());
  EXPECT_THAT(check("tests/unit/os/fixture.hpp"), IsEmpty());
  EXPECT_THAT(check("tests/unit/os/frames_test.cpp"),
              ElementsAre("tests/unit/os/frames_test.cpp:1: no source of os is named 'frames', nor is it one and a word"));
  for (const std::string word : {"edges", "parts", "details", "more", "misc"})
    EXPECT_THAT(check("tests/unit/os/file_lock_" + word + "_test.cpp"),
                ElementsAre("tests/unit/os/file_lock_" + word + "_test.cpp:1: '" + word + "' does not say what the tests are about"));
  EXPECT_THAT(check("tests/unit/config/job_parts_test.cpp"), IsEmpty()) << "a source has this name";
  EXPECT_THAT(check("tests/unit/os/frame_test.cpp"), SizeIs(1)) << "a source of another room";
  EXPECT_THAT(check("tests/unit/os/file_lock_crash_load_test.cpp"), SizeIs(1)) << "two words";
}

TEST(LayerRule, SeesAnIncludeUpwardsAndSideways) {
  EXPECT_THAT(check_layers({"src/os/a.cpp", "#include \"os/b.hpp\"\n#include \"wire/frame.hpp\"\n"}),
              ElementsAre("src/os/a.cpp:2: os must not include wire"));
  EXPECT_THAT(check_layers({"src/agent/a.cpp", "#include \"control/reach/x.hpp\""}), SizeIs(1));
  EXPECT_THAT(check_layers({"src/control/reach/a.cpp", "  #  include \"agent/x.hpp\""}), SizeIs(1));
  EXPECT_THAT(check_layers({"src/ui/a.cpp", "#include \"cmd/x.hpp\""}), SizeIs(1));
  EXPECT_THAT(check_layers({"src/util/a.cpp", ""}), SizeIs(1));
}

TEST(LayerRule, AcceptsWhatTheTableAllows) {
  EXPECT_THAT(check_layers({"src/store/a.cpp", "#include \"base/x.hpp\"\n#include \"crypto/x.hpp\"\n#include <os>\n"}),
              IsEmpty());
  EXPECT_THAT(check_layers({"cmd/a.cpp", "#include \"control/reach/x.hpp\"\n#include \"cmd/x.hpp\"\n"}), IsEmpty());
}

TEST(ThirdPartyRule, KeepsEachLibraryInItsRoom) {
  EXPECT_THAT(check_third_party({"src/store/a.cpp", "#include <openssl/sha.h>"}), SizeIs(1));
  EXPECT_THAT(check_third_party({"src/crypto/a.cpp", "#include <openssl/sha.h>"}), IsEmpty());
  EXPECT_THAT(check_third_party({"src/agent/a.cpp", "#include <uv.h>"}), SizeIs(1));
  EXPECT_THAT(check_third_party({"src/registry/a.cpp", "#include <sqlite3.h>"}), SizeIs(1));
  EXPECT_THAT(check_third_party({"src/job/a.cpp", "#include <yaml-cpp/yaml.h>"}), SizeIs(1));
  EXPECT_THAT(check_third_party({"src/control/reach/a.cpp", "#include <libssh2.h>"}), SizeIs(1));
  EXPECT_THAT(check_third_party({"cmd/job_ls.cpp", "#include <CLI/CLI.hpp>"}), SizeIs(1));
  EXPECT_THAT(check_third_party({"cmd/cli.cpp", "#include <CLI/CLI.hpp>"}), IsEmpty());
}

TEST(ThirdPartyRule, KeepsJsonOutOfHeaders) {
  EXPECT_THAT(check_third_party({"src/wire/a.hpp", "#include <nlohmann/json.hpp>"}), SizeIs(1));
  EXPECT_THAT(check_third_party({"src/wire/a.hpp", "#include <nlohmann/json_fwd.hpp>"}), IsEmpty());
  EXPECT_THAT(check_third_party({"src/wire/a.cpp", "#include <nlohmann/json.hpp>"}), IsEmpty());
}

TEST(SystemCallRule, KeepsTheSystemsHeadersInOsAndAgent) {
  EXPECT_THAT(check_system_calls({"src/store/a.cpp", "#include <unistd.h>\n#include <sys/stat.h>"}), SizeIs(2));
  EXPECT_THAT(check_system_calls({"src/os/a.cpp", "#include <unistd.h>"}), IsEmpty());
  EXPECT_THAT(check_system_calls({"src/agent/a.cpp", "#include <sys/prctl.h>"}), IsEmpty());
}

TEST(WayRule, SeesWhoGoesRoundTheNetwork) {
  for (const char* planted :
       {"#include \"ssh/connect.hpp\"", "#include \"control/reach/connect_agent.hpp\"",
        "auto session = open_session(provider, paths, id, soon, clock);", "TRY(ssh::connect(target, \"true\", by, clock));",
        "return lend::call(relay, invitation, by, clock);", "auto link = control::open_link(x);"}) {
    for (const char* path : {"src/control/fleet/a.cpp", "src/control/copies/a.cpp", "src/transfer/a.cpp", "cmd/a.cpp"})
      EXPECT_THAT(check_ways({path, planted}), SizeIs(1)) << path << ": " << planted;
    EXPECT_THAT(check_ways({"src/control/reach/a.cpp", planted}), IsEmpty()) << planted;
    EXPECT_THAT(check_ways({"src/lend/a.cpp", planted}), IsEmpty()) << planted;
  }
  EXPECT_THAT(check_ways({"cmd/a.cpp", "// ssh::connect\nauto a = ssh::parse_address(\"open_session(\");"}), IsEmpty());
  EXPECT_THAT(check_ways({"src/control/fleet/a.cpp", "TRY(net.open(provider, deadline));"}), IsEmpty());
}

TEST(WordRule, SeesClocksRandomnessAndShellsOutsideOs) {
  for (const char* line : {"auto t = std::chrono::steady_clock::now();", "auto t = system_clock::now();",
                           "time(nullptr);", "x = std::time(0);", "int r = rand();", "std::random_device d;",
                           "std::this_thread::sleep_for(1s);", "getenv(\"X\")", "::getenv(x)", "std::system(\"ls\")",
                           "popen(x, \"r\")", " usleep(5);", "return ::clock_gettime(0, &t);"}) {
    EXPECT_THAT(check_words({"src/store/a.cpp", line}), SizeIs(1)) << line;
    EXPECT_THAT(check_words({"src/os/a.cpp", line}), IsEmpty()) << line;
  }
}

TEST(WordRule, LeavesLongerNamesMembersCommentsAndTextsAlone) {
  for (const char* line : {"boot_time(x)", "file_system(x)", "status.time()", "p->system()", "// never call system(x)",
                           "\"getenv(\"", "operand(x)", "fields.boot_time(1)", "os::random_id(13)", "/* rand() */"})
    EXPECT_THAT(check_words({"src/store/a.cpp", line}), IsEmpty()) << line;
}

TEST(WordRule, SeesUnfinishedWorkEverywhere) {
  // Put together here, so that this file does not find itself.
  EXPECT_THAT(check_words({"src/os/a.cpp", std::string("// TO") + "DO: later"}), SizeIs(1));
  EXPECT_THAT(check_words({"cmd/a.cpp", std::string("// FIX") + "ME"}), SizeIs(1));
}

TEST(ShapeRule, WantsALicenceLineAGuardAndAName) {
  const std::string licence = "// SPDX-License-Identifier: Apache-2.0\n";
  EXPECT_THAT(check_shape({"src/os/a.cpp", licence}), IsEmpty());
  EXPECT_THAT(check_shape({"src/os/a.cpp", "\n" + licence}), SizeIs(1));
  EXPECT_THAT(check_shape({"src/os/a.cpp", ""}), SizeIs(1));
  EXPECT_THAT(check_shape({"src/os/a.hpp", licence}), SizeIs(1));
  EXPECT_THAT(check_shape({"src/os/a.hpp", licence + "#pragma once\n"}), IsEmpty());
  EXPECT_THAT(check_shape({"src/os/Loop.cpp", licence}), SizeIs(1));
  EXPECT_THAT(check_shape({"src/os/utils.cpp", licence}), SizeIs(1));
  EXPECT_THAT(check_shape({"src/os/a.cpp", licence + "#include \"../b.hpp\"\n"}), SizeIs(1));
}

TEST(ShapeRule, LimitsTheLengthOfAFile) {
  std::string text = "// SPDX-License-Identifier: Apache-2.0\n";
  for (int i = 1; i < k_file_lines_max; ++i) text += "int x;\n";
  EXPECT_THAT(check_shape({"src/os/a.cpp", text}), IsEmpty());
  EXPECT_THAT(check_shape({"src/os/a.cpp", text + "int y;\n"}), SizeIs(1));
}

std::string function_of(int lines) {
  std::string text = "namespace a {\nint f(int x) {\n";
  for (int i = 2; i < lines; ++i) text += "  ++x;\n";
  return text + "}\n}\n";
}

TEST(WordRule, SeesAComparisonWithAWord) {
  EXPECT_THAT(check_compared_words({"src/job/a.cpp", "if (why == \"lost\") return;\n"}), SizeIs(1));
  EXPECT_THAT(
      check_compared_words(
          {"src/job/a.cpp", "if (why !=\n    why_of(Why::lost)) return;\nif (text == \"\" || c == \"-\") f();\n"}),
      IsEmpty());
}

TEST(OpeningRule, SeesACommentThatNeedsTheLineBefore) {
  EXPECT_THAT(check_openings({"src/job/a.cpp", "int x;\n// What is left of it.\nint y;\n"}), SizeIs(1));
  EXPECT_THAT(
      check_openings({"src/job/a.cpp", "// Returns the rest, so that callers know\n// What is left of it.\nint y;\n"}),
      IsEmpty());
}

TEST(OriginRule, SeesALicenceOfOthers) {
  EXPECT_THAT(check_origin("tests/data/a.py", "# Copyright (c) 2020 Somebody\n"), SizeIs(1));
  EXPECT_THAT(check_origin("tests/data/a.py", "# SPDX-License-Identifier: MIT\n"), SizeIs(1));
  EXPECT_THAT(
      check_origin("tests/data/a.py", "# SPDX-License-Identifier: Apache-2.0\nsee /usr/share/doc/x/copyright\n"),
      IsEmpty());
}

TEST(FunctionRule, SeesAFunctionThatFillsMoreThanItsScreens) {
  EXPECT_THAT(check_functions({"src/os/a.cpp", function_of(k_function_lines_max)}, {}), IsEmpty());
  EXPECT_THAT(check_functions({"src/os/a.cpp", function_of(k_function_lines_max + 1)}, {}),
              ElementsAre("src/os/a.cpp:2: f has 86 lines; 85 is the limit"));
}

TEST(FunctionRule, AListedFunctionMayBeAsLongAsItWasAndNotLonger) {
  const std::map<std::string, int> allowed{{"src/os/a.cpp:f", 100}};
  EXPECT_THAT(check_functions({"src/os/a.cpp", function_of(100)}, allowed), IsEmpty());
  EXPECT_THAT(check_functions({"src/os/a.cpp", function_of(101)}, allowed), SizeIs(1));
}

TEST(Functions, AreFoundInNamespacesTypesAndAfterInitialisers) {
  const std::vector<Function> found = functions_of({"src/os/a.cpp", R"(
namespace a {
namespace {
constexpr int k_table[] = {1, 2};
struct S {
  int member() const { return x_; }
  int x_ = 1;
};
}  // namespace
T::T(int x) : a_(x), b_{x} {
  if (x) { call([&] { return 1; }); }
}
std::string f(const std::string& text = "{",
              int y = 2) {
  return "}";
}
bool operator==(const S& a, const S& b) { return true; }
enum class E { one, two };
}  // namespace a
)"});
  std::vector<std::string> names;
  for (const Function& function : found) names.push_back(function.name + "/" + std::to_string(function.lines));
  EXPECT_THAT(names, ElementsAre("member/1", "T::T/3", "f/4", "operator==/1"));
}

TEST(SourceText, BlanksCommentsAndLiteralsAndKeepsLines) {
  EXPECT_EQ(without_comments_and_literals("a // b\nc"), "a     \nc");
  EXPECT_EQ(without_comments_and_literals("x = \"a\\\"b\"; y"), "x =       ; y");
  EXPECT_EQ(without_comments_and_literals("n = 1'000; c = '\\'';"), "n = 1'000; c =     ;");
  EXPECT_EQ(without_comments_and_literals("R\"(a \" b)\" c"), "           c");
  EXPECT_EQ(without_comments_and_literals("/* a\nb */ c"), "    \n     c");
}

}  // namespace
}  // namespace gridctl::tidy::rules_test

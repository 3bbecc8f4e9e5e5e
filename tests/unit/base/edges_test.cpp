// SPDX-License-Identifier: Apache-2.0
// What this room promises at its limits: exactly at them, one below, one above.
#include <cfloat>
#include <climits>
#include <nlohmann/json.hpp>

#include "base/ids.hpp"
#include "base/inventory.hpp"
#include "base/json_fields.hpp"
#include "base/lines.hpp"
#include "base/metrics.hpp"
#include "base/record.hpp"
#include "base/text.hpp"
#include "base/time.hpp"
#include "support/results.hpp"

namespace gridctl::edges_test {

// Members of every kind that a record may have.
namespace kinds {
struct All {
  bool flag = false;
  double real = 0;
  std::uint64_t size = 0;
  Digest digest{};
  OpId op;
  std::vector<std::string> list;
  std::map<std::string, std::int64_t> named;
  Duration micro{}, milli{};
};
template <class R>
void fields(R& r, Of<R, All>& m) {
  r("flag", m.flag)("real", m.real, -1.0, 2.0)("size", m.size, 9)("digest", m.digest)("op", m.op);
  r("list", m.list, 2)("named", m.named)("micro_us", m.micro)("milli_ms", m.milli);
}
}  // namespace kinds

namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::HasSubstr;

// --- JSON members that strangers wrote ------------------------------------------------------------------------------

std::string refusal(const std::string& object, const std::function<void(const JsonFields&)>& read) {
  const nlohmann::json parsed = nlohmann::json::parse(object);
  try {
    read(JsonFields(parsed));
    return "";
  } catch (const BadField& bad) {
    return bad.what();
  }
}

TEST(JsonFields, AbsentAndNullAreTheUnknownValue) {
  const nlohmann::json parsed = nlohmann::json::parse(R"({"null":null})");
  const JsonFields fields(parsed);
  for (const char* name : {"null", "none"}) {
    EXPECT_FALSE(fields.has(name));
    EXPECT_EQ(fields.text(name), "");
    EXPECT_FALSE(fields.flag(name));
    EXPECT_EQ(fields.maybe_flag(name), std::nullopt);
    EXPECT_EQ(fields.whole(name, 0, 1), std::nullopt);
    EXPECT_EQ(fields.real(name, 0, 1), std::nullopt);
    EXPECT_EQ(fields.small<int>(name, 5), std::nullopt);
  }
}

TEST(JsonFields, AreReadWithinTheirLimits) {
  nlohmann::json parsed = nlohmann::json::parse(R"({"t":"x","yes":true,"no":false,"n":-3,"r":0.5})");
  parsed["long"] = std::string(k_field_text_max, 'x');
  const JsonFields fields(parsed);
  EXPECT_TRUE(fields.has("t"));
  EXPECT_EQ(fields.text("t"), "x");
  EXPECT_EQ(fields.text("long").size(), k_field_text_max);
  EXPECT_TRUE(fields.flag("yes"));
  EXPECT_FALSE(fields.flag("no"));
  EXPECT_EQ(fields.maybe_flag("no"), false);
  EXPECT_EQ(fields.whole("n", -3, 0), -3);
  EXPECT_EQ(fields.whole("n", -9, -3), -3);
  EXPECT_EQ(fields.real("r", 0.5, 0.5), 0.5);
  EXPECT_EQ(fields.real("n", -3, 0), -3.0) << "a whole number is a number";
}

TEST(JsonFields, RefuseWhatIsWrongByName) {
  const auto whole = [](const JsonFields& f) { static_cast<void>(f.whole("a", -5, 5)); };
  const auto text = [](const JsonFields& f) { static_cast<void>(f.text("a")); };
  const auto flag = [](const JsonFields& f) { static_cast<void>(f.flag("a")); };
  const auto real = [](const JsonFields& f) { static_cast<void>(f.real("a", -1, 1)); };
  struct Case {
    const char* object;
    std::function<void(const JsonFields&)> read;
    const char* why;
  };
  for (const Case& c : {Case{R"({"a":1})", text, "'a' is not text"},
                        {R"({"a":1})", flag, "'a' is neither true nor false"},
                        {R"({"a":"1"})", whole, "'a' is not a whole number"},
                        {R"({"a":1.0})", whole, "'a' is not a whole number"},
                        {R"({"a":6})", whole, "'a' is out of range"},
                        {R"({"a":-6})", whole, "'a' is out of range"},
                        {R"({"a":9223372036854775808})", whole, "'a' is out of range"},
                        {R"({"a":"1"})", real, "'a' is not a number"},
                        {R"({"a":1.1})", real, "'a' is out of range"},
                        {R"({"a":-1.1})", real, "'a' is out of range"},
                        {R"([])", text, "expected an object"}})
    EXPECT_EQ(refusal(c.object, c.read), c.why) << c.object;
  nlohmann::json longer;
  longer["a"] = std::string(k_field_text_max + 1, 'x');
  EXPECT_EQ(refusal(longer.dump(), text), "'a' is too long");
}

// --- records --------------------------------------------------------------------------------------------------------

std::string complaint(const std::string& was, const std::string& becomes, const ReadRules& rules = {}) {
  kinds::All all;
  all.op = {"op"};
  std::string text = write_record(all);
  const std::size_t at = text.find(was);
  EXPECT_NE(at, std::string::npos) << was << " in " << text;
  text.replace(at, was.size(), becomes);
  const auto read = read_record<kinds::All>(text, "it", rules, Code::protocol_violation);
  return read ? "" : read.error().message;
}

TEST(RecordLimits, HoldExactly) {
  for (const auto& [was, good] : {std::pair{R"("real":0.0)", R"("real":2.0)"},
                                  {R"("real":0.0)", R"("real":-1)"},
                                  {R"("size":0)", R"("size":9)"},
                                  {R"("list":[])", R"("list":["a","b"])"},
                                  {R"("flag":false)", R"("flag":true)"},
                                  {R"("micro_us":0)", R"("micro_us":316224000000000)"},
                                  {R"("milli_ms":0)", R"("milli_ms":316224000000)"}})
    EXPECT_EQ(complaint(was, good), "") << good;
  for (const auto& [was, bad, why] : {std::tuple{R"("real":0.0)", R"("real":2.1)", "limits"},
                                      {R"("real":0.0)", R"("real":-1.1)", "limits"},
                                      {R"("real":0.0)", R"("real":"1")", "limits"},
                                      {R"("size":0)", R"("size":10)", "limits"},
                                      {R"("size":0)", R"("size":-1)", "limits"},
                                      {R"("list":[])", R"("list":["a","b","c"])", "more than 2 'list'"},
                                      {R"("list":[])", R"("list":{})", "is not a list"},
                                      {R"("list":[])", R"("list":[7])", "is not text"},
                                      {R"("named":{})", R"("named":[])", "is not an object"},
                                      {R"("named":{})", R"("named":{"":1})", "bad name in 'named'"},
                                      {R"("named":{})", R"("named":{"\u0000":1})", "bad name in 'named'"},
                                      {R"("flag":false)", R"("flag":0)", "is not true or false"},
                                      {R"("digest":")", R"("digest":"x)", "is not a digest"},
                                      {R"("op":"op")", R"("op":"")", "is not an operation id"},
                                      {R"("op":"op")", R"("op":"-op")", "is not an operation id"},
                                      {R"("op":"op")", R"("op":"o p")", "is not an operation id"},
                                      {R"("micro_us":0)", R"("micro_us":316224000000001)", "limits"},
                                      {R"("milli_ms":0)", R"("milli_ms":316224000001)", "limits"}})
    EXPECT_THAT(complaint(was, bad), HasSubstr(why)) << bad;
  EXPECT_EQ(complaint(R"("op":"op")", "\"op\":\"" + std::string(128, 'x') + "\""), "");
  EXPECT_THAT(complaint(R"("op":"op")", "\"op\":\"" + std::string(129, 'x') + "\""), HasSubstr("is not an operation id"));
  EXPECT_EQ(complaint(R"("op":"op")", R"("op":"A.b_c:d@e+f-9")"), "");
}

TEST(RecordLimits, OfNamesAndTextsAreTheRules) {
  ReadRules rules;
  rules.text_max = 3;
  rules.count_max = 1;
  EXPECT_EQ(complaint(R"("list":[])", R"("list":["abc"])", rules), "");
  EXPECT_THAT(complaint(R"("list":[])", R"("list":["abcd"])", rules), HasSubstr("is too long"));
  EXPECT_EQ(complaint(R"("named":{})", R"("named":{"abc":1})", rules), "");
  EXPECT_THAT(complaint(R"("named":{})", R"("named":{"abcd":1})", rules), HasSubstr("bad name"));
  EXPECT_THAT(complaint(R"("named":{})", R"("named":{"a":1,"b":2})", rules), HasSubstr("too many 'named'"));
  EXPECT_THAT(complaint(R"("list":[])", R"("list":["\u0000"])"), HasSubstr("NUL"));
  rules.any_text = true;
  EXPECT_EQ(complaint(R"("list":[])", R"("list":["\u0000"])", rules), "");
}

TEST(RecordLimits, OfDepthCountBracketsOutsideOfTexts) {
  const auto depth = [](const std::string& value, std::size_t depth_max) {
    ReadRules rules;
    rules.depth_max = depth_max;
    return complaint(R"("flag":false)", "\"flag\":false,\"more\":" + value, rules).find("nested too deep") !=
           std::string::npos;
  };
  EXPECT_FALSE(depth("[[1]]", 3));
  EXPECT_TRUE(depth("[[1]]", 2));
  EXPECT_TRUE(depth(R"({"a":{}})", 2));
  EXPECT_FALSE(depth(R"([[1],[2],[3]])", 3)) << "side by side";
  EXPECT_FALSE(depth(R"("[[[[{{{{")", 2));
  EXPECT_FALSE(depth(R"("\"[[[[{{{{")", 2)) << "a quoted quote does not end a text";
  EXPECT_TRUE(depth(R"(["\\",[[1]]])", 3)) << "a quoted backslash does not hide the end of one";
}

TEST(Records, BytesThatAreNoTextAreWrittenAsSuch) {
  kinds::All all;
  all.list = {"\xff"};
  EXPECT_THAT(write_record(all), HasSubstr("\xEF\xBF\xBD"));
}

// --- inventories ----------------------------------------------------------------------------------------------------

TEST(Gaps, OfAnEmptyInventoryAreAllItsAttributes) {
  Inventory inventory;
  EXPECT_EQ(unexplained(inventory).size(), 35u);
  inventory.gpus.emplace_back();
  const std::vector<std::string> names = unexplained(inventory);
  EXPECT_EQ(names.size(), 34u + 29u) << "there is a GPU, of which nothing is known";
  for (const char* name :
       {"cpus", "memory_bytes", "engines", "gpus[0].name", "gpus[0].memory_bytes", "gpus[0].fabric.active"})
    EXPECT_THAT(names, ::testing::Contains(name));
  EXPECT_THAT(names, ::testing::Not(::testing::Contains("gpus")));
}

TEST(Gaps, GoWhereTheirAttributeIsKnown) {
  Inventory inventory;
  inventory.kernel = "6.1";
  inventory.gpus.emplace_back().name = "X";
  add_gap(inventory.gaps, "kernel", GapReason::denied);
  add_gap(inventory.gpus[0].gaps, "name", GapReason::denied);
  add_gap(inventory.gaps, "os", GapReason::denied, "first");
  add_gap(inventory.gaps, "os", GapReason::no_tool, "second");
  explain_rest(inventory, GapReason::not_reported, "x");
  EXPECT_EQ(find_gap(inventory.gaps, "kernel"), nullptr);
  EXPECT_EQ(find_gap(inventory.gpus[0].gaps, "name"), nullptr);
  EXPECT_EQ(find_gap(inventory.gaps, "os")->detail, "first");
  EXPECT_EQ(find_gap(inventory.gpus[0].gaps, "uuid")->reason, GapReason::not_reported);
  EXPECT_TRUE(unexplained(inventory).empty());
}

TEST(Nvswitches, AreToldOrSeenByMoreLinksThanOneChipHas) {
  Inventory inventory;
  EXPECT_FALSE(has_nvswitch(inventory));
  inventory.nvswitch = 0;
  EXPECT_FALSE(has_nvswitch(inventory));
  inventory.nvswitch = 1;
  EXPECT_TRUE(has_nvswitch(inventory));
  inventory.nvswitch.reset();
  inventory.gpus.resize(3);
  inventory.links = {{0, 1, LinkKind::nvlink, 9, {}}, {0, 2, LinkKind::nvlink, 9, {}}};
  EXPECT_FALSE(has_nvswitch(inventory)) << "eighteen is what one chip has";
  inventory.links[1].lanes = 10;
  EXPECT_TRUE(has_nvswitch(inventory));
  inventory.links[1].kind = LinkKind::xgmi;
  EXPECT_FALSE(has_nvswitch(inventory));
  inventory.links = {{1, 2, LinkKind::nvlink, 9, {}}, {0, 2, LinkKind::nvlink, 10, {}}};
  EXPECT_TRUE(has_nvswitch(inventory)) << "counted at both ends";
  inventory.links = {{0, 7, LinkKind::nvlink, 30, {}}, {7, 0, LinkKind::nvlink, 30, {}}};
  EXPECT_FALSE(has_nvswitch(inventory)) << "to a GPU that is not there";
}

TEST(Kinds, HaveNamesThatComeBack) {
  for (const Vendor one : {Vendor::nvidia, Vendor::amd, Vendor::intel, Vendor::other})
    EXPECT_EQ(parse_vendor(vendor_name(one)).value(), one);
  for (int i = 0; i < 9; ++i) {
    const auto reason = static_cast<GapReason>(i);
    EXPECT_EQ(parse_gap_reason(gap_reason_name(reason)).value(), reason);
    const auto kind = static_cast<LinkKind>(i);
    EXPECT_EQ(parse_link_kind(link_kind_name(kind)).value(), kind);
    EXPECT_EQ(is_fabric(kind), kind == LinkKind::nvlink || kind == LinkKind::xgmi || kind == LinkKind::xelink);
  }
  for (const NicKind one : {NicKind::ethernet, NicKind::roce, NicKind::infiniband, NicKind::other})
    EXPECT_EQ(parse_nic_kind(nic_kind_name(one)).value(), one);
  for (const DiskKind one :
       {DiskKind::unknown, DiskKind::nvme, DiskKind::ssd, DiskKind::hdd, DiskKind::network, DiskKind::memory})
    EXPECT_EQ(parse_disk_kind(disk_kind_name(one)).value(), one);
  for (const EngineKind one : {EngineKind::docker, EngineKind::podman, EngineKind::process})
    EXPECT_EQ(parse_engine(engine_name(one)).value(), one);
  const auto unknown = parse_vendor("matrox");
  ASSERT_THAT(unknown, FailsWith(Code::usage));
  EXPECT_EQ(unknown.error().message, "'matrox' is not a GPU vendor: nvidia, amd, intel, other");
  EXPECT_THAT(parse_engine("lxc"), FailsWith(Code::usage));
}

// --- texts ----------------------------------------------------------------------------------------------------------

TEST(Texts, AreSafeAtTheEdgesOfEachRange) {
  for (const auto& [text, safe] : {std::pair{"\xc2\x9f", "<U+009F>"},
                                   {"\xc2\xa0", "\xc2\xa0"},
                                   {"\xc2\xad", "<U+00AD>"},
                                   {"\xd8\x9c", "<U+061C>"},
                                   {"\xe1\xa0\x8e", "<U+180E>"},
                                   {"\xe2\x80\x8a", "\xe2\x80\x8a"},
                                   {"\xe2\x80\x8b", "<U+200B>"},
                                   {"\xe2\x80\x8f", "<U+200F>"},
                                   {"\xe2\x80\x90", "\xe2\x80\x90"},
                                   {"\xe2\x80\xa7", "\xe2\x80\xa7"},
                                   {"\xe2\x80\xa8", "<U+2028>"},
                                   {"\xe2\x80\xae", "<U+202E>"},
                                   {"\xe2\x80\xaf", "\xe2\x80\xaf"},
                                   {"\xe2\x81\x9f", "\xe2\x81\x9f"},
                                   {"\xe2\x81\xa0", "<U+2060>"},
                                   {"\xe2\x81\xaf", "<U+206F>"},
                                   {"\xe2\x81\xb0", "\xe2\x81\xb0"},
                                   {"\xef\xbb\xbf", "<U+FEFF>"},
                                   {"\xef\xbf\xb8", "\xef\xbf\xb8"},
                                   {"\xef\xbf\xb9", "<U+FFF9>"},
                                   {"\xef\xbf\xbb", "<U+FFFB>"},
                                   {"\xef\xbf\xbc", "\xef\xbf\xbc"},
                                   {"\xf3\xa0\x80\x80", "<U+E0000>"},
                                   {"\xf3\xa0\xbf\xbf", "<U+E0FFF>"},
                                   {"\xf3\xa1\x80\x80", "\xf3\xa1\x80\x80"},
                                   {"\xf3\x9f\xbf\xbf", "\xf3\x9f\xbf\xbf"},
                                   {"\xef\xb8\x80", "<U+FE00>"},
                                   {"\xef\xb8\x8e", "<U+FE0E>"},
                                   {"\xef\xb8\x8f", "\xef\xb8\x8f"},
                                   {"\xef\xb8\x90", "\xef\xb8\x90"},
                                   {"\xef\xb7\xbf", "\xef\xb7\xbf"},
                                   {"\x1f", "^_"},
                                   {" ", " "},
                                   {"~", "~"}})
    EXPECT_EQ(sanitize(text), safe) << safe;
}

TEST(Texts, AreDecodedStrictly) {
  for (const auto& [text, safe] : {std::pair{"\xc1\xbf", "\\xC1\\xBF"},           // overlong
                                   {"\xc2\x80", "<U+0080>"},                      // the least of two bytes
                                   {"\xdf\xbf", "\xdf\xbf"},                      // the greatest
                                   {"\xe0\x9f\xbf", "\\xE0\\x9F\\xBF"},           // overlong
                                   {"\xe0\xa0\x80", "\xe0\xa0\x80"},              // the least of three
                                   {"\xed\x9f\xbf", "\xed\x9f\xbf"},              // before the surrogates
                                   {"\xed\xa0\x80", "\\xED\\xA0\\x80"},           // a surrogate
                                   {"\xed\xbf\xbf", "\\xED\\xBF\\xBF"},           // the last one
                                   {"\xee\x80\x80", "\xee\x80\x80"},              // behind them
                                   {"\xef\xbf\xbf", "\xef\xbf\xbf"},              // the greatest of three
                                   {"\xf0\x8f\xbf\xbf", "\\xF0\\x8F\\xBF\\xBF"},  // overlong
                                   {"\xf0\x90\x80\x80", "\xf0\x90\x80\x80"},      // the least of four
                                   {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},      // U+10FFFF
                                   {"\xf4\x90\x80\x80", "\\xF4\\x90\\x80\\x80"},  // beyond
                                   {"\xf5\x80\x80\x80", "\\xF5\\x80\\x80\\x80"},  // no first byte
                                   {"\x80", "\\x80"},                             // a lonely continuation
                                   {"\xe2\x82", "\\xE2\\x82"},                    // cut off
                                   {"\xe2\x82"
                                    "a",
                                    "\\xE2\\x82"
                                    "a"}})  // not continued
    EXPECT_EQ(sanitize(text), safe) << safe;
}

TEST(Texts, OfADocumentKeepAllButDeceptiveCharacters) {
  EXPECT_EQ(escape_deceptive("plain \"text\"\n"), "plain \"text\"\n");
  EXPECT_EQ(escape_deceptive("a\x7f"
                             "b\xe2\x80\xae"
                             "c\xf3\xa0\x80\x81"
                             "d"),
            "a\\u007fb\\u202ec\\udb40\\udc01d");
  EXPECT_EQ(escape_deceptive("\xe2\x82\xac\xe2\x80\x8b"), "\xe2\x82\xac\\u200b");
  EXPECT_EQ(escape_deceptive(std::string("\xff") + "x"), std::string("\xff") + "x") << "no business of ours";
  EXPECT_EQ(escape_deceptive(""), "");
}

TEST(Texts, LinesAreCutWhereTheyAreLonger) {
  EXPECT_EQ(sanitize_lines("abcd\nef", 3), "abc…\nef");
  EXPECT_EQ(sanitize_lines("abc\nabc", 3), "abc\nabc");
  EXPECT_EQ(sanitize_lines("abcd", 4), "abcd");
  EXPECT_EQ(sanitize_lines("ab\r", 5), "ab^M");
  EXPECT_EQ(sanitize_lines("ab\r\n\r\nc"), "ab\n\nc");
}

TEST(Texts, NearestIsOfWordsUpToSixtyFourBytes) {
  const std::string word(64, 'a');
  const std::vector<std::string> known{word + "b"};
  EXPECT_EQ(nearest(word, known), known[0]);
  EXPECT_EQ(nearest(word + "a", known), "");
  EXPECT_EQ(nearest("ab", std::vector<std::string>{"ac"}), "ac") << "one edit of two letters";
  EXPECT_EQ(nearest("abcde", std::vector<std::string>{"abxye"}), "") << "two edits of five";
  EXPECT_EQ(nearest("abcdef", std::vector<std::string>{"abxyef"}), "abxyef") << "two of six";
  EXPECT_EQ(nearest("abcdef", std::vector<std::string>{"abxyzf"}), "");
}

TEST(Texts, OtherSmallThings) {
  EXPECT_EQ(trim("\v\f x \v\f"), "x");
  EXPECT_EQ(lower("AZaz@[`{Ä"), "azaz@[`{Ä");
  EXPECT_EQ(split_lines("a\r\r\n"), (std::vector<std::string>{"a\r"}));
  EXPECT_EQ(split_lines("\n\n"), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(join(std::vector<std::string>{"", ""}, "-"), "-");
  EXPECT_EQ(shell_quote("_@%+=:,./-"), "_@%+=:,./-");
  EXPECT_EQ(shell_quote("'"), "''\\'''");
}

TEST(Names, OfMetricsAreShortAndPlain) {
  EXPECT_TRUE(is_metric_name(std::string(64, 'x')));
  EXPECT_TRUE(is_metric_name("Loss/train:1.0_a-b"));
  for (const std::string& odd : {std::string(), std::string(65, 'x'), std::string("a b"), std::string("a\n")})
    EXPECT_FALSE(is_metric_name(odd)) << odd;
}

TEST(Names, SayWhyTheyAreRefused) {
  EXPECT_EQ(check_name("job", "").error().message, "job name is empty");
  EXPECT_THAT(check_name("job", std::string(64, 'x')).error().message, HasSubstr("longer than 63"));
  EXPECT_THAT(check_name("job", "a-").error().hint, HasSubstr("try 'a'"));
  EXPECT_EQ(to_name("a--b"), "a-b");
  EXPECT_EQ(to_name(std::string(70, 'x')), std::string(63, 'x'));
  EXPECT_EQ(to_name(std::string(62, 'x') + "-y"), std::string(62, 'x'));
}

// --- times and sizes ------------------------------------------------------------------------------------------------

TEST(Times, EndAtTenYears) {
  EXPECT_EQ(parse_duration("3660d").value(), std::chrono::hours{3660 * 24});
  EXPECT_THAT(parse_duration("3661d"), FailsWith(Code::usage));
  EXPECT_THAT(parse_duration("3660d1s"), FailsWith(Code::usage));
  EXPECT_EQ(parse_duration("316224000").value(), std::chrono::hours{3660 * 24});
  EXPECT_THAT(parse_duration("316224001"), FailsWith(Code::usage));
  EXPECT_EQ(parse_duration("316224000000ms").value(), std::chrono::hours{3660 * 24});
  EXPECT_THAT(parse_duration("316224000001ms"), FailsWith(Code::usage));
  EXPECT_EQ(parse_duration("3659d23h59m60s").value(), std::chrono::hours{3660 * 24});
  EXPECT_THAT(parse_duration("1s2"), FailsWith(Code::usage));
  EXPECT_THAT(parse_duration("5`"), FailsWith(Code::usage));
  EXPECT_THAT(parse_duration("5{"), FailsWith(Code::usage));
}

TEST(Times, AreShortAtTheEdgesOfEachUnit) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  for (const auto& [duration, text] : {std::pair<Duration, const char*>{Duration{999'999}, "0ms"},
                                       {milliseconds{999}, "999ms"},
                                       {milliseconds{1000}, "1s"},
                                       {milliseconds{1050}, "1.0s"},
                                       {milliseconds{9900}, "9.9s"},
                                       {milliseconds{10'500}, "10s"},
                                       {seconds{59}, "59s"},
                                       {seconds{60}, "1m"},
                                       {seconds{61}, "1m1s"},
                                       {seconds{3599}, "59m59s"},
                                       {seconds{3600}, "1h"},
                                       {seconds{3659}, "1h"},
                                       {seconds{86'399}, "23h59m"},
                                       {seconds{86'400}, "1d"},
                                       {seconds{89'999}, "1d"},
                                       {seconds{90'000}, "1d1h"},
                                       {-seconds{5}, "-5s"},
                                       {Duration{}, "0ms"}})
    EXPECT_EQ(format_duration(duration), text);
}

TEST(Times, OfDayAreWithinTheirLimits) {
  for (const char* good :
       {"2026-01-01T23:59:60Z", "2026-12-31T00:00:00Z", "2026-11-21T12:16:25.000Z", "0001-01-01T00:00:00Z"})
    EXPECT_THAT(parse_rfc3339(good), IsOk()) << good;
  for (const char* bad :
       {"2026-01-01T23:59:61Z", "2026-01-32T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-01T:0:00:00Z",
        "2026-01-01T0/:00:00Z", "2026-01-01T00:00:00z", "2026-01-01T00:00:00.000"})
    EXPECT_THAT(parse_rfc3339(bad), FailsWith(Code::usage)) << bad;
}

TEST(Sizes, EndWhereNumbersDo) {
  EXPECT_EQ(parse_size("9000PB").value(), 9'000'000'000'000'000'000u);
  EXPECT_THAT(parse_size("9001PB"), FailsWith(Code::usage));
  EXPECT_EQ(parse_size("1 b").value(), 1u);
  EXPECT_EQ(parse_size("1kb").value(), 1000u);
  EXPECT_EQ(parse_size("1m").value(), 1'000'000u);
  for (const char* bad : {"/1", ":1", "1kx", "1ix", "1kibb", "1ib"})
    EXPECT_THAT(parse_size(bad), FailsWith(Code::usage)) << bad;
  EXPECT_EQ(format_size(10 * 1024 - 1), "10.0 KiB");
  EXPECT_EQ(format_size(10 * 1024), "10 KiB");
  EXPECT_EQ(format_size(9), "9 B");
  EXPECT_EQ(format_size(1024 * 1024 - 1), "1024 KiB");
  EXPECT_EQ(to_hex(as_bytes("\x09\x0f\xf0\x99")), "090ff099");
  const std::string nought(64, '0');
  for (const char odd : {'/', ':', '`', 'g'}) {
    std::string text = nought;
    text[1] = odd;
    EXPECT_THAT(parse_digest(text), FailsWith(Code::protocol_violation)) << odd;
    std::swap(text[0], text[1]);
    EXPECT_THAT(parse_digest(text), FailsWith(Code::protocol_violation)) << odd;
  }
}

TEST(Errors, AreTriedAgainAsTheirCodeSays) {
  EXPECT_EQ(default_retry(Code::busy), Retry::other_host);
  EXPECT_EQ(default_retry(Code::timed_out), Retry::same_host_later);
  EXPECT_EQ(make_error(Code::usage, "x").retry, Retry::needs_user);
  for (const auto& [retry, name] : {std::pair{Retry::never, "never"},
                                    {Retry::same_host_later, "same_host_later"},
                                    {Retry::other_host, "other_host"},
                                    {Retry::needs_user, "needs_user"}})
    EXPECT_EQ(retry_name(retry), name);
  EXPECT_EQ(code_name(static_cast<Code>(999)), "internal");
  EXPECT_EQ(exit_code(Code::host_key_mismatch), 6);
}

}  // namespace
}  // namespace gridctl::edges_test

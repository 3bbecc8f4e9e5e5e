// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/ids.hpp"
#include "base/record.hpp"
#include "base/time.hpp"

namespace gridctl::record_test {
namespace paint {

enum class Colour : std::uint8_t { red, green };
static std::string_view colour_name(Colour colour) { return colour == Colour::red ? "red" : "green"; }

struct Spot {
  int x = 0;
  bool operator==(const Spot&) const = default;
};
struct Picture {
  JobId job{"j1"};
  Epoch epoch{7};
  std::string title = "t";
  Duration waits = std::chrono::milliseconds{1500}, exact{1'000'001};
  std::optional<double> price;
  std::optional<std::uint64_t> limit;
  std::vector<Spot> spots{{1}, {2}};
  std::map<std::string, int> counts{{"a", 1}};
  Colour colour = Colour::green;
  int newer = -1;
  std::string once = "o";
  bool operator==(const Picture&) const = default;
};

struct Ledger {
  std::int64_t balance = 0;
  bool operator==(const Ledger&) const = default;
};

template <class R>
void fields(R& r, Of<R, Ledger>& m) {
  r("balance", m.balance, INT64_MIN, INT64_MAX);
}
template <class R>
void fields(R& r, Of<R, Spot>& m) {
  r("x", m.x, -10, 10).check(m.x != 5, "is on the fold");
}
template <class R>
void fields(R& r, Of<R, Picture>& m) {
  r("job", m.job)("epoch", m.epoch)("title", m.title, 8)("waits_ms", m.waits)("exact_ns", m.exact);
  r.null_or("price", m.price).maybe("limit", m.limit, 100)("spots", m.spots, 3)("counts", m.counts);
  r.word("colour", m.colour, colour_name, scan(colour_name, Colour::green));
  r.unless("newer", m.newer, -1, -1, 9).added("once", m.once);
}

}  // namespace paint

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

using ::testing::HasSubstr;

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
namespace {

using paint::Colour;
using paint::Picture;
constexpr ReadRules k_strict{};

TEST(Record, HoldsEveryIntegerOf64BitsAndNoOther) {
  const auto balance = [](const std::string& number) {
    return read_record<paint::Ledger>("{\"balance\":" + number + "}", "the ledger", k_strict, Code::protocol_violation);
  };
  for (const std::int64_t good : {INT64_MIN, std::int64_t{-1}, std::int64_t{0}, INT64_MAX - 1, INT64_MAX}) {
    const auto read = balance(std::to_string(good));
    ASSERT_TRUE(read) << good << ": " << read.error().message;
    EXPECT_EQ(read->balance, good);
  }
  for (const char* bad :
       {"9223372036854775808", "-9223372036854775809", "18446744073709551615", "1.5", "1e300", "\"1\"", "null"})
    EXPECT_FALSE(balance(bad)) << bad;
}

Result<Picture> read(std::string_view text, const ReadRules& rules = k_strict) {
  return read_record<Picture>(text, "the picture", rules, Code::protocol_violation);
}

std::string with(std::string_view was, std::string_view becomes) {
  std::string text = write_record(Picture{});
  const std::size_t at = text.find(was);
  EXPECT_NE(at, std::string::npos) << was << " in " << text;
  return text.replace(at, was.size(), becomes);
}

TEST(Record, IsReadAsItWasWritten) {
  Picture picture;
  picture.price = 0.25;
  picture.limit = 3;
  picture.newer = 4;
  const Result<Picture> again = read(write_record(picture));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, picture);
}

TEST(Record, WritesTheUnitOfTheKeyNullAndNothingWhereEachIsDue) {
  EXPECT_EQ(write_record(Picture{}),
            R"({"colour":"green","counts":{"a":1},"epoch":7,"exact_ns":1000001,"job":"j1","once":"o",)"
            R"("price":null,"spots":[{"x":1},{"x":2}],"title":"t","waits_ms":1500})");
}

// As the library that parses it would write it: one form for one value, on all hosts.
TEST(Record, WritesTextsAndNumbersInTheOnlyForm) {
  const auto again = [](const std::string& text) {
    return nlohmann::json::parse(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  for (const double price :
       {0.0, -0.0, 0.1, 1.0, -2.5, 1e-4, 9.9e-5, 123456789012345.0, 1e15, 1.5e300, 5e-324, 1.0 / 3}) {
    Picture picture;
    picture.price = price;
    const std::string text = write_record(picture);
    EXPECT_EQ(text, again(text));
    const Result<Picture> back = read(text, k_own_rules);
    ASSERT_TRUE(back) << text;
    EXPECT_EQ(back->price, price);
  }
  for (const std::string title : {"", "\"", "a\\b", "\n\t\r\b\f", "\x01\x1f\x7f", "Jürgen", "日本", "😀", "/"}) {
    Picture picture;
    picture.title = title;
    picture.counts = {{title, 1}, {title + "~", 2}, {"!", 3}};
    const std::string text = write_record(picture);
    EXPECT_EQ(text, again(text));
    const Result<Picture> back = read(text, k_own_rules);
    ASSERT_TRUE(back) << text;
    EXPECT_EQ(*back, picture);
  }
  Picture torn;
  torn.title = "a\xff\xc3(";
  EXPECT_EQ(nlohmann::json::parse(write_record(torn))["title"], "a\uFFFD\uFFFD(") << "what is no UTF-8 is replaced";
  torn.price = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(nlohmann::json::parse(write_record(torn))["price"].is_null());
}

TEST(Record, OfTwoMembersOfOneNameTheLastOneCounts) {
  const Result<Picture> picture =
      read(with(R"("epoch":7)", R"("epoch":[{"epoch":5},6],"epoch":8,"price":1,"price":2)"));
  ASSERT_TRUE(picture) << picture.error().message;
  EXPECT_EQ(picture->epoch, Epoch{8});
  EXPECT_EQ(picture->price, std::nullopt) << "null stands behind";
}

TEST(Record, IsTheSameInWhateverOrderItsMembersStand) {
  Picture written;
  written.price = 2.5;
  written.newer = 3;
  const auto parsed = nlohmann::json::parse(write_record(written));
  std::vector<std::string> members;
  for (const auto& [name, value] : parsed.items()) members.push_back(nlohmann::json(name).dump() + ":" + value.dump());
  for (std::size_t turn = 0; turn <= members.size(); ++turn) {
    std::string text;
    for (const std::string& member : members) text += (text.empty() ? "{" : ",") + member;
    const Result<Picture> picture = read(text + "}");
    ASSERT_TRUE(picture) << text << picture.error().message;
    EXPECT_EQ(*picture, written) << text;
    if (turn + 1 == members.size()) std::reverse(members.begin(), members.end());
    else std::rotate(members.begin(), members.begin() + 1, members.end());
  }
}

// Among them what the parser's own arithmetic would make of numbers that somebody chose for it.
TEST(Record, ReadsRealNumbersToTheLastBit) {
  const auto price = [](const std::string& number) {
    const Result<Picture> picture = read(R"({"job":"j1","price":)" + number + "}", k_lenient_rules);
    return picture ? picture->price : std::nullopt;
  };
  const std::string zeros(2000, '0'), nines(2000, '9');
  for (const std::string& text :
       {std::string("0.1"), std::string("-0"), std::string("1e-999"), std::string("4.9e-324"),
        std::string("1.7976931348623157e308"), std::string("2.2250738585072011e-308"), std::string("9007199254740993"),
        std::string("-0e-99999999999999999999"), "0." + zeros + "1", "0." + nines, "1." + nines + "e9"})
    EXPECT_EQ(price(text), std::strtod(text.c_str(), nullptr)) << text.substr(0, 40);
  for (const std::string& text :
       {std::string("1e309"), "1" + zeros, std::string("0x10"), std::string("1."), std::string("+1")})
    EXPECT_EQ(price(text), std::nullopt) << text.substr(0, 40);
}

TEST(Record, SaysWhatIsWrongAndWhere) {
  const std::pair<std::string, const char*> wrong[] = {
      {with(R"("epoch":7,)", ""), "the picture lacks 'epoch'"},
      {with(R"("epoch":7)", R"("epoch":-7)"), "the picture has a 'epoch' that is not a number within its limits"},
      {with(R"("title":"t")", R"("title":"123456789")"), "the picture has a 'title' that is too long"},
      {with(R"("title":"t")", R"("title":"\u0000")"), "the picture has a 'title' with a NUL character"},
      {with(R"("job":"j1")", R"("job":"../x")"), "the picture has a 'job' that is not an id"},
      {with(R"("once":"o")", R"("once":"o","limit":101)"),
       "the picture has a 'limit' that is not a number within its limits"},
      {with(R"({"x":1})", R"({"x":11})"), "the picture.spots has a 'x' that is not a number within its limits"},
      {with(R"({"x":1})", R"({"x":5})"), "the picture.spots is on the fold"},
      {with(R"({"x":1})", R"({"x":1},{"x":3},{"x":4})"), "the picture has more than 3 'spots'"},
      {with(R"("green")", R"("blue")"), "the picture names an unknown colour"},
      {with(R"("waits_ms":1500)", R"("waits_ms":-1)"),
       "the picture has a 'waits_ms' that is not a number within its limits"},
      {std::string(40, '[') + std::string(40, ']'), "the picture is nested too deep"},
      {"[]", "the picture is not an object"},
      {R"({"job":"j1")", "the picture is not valid JSON: Missing a comma or '}' after an object member (byte 11)"},
      {R"({"epoch":1e999})", "the picture is not valid JSON: Number too big to be stored in double (byte 9)"},
      {R"({"epoch":1234e306})", "the picture has a number that is too big"},
      {R"({"title":"\ude00"})", "the picture has half a surrogate pair"},
      {R"({"title":"\ud83d"})", "the picture is not valid JSON: The surrogate pair in string is invalid (byte 10)"},
      {"{\"title\":\"\xED\xB8\x80\"}", "the picture is not valid JSON: Invalid encoding in string (byte 10)"},
      {std::string("{}\0{}", 5),
       "the picture is not valid JSON: The document root must not be followed by other values (byte 2)"},
  };
  for (const auto& [text, expected] : wrong) {
    const Result<Picture> picture = read(text);
    ASSERT_FALSE(picture) << text;
    EXPECT_EQ(picture.error().message, expected) << text;
    EXPECT_EQ(picture.error().code, Code::protocol_violation);
  }
}

TEST(Record, ToleratesWhatItsRulesTolerate) {
  EXPECT_TRUE(read(with(R"("once":"o",)", ""))) << "newer than the format";
  EXPECT_TRUE(read(with(R"("epoch":7)", R"("unknown":1,"epoch":7)")));
  const Result<Picture> lenient = read(R"({"title":null,"colour":"red"})", k_lenient_rules);
  ASSERT_TRUE(lenient) << lenient.error().message;
  EXPECT_EQ(lenient->title, "t");
  EXPECT_EQ(lenient->colour, Colour::red);
  EXPECT_EQ(lenient->epoch, Epoch{7});
  EXPECT_TRUE(read(with(R"("waits_ms":1500)", R"("waits_ms":-1)"), k_own_rules)) << "our own may be negative";
  EXPECT_FALSE(read(with(R"("epoch":7,)", ""), k_own_rules)) << "but it is whole";
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

}  // namespace
}  // namespace gridctl::record_test

#include "client/yaml/yaml_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tactus::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(YamlTreeTest, KeepsOrderLinesAndQuotes) {
  const YamlDocument document = ParseYaml("a: 1\nb: {c: '2', d: [x, y]}\n");

  ASSERT_EQ(document.error, "");
  ASSERT_EQ(document.root.entries.size(), 2u);
  EXPECT_EQ(document.root.entries[0].key, "a");
  EXPECT_FALSE(document.root.entries[0].value.quoted);
  EXPECT_EQ(document.root.entries[1].line, 2);
  const YamlValue& b = document.root.entries[1].value;
  EXPECT_EQ(FindYamlKey(b, "c")->text, "2");
  EXPECT_TRUE(FindYamlKey(b, "c")->quoted);
  EXPECT_EQ(FindYamlKey(b, "d")->items.size(), 2u);
  EXPECT_EQ(FindYamlKey(b, "e"), nullptr);
}

TEST(YamlTreeTest, ResolvesAliases) {
  const YamlDocument document = ParseYaml("a: &x {n: 1}\nb: *x\n");

  ASSERT_EQ(document.error, "");
  EXPECT_EQ(FindYamlKey(*FindYamlKey(document.root, "b"), "n")->text, "1");
}

TEST(YamlTreeTest, AKeyWithoutAValueIsOnItsLine) {
  const YamlDocument document = ParseYaml("a: 1\nb:\n\nc: 2\nd:\n");

  ASSERT_EQ(document.error, "");
  EXPECT_EQ(FindYamlKey(document.root, "b")->line, 2);
  EXPECT_EQ(FindYamlKey(document.root, "d")->line, 5);
}

TEST(YamlTreeTest, EmptyTextIsNull) {
  EXPECT_EQ(ParseYaml("").root.kind, YamlValue::Kind::kNull);
  EXPECT_EQ(ParseYaml("# only a comment\n").root.kind, YamlValue::Kind::kNull);
}

TEST(YamlTreeTest, SyntaxErrorsHaveLineAndColumn) {
  EXPECT_THAT(ParseYaml("a: 1\nb: [1, 2\n").error, StartsWith("line 3, column 1: "));
  EXPECT_THAT(ParseYaml("a: *nothing\n").error, StartsWith("line 1, column 4: "));
}

TEST(YamlTreeTest, RefusesASecondDocument) {
  EXPECT_THAT(ParseYaml("a: 1\n---\nb: 2\n").error,
              HasSubstr("line 2, column 1: text that is not part of the document"));
}

TEST(YamlTreeTest, EndsOnTextThatBelongsToNoDocument) {
  EXPECT_EQ(ParseYaml(",a: b\n").error,
            "line 1, column 1: text that is not part of the document; is it a second one?");
  EXPECT_NE(ParseYaml("a: b\n]\n").error, "");
  EXPECT_NE(ParseYaml("[a] b\n").error, "");
}

TEST(YamlTreeTest, RefusesKeysThatAreNotWords) {
  EXPECT_THAT(ParseYaml("{[a, b]: c}\n").error, HasSubstr("a key must be a word"));
}

TEST(YamlTreeTest, RefusesTextThatIsNotUtf8) {
  EXPECT_EQ(ParseYaml("a: 1\nb: \xff\n").error, "line 2: not UTF-8 text");
  EXPECT_EQ(ParseYaml("b: \xed\xa0\x80\n").error, "line 1: not UTF-8 text");
  EXPECT_EQ(ParseYaml("b: \xc0\xaf\n").error, "line 1: not UTF-8 text");
  EXPECT_EQ(ParseYaml("b: \xe2\x82").error, "line 1: not UTF-8 text");
  EXPECT_EQ(ParseYaml(std::string("a: \0b", 5)).error,
            "line 1: a control character, NUL; allowed is text");
  EXPECT_EQ(ParseYaml("b: gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\n").error, "");
}

TEST(YamlTreeTest, RefusesMoreThanOneMebibyte) {
  EXPECT_EQ(ParseYaml(std::string(kYamlBytesMax + 1, 'a')).error,
            "larger than 1048576 bytes, which is the most allowed");
  EXPECT_EQ(ParseYaml(std::string(kYamlBytesMax, 'a')).error, "");
}

TEST(YamlTreeTest, RefusesDeepNesting) {
  const std::string shallow = std::string(20, '[') + std::string(20, ']');
  const std::string deep = std::string(40, '[') + std::string(40, ']');
  const std::string bottomless(100'000, '[');

  EXPECT_EQ(ParseYaml(shallow).error, "");
  EXPECT_THAT(ParseYaml(deep).error, HasSubstr("nested deeper than 32 levels"));
  EXPECT_NE(ParseYaml(bottomless).error, "");
}

TEST(YamlTreeTest, RefusesAliasesThatMultiply) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    const std::string name = "a" + std::to_string(i);
    text += name + ": &" + name + " [" + below;
    for (int j = 0; j < 9; ++j) text += ", " + below;
    text += "]\n";
  }

  EXPECT_THAT(ParseYaml(text).error, HasSubstr("more than 10000 values"));
}

TEST(YamlTreeTest, RefusesAliasesThatRepeatMuchText) {
  std::string text = "a: &a " + std::string(500'000, 'x') + "\nb: [*a";
  for (int i = 0; i < 20; ++i) text += ", *a";

  EXPECT_THAT(ParseYaml(text + "]\n").error, HasSubstr("aliases repeat too much text"));
}

TEST(YamlTreeTest, RefusesAnAliasWithinItself) {
  EXPECT_NE(ParseYaml("a: &a {b: *a}\n").error, "");
}

TEST(YamlTreeTest, SetsValuesAndMakesMapsOnTheWay) {
  YamlDocument document = ParseYaml("a: {b: 1}\n");
  YamlValue value;
  value.kind = YamlValue::Kind::kScalar;
  value.text = "7";

  EXPECT_EQ(SetYamlPath("a.b", value, &document.root), "");
  EXPECT_EQ(SetYamlPath("c.d.e", value, &document.root), "");
  EXPECT_EQ(FindYamlKey(*FindYamlKey(document.root, "a"), "b")->text, "7");
  EXPECT_EQ(FindYamlKey(*FindYamlKey(*FindYamlKey(document.root, "c"), "d"), "e")->text, "7");
}

TEST(YamlTreeTest, SaysWhyAPathCannotBeSet) {
  YamlDocument document = ParseYaml("a: 1\n");

  EXPECT_EQ(SetYamlPath("a.b", {}, &document.root), "'b' is asked of what is not a map");
  EXPECT_EQ(SetYamlPath("a..b", {}, &document.root), "a part of the path is empty");
  EXPECT_EQ(SetYamlPath("", {}, &document.root), "a part of the path is empty");
  EXPECT_EQ(SetYamlPath(std::string(10'000, '.'), {}, &document.root),
            "the path has too many parts");
}

TEST(YamlTreeTest, TheLineOfAPathIsThatOfWhatStandsThere) {
  const YamlDocument document = ParseYaml("a: 1\nb:\n  - c: 2\n  - c: 3\n    d: 4\n");

  EXPECT_EQ(LineAt(document.root, "a"), 1);
  EXPECT_EQ(LineAt(document.root, "b[0].c"), 3);
  EXPECT_EQ(LineAt(document.root, "b[1].d"), 5);
  EXPECT_EQ(LineAt(document.root, "b[1].none.below"), 4);  // what is around it
  EXPECT_EQ(LineAt(document.root, "b[2]"), 3);
  EXPECT_EQ(LineAt(document.root, "b[x"), 3);
  EXPECT_EQ(LineAt(document.root, ""), 1);
}

TEST(YamlTreeTest, WritesScalarsThatReadBackTheSame) {
  for (const std::string text :
       {"plain", "two words",   "/a/b.txt",    "null",  "yes",  "12", "-",
        "",      " x",          "x ",          "a: b",  "a #b", "*x", "&x",
        "\"q\"", "back\\slash", "line\nbreak", "tab\t", "\x01", "%",  "gr\xc3\xbc\xc3\x9f",
        "[1]",   "{a}",         "~",           "!tag",  "True"}) {
    const YamlDocument document = ParseYaml("k: " + YamlScalar(text) + "\n");

    ASSERT_EQ(document.error, "") << text;
    EXPECT_EQ(FindYamlKey(document.root, "k")->kind, YamlValue::Kind::kScalar) << text;
    EXPECT_EQ(FindYamlKey(document.root, "k")->text, text);
  }
}

}  // namespace
}  // namespace tactus::client

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "syntax_scripts.h"
#include "syntax_support.h"

namespace espy::syntax {
namespace {

struct Row {
  const char* input;
  const char* tree;
};

class Expressions : public testing::TestWithParam<Row> {};

// The tree of `begin { $r = INPUT; }`, without what surrounds the expression.
TEST_P(Expressions, HasTree) {
  const Parsed parsed(std::string("begin { $r = ") + GetParam().input + "; }");
  ASSERT_EQ(parsed.errors(), "");
  const std::string before = "(action (probe begin) (block (= (var $r) ";
  const std::string tree = flat(parsed.tree());
  ASSERT_TRUE(tree.starts_with(before)) << tree;
  EXPECT_EQ(tree.substr(before.size(), tree.size() - before.size() - 3), GetParam().tree);
}

INSTANTIATE_TEST_SUITE_P(
    Syntax, Expressions,
    testing::Values(
        // Precedence, low to high.
        Row{"1 || 2 && 3", "(|| (int 1) (&& (int 2) (int 3)))"},
        Row{"1 && 2 | 3 ^ 4 & 5", "(&& (int 1) (| (int 2) (^ (int 3) (& (int 4) (int 5)))))"},
        Row{"1 & 2 == 3 < 4", "(& (int 1) (== (int 2) (< (int 3) (int 4))))"},
        Row{"1 < 2 << 3 + 4 * 5", "(< (int 1) (<< (int 2) (+ (int 3) (* (int 4) (int 5)))))"},
        Row{"1 - 2 - 3", "(- (- (int 1) (int 2)) (int 3))"}, Row{"-1 + 2", "(+ (- (int 1)) (int 2))"},
        Row{"-$x.a[1]++", "(- (post++ (index (. a (var $x)) (int 1))))"},
        Row{"1 ? 2 : 3 ? 4 : 5", "(? (int 1) (int 2) (? (int 3) (int 4) (int 5)))"},
        Row{"1 ?: 2 || 3", "(?: (int 1) (|| (int 2) (int 3)))"},
        // Casts against parentheses.
        Row{"(uint8)1 + 2", "(+ (cast (type uint8) (int 1)) (int 2))"}, Row{"(x) + 1", "(+ (name x) (int 1))"},
        Row{"(x) - 1", "(- (name x) (int 1))"}, Row{"(pid_t)-1", "(cast (type pid_t) (- (int 1)))"},
        Row{"(foo)$x", "(cast (type foo) (var $x))"}, Row{"(foo *)$x", "(cast (type foo*) (var $x))"},
        Row{"(a * b)", "(* (name a) (name b))"}, Row{"(a[1]) - 2", "(- (index (name a) (int 1)) (int 2))"},
        Row{"(struct foo **)arg0", "(cast (type struct foo**) (name arg0))"},
        Row{"(int32[4])1", "(cast (type int32[n] (int 4)) (int 1))"},
        Row{"(int8[])$s", "(cast (type int8[]) (var $s))"},
        Row{"(typeof($x))1", "(cast (type typeof (var $x)) (int 1))"},
        Row{"(unsigned long)1", "(cast (type unsigned long) (int 1))"},
        Row{"((struct a *)p)->b", "(-> b (cast (type struct a*) (name p)))"},
        // Access.
        Row{"args.return", "(. return (name args))"}, Row{"args->x", "(-> x (name args))"},
        Row{"$a.0.1", "(. 1 (. 0 (var $a)))"}, Row{"@[1, 2]", "(index (map @) (int 1) (int 2))"},
        // Tuples and records.
        Row{"(1,)", "(tuple (int 1))"}, Row{"(1, (2, 3))", "(tuple (int 1) (tuple (int 2) (int 3)))"},
        Row{"(a = 1, b = 2)", "(record a b (int 1) (int 2))"}, Row{"(1)", "(int 1)"},
        // Words.
        Row{"pid", "(name pid)"}, Row{"pid()", "(call pid)"}, Row{"$1", "(positional 1)"},
        Row{"$#", "(positional-count)"}, Row{"true", "(bool true)"},
        Row{"sizeof(struct x)", "(sizeof (type struct x))"}, Row{"sizeof($x)", "(sizeof (var $x))"},
        Row{"sizeof((int8))", "(sizeof (type int8))"}, Row{"f(((int8)), 1)", "(call f (type int8) (int 1))"},
        Row{"(int8) + 1", "(+ (name int8) (int 1))"}, Row{"sizeof(foo *)", "(sizeof (type foo*))"},
        Row{"offsetof(struct x, a.b)", "(offsetof a.b (type struct x))"},
        Row{"comptime 1 + 2", "(+ (comptime (int 1)) (int 2))"}, Row{"typeinfo($x)", "(typeinfo (var $x))"},
        Row{"is_str(typeof($x))", "(call is_str (type typeof (var $x)))"},
        Row{"{ $a = 1; $a }", "(block (= (var $a) (int 1)) (value (var $a)))"},
        Row{"if 1 { 2 } else { 3 }", "(if (int 1) (block (value (int 2))) (block (value (int 3))))"},
        // Literals.
        Row{"0x1f", "(int 31)"}, Row{"0123", "(int 83)"}, Row{"2e3", "(int 2000)"}, Row{"1_000ull", "(int 1000)"},
        Row{"18446744073709551615", "(int 18446744073709551615)"}, Row{"10ms", "(duration 10000000)"},
        Row{"1d", "(duration 86400000000000)"}, Row{R"("a\n\x41\033\"")", R"((string "a\nA\x1b\""))"}));

class Actions : public testing::TestWithParam<Row> {};

TEST_P(Actions, HaveTrees) {
  const Parsed parsed(GetParam().input);
  EXPECT_EQ(parsed.errors(), "");
  EXPECT_EQ(flat(parsed.tree()), GetParam().tree);
}

INSTANTIATE_TEST_SUITE_P(
    Syntax, Actions,
    testing::Values(
        Row{"BEGIN{}", "(action (probe BEGIN) (block))"}, Row{"i:s:1{}", "(action (probe i s 1) (block))"},
        Row{"uprobe:/bin/bash:readline /pid == 1/ {}",
            "(action (probe uprobe /bin/bash readline) (predicate (== (name pid) (int 1))) (block))"},
        Row{"uprobe:lib/x.so:f/1/{}", "(action (probe uprobe lib/x.so f) (predicate (int 1)) (block))"},
        Row{"kprobe:f / 8 / 2 / {}", "(action (probe kprobe f) (predicate (/ (int 8) (int 2))) (block))"},
        Row{"kprobe:a,\n kprobe:b+0x10 , t:*:[a-z]? {}",
            "(action (probe kprobe a) (probe kprobe b+0x10) (probe t * [a-z]?) (block))"},
        Row{R"x(uprobe:"/a b":cpp:"n::f(int, char)" {})x",
            R"x((action (probe uprobe "/a b" cpp "n::f(int, char)") (block)))x"},
        Row{"x=i:ms:$1{}", "(action x (probe i ms $1) (block))"},
        Row{"uprobe:a.apk!/lib.so:f,u:x@f.c:12{}",
            "(action (probe uprobe a.apk!/lib.so f) (probe u x@f.c 12) (block))"},
        Row{"begin { print(1) }", "(action (probe begin) (block (do (call print (int 1)))))"},
        Row{"begin { if (1) { 2 } else if 3 { 4 } ; }",
            "(action (probe begin) (block (do (if (int 1) (block (do (int 2))) (if (int 3) (block (do (int 4))))))))"},
        Row{"begin { for ($i : 0..5) { continue } }",
            "(action (probe begin) (block (for-range $i (int 0) (int 5) (block (continue)))))"},
        Row{"begin { for $kv : @m { break; } }", "(action (probe begin) (block (for $kv (map @m) (block (break)))))"},
        Row{"macro m($a, @b, c) { if (c) { 1 } else { 2 } }",
            "(macro m (parameter $a) (parameter @b) (parameter c) (block (value (if (name c) (block (value (int 1))) "
            "(block (value (int 2)))))))"},
        Row{"macro m() { if (1) { f() } }", "(macro m (block (do (if (int 1) (block (do (call f)))))))"},
        Row{"fn f($a:int8):void { return; }", "(fn f (parameter $a (type int8)) (type void) (block (return)))"},
        Row{"config = { a = 1; b = c }", "(config a (int 1)) (config b (name c))"},
        Row{"let @m = hash(10);", "(map-declaration @m hash (int 10))"}, Row{"import \"a.bt\"", "(import \"a.bt\")"}));

TEST(Parse, AcceptsEveryScript) {
  for (const std::string_view script : kScripts) {
    const Parsed parsed{std::string(script)};
    EXPECT_EQ(parsed.errors(), "") << script;
  }
}

TEST(Parse, GivesSpansOfWhatWasTyped) {
  const Parsed parsed("begin { $x = (1 + 2) * f($y) }");
  const auto& body = *parsed.ast.get<Block>(parsed.ast.actions[0].body);
  const auto& assign = *parsed.ast.get<Assign>(body.statements[0]);
  const auto& times = *parsed.ast.get<Binary>(assign.value);
  EXPECT_EQ(parsed.sources.text(parsed.ast[assign.value].span), "(1 + 2) * f($y)");
  EXPECT_EQ(parsed.sources.text(parsed.ast[times.left].span), "1 + 2");
  EXPECT_EQ(parsed.sources.text(times.op_span), "*");
  EXPECT_EQ(parsed.sources.text(parsed.ast.get<Call>(times.right)->name_span), "f");
}

TEST(Parse, ReadsALoneExpression) {
  Parsed parsed("begin { }");
  const auto define = parsed.sources.add("define", "1 + X");
  const ExprId e = parse_expression(parsed.sources, define, parsed.ast, parsed.diagnostics);
  EXPECT_EQ(parsed.errors(), "");
  EXPECT_EQ(format(parsed.ast, e), "1 + X");
}

// Every prefix of every script, and every script with one character missing: no crash, no hang, and what parses
// without errors formats to the same tree.
TEST(Parse, SurvivesDamage) {
  for (const std::string_view script : kScripts) {
    for (size_t i = 0; i < script.size(); ++i) {
      const Parsed prefix{std::string(script.substr(0, i))};
      EXPECT_FALSE(prefix.tree().empty() && prefix.formatted().empty() && prefix.errors().empty() && i > 200);
      const Parsed gap{std::string(script.substr(0, i)) + std::string(script.substr(i + 1))};
      const std::string formatted = gap.formatted();
      if (gap.diagnostics.has_errors()) continue;
      const Parsed again(formatted);
      EXPECT_EQ(again.tree(), gap.tree()) << script << "\nwithout byte " << i << "\n" << formatted;
    }
  }
}

TEST(Parse, BoundsTheHeightOfTheTree) {
  const auto repeat = [](std::string_view text, size_t n) {
    std::string out;
    for (size_t i = 0; i < n; ++i) out += text;
    return out;
  };
  for (const std::string_view piece : {"(", "-", "{", "if 1 {", "1 + ", "$x.a", "x ? 1 : ", "(int8)", "f(", "@[",
                                       "1+{1}+", "typeof(", "while (1) {", "{1 + 1 + 1} + ", "if 1 {} else "}) {
    const Parsed parsed("begin { $x = " + repeat(piece, 20'000));
    EXPECT_TRUE(parsed.diagnostics.has_errors());
    EXPECT_LT(parsed.diagnostics.all().size(), 102u) << piece;
    EXPECT_FALSE(parsed.tree().empty() && parsed.errors().empty());
    parsed.formatted();
  }
  const Parsed chain("begin { $x = 1" + repeat(" + 1", 1000) + " }");
  EXPECT_EQ(chain.errors(), "");
}

}  // namespace
}  // namespace espy::syntax

#include <gtest/gtest.h>

#include "syntax_support.h"

namespace espy::syntax {
namespace {

TEST(Errors, UnterminatedString) {
  EXPECT_EQ(Parsed("begin { printf(\"hi); }\n").errors(),
            R"x(t.bt:1:16: error: this string has no end [unterminated-string]
  1 | begin { printf("hi); }
    |                ^~~~~~~ add the closing `"`
)x");
}
TEST(Errors, UnclosedBrace) {
  EXPECT_EQ(Parsed("begin {\n  if (1) {\n    exit();\n}\n").errors(),
            R"x(t.bt:4:1: error: the script ends inside a block [unclosed-brace]
  4 | }
    | ^ a `}` is missing
t.bt:1:7: note: the block opens here
  1 | begin {
    |       ^
)x");
}
TEST(Errors, UnclosedBraceBeforeTheNextAction) {
  const Parsed parsed("begin {\n  print(1);\n\nkprobe:f { print(2) }\n");
  EXPECT_EQ(parsed.errors(), R"x(t.bt:4:1: error: this begins an action inside a block [unclosed-brace]
  4 | kprobe:f { print(2) }
    | ^~~~~~ a `}` is missing
t.bt:1:7: note: the block opens here
  1 | begin {
    |       ^
)x");
  EXPECT_EQ(parsed.ast.actions.size(), 2u);
}
TEST(Errors, AssignmentInCondition) {
  EXPECT_EQ(Parsed("begin { if ($x = 1) { } if (x = 1) { } }").errors(),
            R"x(t.bt:1:16: error: an assignment is not a value [assignment-in-expression]
  1 | begin { if ($x = 1) { } if (x = 1) { } }
    |                ^ use `==` to compare
t.bt:1:28: error: an assignment is not a condition [assignment-in-expression]
  1 | begin { if ($x = 1) { } if (x = 1) { } }
    |                            ^~~~~~~ use `==` to compare
)x");
}
TEST(Errors, MissingSemicolon) {
  EXPECT_EQ(Parsed("begin {\n  print(1)\n  print(2);\n  $x = 1 $y = 2;\n}\n").errors(),
            R"x(t.bt:2:10: error: a `;` is missing after this statement [missing-semicolon]
  2 |   print(1)
    |          ^
t.bt:4:10: error: expected `;` after the statement, found `$y` [unexpected-token]
  4 |   $x = 1 $y = 2;
    |          ^~
)x");
}
TEST(Errors, UnknownKeyword) {
  EXPECT_EQ(Parsed("begin { whle ($x < 1) { $x++ } if 1 { } elif 2 { } }").errors(),
            R"x(t.bt:1:9: error: no statement begins with `whle` [unknown-keyword]
  1 | begin { whle ($x < 1) { $x++ } if 1 { } elif 2 { } }
    |         ^~~~ did you mean `while`?
t.bt:1:41: error: there is no `elif` [unknown-keyword]
  1 | begin { whle ($x < 1) { $x++ } if 1 { } elif 2 { } }
    |                                         ^~~~ write `else if`
)x");
}
TEST(Errors, SeveralInOneRun) {
  const Parsed parsed("begin { $x = ; print(1 2); args->; 5 = 6; @x[] = 1; print(3) }\nkprobe:f { exit(; }\nend { }\n");
  EXPECT_EQ(parsed.errors(), R"x(t.bt:1:14: error: expected an expression, found `;` [unexpected-token]
  1 | begin { $x = ; print(1 2); args->; 5 = 6; @x[] = 1; print(3) }
    |              ^
t.bt:1:24: error: expected `)` after the arguments, found `2` [unexpected-token]
  1 | begin { $x = ; print(1 2); args->; 5 = 6; @x[] = 1; print(3) }
    |                        ^
t.bt:1:34: error: expected the name of a member after `->`, found `;` [unexpected-token]
  1 | begin { $x = ; print(1 2); args->; 5 = 6; @x[] = 1; print(3) }
    |                                  ^
t.bt:1:36: error: this cannot be assigned to [not-assignable]
  1 | begin { $x = ; print(1 2); args->; 5 = 6; @x[] = 1; print(3) }
    |                                    ^ only variables and maps can
t.bt:1:43: error: there is nothing between the brackets [empty-index]
  1 | begin { $x = ; print(1 2); args->; 5 = 6; @x[] = 1; print(3) }
    |                                           ^~~~ write the map's name alone for the whole map
t.bt:2:17: error: expected an expression, found `;` [unexpected-token]
  2 | kprobe:f { exit(; }
    |                 ^
)x");
  EXPECT_EQ(parsed.ast.actions.size(), 3u);
}
TEST(Errors, Literals) {
  EXPECT_EQ(
      Parsed(R"(begin { $x = 18446744073709551616; $y = 12abc; $z = "\q"; $w = 1.5; $c = 'a'; $d = 089; })").errors(),
      R"x(t.bt:1:14: error: `18446744073709551616` does not fit into 64 bits [integer-out-of-range]
  1 | begin { $x = 18446744073709551616; $y = 12abc; $z = "\q"; $w = 1.5; $c = 'a'; $d = 089; }
    |              ^~~~~~~~~~~~~~~~~~~~
t.bt:1:41: error: `12abc` is not a number [malformed-integer]
  1 | begin { $x = 18446744073709551616; $y = 12abc; $z = "\q"; $w = 1.5; $c = 'a'; $d = 089; }
    |                                         ^~~~~ durations end in ns, us, ms, s, m, h or d
t.bt:1:54: error: invalid escape sequence [unknown-escape]
  1 | begin { $x = 18446744073709551616; $y = 12abc; $z = "\q"; $w = 1.5; $c = 'a'; $d = 089; }
    |                                                      ^~ \n \t \r \" \\ \0nn \xnn are
t.bt:1:64: error: there are no floating-point numbers [no-floating-point]
  1 | begin { $x = 18446744073709551616; $y = 12abc; $z = "\q"; $w = 1.5; $c = 'a'; $d = 089; }
    |                                                                ^~~ scale to an integer: 1500 instead of 1.5
t.bt:1:74: error: there are no character literals [unexpected-character]
  1 | begin { $x = 18446744073709551616; $y = 12abc; $z = "\q"; $w = 1.5; $c = 'a'; $d = 089; }
    |                                                                          ^~~ strings are written in double quotes
t.bt:1:84: error: `089` is not a number [malformed-integer]
  1 | begin { $x = 18446744073709551616; $y = 12abc; $z = "\q"; $w = 1.5; $c = 'a'; $d = 089; }
    |                                                                                    ^~~ a number that begins with 0 is octal, with 0x hexadecimal
)x");
}
TEST(Errors, TopLevel) {
  EXPECT_EQ(Parsed("printf(\"x\");\nlet $x = 1;\n}\nkprobe:f print(1)\n{ }\nfn f() { }\nuprobe:/a b:f { }\n").errors(),
            R"x(t.bt:1:7: error: a statement must be inside an action [statement-outside-action]
  1 | printf("x");
    |       ^ begin { ... }
t.bt:2:5: error: a variable must be inside an action [variable-outside-action]
  2 | let $x = 1;
    |     ^~ maps are global: `@x`
t.bt:3:1: error: this `}` closes nothing [unopened-brace]
  3 | }
    | ^
t.bt:4:10: error: expected `{` or a predicate after the probe, found `print` [unexpected-token]
  4 | kprobe:f print(1)
    |          ^~~~~ a part with spaces in it goes into double quotes
t.bt:6:8: error: expected `:` and the type of the result, found `{` [unexpected-token]
  6 | fn f() { }
    |        ^ `: void` if there is none
t.bt:7:11: error: expected `{` or a predicate after the probe, found `b` [unexpected-token]
  7 | uprobe:/a b:f { }
    |           ^ is a `:` missing before `b:f`, or a `,`?
)x");
}
TEST(Errors, Predicate) {
  EXPECT_EQ(Parsed("kprobe:f /pid == 1 { }\nkprobe:g /pid = 1/ { }\n").errors(),
            R"x(t.bt:1:20: error: expected `/` after the predicate, found `{` [unexpected-token]
  1 | kprobe:f /pid == 1 { }
    |                    ^
t.bt:2:15: error: an assignment is not a condition [assignment-in-expression]
  2 | kprobe:g /pid = 1/ { }
    |               ^ use `==` to compare
)x");
}
TEST(Errors, BodyWithoutBraces) {
  EXPECT_EQ(Parsed("begin { if (x) print(1); }").errors(),
            R"x(t.bt:1:16: error: expected `{` to open a block, found `print` [unexpected-token]
  1 | begin { if (x) print(1); }
    |                ^~~~~
)x");
}
TEST(Errors, StrangeBytes) {
  EXPECT_EQ(Parsed("begin { $x = 1 \xc3\xa9 2; `; }\n/* open").errors(),
            R"x(t.bt:1:16: error: `é` has no meaning here [unexpected-character]
  1 | begin { $x = 1 é 2; `; }
    |                ^
t.bt:1:22: error: ``` has no meaning here [unexpected-character]
  1 | begin { $x = 1 é 2; `; }
    |                     ^
t.bt:2:1: error: this comment has no end [unterminated-comment]
  2 | /* open
    | ^~~~~~~ add the closing `*/`
)x");
}

}  // namespace
}  // namespace espy::syntax

#include <gtest/gtest.h>

#include "syntax_support.h"

namespace espy::syntax {
namespace {

struct Row {
  const char* input;
  const char* tree;
};

class CDefinitions : public testing::TestWithParam<Row> {};

TEST_P(CDefinitions, HaveTrees) {
  const Parsed parsed(GetParam().input);
  EXPECT_EQ(parsed.errors(), "");
  EXPECT_EQ(flat(parsed.tree()), GetParam().tree);
}

INSTANTIATE_TEST_SUITE_P(
    Syntax, CDefinitions,
    testing::Values(
        Row{"#include <linux/fs.h>\n#include \"a.h\" // c", "(include <linux/fs.h>) (include \"a.h\")"},
        Row{"#define N 4 /* four */\n#define F(a, b) a + \\\n  b\n#define E",
            "(define N \"4\") (define F(a,b) \"a + b\") (define E \"\")"},
        Row{"struct s { int a, *b, c[2][3]; };",
            "(struct s (member a (type int)) (member b (type int*)) (member c (type int[3][2])))"},
        Row{"struct s { unsigned long long a:3, :5; const char *n[4]; };",
            "(struct s (member a:3 (type unsigned long long)) (member :5 (type unsigned long long)) "
            "(member n (type char*[4])))"},
        Row{"struct s { int (*f)(int, char *); } __attribute__((packed, aligned(8)));",
            "(struct s packed aligned=8 (member f (type int(fn/2)*)))"},
        Row{"struct s { union { u8 a; struct { __u16 b; }; }; };",
            "(struct s (member (type union (union (member a (type u8)) (member (type struct (struct (member b (type "
            "__u16)))))))))"},
        Row{"union u; struct s { struct t *p; enum e e; };",
            "(union u declared) (struct s (member p (type struct t*)) (member e (type enum e)))"},
        Row{"#define N 2\nenum e { A, B = 1 << N, C = 'a', D };",
            "(define N \"2\") (enum e (A 0) (B 4) (C 97) (D 98))"},
        Row{"enum { X = 3 }; struct s { char a[sizeof(long) * X - (1 ? 2 : 3)]; };",
            "(enum (X 3)) (struct s (member a (type char[22])))"},
        Row{"typedef struct { int q; } t, *pt;",
            "(typedef t (type struct (struct (member q (type int))))) (typedef pt (type struct* (struct (member q "
            "(type "
            "int)))))"},
        Row{"typedef unsigned int uint; begin { print((uint)$x) }",
            "(typedef uint (type unsigned int)) (action (probe begin) (block (do (call print (cast (type uint) (var "
            "$x))))))"},
        Row{"#ifdef NOT\nstruct a { int x; };\n#else\nstruct b;\n#endif", "(struct b declared)"},
        Row{"#ifndef BPFTRACE_HAVE_BTF\n#include <a.h>\n#endif\nstruct b;", "(struct b declared)"},
        Row{"#define V 3\n#if V > 4\nstruct a;\n#elif defined(V) && !defined(W)\nstruct b;\n#else\nstruct c;\n#endif",
            "(define V \"3\") (struct b declared)"},
        Row{"struct s {\n#if 0\n int a;\n#else\n long a;\n#endif\n};", "(struct s (member a (type long)))"}));

TEST(C, SaysWhatIsWrong) {
  EXPECT_EQ(Parsed("struct s { int a[x]; int b : 70; int c d };").errors(),
            "t.bt:1:18: error: the length of an array must be a constant [not-a-constant]\n"
            "  1 | struct s { int a[x]; int b : 70; int c d };\n"
            "    |                  ^\n"
            "t.bt:1:26: error: a bit field has 0 to 64 bits [bad-bit-field]\n"
            "  1 | struct s { int a[x]; int b : 70; int c d };\n"
            "    |                          ^~~~~~\n"
            "t.bt:1:40: error: expected `;` after the member, found `d` [unexpected-token]\n"
            "  1 | struct s { int a[x]; int b : 70; int c d };\n"
            "    |                                        ^\n");
  EXPECT_EQ(Parsed("#if 1\n#nonsense\n").errors(),
            "t.bt:1:1: error: this has no `#endif` [unterminated-condition]\n"
            "  1 | #if 1\n"
            "    | ^~~~~\n"
            "t.bt:2:1: error: there is no `#nonsense` [unknown-directive]\n"
            "  2 | #nonsense\n"
            "    | ^~~~~~~~~ #include, #define, #undef, #if, #ifdef, #ifndef, #elif, #else, #endif are known\n");
}

}  // namespace
}  // namespace espy::syntax

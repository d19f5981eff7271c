#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "syntax_scripts.h"
#include "syntax_support.h"

namespace espy::syntax {
namespace {

TEST(Format, KeepsTheTreeAndIsStable) {
  for (const std::string_view script : kScripts) {
    const Parsed parsed{std::string(script)};
    const std::string once = parsed.formatted();
    const Parsed again(once);
    EXPECT_EQ(again.errors(), "") << once;
    EXPECT_EQ(again.tree(), parsed.tree()) << once;
    EXPECT_EQ(again.formatted(), once);
  }
}

std::vector<std::string> scripts_of_the_repository() {
  namespace fs = std::filesystem;
  const fs::path root = ESPY_ROOT;
  std::vector<std::string> out;
  for (const char* directory : {"tests/golden", "tests/live", "tests/language", "tools"})
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / directory))
      if (entry.path().extension() == ".bt") out.push_back(entry.path().string());
  return out;
}

// Scripts of the error tests that do not parse are left out, and so are those that need a header to be read.
TEST(Format, KeepsEveryScriptOfTheRepository) {
  size_t formatted = 0;
  for (const std::string& path : scripts_of_the_repository()) {
    const Parsed parsed(read_file(path).value_or(""));
    if (parsed.diagnostics.has_errors()) continue;
    ++formatted;
    const std::string once = parsed.formatted();
    const Parsed again(once);
    EXPECT_EQ(again.tree(), parsed.tree()) << path;
    EXPECT_EQ(again.formatted(), once) << path;
  }
  EXPECT_GT(formatted, 300u);
}

TEST(Format, TypeNamedConfigIsNoConfigBlock) {
  const std::string text = "fn f($a : int64) : config {\n  return $a;\n}\n";
  EXPECT_EQ(Parsed(text).formatted(), text);
}

// What the formatter writes is parsed again; a type as a key, with a comma behind it, was not.
TEST(Format, TypeIsNoKey) {
  EXPECT_NE(Parsed("begin { @[1, struct task_struct,] = 1; }").errors(), "");
  EXPECT_EQ(Parsed("begin { @[sizeof(struct task_struct), 1,] = 1; }").errors(), "");
}

TEST(Format, LaysOut) {
  EXPECT_EQ(Parsed("i:s:1{print(@,5);if($x){@=0x10}else{let $y:int8=1}} END{}").formatted(),
            "i:s:1 {\n"
            "  print(@, 5);\n"
            "  if ($x) {\n"
            "    @ = 0x10;\n"
            "  } else {\n"
            "    let $y : int8 = 1;\n"
            "  }\n"
            "}\n"
            "\n"
            "END {}\n");
}

TEST(Format, KeepsCommentsWhereTheyStood) {
  EXPECT_EQ(Parsed(std::string(kScripts[std::size(kScripts) - 1])).formatted(),
            R"(#!/usr/bin/env bpftrace
/* What the file
 * is about. */
#include <linux/fs.h>
#ifndef BPFTRACE_HAVE_BTF
#include <linux/path.h>
#endif

enum e { A, B = 2 };  // values

config = {
  // about the stack
  stack_mode = perf;  // mode

  max_strlen = 100;
}

// Before the action.
kprobe:vfs_read,  // first
// second
kprobe:vfs_write /pid == 1/ {  /* both */  // open
  $x = 1;  // one
  /* two */
  print($x, 2);  // inside

  if ($x) {
    print(1);  /* last */
  } else {  // after if
    // in else
    print(2);
  }
  // at the end
}
// the very end
)");
}

TEST(Format, PutsParenthesesWhereTheyMatter) {
  struct Row {
    const char* input;
    const char* output;
  };
  const Row rows[] = {
      {"((1) + 2) * 3", "(1 + 2) * 3"},
      {"1 + (2 * 3)", "1 + 2 * 3"},
      {"((int8, int64))(2)", "((int8, int64))(2)"},
      {"((int8, int64))($x)", "((int8, int64))$x"},
      {"1 - (2 - 3)", "1 - (2 - 3)"},
      {"1 || 2 && 3", "1 || (2 && 3)"},
      {"1 & 2 == 3", "1 & (2 == 3)"},
      {"- -1", "- -1"},
      {"(foo *)(-$x)", "(foo *)(-$x)"},
      {"(1 ? 2 : 3) ? 4 : 5", "(1 ? 2 : 3) ? 4 : 5"},
      {"(*$x).a", "(*$x).a"},
      {"((int8)1)[2]", "((int8)1)[2]"},
      {"({1}) + 2", "({ 1 }) + 2"},
      {"1.5e3 ? 1 : 2", nullptr},
  };
  for (const Row& row : rows) {
    const Parsed parsed(std::string("begin { $r = ") + row.input + " }");
    if (row.output == nullptr) {
      EXPECT_TRUE(parsed.diagnostics.has_errors());
    } else {
      EXPECT_EQ(parsed.formatted(), std::string("begin {\n  $r = ") + row.output + ";\n}\n");
    }
  }
}

}  // namespace
}  // namespace espy::syntax

// Trees that commands build: names of any bytes stay in their place, and the print is quoted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "syntax/build.h"
#include "syntax/format_script.h"
#include "syntax/parser.h"

namespace espy::syntax {
namespace {

using testing::HasSubstr;

TEST(Build, PrintsWhatTheParserReads) {
  Ast ast;
  const Build build{ast, {}};
  build.config("max_strlen", build.number(64));
  const std::vector<std::string> parts = {"/bin/sh", "main"};
  const StmtId count = build.assign(build.index(build.map("@n"), {build.name("tid")}), build.call("count", {}));
  build.action({build.attach_point("uprobe", parts)},
               {build.when(build.binary(BinaryOp::kGreater, build.member(build.name("args"), "x"), build.number(3)),
                           {count}, {build.run(build.call("exit", {}))})});
  const std::string text = format(ast);
  EXPECT_EQ(text,
            "config = {\n  max_strlen = 64;\n}\n\nuprobe:/bin/sh:main {\n  if (args.x > 3) {\n    @n[tid] = count();\n"
            "  } else {\n    exit();\n  }\n}\n");
  source::Sources sources;
  source::Diagnostics diagnostics;
  const source::SourceId source = sources.add("built", text);
  const Ast parsed = parse(sources, source, diagnostics);
  EXPECT_TRUE(diagnostics.all().empty());
  EXPECT_EQ(format(parsed), text);
}

TEST(Build, QuotesPartsOfAttachPoints) {
  Ast ast;
  const Build build{ast, {}};
  const auto point = [&](const std::string& part) {
    const std::vector<std::string> parts = {"/p", part};
    return format(build.attach_point("uprobe", parts));
  };
  EXPECT_EQ(point("work_*"), "uprobe:/p:work_*");
  EXPECT_EQ(point(""), R"(uprobe:/p:"")");
  EXPECT_EQ(point("two\n/0/"), R"(uprobe:/p:"two\n/0/")");
  EXPECT_EQ(point("x}"), R"(uprobe:/p:"x}")");
  EXPECT_EQ(point("a\"b\\"), R"(uprobe:/p:"a\"b\\")");
  EXPECT_EQ(point("\xff"), R"(uprobe:/p:"\xff")");
}

TEST(Build, ShowsNamesOnOneLine) {
  Ast ast;
  const Build build{ast, {}};
  const std::vector<std::string> parts = {"/p", "f"};
  build.action({build.attach_point("uprobe", parts)},
               {build.assign(build.variable("$a\nb"), build.member(build.name("args"), "a\nb"))});
  EXPECT_THAT(format(ast), HasSubstr("  $a\\x0ab = args.a\\x0ab;\n"));
}

TEST(Build, ComparesExpressions) {
  Ast ast;
  const Build build{ast, {}};
  const auto member = [&](const char* first, const char* second) {
    return build.behind(build.member(build.name("args"), first), second);
  };
  EXPECT_TRUE(is_same(ast, member("a", "b"), member("a", "b")));
  EXPECT_FALSE(is_same(ast, member("a", "b"), member("b", "b")));
  EXPECT_FALSE(is_same(ast, member("a", "b"), build.member(build.name("args"), "a->b")));
  EXPECT_FALSE(is_same(ast, build.call("str", {build.name("x")}), build.call("str", {})));
  const auto cast = [&](const char* type) {
    TypeName name;
    name.name = type;
    return build.cast(name, build.name("x"));
  };
  EXPECT_TRUE(is_same(ast, cast("int64"), cast("int64")));
  EXPECT_FALSE(is_same(ast, cast("int64"), cast("uint64")));
}

TEST(Build, CopiesBetweenTrees) {
  Ast from, to;
  const Build build{from, {}};
  const ExprId call = build.call("str", {build.behind(build.name("curtask"), "comm"), build.number(16)});
  EXPECT_EQ(format(to, copy(from, call, to)), "str(curtask->comm, 16)");
}

}  // namespace
}  // namespace espy::syntax

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "source/diagnostic.h"

namespace espy::source {
namespace {

// One source and the diagnostics about it; spans are named by the text they cover.
struct Fixture {
  explicit Fixture(std::string text) { id = sources.add("a.bt", std::move(text)); }

  Span span(std::string_view covered) const {
    const size_t at = sources[id].text.find(covered);
    CHECK(at != std::string::npos);
    return Span{id, static_cast<uint32_t>(at), static_cast<uint32_t>(at + covered.size())};
  }
  Span at_end() const {
    const auto size = static_cast<uint32_t>(sources[id].text.size());
    return Span{id, size, size};
  }
  std::string rendered() const { return render(diagnostics, sources); }

  Sources sources;
  Diagnostics diagnostics;
  SourceId id;
};

TEST(Sources, PlacesAreOneBasedAndCountBytes) {
  Sources sources;
  const SourceId id = sources.add("a.bt", "ab\n\ncd");
  const auto place = [&](uint32_t offset) {
    const source::LineColumn p = sources.line_column(id, offset);
    return std::pair(p.line, p.column);
  };
  EXPECT_EQ(place(0), std::pair(1u, 1u));
  EXPECT_EQ(place(2), std::pair(1u, 3u)) << "the newline belongs to its line";
  EXPECT_EQ(place(3), std::pair(2u, 1u));
  EXPECT_EQ(place(4), std::pair(3u, 1u));
  EXPECT_EQ(place(6), std::pair(3u, 3u)) << "the end of the text";
}

TEST(Sources, LinesComeWithoutTheirEnds) {
  Sources sources;
  const SourceId id = sources.add("a.bt", "unix\nwindows\r\n\nlast");
  EXPECT_EQ(sources.line(id, 1), "unix");
  EXPECT_EQ(sources.line(id, 2), "windows");
  EXPECT_EQ(sources.line(id, 3), "");
  EXPECT_EQ(sources.line(id, 4), "last");
  const SourceId empty = sources.add("empty.bt", "");
  EXPECT_EQ(sources.line(empty, 1), "");
}

TEST(Spans, JoinCoversBoth) {
  const SourceId id{0};
  EXPECT_EQ(join(Span{id, 5, 7}, Span{id, 1, 3}), (Span{id, 1, 7}));
  EXPECT_EQ(join(Span{}, Span{id, 1, 3}), (Span{id, 1, 3}));
  EXPECT_EQ(join(Span{id, 1, 3}, Span{}), (Span{id, 1, 3}));
  EXPECT_EQ(join(Span{id, 1, 9}, Span{id, 2, 3}), (Span{id, 1, 9}));
}

TEST(Render, ShowsTheLineAndUnderlinesTheSpan) {
  Fixture f("begin\n{\n  printf(\"%s\", strftme(\"%H\", nsecs));\n}\n");
  f.diagnostics.error("unknown-function", f.span("strftme"), "no function named `strftme`", "did you mean `strftime`?");
  EXPECT_EQ(f.rendered(),
            "a.bt:3:16: error: no function named `strftme` [unknown-function]\n"
            "  3 |   printf(\"%s\", strftme(\"%H\", nsecs));\n"
            "    |                ^~~~~~~ did you mean `strftime`?\n");
}

TEST(Render, KeepsTabsBeforeTheCaret) {
  Fixture f("\t\tx =\ty;");
  f.diagnostics.warning("odd", f.span("y"), "what is y");
  EXPECT_EQ(f.rendered(),
            "a.bt:1:7: warning: what is y [odd]\n"
            "  1 | \t\tx =\ty;\n"
            "    | \t\t   \t^\n");
}

TEST(Render, CountsCharactersNotBytesUnderTheLine) {
  Fixture f("\"\xc3\xa4\xc3\xb6\" + \"\xe2\x82\xac\xe2\x82\xac\"");
  f.diagnostics.error("odd", f.span("\"\xe2\x82\xac\xe2\x82\xac\""), "cannot add");
  EXPECT_THAT(f.rendered(), testing::EndsWith("    |        ^~~~\n"));
}

TEST(Render, ALineOf160CharactersIsShownWhole) {
  std::string line;
  for (int i = 0; i < 159; ++i) line += "\xe2\x82\xac";
  Fixture f(line + "!");
  f.diagnostics.error("odd", f.span("!"), "at the end");
  EXPECT_EQ(f.rendered(),
            "a.bt:1:478: error: at the end [odd]\n  1 | " + line + "!\n    | " + std::string(159, ' ') + "^\n");
}

TEST(Render, ALongLineIsCutAroundTheSpan) {
  Fixture f(std::string(10'000, 'a') + "here" + std::string(10'000, 'z'));
  f.diagnostics.error("odd", f.span("here"), "in the midst");
  EXPECT_EQ(f.rendered(), "a.bt:1:10001: error: in the midst [odd]\n  1 | ..." + std::string(60, 'a') + "here" +
                              std::string(96, 'z') + "...\n    | " + std::string(63, ' ') + "^~~~\n");
}

TEST(Render, ALongLineIsCutOnlyWhereMoreFollows) {
  Fixture f("first" + std::string(1'000, 'x') + "last");
  f.diagnostics.error("odd", f.span("first"), "at the front");
  f.diagnostics.error("odd", f.at_end(), "behind the end");
  EXPECT_EQ(f.rendered(), "a.bt:1:1: error: at the front [odd]\n  1 | first" + std::string(155, 'x') +
                              "...\n    | ^~~~~\n"
                              "a.bt:1:1010: error: behind the end [odd]\n  1 | ..." +
                              std::string(156, 'x') + "last\n    | " + std::string(163, ' ') + "^\n");
}

TEST(Render, ASpanLongerThanWhatIsShownIsUnderlinedAsFar) {
  Fixture f(std::string(100, ' ') + std::string(300, 'x'));
  f.diagnostics.error("odd", f.span(std::string(300, 'x')), "too long");
  EXPECT_EQ(f.rendered(), "a.bt:1:101: error: too long [odd]\n  1 | ..." + std::string(60, ' ') +
                              std::string(100, 'x') + "...\n    | " + std::string(63, ' ') + "^" +
                              std::string(99, '~') + "\n");
}

TEST(Render, ALongLineIsCutBetweenCharacters) {
  const auto euros = [](int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += "\xe2\x82\xac";
    return out;
  };
  Fixture f("\t" + euros(300) + "here" + euros(300));
  f.diagnostics.error("odd", f.span("here"), "in the midst");
  EXPECT_EQ(f.rendered(), "a.bt:1:902: error: in the midst [odd]\n  1 | ..." + euros(60) + "here" + euros(96) +
                              "...\n    | " + std::string(63, ' ') + "^~~~\n");
}

TEST(Render, UnderlinesTheFirstOfManyLines) {
  Fixture f("x = (1 +\n  2);\n");
  f.diagnostics.error("odd", f.span("(1 +\n  2)"), "two lines");
  EXPECT_EQ(f.rendered(),
            "a.bt:1:5: error: two lines [odd]\n"
            "  1 | x = (1 +\n"
            "    |     ^~~~\n");
}

TEST(Render, PointsBehindTheLastCharacter) {
  Fixture f("begin {");
  f.diagnostics.error("missing", f.at_end(), "expected `}`");
  EXPECT_EQ(f.rendered(),
            "a.bt:1:8: error: expected `}` [missing]\n"
            "  1 | begin {\n"
            "    |        ^\n");
}

TEST(Render, PointsAtTheLineAfterTheLastNewline) {
  Fixture f("begin {\n");
  f.diagnostics.error("missing", f.at_end(), "expected `}`");
  EXPECT_EQ(f.rendered(),
            "a.bt:2:1: error: expected `}` [missing]\n"
            "  2 | \n"
            "    | ^\n");
}

TEST(Render, AnEmptyTextHasAFirstLine) {
  Fixture f("");
  f.diagnostics.error("empty", f.at_end(), "no probes");
  EXPECT_THAT(f.rendered(), testing::StartsWith("a.bt:1:1: error: no probes [empty]\n"));
}

TEST(Render, ASpanAtANewlineHasACaret) {
  Fixture f("ab\ncd\n");
  f.diagnostics.error("odd", Span{f.id, 2, 3}, "newline");
  EXPECT_THAT(f.rendered(), testing::HasSubstr("    |   ^\n"));
}

TEST(Render, WithoutASpanOnlyTheSentence) {
  Fixture f("");
  f.diagnostics.error("", {}, "nothing to do", "give a file or -e");
  EXPECT_EQ(f.rendered(), "error: nothing to do\n  hint: give a file or -e\n");
}

TEST(Render, LongLineNumbersKeepTheGutterStraight) {
  Fixture f(std::string(12344, '\n') + "here");
  f.diagnostics.error("odd", f.span("here"), "far down");
  EXPECT_EQ(f.rendered(),
            "a.bt:12345:1: error: far down [odd]\n"
            "12345 | here\n"
            "      | ^~~~\n");
}

TEST(Render, NotesFollow) {
  Fixture f("$a = 1;\n$a = \"x\";\n");
  Diagnostic& d = f.diagnostics.error("type-mismatch", f.span("\"x\""), "$a is an integer");
  d.notes.push_back({f.span("$a"), "first assigned here"});
  d.notes.push_back({{}, "strings need a variable of their own"});
  EXPECT_EQ(f.rendered(),
            "a.bt:2:6: error: $a is an integer [type-mismatch]\n"
            "  2 | $a = \"x\";\n"
            "    |      ^~~\n"
            "a.bt:1:1: note: first assigned here\n"
            "  1 | $a = 1;\n"
            "    | ^~\n"
            "note: strings need a variable of their own\n");
}

TEST(Render, ShowsTheChainOfMacroCalls) {
  Fixture f("macro inner() { bad }\nmacro outer() { inner() + 1 }\nbegin { outer() }\n");
  const auto at = static_cast<uint32_t>(f.sources[f.id].text.rfind("outer()"));
  const ExpansionId outer = f.sources.add_expansion("outer", Span{f.id, at, at + 7});
  Span call = f.span("inner() + 1");
  call.end = call.begin + 7;
  call.expansion = outer;
  const ExpansionId inner = f.sources.add_expansion("inner", call);
  Span span = f.span("bad");
  span.expansion = inner;
  f.diagnostics.error("unknown-name", span, "no `bad`");
  EXPECT_EQ(f.rendered(),
            "a.bt:1:17: error: no `bad` [unknown-name]\n"
            "  1 | macro inner() { bad }\n"
            "    |                 ^~~\n"
            "a.bt:2:17: note: expanded from `inner`\n"
            "  2 | macro outer() { inner() + 1 }\n"
            "    |                 ^~~~~~~\n"
            "a.bt:3:9: note: expanded from `outer`\n"
            "  3 | begin { outer() }\n"
            "    |         ^~~~~~~\n");
}

TEST(Render, ColoursOnlyTheSeverity) {
  Fixture f("x");
  f.diagnostics.error("odd", f.span("x"), "bad");
  EXPECT_THAT(render(f.diagnostics, f.sources, {.is_colored = true}),
              testing::StartsWith("a.bt:1:1: \033[1;31merror:\033[0m bad [odd]\n  1 | x\n"));
}

TEST(Diagnostics, WarningsAreNotErrors) {
  Fixture f("x");
  f.diagnostics.warning("odd", f.span("x"), "careful");
  EXPECT_FALSE(f.diagnostics.has_errors());
  f.diagnostics.error("odd", f.span("x"), "no");
  EXPECT_TRUE(f.diagnostics.has_errors());
  EXPECT_EQ(f.diagnostics.all().size(), 2u);
}

}  // namespace
}  // namespace espy::source

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "watch/page.h"
#include "watch/screen.h"

namespace espy::watch {
namespace {

std::string text_of(const std::vector<Line>& lines) {
  std::string out;
  for (const Line& line : lines) out += line.text + "\n";
  return out;
}

Row counter(const std::string& key, uint64_t value, double rate, bool is_changed) {
  Row out;
  out.key.node = output::StringValue{key, false};
  out.key_text = key;
  out.value_text = std::to_string(value);
  out.rate = out.change = rate;
  out.is_changed = is_changed;
  return out;
}

Table counters(size_t count) {
  Table out{.name = "@n", .note = "", .has_rates = true, .rows = {}};
  for (size_t i = 0; i < count; ++i)
    out.rows.push_back(counter("key" + std::to_string(i), count - i, static_cast<double>(i), i % 2 == 1));
  return out;
}

TEST(Columns, CountWideAndCombiningCharacters) {
  EXPECT_EQ(columns_of("abc"), 3u);
  EXPECT_EQ(columns_of("漢字"), 4u);
  EXPECT_EQ(columns_of("e\u0301"), 1u);
  EXPECT_EQ(columns_of("é"), 1u);
  EXPECT_EQ(cut("a漢字", 4), "a漢");
  EXPECT_EQ(left_aligned("漢字", 3), "漢 ");
  EXPECT_EQ(right_aligned("漢", 4), "  漢");
  EXPECT_EQ(columns_of("\xff\x80"), 2u);
}

TEST(Keys, TellEscapesFromSequences) {
  const auto keys = keys_of("q\x1b[1;5A\x1bOPé\x7f\r");
  ASSERT_EQ(keys.size(), 6u);
  EXPECT_EQ(keys[0].text, "q");
  EXPECT_EQ(keys[1].kind, Key::Kind::kOther);
  EXPECT_EQ(keys[2].kind, Key::Kind::kOther);
  EXPECT_EQ(keys[3].text, "é");
  EXPECT_EQ(keys[4].kind, Key::Kind::kBackspace);
  EXPECT_EQ(keys[5].kind, Key::Kind::kEnter);
  const auto moves = keys_of("\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1bOF\x1b[1~\t");
  using enum Key::Kind;
  const Key::Kind expected[] = {kUp, kDown, kPageUp, kPageDown, kHome, kEnd, kHome, kTab};
  ASSERT_EQ(moves.size(), std::size(expected));
  for (size_t i = 0; i < moves.size(); ++i) EXPECT_EQ(moves[i].kind, expected[i]) << i;
  EXPECT_EQ(keys_of("\x1b").front().kind, Key::Kind::kEscape);
  EXPECT_EQ(keys_of("\x1b[12").size(), 1u);
  EXPECT_EQ(keys_of("\x01\xff").front().kind, Key::Kind::kOther);
}

TEST(Page, SortsByValueKeyAndChange) {
  PageContent content{.status = "x", .losses = "", .tables = {counters(3)}, .log = {}};
  View view{.columns = 60, .rows = 10};
  EXPECT_EQ(text_of(make_page(content, view)).substr(61),
            "    VALUE  PER SEC  @n  (3 keys)\n"
            "        3        0  key0\n"
            "*       2      1.0  key1\n"
            "        1      2.0  key2\n");
  view.order = Order::kChange;
  EXPECT_NE(text_of(make_page(content, view)).find("key2\n*       2      1.0  key1\n"), std::string::npos);
  EXPECT_EQ(next(Order::kChange), Order::kValue);
}

TEST(Page, FiltersRowsInAnyCase) {
  const PageContent content{.status = "x", .losses = "", .tables = {counters(12)}, .log = {}};
  const View view{.filter = "KEY1", .columns = 60, .rows = 10};
  const std::string text = text_of(make_page(content, view));
  EXPECT_NE(text.find("(3 keys)"), std::string::npos);
  EXPECT_EQ(text.find("key2"), std::string::npos);
}

TEST(Page, SharesTheHeightFairly) {
  PageContent content{.status = "x",
                      .losses = "3 lost records",
                      .tables = {counters(100), counters(2), counters(100)},
                      .log = {"one", "two\x1b[2J"}};
  const auto page = make_page(content, {.columns = 40, .rows = 24});
  ASSERT_EQ(page.size(), 24u);
  EXPECT_EQ(page[1].text, "lost: 3 lost records");
  EXPECT_EQ(page[22].text, "one");
  EXPECT_EQ(page[23].text, "two\\x1b[2J");
  size_t titles = 0;
  for (const Line& line : page) {
    titles += line.style == LineStyle::kTitle ? 1u : 0u;
    EXPECT_LE(columns_of(line.text), 40u);
  }
  EXPECT_EQ(titles, 4u);  // of three maps and the output
}

Table histogram(const std::string& name, size_t rows) {
  Row row;
  for (size_t i = 0; i < rows; ++i) row.bars.push_back({"[" + std::to_string(i) + "]", i + 1});
  return {.name = name, .note = "", .rows = {row}};
}

Table named(const std::string& name, size_t count) {
  Table out = counters(count);
  out.name = name;
  for (Row& row : out.rows) row.key_text = name.substr(1) + row.key_text;
  return out;
}

TEST(Page, SaysWhatOfAHistogramIsLeftOut) {
  PageContent content{.status = "x", .losses = "", .tables = {histogram("@ns", 20)}, .log = {}};
  const std::string text = text_of(make_page(content, {.columns = 60, .rows = 10}));
  EXPECT_NE(text.find("\n[6]"), std::string::npos);
  EXPECT_EQ(text.find("\n[7]"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\n... 13 more rows, to [19]\n")) << text;
  EXPECT_EQ(text_of(make_page(content, {.columns = 60, .rows = 22})).find("more"), std::string::npos);
  EXPECT_NE(text_of(make_page(content, {.columns = 60, .rows = 2})).find("@ns  ... 20 more rows, to [19]"),
            std::string::npos);
  content.tables[0].rows.resize(4, content.tables[0].rows[0]);
  EXPECT_TRUE(text_of(make_page(content, {.columns = 60, .rows = 10})).ends_with("\n... 3 more keys of @ns\n"));
  EXPECT_TRUE(text_of(make_page(content, {.columns = 100, .rows = 10})).ends_with("\n... 2 more keys of @ns\n"));
}

TEST(Page, SaysHowManyKeysAreShown) {
  const PageContent content{.status = "x", .losses = "", .tables = {counters(30)}, .log = {}};
  EXPECT_NE(text_of(make_page(content, {.columns = 60, .rows = 10})).find("@n  (30 keys, 8 shown)"), std::string::npos);
  EXPECT_NE(text_of(make_page(content, {.columns = 60, .rows = 40})).find("@n  (30 keys)"), std::string::npos);
}

TEST(Page, CutLinesHaveAMark) {
  PageContent content{.status = "x", .losses = "", .tables = {counters(1)}, .log = {std::string(50, 'l')}};
  content.tables[0].rows[0].key_text = std::string(50, 'k');
  for (const Line& line : make_page(content, {.columns = 40, .rows = 10})) {
    const bool is_cut = line.text.find("kkk") != std::string::npos || line.text.find("lll") != std::string::npos;
    EXPECT_TRUE(!is_cut || line.text.back() == '>') << line.text;
  }
}

// All texts of lines that scrolling leads to.
std::set<std::string> reached(const PageContent& content, View view, Step step, size_t count) {
  std::set<std::string> out;
  for (size_t i = 0; i <= count; ++i) {
    for (const Line& line : make_page(content, view)) out.insert(line.text);
    scroll(content, view, step);
  }
  return out;
}

TEST(Page, ScrollsToEveryMapAndEveryRow) {
  Table scalars = counters(7);
  scalars.name = "";
  PageContent content{.status = "x", .losses = "1 lost records", .tables = {scalars}, .log = {"one", "two"}};
  std::set<std::string> keys;
  for (size_t i = 0; i < 24; ++i) {
    content.tables.push_back(i % 5 == 0 ? histogram("@h" + std::to_string(i), 20)
                                        : named("@m" + std::to_string(i), 30));
    for (const Row& row : content.tables.back().rows) keys.insert(row.key_text);
  }
  for (const View& view : {View{.columns = 80, .rows = 24}, View{.columns = 40, .rows = 10}}) {
    const std::string first = text_of(make_page(content, view));
    EXPECT_NE(first.find("more maps (n, PgDn): @m"), std::string::npos) << first;
    for (const Step step : {Step::kLineDown, Step::kPageDown}) {
      const std::set<std::string> lines = reached(content, view, step, 1000);
      for (const std::string& key : keys)
        EXPECT_TRUE(std::ranges::any_of(lines, [&](const std::string& line) { return line.ends_with("  " + key); }))
            << key;
      for (size_t i = 0; i < 24; i += 5)
        for (size_t bar = 0; bar < 20; ++bar)
          EXPECT_TRUE(std::ranges::any_of(
              lines, [&](const std::string& line) { return line.starts_with("[" + std::to_string(bar) + "] "); }));
    }
    const std::set<std::string> titles = reached(content, view, Step::kNextMap, 30);
    for (size_t i = 1; i < content.tables.size(); ++i)
      EXPECT_TRUE(std::ranges::any_of(titles, [&](const std::string& line) {
        const std::string& name = content.tables[i].name;
        return line.ends_with(name) || line.find(name + "  (") != std::string::npos;
      })) << content.tables[i].name;
    View end = view;
    scroll(content, end, Step::kEnd);
    EXPECT_NE(text_of(make_page(content, end)).find("m23key29"), std::string::npos);
    scroll(content, end, Step::kHome);
    EXPECT_FALSE(end.top.has_value());
  }
}

TEST(Page, ScalarsStayWhileTheRestScrolls) {
  Table scalars = counters(3);
  scalars.name = "";
  const PageContent content{.status = "x", .losses = "", .tables = {scalars, named("@m", 100)}, .log = {}};
  View view{.columns = 80, .rows = 12};
  for (int i = 0; i < 20; ++i) {
    const std::string text = text_of(make_page(content, view));
    for (const char* key : {"  key0\n", "  key1\n", "  key2\n", "@m  (100 keys"})
      EXPECT_NE(text.find(key), std::string::npos) << text;
    scroll(content, view, Step::kPageDown);
  }
  EXPECT_NE(text_of(make_page(content, view)).find("mkey99"), std::string::npos);
  EXPECT_NE(text_of(make_page(content, view)).find("| from line "), std::string::npos);
}

TEST(Page, FoldsScratchMaps) {
  Table scratch = named("@start", 5);
  scratch.is_scratch = true;
  PageContent content{.status = "x", .losses = "", .tables = {named("@m", 3), scratch}, .log = {}};
  View view{.columns = 80, .rows = 24};
  const auto has = [&](std::string_view text) {
    return text_of(make_page(content, view)).find(text) != std::string::npos;
  };
  EXPECT_TRUE(has("folded (f): @start (5 keys)\n"));
  EXPECT_FALSE(has("startkey"));
  view.shows_scratch = true;
  EXPECT_TRUE(has("startkey"));
  view.shows_scratch = false;
  view.filter = "start";
  EXPECT_TRUE(has("startkey"));
  view.filter = "nothing like it";
  EXPECT_TRUE(has("no map or key has `nothing like it`"));
  view.filter = "";
  content.tables.erase(content.tables.begin());
  EXPECT_TRUE(has("startkey"));
}

TEST(Page, ColumnsStandBelowEachOther) {
  Table wide = named("@w", 1);
  wide.rows[0].value_text = "123456789012";
  const PageContent content{.status = "x", .losses = "", .tables = {counters(1), wide}, .log = {}};
  const auto page = make_page(content, {.columns = 80, .rows = 24});
  EXPECT_EQ(page[1].text.find("PER SEC"), page[3].text.find("PER SEC"));
  EXPECT_EQ(page[1].text.find("@n"), page[4].text.find("wkey0"));
}

TEST(Page, ShowsItsKeys) {
  const PageContent content{.status = "script | 12:00:00 | 0:05", .losses = "", .tables = {counters(3)}, .log = {"a"}};
  EXPECT_NE(text_of(make_page(content, {.shows_keys = true, .columns = 80, .rows = 24})).find("quit, as Ctrl-C does"),
            std::string::npos);
  for (const size_t columns : {40u, 80u, 120u}) {
    const std::string status = make_page(content, {.columns = columns, .rows = 10})[0].text;
    EXPECT_NE(status.find("? keys"), std::string::npos) << status;
    EXPECT_NE(status.find("by value"), std::string::npos) << status;
  }
}

TEST(Page, FitsAnyTerminal) {
  PageContent content{.status = "x", .losses = "1", .tables = {counters(5)}, .log = {"a", "b", "c"}};
  Row histogram;
  histogram.bars = {{"[0]", UINT64_MAX}, {"[1]", 1}};
  content.tables.push_back({.name = "@h", .note = "", .has_rates = false, .rows = {histogram, histogram, histogram}});
  for (size_t columns = 1; columns < 150; ++columns)
    for (size_t rows = 1; rows < 30; ++rows) {
      for (const std::optional<size_t> top : {std::optional<size_t>(), std::optional<size_t>(7)}) {
        const auto page = make_page(content, {.top = top, .columns = columns, .rows = rows});
        ASSERT_LE(page.size(), rows);
        for (const Line& line : page) ASSERT_LE(columns_of(line.text), columns);
      }
    }
}

}  // namespace
}  // namespace espy::watch

#include <gtest/gtest.h>

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

TEST(Page, FitsAnyTerminal) {
  PageContent content{.status = "x", .losses = "1", .tables = {counters(5)}, .log = {"a", "b", "c"}};
  Row histogram;
  histogram.bars = {{"[0]", UINT64_MAX}, {"[1]", 1}};
  content.tables.push_back({.name = "@h", .note = "", .has_rates = false, .rows = {histogram, histogram, histogram}});
  for (size_t columns = 1; columns < 150; ++columns)
    for (size_t rows = 1; rows < 30; ++rows) {
      const auto page = make_page(content, {.columns = columns, .rows = rows});
      ASSERT_LE(page.size(), rows);
      for (const Line& line : page) ASSERT_LE(columns_of(line.text), columns);
    }
}

}  // namespace
}  // namespace espy::watch

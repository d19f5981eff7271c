// What is being written at a place, marked by `|`.
#include <gtest/gtest.h>

#include "lsp/names.h"
#include "lsp/script_analysis.h"

namespace espy::lsp {
namespace {

struct Marked {
  explicit Marked(std::string marked) : text(std::move(marked)) {
    offset = static_cast<uint32_t>(text.find('|'));
    text.erase(offset, 1);
  }
  std::string text;
  uint32_t offset;
};

// The kind, and the text from its begin to the place.
std::string place(const std::string& marked) {
  const Marked at(marked);
  const Place found = place_of(at.text, at.offset);
  constexpr const char* kKinds[] = {"nothing", "attach point", "member", "map", "variable", "name"};
  const std::string kind = kKinds[static_cast<int>(found.kind)];
  if (found.kind == Place::Kind::kNothing) return kind;
  return kind + " " + at.text.substr(found.begin, at.offset - found.begin);
}

TEST(LspPlace, FindsAttachPoints) {
  EXPECT_EQ(place("|"), "attach point ");
  EXPECT_EQ(place("kprobe:vfs_r| { }"), "attach point kprobe:vfs_r");
  EXPECT_EQ(place("begin { }\n\nuprobe:/bin/bash:re|"), "attach point uprobe:/bin/bash:re");
  EXPECT_EQ(place("kprobe:a, kretprobe:b|"), "attach point kretprobe:b");
  EXPECT_EQ(place("begin { } kprobe:x|"), "attach point kprobe:x");
  EXPECT_EQ(place("kprobe:a,\n  kprobe:b|\n{ }"), "attach point kprobe:b");
}

TEST(LspPlace, KnowsPredicatesFromPaths) {
  EXPECT_EQ(place("kprobe:vfs_read /pi|/ { }"), "name pi");
  EXPECT_EQ(place("kprobe:vfs_read /pid == $|/ { }"), "variable $");
  EXPECT_EQ(place("kprobe:vfs_read\n/@a|"), "map @a");
}

TEST(LspPlace, FindsMembersMapsAndVariables) {
  EXPECT_EQ(place("begin { args.|"), "member ");
  EXPECT_EQ(place("begin { $t->pa| }"), "member pa");
  EXPECT_EQ(place("begin { f($x).| }"), "member ");
  EXPECT_EQ(place("begin { for ($i : 0..| ) }"), "name ");
  EXPECT_EQ(place("begin { @| }"), "map @");
  EXPECT_EQ(place("begin { @x[$k|] }"), "variable $k");
  EXPECT_EQ(place("begin { printf(co| }"), "name co");
}

TEST(LspPlace, IsSilentInTextsCommentsAndNumbers) {
  EXPECT_EQ(place("begin { printf(\"co|\") }"), "nothing");
  EXPECT_EQ(place("begin { printf(\"co| }"), "nothing");
  EXPECT_EQ(place("begin { // co|\n }"), "nothing");
  EXPECT_EQ(place("begin { /* co| */ }"), "nothing");
  EXPECT_EQ(place("// kprobe:|"), "nothing");
  EXPECT_EQ(place("begin { 12| }"), "nothing");
  EXPECT_EQ(place("begin { /* done */ co| }"), "name co");
}

std::string call(const std::string& marked) {
  const Marked at(marked);
  const auto found = open_call(at.text, at.offset);
  return found ? found->name + " " + std::to_string(found->argument) : "none";
}

TEST(LspPlace, FindsTheCallAndTheArgument) {
  EXPECT_EQ(call("begin { printf(|"), "printf 0");
  EXPECT_EQ(call("begin { printf(\"%d, %d\", a[1, 2], (3, 4), |)"), "printf 3");
  EXPECT_EQ(call("begin { print(str(x|), 1) }"), "str 0");
  EXPECT_EQ(call("begin { print(str(x), |) }"), "print 1");
  EXPECT_EQ(call("begin { @x[(1, |)] = 1 }"), "none");
  EXPECT_EQ(call("begin { f(); |}"), "none");
  EXPECT_EQ(call("f(begin { |"), "none");
}

TEST(LspWords, HaveTheirSigil) {
  EXPECT_EQ(word_at("a @xy b", 3)->text, "@xy");
  EXPECT_EQ(word_at("a @xy b", 5)->text, "@xy");
  EXPECT_EQ(word_at("$v", 0 + 1)->text, "$v");
  EXPECT_EQ(word_at("a  b", 2), std::nullopt);
  EXPECT_EQ(word_at("", 4), std::nullopt);
}

}  // namespace
}  // namespace espy::lsp

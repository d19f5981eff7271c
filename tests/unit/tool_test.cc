// Tools: their bytes, and executables with a script.
#include "tool/tool.h"

#include <gtest/gtest.h>

#include "base/files.h"

namespace espy::tool {
namespace {

Tool full_tool() {
  Tool out;
  out.name = "count";
  out.script_name = "tools/count.bt";
  out.script = "import \"lib.bt\"\nbegin { }\n";
  out.arguments = {"--format=json", "--strict"};
  out.options = {{"pid", "0", "only this process"}, {"all", "false", ""}};
  out.knows_all_options = true;
  out.files.imports["tools/lib.bt"] = {{"tools/lib.bt", "fn f() : void { }"}, {"tools/x.bt", std::string("\0\n", 2)}};
  out.files.imports["tools/none"] = {};
  syntax::CDefine macro;
  macro.name = "SUM";
  macro.is_function_like = true;
  macro.parameters = {"a", "b"};
  macro.body = "a + b";
  out.files.headers["tools/count.bt"] = {{macro}, {{std::string("\x9f\xeb\x01\0", 4), true}}};
  return out;
}

TEST(Tool, TakesAllThroughItsBytes) {
  const Tool tool = full_tool();
  const std::string bytes = encode(tool);
  EXPECT_EQ(bytes, encode(full_tool()));
  const auto read = decode(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(encode(*read), bytes);
  EXPECT_EQ(read->script, tool.script);
  EXPECT_EQ(read->arguments, tool.arguments);
  EXPECT_EQ(read->options.back().name, "all");
  EXPECT_EQ(read->files.imports.at("tools/lib.bt").back().text, std::string("\0\n", 2));
  EXPECT_EQ(read->files.headers.at("tools/count.bt").macros.front().parameters, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(read->files.headers.at("tools/count.bt").types.front().before_kernel);
  EXPECT_NE(read->checksum, 0u);
}

TEST(Tool, ChangedBytesAreRefused) {
  const std::string bytes = encode(full_tool());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(decode(changed)) << i;
    EXPECT_FALSE(decode(bytes.substr(0, i))) << i;
  }
  EXPECT_FALSE(decode(bytes + " "));
}

// From format 2 on, the first release that reads it follows the number of the format.
TEST(Tool, LaterFormatsNameTheirRelease) {
  std::string bytes = encode(full_tool());
  bytes[8] = 2;
  bytes.replace(12, 4, std::string("\x74\x27\0\0", 4));
  EXPECT_EQ(decode(bytes).error().hint, "espy 1.1.0 or later reads it");
  EXPECT_FALSE(decode(bytes.substr(0, 12)));
}

// tests/formats has what each format was written as.
TEST(Tool, FormatOneIsRead) {
  const auto bytes = read_file(ESPY_ROOT "/tests/formats/tool-1");
  ASSERT_TRUE(bytes);
  const auto read = decode(*bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(encode(*read), encode(full_tool()));
}

// This test has the mark of an executable of espy.
std::string own_executable() { return read_file("/proc/self/exe").value_or(""); }

TEST(ToolExecutable, HoldsItsScript) {
  EXPECT_FALSE(runs_tool());
  const auto plain = describe(own_executable());
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_FALSE(plain->script);
  const auto tool = with_script(own_executable(), "the script");
  ASSERT_TRUE(tool) << tool.error().message;
  const auto found = describe(*tool);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->script, "the script");
  EXPECT_EQ(found->elf_machine, plain->elf_machine);
  EXPECT_EQ(with_script(*tool, "another").error().message, "is a tool already");
}

TEST(ToolExecutable, OtherFilesAreRefused) {
  EXPECT_EQ(describe("").error().message, "is not an ELF executable");
  EXPECT_EQ(describe("#!/bin/sh\n").error().message, "is not an ELF executable");
  const std::string elf = own_executable();
  for (const size_t size : {size_t{63}, size_t{64}, elf.size() / 2, elf.size() - 64}) {
    EXPECT_FALSE(describe(elf.substr(0, size))) << size;
    EXPECT_FALSE(with_script(elf.substr(0, size), "x")) << size;
  }
}

}  // namespace
}  // namespace espy::tool

// A program that is compiled for a test, with its debug information.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "symbols/debug_info.h"
#include "symbols/elf_file.h"
#include "symbols_support.h"

namespace espy::symbols {

class DebugInfoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::has_tool("cc")) GTEST_SKIP() << "there is no C compiler";
  }
  // Compiles the source, which defines the function `work`, and opens the program. C++, too, by the compiler's name.
  void open(const std::string& source, const std::string& flags, const std::string& compiler = "cc") {
    auto opened = ElfFile::open(directory_.build("program", source, flags, compiler));
    ASSERT_TRUE(opened);
    file_.emplace(std::move(*opened));
    const auto debug = file_->debug_info();
    ASSERT_TRUE(debug) << debug.error().message;
    debug_ = *debug;
    work_ = file_->find_function("work")->address;
  }

  testing::TempDir directory_;
  std::optional<ElfFile> file_;
  std::shared_ptr<DebugInfo> debug_;
  types::Types types_;
  uint64_t work_ = 0;  // its address
};

}  // namespace espy::symbols

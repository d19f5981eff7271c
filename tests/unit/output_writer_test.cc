// When bytes leave, and what becomes of a reader that has gone.
#include <gtest/gtest.h>

#include <csignal>

#include "output_support.h"

namespace espy::output {
namespace {

struct File {
  int fd = ::memfd_create("written", 0);
  ~File() { ::close(fd); }
  std::string text() const { return read_all(fd); }
};

TEST(Writer, LinesLeaveAtTheEndOfABatch) {
  const File file;
  Writer out(file.fd, Buffering::kLine);
  out.write("a\n");
  EXPECT_EQ(file.text(), "");
  out.batch_end();
  EXPECT_EQ(file.text(), "a\n");
}

TEST(Writer, FullBuffersLeaveAtOnce) {
  const File file;
  {
    Writer out(file.fd, Buffering::kFull);
    out.write("a\n");
    out.batch_end();
    EXPECT_EQ(file.text(), "");
    out.write(std::string(64 * 1024, 'x'));
    EXPECT_EQ(file.text().size(), 2u + 64 * 1024);
    out.write("end");
  }
  EXPECT_TRUE(file.text().ends_with("xend"));
}

TEST(Writer, WhatWasWrittenBeforeAMoveIsInTheOldFile) {
  const File before, after;
  {
    Writer out(before.fd, Buffering::kFull);
    out.write("a");
    out.move_to(after.fd);
    out.write("b");
  }
  EXPECT_EQ(before.text(), "a");
  EXPECT_EQ(after.text(), "b");
}

TEST(Writer, WithoutABufferEachWriteLeaves) {
  const File file;
  Writer out(file.fd, Buffering::kNone);
  out.write("a");
  EXPECT_EQ(file.text(), "a");
}

TEST(Writer, AClosedPipeIsAStatus) {
  ::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  Writer out(ends[1], Buffering::kNone);
  EXPECT_TRUE(out.status().has_value());
  out.write("a");
  ASSERT_FALSE(out.status().has_value());
  EXPECT_EQ(out.status().error().code, EPIPE);
  out.write("b");
  EXPECT_EQ(out.status().error().code, EPIPE);
  ::close(ends[1]);
}

TEST(Sinks, AreFoundByName) {
  EXPECT_EQ(find_sink("text")->name, "text");
  EXPECT_EQ(find_sink("json")->name, "json");
  EXPECT_EQ(find_sink("xml"), nullptr);
}

}  // namespace
}  // namespace espy::output

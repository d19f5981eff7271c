#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "runtime/run_control.h"

namespace espy::runtime {
namespace {

struct Pipe {
  OwnedFd read_end, write_end;
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read_end = OwnedFd(ends[0]);
    write_end = OwnedFd(ends[1]);
  }
  void write() { EXPECT_EQ(::write(write_end.get(), "x", 1), 1); }
};

EventLoop make_loop() {
  auto loop = EventLoop::create();
  EXPECT_TRUE(loop.has_value());
  return std::move(*loop);
}

TEST(EventLoop, CallsTheHandlerOfWhatIsReadable) {
  EventLoop loop = make_loop();
  Pipe first, second;
  std::string called;
  const auto append = [&](char c) { return [&called, c]() -> Status { return called += c, Status(); }; };
  ASSERT_TRUE(loop.watch(first.read_end.get(), append('1')));
  ASSERT_TRUE(loop.watch(second.read_end.get(), append('2')));
  EXPECT_TRUE(loop.wait(0));
  EXPECT_EQ(called, "");
  second.write();
  EXPECT_TRUE(loop.wait(-1));
  EXPECT_EQ(called, "2");
  EXPECT_TRUE(loop.wait(-1));  // it still is readable
  EXPECT_EQ(called, "22");
  first.write();
  EXPECT_TRUE(loop.wait(-1));
  EXPECT_TRUE(loop.wait(-1));
  EXPECT_NE(called.find('1'), std::string::npos);
}

TEST(EventLoop, LetsAHandlerUnwatchItself) {
  EventLoop loop = make_loop();
  Pipe pipe;
  std::string called;
  ASSERT_TRUE(loop.watch(pipe.read_end.get(), [&, text = std::string(100, 'x')]() -> Status {
    loop.unwatch(pipe.read_end.get());
    called += text;
    return {};
  }));
  pipe.write();
  EXPECT_TRUE(loop.wait(-1));
  EXPECT_TRUE(loop.wait(0));
  EXPECT_EQ(called, std::string(100, 'x'));
  loop.unwatch(pipe.read_end.get());
}

TEST(EventLoop, SaysThatADescriptorClosedAtTheOtherEnd) {
  EventLoop loop = make_loop();
  Pipe pipe;
  bool is_called = false;
  ASSERT_TRUE(loop.watch(pipe.read_end.get(), [&]() -> Status {
    is_called = true;
    return {};
  }));
  pipe.write_end.reset();
  EXPECT_TRUE(loop.wait(-1));
  EXPECT_TRUE(is_called);
}

TEST(EventLoop, ReturnsTheHandlersError) {
  EventLoop loop = make_loop();
  Pipe pipe;
  ASSERT_TRUE(loop.watch(pipe.read_end.get(), []() -> Status { return fail("no", EPERM); }));
  pipe.write();
  const Status done = loop.wait(-1);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "no");
}

TEST(EventLoop, FailsToWatchWhatCannotBeWatched) {
  EventLoop loop = make_loop();
  const OwnedFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const auto ignore = []() -> Status { return {}; };
  const Status regular = loop.watch(file.get(), ignore);
  ASSERT_FALSE(regular);
  EXPECT_EQ(regular.error().code, EPERM);
  EXPECT_EQ(regular.error().message, "cannot wait for events: Operation not permitted");
  const Status closed = loop.watch(-1, ignore);
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, EBADF);
  Pipe pipe;
  ASSERT_TRUE(loop.watch(pipe.read_end.get(), ignore));
  const Status twice = loop.watch(pipe.read_end.get(), ignore);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, EEXIST);
}

}  // namespace
}  // namespace espy::runtime

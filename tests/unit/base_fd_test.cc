#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "base/files.h"

namespace espy {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

// Both ends of a pipe.
struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    read_end = OwnedFd(ends[0]);
    write_end = OwnedFd(ends[1]);
  }
  OwnedFd read_end, write_end;
};

TEST(OwnedFd, ClosesWhenItsOwnerGoes) {
  int number = -1;
  {
    const Pipe pipe;
    number = pipe.read_end.get();
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(OwnedFd, MovesWithoutClosing) {
  Pipe pipe;
  const int number = pipe.read_end.get();
  OwnedFd other(std::move(pipe.read_end));
  EXPECT_FALSE(pipe.read_end.valid());
  EXPECT_EQ(other.get(), number);
  EXPECT_TRUE(is_open(number));
}

TEST(OwnedFd, ReleaseLeavesItOpen) {
  Pipe pipe;
  const int number = pipe.read_end.release();
  EXPECT_FALSE(pipe.read_end.valid());
  EXPECT_TRUE(is_open(number));
  ::close(number);
}

TEST(OwnedFd, ResetIsHarmlessTwice) {
  Pipe pipe;
  pipe.read_end.reset();
  pipe.read_end.reset();
  EXPECT_FALSE(pipe.read_end.valid());
  EXPECT_FALSE(OwnedFd().valid());
}

TEST(ReadFile, ReadsWhatSaysItIsEmpty) {
  const auto status = read_file("/proc/self/status");
  ASSERT_TRUE(status.has_value());
  EXPECT_THAT(*status, testing::StartsWith("Name:"));
  EXPECT_EQ(status->back(), '\n') << "nothing of the buffer is left at the end";
}

TEST(ReadFile, ReadsMoreThanOneChunk) {
  char path[] = "/tmp/espy-fd-test-XXXXXX";
  const OwnedFd file(::mkstemp(path));
  ASSERT_TRUE(file.valid());
  std::string text(200000, 'x');
  text[131072] = '\0';
  ASSERT_TRUE(write_all(file.get(), text).has_value());
  const auto read = read_file(path);
  ::unlink(path);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(*read, text);
}

TEST(ReadFile, SaysWhatIsMissing) {
  const auto read = read_file("/no/such/file");
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, ENOENT);
  EXPECT_EQ(read.error().message, "cannot open /no/such/file: No such file or directory");
  EXPECT_EQ(read_file("/").error().code, EISDIR);
}

TEST(WriteAll, GoesThroughShortWrites) {
  Pipe pipe;  // holds 64 KiB, so that most of this waits for the reader
  const std::string text(1 << 20, 'y');
  std::string seen;
  std::thread reader([&] {
    char chunk[4096];
    for (ssize_t got; (got = ::read(pipe.read_end.get(), chunk, sizeof chunk)) > 0;) seen.append(chunk, got);
  });
  EXPECT_TRUE(write_all(pipe.write_end.get(), text).has_value());
  pipe.write_end.reset();
  reader.join();
  EXPECT_EQ(seen, text);
}

TEST(ReadStartOfFile, EndsAtTheLimit) {
  EXPECT_EQ(read_start_of_file("/dev/zero", 10000)->size(), 10000u);
  EXPECT_EQ(read_start_of_file("/proc/sys/kernel/ostype", 3), "Lin");
  EXPECT_EQ(read_start_of_file("/proc/sys/kernel/ostype", 100), "Linux\n");
  EXPECT_EQ(read_start_of_file("/no/such/file", 1).error().code, ENOENT);
}

TEST(ReadStartOfFile, DoesNotWait) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const OwnedFd reader(ends[0]), writer(ends[1]);
  const std::string path = "/proc/self/fd/" + std::to_string(reader.get());
  EXPECT_EQ(read_start_of_file(path, 100), "");
  ASSERT_TRUE(write_all(writer.get(), "abc"));
  EXPECT_EQ(read_start_of_file(path, 100), "abc");
}

TEST(WriteAll, ReportsARefusal) {
  const OwnedFd file(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  const auto status = write_all(file.get(), "x");
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ENOSPC);
}

Result<int> half(int value) {
  if (value % 2 != 0) return fail("odd", EINVAL, "use an even number");
  return value / 2;
}

Result<int> quarter(int value) { return half(TRY(half(value))); }

Status check_even(int value) {
  TRY_STATUS(half(value));
  return {};
}

TEST(Try, PassesValuesAndErrorsOn) {
  EXPECT_EQ(quarter(8), 2);
  EXPECT_EQ(quarter(6).error().message, "odd");
  EXPECT_EQ(quarter(7).error().hint, "use an even number");
  EXPECT_TRUE(check_even(2).has_value());
  EXPECT_EQ(check_even(3).error().code, EINVAL);
}

}  // namespace
}  // namespace espy

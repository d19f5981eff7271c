#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/files.h"
#include "base/progress.h"

namespace espy {
namespace {

uint64_t now_ns = 0;
uint64_t clock() { return now_ns; }
constexpr uint64_t kMs = 1'000'000;

// A terminal, and what was written to it.
class Pty {
 public:
  Pty() : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    ::grantpt(master_.get());
    ::unlockpt(master_.get());
    slave_ = OwnedFd(::open(::ptsname(master_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    ::setenv("TERM", "xterm", 1);
  }
  int fd() const { return slave_.get(); }
  std::string take() {
    std::string out(1000, '\0');
    pollfd ready = {master_.get(), POLLIN, 0};
    if (::poll(&ready, 1, 0) != 1) return "";
    out.resize(static_cast<size_t>(::read(master_.get(), out.data(), out.size())));
    return out;
  }

 private:
  OwnedFd master_, slave_;
};

TEST(Progress, IsShownAfterASecondAndErased) {
  Pty pty;
  Progress progress(pty.fd(), true, clock);
  int count = 0;
  progress.begin([&] { return "part " + std::to_string(++count); });
  now_ns += 999 * kMs;
  progress.tick();
  EXPECT_EQ(pty.take(), "");
  now_ns += 1 * kMs;
  progress.tick();
  EXPECT_EQ(pty.take(), "\rpart 1\x1b[K\r");
  now_ns += 99 * kMs;
  progress.tick();
  EXPECT_EQ(pty.take(), "");
  now_ns += 1 * kMs;
  progress.tick();
  EXPECT_EQ(pty.take(), "\rpart 2\x1b[K\r");
  progress.hide();
  EXPECT_EQ(pty.take(), "\r\x1b[K");
  progress.end();
  EXPECT_EQ(pty.take(), "");
  now_ns += 2000 * kMs;
  progress.tick();
  EXPECT_EQ(pty.take(), "");
}

TEST(Progress, IsShownOnTerminalsOnly) {
  Pty pty;
  EXPECT_TRUE(Progress(pty.fd(), true).is_shown());
  EXPECT_FALSE(Progress(pty.fd(), false).is_shown());
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const OwnedFd in(ends[0]), out(ends[1]);
  EXPECT_FALSE(Progress(out.get(), true).is_shown());
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(Progress(pty.fd(), true).is_shown());
}

}  // namespace
}  // namespace espy

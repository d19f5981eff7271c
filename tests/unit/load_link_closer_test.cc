// A link that waits is a socket here: closing it waits until what it has sent is acknowledged.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "load/bpf.h"

namespace espy::load {
namespace {

constexpr int kPatienceMs = 60'000;

struct Connection {
  OwnedFd sender, receiver;
};

// Returns a connection whose sender has sent more than the receiver has room for.
Connection full_connection() {
  const OwnedFd listener(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* as_any = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(listener.get(), as_any, size), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(::getsockname(listener.get(), as_any, &size), 0);
  OwnedFd sender(::socket(AF_INET, SOCK_STREAM, 0));
  EXPECT_EQ(::connect(sender.get(), as_any, size), 0);
  OwnedFd receiver(::accept(listener.get(), nullptr, nullptr));
  const linger wait{1, 2 * kPatienceMs / 1000};
  EXPECT_EQ(::setsockopt(sender.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof(wait)), 0);
  const std::vector<char> much(1 << 16);
  while (::send(sender.get(), much.data(), much.size(), MSG_DONTWAIT) > 0) {
  }
  return {std::move(sender), std::move(receiver)};
}

// Waits until all descriptors of the other end of a pipe are closed.
bool is_closed_soon(const OwnedFd& reader) {
  pollfd each{reader.get(), 0, 0};
  return ::poll(&each, 1, kPatienceMs) == 1;
}

void wait_until_closed(const LinkCloser& closer, uint64_t job) {
  for (int ms = 0; !closer.has_closed(job) && ms < kPatienceMs; ++ms) ::poll(nullptr, 0, 1);
  EXPECT_TRUE(closer.has_closed(job));
}

// A closer, a descriptor that takes long to close, and a pipe.
class LinkCloserTest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = LinkCloser::start();
    ASSERT_TRUE(started);
    closer_ = std::move(*started);
    std::array<int, 2> ends = {-1, -1};
    ASSERT_EQ(::pipe(ends.data()), 0);
    reader_ = OwnedFd(ends[0]);
    writer_ = OwnedFd(ends[1]);
  }

  std::unique_ptr<LinkCloser> closer_;
  Connection slow_ = full_connection();
  OwnedFd reader_, writer_;
};

TEST_F(LinkCloserTest, ClosesALinkWhileAnotherWaits) {
  const std::array waits = {slow_.sender.release()};
  const auto first = closer_->close_soon(waits);
  const std::array closes_at_once = {writer_.release()};
  const auto second = closer_->close_soon(closes_at_once);
  ASSERT_TRUE(first && second);

  EXPECT_TRUE(is_closed_soon(reader_));
  wait_until_closed(*closer_, *second);
  EXPECT_FALSE(closer_->has_closed(*first));

  slow_.receiver = OwnedFd();  // refuses the rest
  wait_until_closed(*closer_, *first);
}

TEST_F(LinkCloserTest, EndsAJobWhenAllOfItIsClosed) {
  const std::array both = {slow_.sender.release(), writer_.release()};
  const auto job = closer_->close_soon(both);
  ASSERT_TRUE(job);
  EXPECT_TRUE(is_closed_soon(reader_));
  EXPECT_FALSE(closer_->has_closed(*job));

  slow_.receiver = OwnedFd();
  wait_until_closed(*closer_, *job);
}

}  // namespace
}  // namespace espy::load

// A link that waits is a socket here: closing it waits until what it has sent is acknowledged.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "load/link_closer.h"

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

TEST(LinkCloser, ClosesALinkWhileAnotherWaits) {
  auto closer = LinkCloser::start();
  ASSERT_TRUE(closer);
  Connection slow = full_connection();
  std::array<int, 2> ends = {-1, -1};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const OwnedFd reader(ends[0]);

  const std::array waits = {slow.sender.release()};
  const auto first = (*closer)->close_soon(waits);
  const std::array closes_at_once = {ends[1]};
  const auto second = (*closer)->close_soon(closes_at_once);
  ASSERT_TRUE(first && second);

  EXPECT_TRUE(is_closed_soon(reader));
  wait_until_closed(**closer, *second);
  EXPECT_FALSE((*closer)->has_closed(*first));

  slow.receiver = OwnedFd();  // refuses the rest
  wait_until_closed(**closer, *first);
}

TEST(LinkCloser, EndsAJobWhenAllOfItIsClosed) {
  auto closer = LinkCloser::start();
  ASSERT_TRUE(closer);
  Connection slow = full_connection();
  std::array<int, 2> ends = {-1, -1};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const OwnedFd reader(ends[0]);

  const std::array both = {slow.sender.release(), ends[1]};
  const auto job = (*closer)->close_soon(both);
  ASSERT_TRUE(job);
  EXPECT_TRUE(is_closed_soon(reader));
  EXPECT_FALSE((*closer)->has_closed(*job));

  slow.receiver = OwnedFd();
  wait_until_closed(**closer, *job);
}

}  // namespace
}  // namespace espy::load

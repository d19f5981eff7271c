// Holds files that are in no directory, prints what /proc/self/fd says of them, and waits.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <initializer_list>

namespace {

void show(int fd) {
  char link[64], text[PATH_MAX];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t size = ::readlink(link, text, sizeof(text));
  if (size > 0) std::printf("%.*s\n", static_cast<int>(size), text);
}

}  // namespace

int main() {
  int pipes[2], sockets[2];
  if (::pipe(pipes) != 0 || ::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return 1;
  for (const int fd : {pipes[0], sockets[0], sockets[1], ::epoll_create1(0), ::memfd_create("held", 0),
                       ::open("/proc/self/ns/mnt", O_RDONLY), ::open("/", O_RDONLY)})
    show(fd);
  std::printf("all\n");
  std::fflush(stdout);
  ::pause();
  return 0;
}

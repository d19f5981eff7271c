// trees WAY: a hundred calls of request(), of which the one with the number 42 differs.
//   fail      it returns -5
//   slow      it takes a second
//   threads   each of four threads has its own hundred, of which one fails
//   longjmp   every other request is left by longjmp; 42 fails
//   exit      in the middle of request 43 the thread ends
//   nest      request 42 calls itself, and the inner call fails
//   long      request 42 makes a thousand calls more, and fails
//   crowd     forty threads are in request 42 at a time, and fail
//   many      two hundred requests, each with a hundred calls more
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csetjmp>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

namespace {

std::string_view way;
thread_local jmp_buf target;
constexpr int kCrowd = 40;
std::atomic<int> arrived = 0;

}  // namespace

#define VISIBLE extern "C" __attribute__((noinline, used))

VISIBLE int parse(int id, const char* path) {
  __asm__ volatile("" ::"r"(path) : "memory");
  return id % 7;
}

VISIBLE int disk(int block) {
  __asm__ volatile("" ::: "memory");
  return block * 2;
}

VISIBLE int load(int id) {
  if (way == "longjmp" && id % 2 == 1) ::longjmp(target, 1);
  if (way == "exit" && id == 43) ::syscall(SYS_exit, 0);
  if (way == "slow" && id == 42) ::sleep(1);
  for (arrived += 1; way == "crowd" && arrived < kCrowd;) ::usleep(1000);
  int sum = disk(id);
  for (int i = 0; i < (way == "long" && id == 42 ? 1000 : way == "many" ? 100 : 0); ++i) sum += disk(i) % 2;
  return id == 42 && way != "slow" ? -5 - sum % 1 : sum;
}

VISIBLE int request(int id, int size) {
  parse(id, "/etc/hosts");
  if (way == "nest" && id == 42 && size == 42) {
    request(id, size + 1);
    return 0;
  }
  const int loaded = load(id);
  return loaded < 0 ? loaded : size;
}

VISIBLE int requests(int count) {
  volatile int failed = 0;  // longjmp() keeps it
  for (volatile int id = 0; id < count; id = id + 1)
    if (::setjmp(target) == 0) failed = failed + (request(id, id) < 0 ? 1 : 0);
  return failed;
}

int main(int argc, char** argv) {
  way = argc > 1 ? argv[1] : "fail";
  if (way != "threads" && way != "exit" && way != "crowd") return requests(way == "many" ? 200 : 100) < 0 ? 1 : 0;
  std::vector<std::thread> threads;
  if (way == "crowd")
    for (int i = 0; i < kCrowd; ++i) threads.emplace_back([] { request(42, 42); });
  else
    for (int i = 0; i < 4; ++i) threads.emplace_back([] { requests(100); });
  // A thread that has ended by a system call cannot be joined.
  for (std::thread& thread : threads)
    if (way == "exit")
      thread.detach();
    else
      thread.join();
  if (way == "exit")
    while (::access("/proc/self/task", F_OK) == 0 && std::system("test $(ls /proc/$PPID/task | wc -l) = 1") != 0)
      ::usleep(1000);
  return 0;
}

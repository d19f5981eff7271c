// crowd N [held]: N threads on one CPU call look() with a page that is not there until all have done so and one more
// call, alone(), was made; so that all of them are within the probe of look() at a time. With `held` the page never
// comes.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#define VISIBLE extern "C" __attribute__((noinline, used))

VISIBLE void look(const char* text) { asm volatile("" : : "r"(text) : "memory"); }
VISIBLE void alone(const char* text) { asm volatile("" : : "r"(text) : "memory"); }

namespace {

constexpr size_t kPage = 4096;
std::atomic<int> returned = 0;

void stay_on_first_cpu() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(0, &cpus);
  ::sched_setaffinity(0, sizeof(cpus), &cpus);
}

// Whoever reads there waits until `serve`.
int hold_back(char* page) {
  const auto file = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
  uffdio_api api = {};
  api.api = UFFD_API;
  uffdio_register area = {};
  area.range = {reinterpret_cast<uint64_t>(page), kPage};
  area.mode = UFFDIO_REGISTER_MODE_MISSING;
  if (file < 0 || ::ioctl(file, UFFDIO_API, &api) != 0 || ::ioctl(file, UFFDIO_REGISTER, &area) != 0) std::exit(77);
  return file;
}

// Whether one more waits: of each the file tells once.
bool has_new_reader(int file) {
  uffd_msg message = {};
  return ::read(file, &message, sizeof(message)) == sizeof(message);
}

void serve(int file, char* page) {
  alignas(kPage) static char content[kPage] = "late";
  uffdio_copy copy = {};
  copy.dst = reinterpret_cast<uint64_t>(page);
  copy.src = reinterpret_cast<uint64_t>(content);
  copy.len = kPage;
  ::ioctl(file, UFFDIO_COPY, &copy);
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 1;
  stay_on_first_cpu();
  auto* page = static_cast<char*>(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const int file = hold_back(page);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([page] {
      look(page);
      ++returned;
    });
  for (int waiting = 0; waiting + returned < count; waiting += has_new_reader(file)) ::usleep(1000);
  alone("first");
  while (argc > 2) ::pause();
  serve(file, page);
  for (std::thread& thread : threads) thread.join();
}

#include "reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/fatal.h"

namespace espy::fuzz {

namespace {

constexpr double kMaxCpuSeconds = kHasAddressSanitizer ? 20 : 2;

double cpu_seconds() {
  timespec now = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

const Reader* find_reader(std::string_view name) {
  const auto found = std::ranges::find(readers(), name, &Reader::name);
  return found == readers().end() ? nullptr : &*found;
}

void list_readers(const char* engine) {
  std::printf("engine: %s\n", engine);
  for (const Reader& reader : readers())
    std::printf("%s%s\n", std::string(reader.name).c_str(), reader.content == Content::kScript ? " script" : "");
}

void run_limited(const Reader& reader, std::string_view bytes) {
  const auto copy = std::make_unique<char[]>(bytes.size());
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  const double start = cpu_seconds();
  reader.run_one({copy.get(), bytes.size()});
  const double taken = cpu_seconds() - start;
  if (taken <= kMaxCpuSeconds) return;
  std::fprintf(stderr, "%s takes %.1f s of CPU time\n", std::string(reader.name).c_str(), taken);
  std::abort();
}

MemoryFile::MemoryFile(std::string_view bytes, std::optional<int> descriptor)
    : fd_(::memfd_create("input", MFD_CLOEXEC)) {
  if (descriptor && fd_ >= 0 && fd_ != *descriptor) {
    ::dup3(fd_, *descriptor, O_CLOEXEC);
    ::close(std::exchange(fd_, *descriptor));
  }
  if (fd_ < 0 || ::write(fd_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    std::perror("memfd_create");
    std::exit(EXIT_FAILURE);
  }
  path_ = "/proc/self/fd/" + std::to_string(fd_);
}

MemoryFile::~MemoryFile() { ::close(fd_); }

void use(std::string_view text) {
  [[maybe_unused]] static volatile char sink = 0;
  char sum = 0;
  for (const char c : text) sum = static_cast<char>(sum ^ c);
  sink = sum;
}

}  // namespace espy::fuzz

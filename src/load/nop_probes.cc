#include "load/nop_probes.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <string_view>

#include "base/fd.h"
#include "base/untrusted_file.h"
#include "load/linux.h"

namespace espy::load {
namespace {

constexpr long kCalls = 8;  // the kernel may replace the nop after the first
constexpr char kRight = 'r', kWrong = 'w';
constexpr int kNotSupported = 524;  // ENOTSUPP, which the kernel returns but does not publish

using Function = long (*)(long);

// A file in memory with the code; the kernel probes files.
OwnedFd make_file(std::span<const uint8_t> code) {
  constexpr unsigned kExecutable = 0x10;  // MFD_EXEC (Linux 6.3)
  OwnedFd out(::memfd_create("espy-nop", MFD_CLOEXEC | kExecutable));
  if (!out.valid()) out = OwnedFd(::memfd_create("espy-nop", MFD_CLOEXEC));
  const std::string_view bytes(reinterpret_cast<const char*>(code.data()), code.size());
  if (out.valid() && !write_all(out.get(), bytes)) return {};
  return out;
}

// Calls the function once a byte has come, and tells whether it was right; says nothing if the sender has ended.
[[noreturn]] void call_in_child(Function function, int start, int result) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  char byte = 0;
  if (::read(start, &byte, 1) != 1) ::_exit(1);
  byte = kRight;
  for (long i = 1; i <= kCalls; ++i)
    if (function(i) != i) byte = kWrong;
  ::_exit(::write(result, &byte, 1) == 1 ? 0 : 1);
}

struct Pipe {
  OwnedFd reader, writer;
};

std::optional<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{OwnedFd(ends[0]), OwnedFd(ends[1])};
}

// Returns a perf event on the instruction, without a program: it counts.
Result<OwnedFd> probe_in(pid_t process, const OwnedFd& file, uint32_t offset) {
  const std::string path = descriptor_path(file);
  perf_event_attr attr = {};
  attr.type = TRY(pmu_type("uprobe"));
  attr.config1 = address_of(path.c_str());
  attr.config2 = offset;
  const long fd = open_perf_event(attr, process, -1);
  if (fd < 0) return fail("no probe", static_cast<int>(-fd));
  return OwnedFd(static_cast<int>(fd));
}

NopProbe try_in(pid_t child, const OwnedFd& file, uint32_t offset, Pipe& start, Pipe& result) {
  const auto probe = probe_in(child, file, offset);
  if (!probe) return probe.error().code == kNotSupported ? NopProbe::kRefused : NopProbe::kUnknown;
  result.writer.reset();
  if (!write_all(start.writer.get(), "s")) return NopProbe::kUnknown;
  char byte = 0;
  if (::read(result.reader.get(), &byte, 1) != 1 || byte == kWrong) return NopProbe::kBreaks;
  uint64_t hits = 0;
  const bool is_read = ::read(probe->get(), &hits, sizeof(hits)) == sizeof(hits);
  return is_read && hits == kCalls ? NopProbe::kWorks : NopProbe::kUnknown;
}

}  // namespace

// The code is mapped before the probe, since the kernel looks at the instruction where it is mapped.
NopProbe try_probe_on(const kernel::ProbedNop& nop) {
  const OwnedFd file = make_file(nop.example);
  auto start = make_pipe(), result = make_pipe();
  if (!file.valid() || !start || !result) return NopProbe::kUnknown;
  const size_t size = nop.example.size();
  void* code = ::mmap(nullptr, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0);
  if (code == MAP_FAILED) return NopProbe::kUnknown;
  const pid_t child = ::fork();
  if (child == 0) {
    start->writer.reset();
    call_in_child(reinterpret_cast<Function>(code), start->reader.get(), result->writer.get());
  }
  const NopProbe out = child < 0 ? NopProbe::kUnknown : try_in(child, file, nop.example_offset, *start, *result);
  start->writer.reset();
  if (child > 0)
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  ::munmap(code, size);
  return out;
}

}  // namespace espy::load

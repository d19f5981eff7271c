#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>

#include "base/end_request.h"
#include "program/unwind_layout.h"
#include "symbols/symbols.h"
#include "symbols_support.h"

// Outside of all namespaces and not static, so that the name is plain.
extern "C" __attribute__((noinline)) int espy_symbols_test_function(int x) { return x * 3 + 1; }
namespace espy_symbols_test {
__attribute__((noinline)) int mangled(int x) { return x * 5 + 1; }
}  // namespace espy_symbols_test

namespace espy::symbols {
namespace {

using testing::Child;
using ::testing::ElementsAre;
using testing::has_tool;
using ::testing::HasSubstr;
using testing::run;
using ::testing::StartsWith;
using testing::TempDir;

using Clock = std::chrono::steady_clock;

const auto kOurPid = static_cast<uint32_t>(::getpid());

// Repeats `condition` until it holds; false if it does not within ten seconds.
bool eventually(auto condition) {
  for (int tries = 0; tries < 1000; ++tries) {
    if (condition()) return true;
    ::usleep(10'000);
  }
  return false;
}

uint64_t address_of(auto* thing) { return reinterpret_cast<uint64_t>(thing); }

// Prints where `visible` is, then waits for its input to end.
constexpr std::string_view kWaiting = R"(
  #include <stdio.h>
  #include <unistd.h>
  __attribute__((noinline)) int visible(int x) { return x * 3 + 1; }
  int main(int argc, char **argv) {
    char c;
    printf("%lx\n", (unsigned long)visible);
    fflush(stdout);
    while (read(0, &c, 1) > 0) {}
    return visible(argc) == 0;
  })";

std::string name_at(Symbolizer& symbols, uint32_t pid, uint64_t address) {
  const auto found = symbols.user(pid, address);
  return found ? found->name : "";
}

TEST(Mappings, OurOwn) {
  const auto mappings = read_mappings(kOurPid);
  ASSERT_TRUE(mappings);
  EXPECT_TRUE(std::ranges::is_sorted(*mappings, {}, &Mapping::start));
  const uint64_t here = address_of(&espy_symbols_test_function);
  const auto code = std::ranges::find_if(*mappings, [&](const Mapping& m) { return m.start <= here && here < m.end; });
  ASSERT_NE(code, mappings->end());
  EXPECT_TRUE(code->executable);
  struct stat status = {};
  ASSERT_EQ(::stat("/proc/self/exe", &status), 0);
  EXPECT_EQ(code->inode, status.st_ino);
  EXPECT_EQ(code->path, std::filesystem::read_symlink("/proc/self/exe").string());
  EXPECT_TRUE(std::ranges::any_of(*mappings, [](const Mapping& m) { return m.path == "[stack]" && !m.executable; }));
}

TEST(Mappings, CodeIsVisitedUpToALimit) {
  const auto count = [](uint64_t most_bytes, size_t most_visits) {
    size_t out = 0;
    EXPECT_TRUE(visit_mapped_code(kOurPid, most_bytes, [&](const Mapping& mapping) {
      EXPECT_TRUE(mapping.executable && mapping.inode != 0);
      return ++out < most_visits;
    }));
    return out;
  };
  EXPECT_GT(count(UINT64_MAX, SIZE_MAX), 2U);
  EXPECT_EQ(count(UINT64_MAX, 2), 2U);
  EXPECT_EQ(count(1, SIZE_MAX), 0U);
  EXPECT_FALSE(visit_mapped_code(0x7fffffff, UINT64_MAX, [](const Mapping&) { return true; }));
}

TEST(Mappings, CodeIsFoundByItsAddress) {
  const auto address = reinterpret_cast<uintptr_t>(&read_mappings);
  const auto found = query_mapped_code(kOurPid, address);
  if (!found && found.error().code == ENOTTY) GTEST_SKIP() << "before Linux 6.11";
  ASSERT_TRUE(found);
  const auto all = read_mappings(kOurPid);
  const auto same = std::ranges::find_if(*all, [&](const Mapping& m) { return m.start <= address && address < m.end; });
  EXPECT_EQ(found->start, same->start);
  EXPECT_EQ(found->end, same->end);
  EXPECT_EQ(found->file_offset, same->file_offset);
  EXPECT_EQ(found->device, same->device);
  EXPECT_EQ(found->inode, same->inode);
  EXPECT_EQ(found->path, same->path);
  EXPECT_FALSE(found->deleted);
  const int on_stack = 0;
  EXPECT_FALSE(query_mapped_code(kOurPid, reinterpret_cast<uintptr_t>(&on_stack)));
}

TEST(Mappings, NoProcess) {
  const auto mappings = read_mappings(0x7fffffff);
  ASSERT_FALSE(mappings);
  EXPECT_THAT(mappings.error().message, HasSubstr("No such file"));
}

TEST(User, OurOwnFunctions) {
  for (const CachePolicy policy : {CachePolicy::kPerPid, CachePolicy::kPerProgram, CachePolicy::kNone}) {
    Symbolizer symbols({.cache = policy});
    const uint64_t start = address_of(&espy_symbols_test_function);
    const auto found = symbols.user(kOurPid, start + 2);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->name, "espy_symbols_test_function");
    EXPECT_EQ(found->offset, 2u);
    EXPECT_EQ(found->address, start);
    EXPECT_EQ(found->module, std::filesystem::read_symlink("/proc/self/exe").string());
    EXPECT_EQ(symbols.user(kOurPid, address_of(&espy_symbols_test::mangled))->name, "espy_symbols_test::mangled(int)");
  }
  Symbolizer plain({.demangle_cpp = false});
  EXPECT_EQ(plain.user(kOurPid, address_of(&espy_symbols_test::mangled))->name, "_ZN17espy_symbols_test7mangledEi");
}

TEST(User, LoadBias) {
  Symbolizer symbols;
  const auto elf = symbols.elf_file("/proc/self/exe");
  ASSERT_TRUE(elf);
  const auto function = (*elf)->find_function("espy_symbols_test_function");
  ASSERT_TRUE(function);
  const auto bias = symbols.load_bias(kOurPid, "/proc/self/exe");
  ASSERT_TRUE(bias);
  EXPECT_EQ(*bias + function->address, address_of(&espy_symbols_test_function));
  EXPECT_FALSE(symbols.load_bias(kOurPid, "/bin/true"));
}

TEST(User, SharedLibraryAndNothing) {
  Symbolizer symbols;
  const auto found = symbols.user(kOurPid, address_of(::dlsym(RTLD_DEFAULT, "getpid")));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "getpid");
  int on_stack = 0;
  EXPECT_FALSE(symbols.user(kOurPid, address_of(&on_stack)));
  EXPECT_FALSE(symbols.user(kOurPid, 0));
  EXPECT_FALSE(symbols.user(kOurPid, ~uint64_t{0}));
  EXPECT_FALSE(symbols.user(0x7fffffff, 0x1000));
}

TEST(User, Vdso) {
  Symbolizer symbols;
  const auto vdso = *read_mappings(kOurPid);
  const auto mapping = std::ranges::find(vdso, "[vdso]", &Mapping::path);
  if (mapping == vdso.end()) GTEST_SKIP() << "no vdso";
  bool found_one = false;
  for (uint64_t at = mapping->start; at < mapping->end && !found_one; at += 16) {
    const auto found = symbols.user(kOurPid, at);
    found_one = found && found->module == "[vdso]" && found->name.find("gettime") != std::string::npos;
  }
  EXPECT_TRUE(found_one);
  EXPECT_EQ(symbols.user_module(kOurPid, mapping->start)->path, "[vdso]");
}

class Waiting : public ::testing::TestWithParam<const char*> {};

TEST_P(Waiting, IsNamedAliveAndDead) {
  const TempDir dir;
  const std::string path = dir.build("waiting", kWaiting, std::string("-O1 ") + GetParam());
  Symbolizer symbols;
  Child child({path});
  const uint64_t visible = child.read_address();
  ASSERT_NE(visible, 0u);
  symbols.remember(child.pid());
  const uint32_t pid = child.pid();
  child.finish();
  ASSERT_FALSE(read_mappings(pid));
  const auto found = symbols.user(pid, visible + 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "visible");
  EXPECT_EQ(found->offset, 1u);
  EXPECT_EQ(found->module, path);
  EXPECT_EQ(symbols.user_module(pid, visible)->path, path);
  symbols.remember(pid);  // too late, but no reason to forget
  EXPECT_TRUE(symbols.user(pid, visible));
}

INSTANTIATE_TEST_SUITE_P(Kinds, Waiting, ::testing::Values("-pie -fPIE", "-no-pie -fno-pie"));

TEST(User, DeadProcessesUnderEachPolicy) {
  const TempDir dir;
  const std::string path = dir.build("waiting", kWaiting, "-O1 -no-pie -fno-pie");
  for (const CachePolicy policy : {CachePolicy::kPerPid, CachePolicy::kPerProgram, CachePolicy::kNone}) {
    Symbolizer symbols({.cache = policy});
    Child first({path}), second({path});
    const uint64_t visible = first.read_address();
    ASSERT_EQ(second.read_address(), visible);
    symbols.remember(first.pid());
    symbols.remember(second.pid());
    const uint32_t pids[] = {first.pid(), second.pid()};
    first.finish();
    second.finish();
    for (const uint32_t pid : pids) {
      const auto found = symbols.user(pid, visible);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->name, "visible");
    }
  }
}

TEST(User, DropsTheProcessThatWasNotUsedForLongest) {
  const TempDir dir;
  const std::string path = dir.build("waiting", kWaiting, "-O1 -no-pie -fno-pie");
  Symbolizer symbols({.max_processes = 2});
  Child first({path}), second({path}), third({path});
  const uint64_t visible = first.read_address();
  // What a child has written, it wrote after its exec: its mappings are those of the program.
  ASSERT_EQ(second.read_address(), visible);
  ASSERT_EQ(third.read_address(), visible);
  const uint32_t pids[] = {first.pid(), second.pid(), third.pid()};
  symbols.remember(pids[0]);
  symbols.remember(pids[1]);
  EXPECT_TRUE(symbols.user(pids[0], visible));
  symbols.remember(pids[2]);
  first.finish();
  second.finish();
  third.finish();
  EXPECT_TRUE(symbols.user(pids[0], visible));
  EXPECT_EQ(symbols.missed_processes(), 0u);
  EXPECT_FALSE(symbols.user(pids[1], visible));
  EXPECT_FALSE(symbols.user(pids[1], visible));
  EXPECT_TRUE(symbols.user(pids[2], visible));
  EXPECT_EQ(symbols.missed_processes(), 1u);
}

TEST(User, DeletedProgramAfterItsEnd) {
  const TempDir dir;
  const std::string path = dir.build("waiting", kWaiting, "-O1");
  Child child({path});
  const uint64_t visible = child.read_address();
  std::filesystem::remove(path);
  if (::geteuid() != 0) GTEST_SKIP() << "only root may open /proc/PID/map_files/*";
  Symbolizer symbols;
  symbols.remember(child.pid());
  const uint32_t pid = child.pid();
  child.finish();
  const auto found = symbols.user(pid, visible);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "visible");
  EXPECT_EQ(found->module, path);
}

TEST(User, MappingsAreNotWaitedForAtTheEnd) {
  const uint64_t here = address_of(&espy_symbols_test_function);
  Symbolizer symbols({.max_wait_at_end_ns = 0});
  request_end();
  EXPECT_FALSE(symbols.user(kOurPid, here));
  reset_end_request();
  EXPECT_THAT(symbols.skipped_files().reasons,
              ElementsAre(StartsWith("/proc/" + std::to_string(kOurPid) + "/maps was not read")));
  EXPECT_EQ(name_at(symbols, kOurPid, here), "espy_symbols_test_function");
  request_end();
  EXPECT_EQ(name_at(symbols, kOurPid, here), "espy_symbols_test_function");
  reset_end_request();
}

TEST(User, LibraryLoadedAfterTheSnapshot) {
  const TempDir dir;
  const std::string path = dir.build("late.so", "int late_function(void) { return 4; }", "-shared -fPIC");
  Symbolizer symbols;
  symbols.remember(kOurPid);
  void* library = ::dlopen(path.c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr);
  const auto found = symbols.user(kOurPid, address_of(::dlsym(library, "late_function")));
  ::dlclose(library);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "late_function");
}

// The address with the tag of what the process has mapped there now.
uint64_t tagged_in(uint32_t pid, uint64_t address) {
  const auto mappings = read_mappings(pid);
  for (const Mapping& mapping : *mappings)
    if (mapping.start <= address && address < mapping.end)
      return program::tagged(address, program::file_code_tag(mapping.inode, mapping.file_offset - mapping.start));
  return address;
}

TEST(User, ExecToAProgramAtTheSameAddresses) {
  const TempDir dir;
  // Both are linked to the same place, so only the tag tells whose the address is.
  const std::string second = dir.build("second", kWaiting, "-O1 -no-pie -fno-pie -Dvisible=other_name");
  const std::string first = dir.build("first", R"(
      #include <stdio.h>
      #include <unistd.h>
      __attribute__((noinline)) int visible(int x) { return x * 3 + 1; }
      int main(int argc, char **argv) {
        char c;
        printf("%lx\n", (unsigned long)visible);
        fflush(stdout);
        if (read(0, &c, 1) > 0) execv(argv[1], argv + 1);
        return visible(argc);
      })",
                                      "-O1 -no-pie -fno-pie");
  Child child({first, second});
  const uint64_t visible = child.read_address();
  Symbolizer symbols;
  const auto name_of = [&](uint64_t address) {
    const auto found = symbols.user(child.pid(), address);
    return found ? found->name : "";
  };
  ASSERT_EQ(name_of(visible), "visible");
  const uint64_t of_first = tagged_in(child.pid(), visible);
  child.write_line("");
  const uint64_t other = child.read_address();
  const uint64_t of_second = tagged_in(child.pid(), other);
  // One of 255 pairs of files has one tag, and cannot be told apart.
  if (program::code_tag(of_first) == program::code_tag(of_second)) GTEST_SKIP() << "both files have one tag";
  EXPECT_EQ(name_of(of_second), "other_name");
  EXPECT_EQ(name_of(of_first), "visible");
  // The symbolizer looks for a new program again after a while, not at every address.
  EXPECT_TRUE(eventually([&] { return name_of(other).empty(); }));
}

// The mapping of our own program at an address, as if of another process.
Mapping own_mapping(uint64_t address) {
  const auto mappings = *read_mappings(kOurPid);
  for (const Mapping& mapping : mappings)
    if (mapping.start <= address && address < mapping.end) return mapping;
  return {};
}

TEST(User, EventsOfEndedProcesses) {
  constexpr uint32_t kParent = 0x7ffffff0, kChild = 0x7ffffff1, kOther = 0x7ffffff2;  // above all ids
  const uint64_t here = address_of(&espy_symbols_test_function);
  Symbolizer symbols;
  symbols.process_mapped(kParent, own_mapping(here));
  EXPECT_FALSE(symbols.user(kParent, here)) << "without on_lookup";
  int calls = 0;
  symbols.on_lookup([&] { ++calls; });
  EXPECT_EQ(symbols.user(kParent, here)->name, "espy_symbols_test_function");
  // A copy has the mappings of its parent, and of the programs that it executes the newest first.
  symbols.process_started(kChild, kParent);
  EXPECT_EQ(symbols.user(kChild, here)->name, "espy_symbols_test_function");
  symbols.process_executed(kChild);
  EXPECT_EQ(symbols.user(kChild, here)->name, "espy_symbols_test_function");
  Mapping other = own_mapping(here);
  other.path = "/nowhere";
  other.inode = 1;
  symbols.process_mapped(kChild, other);
  EXPECT_FALSE(symbols.user(kChild, here));
  EXPECT_EQ(symbols.user_module(kChild, here)->path, "/nowhere");
  EXPECT_FALSE(symbols.user(kChild, other.end + 1));
  EXPECT_GT(calls, 0);
  // Only what was remembered is kept.
  symbols.process_mapped(kOther, own_mapping(here));
  symbols.remember(kChild);
  for (const uint32_t pid : {kParent, kChild, kOther}) symbols.process_ended(pid);
  symbols.forget_ended_processes();
  symbols.forget_ended_processes();
  EXPECT_TRUE(symbols.user_module(kParent, here));
  EXPECT_TRUE(symbols.user_module(kChild, here));
  EXPECT_FALSE(symbols.user_module(kOther, here));
}

// The tag of a stack tells which of several files was mapped at an address; without it, none is.
TEST(User, CodeOfSeveralFiles) {
  constexpr uint32_t kPid = 0x7ffffff0, kLater = 0x7ffffff1;  // above all ids
  constexpr uint64_t kStart = 0x7f0000000000, kEnd = kStart + 0x2000, kAddress = kStart + 0x10;
  const auto library = [](const std::string& path, uint64_t inode) {
    return Mapping{.start = kStart,
                   .end = kEnd,
                   .file_offset = 0x1000,
                   .path = path,
                   .device = makedev(8, 1),
                   .inode = inode,
                   .executable = true};
  };
  const auto tag = [](uint64_t inode) { return program::file_code_tag(inode, 0x1000 - kStart); };
  ASSERT_NE(tag(11), tag(12));
  Symbolizer symbols;
  symbols.on_lookup([] {});
  const auto path_at = [&](uint32_t pid, uint64_t address) {
    const auto module = symbols.user_module(pid, address);
    return module ? module->path : "";
  };
  symbols.process_started(kPid, 0, 1);
  symbols.process_mapped(kPid, library("/a.so", 11), 2);
  EXPECT_EQ(path_at(kPid, kAddress), "/a.so");
  symbols.process_mapped(kPid, library("/b.so", 12), 3);
  EXPECT_EQ(path_at(kPid, kAddress), "");
  EXPECT_EQ(symbols.uncertain_addresses(), 1U);
  EXPECT_EQ(path_at(kPid, program::tagged(kAddress, tag(11))), "/a.so");
  EXPECT_EQ(path_at(kPid, program::tagged(kAddress, tag(12))), "/b.so");
  EXPECT_EQ(path_at(kPid, program::tagged(kAddress, program::kAnonymousCode)), "");
  // Anonymous memory in a part of it, and a program that is executed.
  symbols.process_mapped(kPid, {.start = kStart, .end = kStart + 0x1000, .executable = true}, 4);
  EXPECT_EQ(path_at(kPid, program::tagged(kAddress, program::kAnonymousCode)), "");
  EXPECT_EQ(path_at(kPid, program::tagged(kAddress + 0x1000, tag(12))), "/b.so");
  symbols.process_executed(kPid, 5);
  symbols.process_mapped(kPid, library("/c.so", 13), 6);
  EXPECT_EQ(path_at(kPid, program::tagged(kAddress, tag(13))), "/c.so");
  EXPECT_EQ(path_at(kPid, program::tagged(kAddress, tag(11))), "/a.so");
  EXPECT_EQ(path_at(kPid, kAddress), "");
  // What was there before the first address was captured does not count.
  symbols.process_started(kLater, 0, 1);
  symbols.process_mapped(kLater, library("/a.so", 11), 2);
  symbols.process_mapped(kLater, library("/b.so", 12), 3);
  symbols.process_executed(kLater, 4);
  symbols.process_mapped(kLater, library("/c.so", 13), 5);
  symbols.remember(kLater, 6);
  EXPECT_EQ(path_at(kLater, kAddress), "/c.so");
}

// As events tell it: a copy of a shell that has executed a program with a few libraries, and has ended.
void run_short_process(Symbolizer& symbols, uint32_t pid) {
  constexpr uint32_t kShell = 0x400000;  // above all ids
  symbols.process_started(pid, kShell);
  symbols.process_executed(pid);
  for (uint64_t i = 0; i < 5; ++i)
    symbols.process_mapped(pid, {.start = 0x7f0000000000 + pid * 0x1000000ULL + i * 0x100000,
                                 .end = 0x7f0000000000 + pid * 0x1000000ULL + i * 0x100000 + 0x80000,
                                 .file_offset = 0x1000,
                                 .path = "/usr/lib/x86_64-linux-gnu/library-" + std::to_string(i) + ".so.6",
                                 .device = 1,
                                 .inode = 100 + i,
                                 .executable = true});
  symbols.remember(pid);
  symbols.process_ended(pid);
  symbols.forget_ended_processes();
}

TEST(User, EndedProcessesTakeLittleMemory) {
  constexpr uint32_t kFirst = 0x400001, kCount = 4000;
  Symbolizer symbols;
  symbols.on_lookup([] {});
  const auto used = [] { return ::mallinfo2().uordblks; };  // constant with a sanitizer
  const size_t before = used();
  for (uint32_t i = 0; i < kCount; ++i) run_short_process(symbols, kFirst + i);
  EXPECT_LT((used() - before) / kCount, 700U);
  for (uint32_t i = 0; i < kCount; ++i)
    EXPECT_TRUE(symbols.user_module(kFirst + i, 0x7f0000000000 + (kFirst + i) * 0x1000000ULL + 0x100010));
  EXPECT_LT((used() - before) / kCount, 1200U);
}

TEST(User, DropsTheEventsThatWereNotUsedForLongest) {
  constexpr uint32_t kFirst = 0x400001, kCount = 200;
  Symbolizer symbols({.max_processes = 100});
  symbols.on_lookup([] {});
  for (uint32_t i = 0; i < kCount; ++i) run_short_process(symbols, kFirst + i);
  const auto is_known = [&](uint32_t i) {
    return symbols.user_module(kFirst + i, 0x7f0000000000 + (kFirst + i) * 0x1000000ULL + 0x100010).has_value();
  };
  EXPECT_TRUE(is_known(kCount - 1));
  EXPECT_TRUE(is_known(kCount - 50));
  EXPECT_EQ(symbols.missed_processes(), 0U);
  EXPECT_FALSE(is_known(0));
  EXPECT_EQ(symbols.missed_processes(), 1U);
}

TEST(User, FirstThreadHasEnded) {
  const TempDir dir;
  const std::string path = dir.build("leaderless", R"(
    #include <pthread.h>
    #include <stdio.h>
    #include <unistd.h>
    __attribute__((noinline)) int visible(int x) { return x * 3 + 1; }
    static void* wait(void* leader) {
      char c;
      pthread_join(*(pthread_t*)leader, 0);
      printf("%lx\n", (unsigned long)visible);
      fflush(stdout);
      while (read(0, &c, 1) > 0) {}
      _exit(0);
    }
    int main(void) {
      static pthread_t leader, thread;
      leader = pthread_self();
      pthread_create(&thread, 0, wait, &leader);
      pthread_exit(0);
    })",
                                     "-O1 -pthread");
  Child child({path});
  const uint64_t visible = child.read_address();
  Symbolizer symbols;
  // The thread is joinable a moment before it is gone.
  EXPECT_TRUE(eventually([&] { return task_with_memory(child.pid()) != child.pid(); }));
  const auto found = symbols.user(child.pid(), visible);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "visible");
  EXPECT_EQ(found->module, path);
}

// A file that is mapped as code into this process; nothing runs in it.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) : size_(std::filesystem::file_size(path)) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    start_ = ::mmap(nullptr, size_, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    ::close(fd);
  }
  ~MappedFile() { ::munmap(start_, size_); }
  uint64_t address(uint64_t file_offset) const { return reinterpret_cast<uint64_t>(start_) + file_offset; }

 private:
  size_t size_;
  void* start_;
};

TEST(User, AFileThatIsTruncatedGivesNoNames) {
  const TempDir dir;
  const std::string path =
      dir.build("library.so", "int first(void) { return 1; } int second(void) { return 2; }", "-shared -fPIC");
  const MappedFile mapped(path);
  Symbolizer symbols;
  const auto elf = *ElfFile::open(path);
  const auto first = elf.find_function("first"), second = elf.find_function("second");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(symbols.user(kOurPid, mapped.address(first->file_offset))->name, "first");
  const auto unread = *ElfFile::open(path);
  std::filesystem::resize_file(path, 100);
  EXPECT_EQ(symbols.user(kOurPid, mapped.address(second->file_offset))->name, "second");  // has been read
  EXPECT_FALSE(unread.find_function("first"));
  EXPECT_EQ(unread.bytes_at(first->file_offset, 4), "");
  EXPECT_TRUE(symbols.source(kOurPid, mapped.address(first->file_offset)).empty());
}

TEST(User, FilesAreClosedAgain) {
  const TempDir dir;
  const std::string original = dir.build("0", "int first(void) { return 1; }", "-shared -fPIC");
  const uint64_t offset = ElfFile::open(original)->find_function("first")->file_offset;
  const auto count_open = [] {
    return std::ranges::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                 std::filesystem::directory_iterator());
  };
  const auto before = count_open();
  Symbolizer symbols({.max_files = 4});
  std::vector<std::unique_ptr<MappedFile>> mapped;
  for (int i = 1; i <= 32; ++i) {
    const std::string path = dir.path(std::to_string(i));
    std::filesystem::copy_file(original, path);
    mapped.push_back(std::make_unique<MappedFile>(path));
    EXPECT_EQ(symbols.user(kOurPid, mapped.back()->address(offset))->name, "first");
  }
  EXPECT_LE(count_open(), before + 6);
  EXPECT_EQ(symbols.user(kOurPid, mapped.front()->address(offset))->name, "first");  // is opened again
}

TEST(User, PerfMap) {
  const std::string path = "/tmp/perf-" + std::to_string(kOurPid) + ".map";
  void* code = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(code, MAP_FAILED);
  const uint64_t start = address_of(code);
  Symbolizer symbols;
  EXPECT_FALSE(symbols.user(kOurPid, start));
  ASSERT_TRUE(symbols.unnamed_jit());
  EXPECT_EQ(symbols.unnamed_jit()->pid, kOurPid);
  EXPECT_EQ(symbols.unnamed_jit()->program, "unit_symbols");
  EXPECT_EQ(symbols.unnamed_jit()->perf_map_path, path);
  std::ofstream map(path);
  map << std::hex << start + 0x40 << " 20 old code\n" << start << " 10 Module::first(int)\nbroken line\n" << std::flush;
  // A map is not searched for at each address.
  const auto is_named = [&](uint64_t address, std::string_view name) {
    return eventually([&] {
      const auto found = symbols.user(kOurPid, address);
      return found && found->name == name;
    });
  };
  EXPECT_TRUE(is_named(start + 0x41, "old code"));
  map << "0x" << start + 0x90 << " 0x10 int Shop.of(int, boolean)\n" << std::flush;  // as the JVM writes it
  EXPECT_TRUE(is_named(start + 0x9f, "int Shop.of(int, boolean)"));
  map << std::hex << start + 0x80 << " 10 later\n" << start + 0x40 << " 10 new code\n" << std::flush;
  ASSERT_TRUE(is_named(start + 0x84, "later"));
  const auto later = symbols.user(kOurPid, start + 0x84);
  EXPECT_EQ(later->name, "later");
  EXPECT_EQ(later->offset, 4u);
  EXPECT_EQ(later->address, start + 0x80);
  EXPECT_EQ(later->module, path);
  EXPECT_EQ(symbols.user(kOurPid, start + 0x41)->name, "new code");
  EXPECT_EQ(symbols.user(kOurPid, start)->name, "Module::first(int)");
  EXPECT_FALSE(symbols.user(kOurPid, start + 0x10));
  std::filesystem::remove(path);
  ::munmap(code, 4096);
}

TEST(User, AddressesWithoutNamesDoNotReadFilesEachTime) {
  constexpr size_t kSize = 1 << 20, kLookups = 2000;
  if (testing::read_bytes() == 0) GTEST_SKIP() << "the kernel does not count what is read";
  void* code = ::mmap(nullptr, kSize, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(code, MAP_FAILED);
  Symbolizer symbols;
  EXPECT_FALSE(symbols.user(kOurPid, address_of(code)));
  const uint64_t before = testing::read_bytes();
  for (size_t i = 0; i < kLookups; ++i) EXPECT_FALSE(symbols.user(kOurPid, address_of(code) + i));
  EXPECT_LT(testing::read_bytes() - before, kLookups * 500);  // /proc/PID/status has 1,400
  ::munmap(code, kSize);
}

// A copy of this process that only maps code; with a certain id, if one is given.
class Forked {
 public:
  struct Code {
    uint64_t address = 0;
    std::string path;  // "": anonymous
  };

  explicit Forked(const std::vector<Code>& code, pid_t id = 0) {
    int ready[2];
    if (::pipe2(ready, O_CLOEXEC) != 0) return;
    clone_args arguments = {};
    arguments.exit_signal = SIGCHLD;
    arguments.set_tid = id == 0 ? 0 : reinterpret_cast<uint64_t>(&id);
    arguments.set_tid_size = id == 0 ? 0 : 1;
    pid_ = static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof(arguments)));
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (const Code& each : code) map(each);
      while (::write(ready[1], "", 1) == 1) ::pause();
      ::_exit(0);
    }
    ::close(ready[1]);
    char byte;
    if (::read(ready[0], &byte, 1) != 1) finish();
    ::close(ready[0]);
  }
  ~Forked() { finish(); }

  bool is_running() const { return pid_ > 0; }
  uint32_t pid() const { return static_cast<uint32_t>(pid_); }
  void finish() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  static void map(const Code& code) {
    const int fd = code.path.empty() ? -1 : ::open(code.path.c_str(), O_RDONLY | O_CLOEXEC);
    const int flags = MAP_PRIVATE | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0);
    void* const place = reinterpret_cast<void*>(code.address);
    if (::mmap(place, 1 << 16, PROT_READ | PROT_EXEC, flags, fd, 0) != place) ::_exit(1);
  }

  pid_t pid_ = -1;
};

constexpr uint64_t kMadeCode = 0x10000000000, kCommonPlace = 0x10001000000, kFirstPlace = 0x10002000000,
                   kSecondPlace = 0x10003000000;

// The perf map of a process, that names all its code.
class NamedCode {
 public:
  explicit NamedCode(uint32_t pid) : path_("/tmp/perf-" + std::to_string(pid) + ".map") {
    std::ofstream(path_) << "1 7fffffffffff of_the_map\n";
  }
  ~NamedCode() { std::filesystem::remove(path_); }

 private:
  std::string path_;
};

TEST(User, AnotherProcessWithTheSameId) {
  const TempDir dir;
  const std::string a = dir.build("a.so", "int in_a(void) { return 1; }", "-shared -fPIC");
  const std::string b = dir.build("b.so", "int in_b(void) { return 2; }", "-shared -fPIC");
  const uint64_t in_a = ElfFile::open(a)->find_function("in_a")->file_offset;
  const uint64_t in_b = ElfFile::open(b)->find_function("in_b")->file_offset;
  ASSERT_EQ(in_a, in_b);
  Symbolizer symbols;
  Forked first({{kMadeCode, ""}, {kCommonPlace, a}, {kFirstPlace, a}});
  ASSERT_TRUE(first.is_running());
  const uint32_t pid = first.pid();
  {
    const NamedCode names(pid);
    EXPECT_EQ(name_at(symbols, pid, kMadeCode), "of_the_map");
  }
  EXPECT_EQ(name_at(symbols, pid, kCommonPlace + in_a), "in_a");
  const auto first_snapshot = Clock::now();
  first.finish();
  while (Clock::now() < first_snapshot + std::chrono::milliseconds(30)) ::usleep(1000);  // times of starts have 10 ms
  Forked second({{kMadeCode, ""}, {kCommonPlace, b}, {kSecondPlace, b}}, static_cast<pid_t>(pid));
  if (!second.is_running()) GTEST_SKIP() << "cannot choose the id of a process";
  // What may be of the one or of the other has no name.
  EXPECT_TRUE(eventually([&] { return name_at(symbols, pid, kMadeCode).empty(); }));
  EXPECT_EQ(name_at(symbols, pid, kCommonPlace + in_a), "");
  EXPECT_EQ(name_at(symbols, pid, kFirstPlace + in_a), "in_a");
  EXPECT_EQ(name_at(symbols, pid, kSecondPlace + in_b), "in_b");
  // What this process has mapped in all of its copies is the same code in both.
  EXPECT_EQ(name_at(symbols, pid, address_of(&espy_symbols_test_function)), "espy_symbols_test_function");
  const NamedCode names(pid);
  for (int tries = 0; tries < 30; ++tries, ::usleep(10'000)) ASSERT_EQ(name_at(symbols, pid, kMadeCode), "");
}

TEST(User, EventsTellOfAnotherProcessWithTheSameId) {
  const TempDir dir;
  const std::string a = dir.build("a.so", "int in_a(void) { return 1; }", "-shared -fPIC");
  const uint64_t in_a = ElfFile::open(a)->find_function("in_a")->file_offset;
  Symbolizer symbols;
  symbols.on_lookup([] {});
  Forked first({{kMadeCode, ""}, {kFirstPlace, a}});
  ASSERT_TRUE(first.is_running());
  const uint32_t pid = first.pid();
  const NamedCode names(pid);
  EXPECT_EQ(name_at(symbols, pid, kMadeCode), "of_the_map");
  EXPECT_EQ(name_at(symbols, pid, kSecondPlace), "of_the_map");
  first.finish();
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch());
  symbols.process_started(pid, kOurPid, static_cast<uint64_t>(now.count()));
  Mapping other = own_mapping(address_of(&espy_symbols_test_function));
  other.end += kSecondPlace - other.start;
  other.start = kSecondPlace;
  symbols.process_mapped(pid, other);
  symbols.process_ended(pid);
  EXPECT_EQ(name_at(symbols, pid, kMadeCode), "");
  EXPECT_EQ(name_at(symbols, pid, kFirstPlace + in_a), "in_a");
  EXPECT_EQ(symbols.user_module(pid, kSecondPlace)->path, other.path);
}

TEST(User, OtherMountAndPidNamespace) {
  if (!has_tool("unshare") || !run("unshare -m -p -f true")) GTEST_SKIP() << "needs unshare and root";
  const TempDir dir;
  const std::string path = dir.build("waiting", kWaiting, "-O1");
  std::filesystem::create_directory(dir.path("inside"));
  // Only within the namespace there is something at inside/.
  const std::string mounted = dir.path("inside/program");
  const std::string script =
      "mount -t tmpfs tmpfs " + dir.path("inside") + " && cp " + path + " " + mounted + " && exec " + mounted;
  Child child({"unshare", "-m", "-p", "-f", "sh", "-c", script});
  const uint64_t visible = child.read_address();
  ASSERT_NE(visible, 0u);
  const std::string children = testing::output_of("pgrep -P " + std::to_string(child.pid()));
  const auto inner = static_cast<uint32_t>(std::strtoul(children.c_str(), nullptr, 10));
  ASSERT_NE(inner, 0u);
  Symbolizer symbols;
  symbols.remember(inner);
  EXPECT_THAT(resolve_library("program", inner).value_or(""), StartsWith("/proc/" + std::to_string(inner) + "/root/"));
  EXPECT_THAT(resolve_library(mounted, inner).value_or(""), StartsWith("/proc/" + std::to_string(inner) + "/root/"));
  child.finish();
  EXPECT_FALSE(std::filesystem::exists(mounted));
  const auto found = symbols.user(inner, visible + 3);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "visible");
  EXPECT_EQ(found->module, mounted);
}

TEST(ElfCache, APathStandsForOneFileInARun) {
  const TempDir dir;
  const std::string path = dir.build("library.so", "int before(void) { return 1; }", "-shared -fPIC");
  Symbolizer symbols;
  const auto first = symbols.elf_file(path);
  ASSERT_TRUE(first);
  EXPECT_EQ((*first)->file_state(), state_of(path));
  std::filesystem::remove(path);
  dir.build("library.so", "int after(void) { return 1; }", "-shared -fPIC");
  EXPECT_EQ(*symbols.elf_file(path), *first);
  EXPECT_NE((*first)->file_state(), state_of(path));
  EXPECT_FALSE(symbols.elf_file(dir.path("missing")));
  Symbolizer of_next_run;
  const auto second = of_next_run.elf_file(path);
  ASSERT_TRUE(second);
  EXPECT_TRUE((*second)->find_function("after"));
}

TEST(ElfCache, AFileThatWasDroppedIsNotReadAgainIfReplaced) {
  const TempDir dir;
  const std::string path = dir.build("library.so", "int before(void) { return 1; }", "-shared -fPIC");
  const std::string other = dir.build("other.so", "int other(void) { return 1; }", "-shared -fPIC");
  Symbolizer symbols({.max_files = 1});
  ASSERT_TRUE(symbols.elf_file(path));
  ASSERT_TRUE(symbols.elf_file(other));  // the first one is dropped
  EXPECT_TRUE(symbols.elf_file(path));
  ASSERT_TRUE(symbols.elf_file(other));
  std::filesystem::remove(path);
  dir.build("library.so", "int after(void) { return 1; }", "-shared -fPIC");
  const auto again = symbols.elf_file(path);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ESTALE);
}

}  // namespace
}  // namespace espy::symbols

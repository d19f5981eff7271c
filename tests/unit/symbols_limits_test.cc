// What processes map of files without end, and what is kept of it.
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "symbols/perf_map.h"
#include "symbols/symbols.h"
#include "symbols/traced_process.h"
#include "symbols_support.h"

namespace espy::symbols {
namespace {

using testing::Child;
using ::testing::Contains;
using testing::has_tool;
using ::testing::HasSubstr;
using testing::run;
using testing::TempDir;

const auto kOurPid = static_cast<uint32_t>(::getpid());

// Constant with a sanitizer.
size_t used_bytes() { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; }

size_t count_descriptors() {
  return static_cast<size_t>(std::ranges::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                                   std::filesystem::directory_iterator()));
}

bool may_open_map_files() {
  const auto mappings = *read_mappings(kOurPid);
  return ::access(map_files_path(kOurPid, mappings.front().start, mappings.front().end).c_str(), R_OK) == 0;
}

constexpr uint64_t kFunction = 0x100, kFunctionBytes = 0x100, kCodeBytes = 0x1000;

// An ELF file with a function of that name, and a .symtab of that size, which takes no room on the disk.
void write_library(const std::string& path, const std::string& name, uint64_t symtab_bytes) {
  const std::string strings = std::string(1, '\0') + name + '\0';
  constexpr uint64_t kSymbols = 0x2000;
  const uint64_t names = kSymbols + symtab_bytes, sections = names + 0x1000;
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof(header);
  header.e_shoff = sections;
  header.e_ehsize = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  const Elf64_Phdr segment = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = kCodeBytes, .p_memsz = kCodeBytes};
  Elf64_Sym symbol = {.st_name = 1, .st_shndx = 1, .st_value = kFunction, .st_size = kFunctionBytes};
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  Elf64_Shdr table[3] = {};
  table[1] = {.sh_type = SHT_SYMTAB,
              .sh_offset = kSymbols,
              .sh_size = symtab_bytes,
              .sh_link = 2,
              .sh_entsize = sizeof(Elf64_Sym)};
  table[2] = {.sh_type = SHT_STRTAB, .sh_offset = names, .sh_size = strings.size()};
  std::ofstream file(path);
  const auto put = [&](uint64_t at, const void* bytes, size_t size) {
    file.seekp(static_cast<std::streamoff>(at))
        .write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  };
  put(0, &header, sizeof(header));
  put(header.e_phoff, &segment, sizeof(segment));
  put(kSymbols, &symbol, sizeof(symbol));
  put(names, strings.data(), strings.size());
  put(sections, table, sizeof(table));
}

// Files that are mapped as code into this process, and deleted; nothing runs in them.
class DeletedLibraries {
 public:
  DeletedLibraries(int count, uint64_t symtab_bytes) {
    const TempDir dir;
    for (int i = 0; i < count; ++i) {
      const std::string path = dir.path(std::to_string(i));
      write_library(path, name(i), symtab_bytes);
      const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      starts_.push_back(::mmap(nullptr, kCodeBytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0));
      ::close(fd);
    }
  }
  ~DeletedLibraries() {
    for (void* start : starts_) ::munmap(start, kCodeBytes);
  }
  static std::string name(int i) { return "function_" + std::to_string(i); }
  std::string found(Symbolizer& symbols, uint32_t pid, int i) const {
    const auto symbol = symbols.user(pid, reinterpret_cast<uint64_t>(starts_[static_cast<size_t>(i)]) + kFunction + 1);
    return symbol ? symbol->name : "";
  }

 private:
  std::vector<void*> starts_;
};

// A forked child with the mappings of this process; the destructor ends it.
class Copy {
 public:
  Copy() : pid_(::fork()) {
    for (; pid_ == 0;) ::pause();
  }
  ~Copy() { end(); }
  uint32_t pid() const { return static_cast<uint32_t>(pid_); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

TEST(Limits, LargeFilesAreReadOnceTheyAreUsed) {
  if (!may_open_map_files()) GTEST_SKIP() << "only root may open /proc/PID/map_files/*";
  const DeletedLibraries libraries(8, 24 << 20);
  Symbolizer symbols;
  Copy copy;
  const uint32_t pid = copy.pid();
  const size_t before = used_bytes();
  symbols.remember(pid);
  copy.end();
  EXPECT_LT(used_bytes() - before, 1U << 20);
  EXPECT_EQ(libraries.found(symbols, pid, 3), "function_3");
  EXPECT_LT(used_bytes() - before, 160U << 20);
}

// Large files that find no room next to each other are read again, and cost the small ones nothing; not without end.
TEST(Limits, LargeFilesGiveWay) {
  if (!may_open_map_files()) GTEST_SKIP() << "only root may open /proc/PID/map_files/*";
  constexpr int kLarge = 4, kMostReads = 4;
  const DeletedLibraries large(kLarge, 3 << 20), small(1, 240);
  Symbolizer symbols({.max_memory_bytes = 8 << 20});
  Copy other, one;
  const uint32_t other_pid = other.pid(), pid = one.pid();
  for (const uint32_t each : {other_pid, pid}) symbols.remember(each);
  other.end();
  one.end();
  const size_t before = used_bytes();
  for (int round = 0; round < kMostReads; ++round)
    for (int i = 0; i < kLarge; ++i) EXPECT_EQ(large.found(symbols, pid, i), DeletedLibraries::name(i)) << round;
  EXPECT_LT(used_bytes() - before, 40U << 20);
  EXPECT_EQ(small.found(symbols, other_pid, 0), "function_0");
  EXPECT_EQ(symbols.missed_processes(), 0U);
  EXPECT_TRUE(symbols.skipped_files().reasons.empty());
  for (int i = 0; i < kLarge; ++i) large.found(symbols, pid, i);
  EXPECT_THAT(symbols.skipped_files().reasons, Contains(HasSubstr("take too much memory")));
}

TEST(Limits, DescriptorsOfOneProcess) {
  if (!may_open_map_files()) GTEST_SKIP() << "only root may open /proc/PID/map_files/*";
  constexpr int kCount = 40, kMaxFiles = 16;
  const DeletedLibraries libraries(kCount, 240);
  Symbolizer symbols({.max_files = kMaxFiles});
  Copy copy;
  const uint32_t pid = copy.pid();
  const size_t before = count_descriptors();
  symbols.remember(pid);
  EXPECT_LE(count_descriptors(), before + kMaxFiles / 2);
  EXPECT_TRUE(symbols.skipped_files().reasons.empty());
  copy.end();
  int found = 0;
  for (int i = 0; i < kCount; ++i) found += libraries.found(symbols, pid, i) == DeletedLibraries::name(i) ? 1 : 0;
  EXPECT_EQ(found, kMaxFiles / 2);
  EXPECT_THAT(symbols.skipped_files().reasons, Contains(HasSubstr("maps more than 8 files that are deleted")));
}

TEST(Limits, EqualPathsAreKeptOnce) {
  constexpr uint32_t kPid = 0x400001;  // above all ids
  constexpr uint64_t kCount = 4000, kStart = 0x7f0000000000, kBytes = 0x1000;
  const std::string path = "/" + std::string(4000, 'd');
  Symbolizer symbols;
  symbols.on_lookup([] {});
  const size_t before = used_bytes();
  for (uint64_t i = 0; i < kCount; ++i)
    symbols.process_mapped(kPid, {.start = kStart + i * kBytes,
                                  .end = kStart + (i + 1) * kBytes,
                                  .file_offset = 2 * i * kBytes,
                                  .path = path,
                                  .device = 1,
                                  .inode = 1,
                                  .executable = true});
  EXPECT_LT(used_bytes() - before, kCount * 500);
  EXPECT_EQ(symbols.user_module(kPid, kStart + 17)->path, path);
}

TEST(PerfMapFile, LinesAcrossParts) {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 40'000; ++i) text += fmt::format("{:x} 10 function number {}\n", 0x10000 + 16 * i, i);
  const auto map = PerfMap::read(*open_untrusted(dir.write("map", text), UINT64_MAX));
  ASSERT_TRUE(map);
  for (int i = 0; i < 40'000; ++i)
    ASSERT_EQ(map->at(static_cast<uint64_t>(0x10000 + 16 * i + 5))->name, fmt::format("function number {}", i));
}

TEST(PerfMapFile, IsNotReadWhereItIsNoMap) {
  const TempDir dir;
  const std::string path = dir.write("map", "1000 10 first\n");
  std::filesystem::resize_file(path, 100 << 20);
  std::ofstream(path, std::ios::app) << "\n2000 10 last\n";
  const size_t before = used_bytes();
  const auto map = PerfMap::read(*open_untrusted(path, UINT64_MAX));
  ASSERT_TRUE(map);
  EXPECT_LT(used_bytes() - before, 1U << 20);
  EXPECT_EQ(map->at(0x1000)->name, "first");
  EXPECT_FALSE(map->at(0x2000));
}

// The map of a process in another mount namespace, which has ended.
TEST(PerfMapFile, IsKeptWithItsProcess) {
  if (!has_tool("unshare") || !run("unshare -m true")) GTEST_SKIP() << "needs unshare and root";
  const TempDir dir;
  std::string large;
  for (int i = 0; i < 100'000; ++i) large += fmt::format("{:x} 10 large {}\n", 0x10000 + 16 * i, i);
  dir.write("large", large);
  dir.write("small", "10000 10 small\n");
  for (const auto& [file, name] : {std::pair{"large", "large 0"}, std::pair{"small", "small"}}) {
    const std::string copy = "cp " + dir.path(file) + " /mnt/perf-$$.map";
    Child child({"unshare", "-m", "sh", "-c",
                 "mount -t tmpfs none /mnt && " + copy + " && mount --move /mnt /tmp && echo 1 && read line"});
    ASSERT_EQ(child.read_address(), 1U);
    Symbolizer symbols;
    const size_t before = used_bytes();
    symbols.remember(child.pid());
    EXPECT_LT(used_bytes() - before, 1U << 20);
    const uint32_t pid = child.pid();
    child.finish();
    const auto found = symbols.user(pid, 0x10003);
    ASSERT_TRUE(found) << file;
    EXPECT_EQ(found->name, name);
    EXPECT_EQ(found->module, "/tmp/perf-" + std::to_string(pid) + ".map");
  }
}

}  // namespace
}  // namespace espy::symbols

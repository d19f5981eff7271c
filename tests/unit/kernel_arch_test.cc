// What is asked of a CPU: of x86-64, and of one that does not exist.
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <csignal>

#include "../support/fake_arch.h"
#include "kernel/abi_constants.h"
#include "kernel/kernel.h"
#include "symbols_support.h"

namespace espy::kernel {
namespace {

using espy::testing::kFakeArch;

TEST(Arch, IsFoundByNameAndByMachine) {
  const Arch* x86_64 = find_arch("x86_64");
  ASSERT_NE(x86_64, nullptr);
  EXPECT_EQ(find_arch(uint16_t{EM_X86_64}), x86_64);
  EXPECT_EQ(find_arch("pdp11"), nullptr);
  EXPECT_EQ(find_arch(uint16_t{EM_NONE}), nullptr);
}

TEST(Arch, NamesItsRegisters) {
  EXPECT_EQ(register_name(kFakeArch, kFakeArch.link_register_offset), "link");
  EXPECT_EQ(register_name(kFakeArch, 1), "r@1");
  EXPECT_FALSE(find_register(kFakeArch, "rax"));
  EXPECT_EQ(register_name(*find_arch("x86_64"), find_arch("x86_64")->frame_pointer_offset), "bp");
}

TEST(Arch, HasItsOwnSystemCalls) {
  EXPECT_EQ(find_syscall_number(kFakeArch, "look"), 3u);
  EXPECT_EQ(find_syscall_number(kFakeArch, "newlook"), 3u);
  EXPECT_EQ(find_syscall_name(kFakeArch, 3), "newlook");
  EXPECT_EQ(find_syscall_number(kFakeArch, "openat"), std::nullopt);
  EXPECT_EQ(find_syscall_number(*find_arch("x86_64"), "write"), 1u);
}

TEST(Arch, ConstantsAreItsOwnOrThoseOfAllCpus) {
  EXPECT_EQ(abi_constant(kFakeArch, "O_DIRECT"), 5);
  EXPECT_EQ(abi_constant(kFakeArch, "EPERM"), 77);
  EXPECT_EQ(abi_constant(kFakeArch, "ENOENT"), 78);
  EXPECT_EQ(abi_constant(kFakeArch, "EBELL"), 0x50);
  EXPECT_EQ(abi_constant(kFakeArch, "O_"), std::nullopt);
  EXPECT_EQ(abi_constant(kFakeArch, ""), std::nullopt);
  EXPECT_EQ(abi_constant(kFakeArch, "AF_INET"), AF_INET);
  EXPECT_EQ(abi_constant(kFakeArch, "NONSENSE"), std::nullopt);
}

TEST(Arch, ConstantsOfThisMachineAreThoseOfItsHeaders) {
  const auto here = [](std::string_view name) { return abi_constant(host_arch(), name); };
  EXPECT_EQ(here("O_DIRECT"), O_DIRECT);
  EXPECT_EQ(here("O_DIRECTORY"), O_DIRECTORY);
  EXPECT_EQ(here("O_NOFOLLOW"), O_NOFOLLOW);
  EXPECT_EQ(here("O_TMPFILE"), O_TMPFILE);
  EXPECT_EQ(here("O_CREAT"), O_CREAT);
  EXPECT_EQ(here("O_CLOEXEC"), O_CLOEXEC);
  EXPECT_EQ(here("O_NONBLOCK"), O_NONBLOCK);
  EXPECT_EQ(here("AT_FDCWD"), AT_FDCWD);
  EXPECT_EQ(here("MAP_NORESERVE"), MAP_NORESERVE);
  EXPECT_EQ(here("MAP_STACK"), MAP_STACK);
  EXPECT_EQ(here("SIGSTKFLT"), SIGSTKFLT);
  EXPECT_EQ(here("SIGSYS"), SIGSYS);
  EXPECT_EQ(here("SOCK_NONBLOCK"), SOCK_NONBLOCK);
  EXPECT_EQ(here("EDEADLK"), EDEADLK);
  EXPECT_EQ(here("EOPNOTSUPP"), EOPNOTSUPP);
}

TEST(Arch, ThreadLocalVariablesAreBelowOrAboveTheThreadPointer) {
  EXPECT_EQ(find_arch("x86_64")->thread_local_start(20, 16), -32);
  EXPECT_EQ(kFakeArch.thread_local_start(20, 32), 32);
}

// A recording of a kernel for `arch`; a page size of "" is left out.
Result<std::unique_ptr<Kernel>> open_recording(const std::string& arch, const std::string& page_size) {
  const symbols::testing::TempDir directory;
  directory.write("arch", arch + "\n");
  directory.write("cpus", "2\n");
  directory.write("features", "");
  if (!page_size.empty()) directory.write("page_size", page_size + "\n");
  return open_recorded_kernel(directory.path(""));
}

TEST(Arch, PagesAreTheKernels) {
  EXPECT_EQ((*open_recording("x86_64", ""))->page_size_bytes(), 4096u);
  EXPECT_EQ((*open_recording("x86_64", "65536"))->page_size_bytes(), 65536u);
  EXPECT_FALSE(open_recording("x86_64", "5000"));
  EXPECT_FALSE(open_recording("pdp11", ""));
  EXPECT_EQ((*open_kernel("/", {[](Feature) { return false; }}))->page_size_bytes(), ::sysconf(_SC_PAGESIZE));
}

}  // namespace
}  // namespace espy::kernel

// System calls as text, without a kernel: the arguments of a call, what is not there, errors, and the choice of -e.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/abi_constants.h"
#include "strace/call_decoder.h"
#include "strace/call_filter.h"
#include "strace/capture_script.h"

namespace espy::strace {
namespace {

using testing::HasSubstr;

const CallTable& table() {
  static const CallTable kTable(kernel::host_arch());
  return kTable;
}

CallState call_of(std::string_view name, const std::vector<uint64_t>& arguments) {
  CallState out;
  out.number = kernel::find_syscall_number(kernel::host_arch(), name).value();
  out.call = table().find(out.number);
  for (size_t i = 0; i < arguments.size(); ++i) out.arguments[i] = arguments[i];
  return out;
}

void finish(CallState& call, int64_t result) {
  call.has_returned = true;
  call.result = result;
}

std::string shown(CallState& call, const Style& style = {}) {
  Decoder decoder(table(), style);
  std::string out;
  decoder.show_name(call, out);
  decoder.show_arguments(call, out);
  if (!call.has_returned) return out;
  out += ") = ";
  decoder.show_result(call, out);
  return out;
}

TEST(Decoder, EachCallOfTheCpuHasARow) {
  // Calls that kernels no longer have, or that only the kernel makes.
  const std::set<std::string_view> none = {"_sysctl",        "afs_syscall",     "create_module",   "epoll_ctl_old",
                                           "epoll_wait_old", "get_kernel_syms", "get_thread_area", "getpmsg",
                                           "lookup_dcookie", "nfsservctl",      "putpmsg",         "query_module",
                                           "security",       "set_thread_area", "tuxcall",         "uprobe",
                                           "uretprobe",      "uselib",          "vserver"};
  for (const kernel::Syscall& each : kernel::host_arch().syscalls)
    EXPECT_TRUE(none.contains(each.name) || table().find(each.number)) << each.name;
}

TEST(Decoder, ShowsPathsFlagsAndErrors) {
  CallState call = call_of("openat", {static_cast<uint64_t>(-100), 0x1000, 0x80000, 0});
  call.memory.add_text(0x1000, "/etc/\"x\"\n\1");
  finish(call, -2);
  EXPECT_EQ(shown(call),
            R"(openat(AT_FDCWD, "/etc/\"x\"\n\1", O_RDONLY|O_CLOEXEC) = -1 ENOENT (No such file or directory))");
}

TEST(Decoder, StopsBeforeWhatTheCallFills) {
  CallState call = call_of("read", {3, 0x1000, 10});
  EXPECT_EQ(shown(call), "read(3, ");
  CallMemory later;
  later.add_bytes(0x1000, std::string({'a', 'b', 0, '1'}));
  call.memory.add_at_return(std::move(later));
  finish(call, 3);
  Decoder decoder(table(), {});
  std::string rest;
  decoder.show_arguments(call, rest);
  EXPECT_EQ(rest, R"("ab\0", 10)");
}

TEST(Decoder, CutsTextsAndMarksThoseThatAreNotThere) {
  CallState call = call_of("write", {1, 0x1000, 100});
  call.memory.add_bytes(0x1000, std::string(32, 'x'));
  finish(call, 100);
  EXPECT_EQ(shown(call), "write(1, \"" + std::string(32, 'x') + "\"..., 100) = 100");
  CallState other = call_of("write", {1, 0x2000, 5});
  finish(other, 5);
  EXPECT_EQ(shown(other), "write(1, 0x2000 /* not read */, 5) = 5");
  CallState bad = call_of("write", {1, 0x2000, 5});
  finish(bad, -14);
  EXPECT_EQ(shown(bad), "write(1, 0x2000, 5) = -1 EFAULT (Bad address)");
}

TEST(Decoder, ShowsAddressesOfSockets) {
  CallState call = call_of("connect", {4, 0x1000, 16});
  call.memory.add_bytes(0x1000, std::string("\2\0\0\x50\x7f\0\0\1\0\0\0\0\0\0\0\0", 16));
  finish(call, 0);
  EXPECT_EQ(shown(call),
            "connect(4, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"127.0.0.1\")}, 16) = 0");
}

TEST(CallFilter, TakesNamesClassesAndNegation) {
  const auto number = [](std::string_view name) {
    return kernel::find_syscall_number(kernel::host_arch(), name).value();
  };
  CallFilter filter;
  ASSERT_TRUE(apply_expression(table(), "trace=%network,/^read", filter));
  EXPECT_TRUE(filter.calls[number("connect")] && filter.calls[number("readv")]);
  EXPECT_FALSE(filter.calls[number("openat")] || filter.is_all);
  ASSERT_TRUE(apply_expression(table(), "!openat,%memory", filter));
  EXPECT_FALSE(filter.calls[number("openat")] || filter.calls[number("mmap")]);
  EXPECT_TRUE(filter.calls[number("connect")]);
  ASSERT_TRUE(apply_expression(table(), "%file", filter));
  EXPECT_TRUE(filter.calls[number("openat")] && filter.calls[number("execve")]);
  ASSERT_TRUE(apply_expression(table(), "status=failed", filter));
  EXPECT_TRUE(filter.shows_failed && !filter.shows_successful);
}

TEST(CallFilter, NamesTheNearest) {
  CallFilter filter;
  const Status wrong = apply_expression(table(), "opennat", filter);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().hint, HasSubstr("openat"));
  EXPECT_FALSE(apply_expression(table(), "%files", filter));
  EXPECT_FALSE(apply_expression(table(), "status=good", filter));
  EXPECT_FALSE(apply_expression(table(), "abbrev=none", filter));
}

TEST(CaptureScript, ReadsOnlyWhatTheCallsNeed) {
  CaptureWishes wishes{.is_all = false};
  wishes.calls.set(kernel::find_syscall_number(kernel::host_arch(), "openat").value());
  const std::string few = write_capture_script(table(), wishes);
  wishes.is_all = true;
  EXPECT_LT(few.size(), write_capture_script(table(), wishes).size());
  EXPECT_THAT(few, HasSubstr("rawtracepoint:sys_enter"));
}

}  // namespace
}  // namespace espy::strace

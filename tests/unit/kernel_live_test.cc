// Against the kernel this runs on: what must hold on any.
#include <asm/ptrace.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>

#include "kernel/abi_constants.h"
#include "kernel/kernel.h"

namespace espy::kernel {
namespace {

using types::Types;

class LiveKernel : public testing::Test {
 protected:
  std::unique_ptr<Kernel> kernel_ = *open_kernel("/", {[](Feature) { return false; }});
  Types types_;
};

class LiveBtf : public LiveKernel {
 protected:
  void SetUp() override {
    if (!kernel_->has_btf()) GTEST_SKIP() << "this kernel has no BTF";
  }
  types::TypeId whole(std::string_view tag) {
    const auto id = kernel_->find_struct(types_, tag);
    CHECK(id.valid());
    kernel_->complete(types_, id);
    return id;
  }
};

TEST_F(LiveBtf, StructsOfTheAbiAreAsTheCompilerHasThem) {
  const auto regs = whole("pt_regs");
  EXPECT_EQ(types_[regs].size_bytes, sizeof(pt_regs));
  // Members of the kernel's own pt_regs are named without the `r`.
  EXPECT_EQ(find_member(types_, regs, "di")->offset_bits, 8 * offsetof(pt_regs, rdi));
  EXPECT_EQ(find_member(types_, regs, "sp")->offset_bits, 8 * offsetof(pt_regs, rsp));
  EXPECT_EQ(find_register(kernel_->arch(), "di")->offset_bytes, offsetof(pt_regs, rdi));
  EXPECT_EQ(find_register(kernel_->arch(), "orig_rax")->offset_bytes, offsetof(pt_regs, orig_rax));
  EXPECT_EQ(kernel_->arch().pt_regs_size_bytes, sizeof(pt_regs));
}

TEST_F(LiveBtf, TaskStructHasWhatEveryKernelHas) {
  const auto task = whole("task_struct");
  EXPECT_EQ(types_[find_member(types_, task, "pid")->type].size_bytes, 4u);
  EXPECT_EQ(to_string(types_, find_member(types_, task, "comm")->type), "string[16]");
  EXPECT_EQ(to_string(types_, find_member(types_, task, "real_parent")->type), "struct task_struct *");
  EXPECT_EQ(find_member(types_, task, "tgid")->offset_bits, find_member(types_, task, "pid")->offset_bits + 32);
}

TEST_F(LiveBtf, EveryStructCanBeRead) {
  size_t read = 0;
  for (const std::string& name : kernel_->struct_names("struct *")) {
    const auto id = kernel_->find_struct(types_, name.substr(7));
    ASSERT_TRUE(id.valid()) << name;
    kernel_->complete(types_, id);
    ASSERT_TRUE(types_[id].complete) << name;
    for (const auto& member : types_[id].members) {
      ASSERT_LE(member.offset_bytes() + (member.bit_size ? 0 : types_[member.type].size_bytes), types_[id].size_bytes)
          << name << '.' << member.name << ' ' << to_string(types_, member.type);
    }
    if (++read == 500) break;
  }
  EXPECT_GT(read, 100u);
}

TEST_F(LiveBtf, RawTracepointsHaveNamedArguments) {
  const auto sched = kernel_->find_raw_tracepoint(types_, "sched_switch");
  ASSERT_TRUE(sched.has_value());
  std::vector<std::string> names;
  for (const auto& parameter : sched->parameters) names.push_back(parameter.name);
  EXPECT_THAT(names, testing::IsSupersetOf({"preempt", "prev", "next"}));
  EXPECT_EQ(sched->parameters[1].offset_bits, 64u);
  EXPECT_FALSE(kernel_->find_raw_tracepoint(types_, "no_such_event").has_value());
  EXPECT_THAT(kernel_->raw_tracepoints("sched_sw*"), testing::Contains("sched_switch"));
}

TEST_F(LiveBtf, FunctionsHaveParameters) {
  const auto read = kernel_->find_function(types_, "vfs_read");
  ASSERT_TRUE(read.has_value());
  ASSERT_EQ(read->parameters.size(), 4u);
  EXPECT_EQ(to_string(types_, read->parameters[0].type), "struct file *");
  EXPECT_EQ(to_string(types_, read->result), "int64");
}

TEST_F(LiveKernel, CountsCpus) {
  EXPECT_GE(kernel_->cpu_count(), static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_CONF)));
}

TEST_F(LiveKernel, KnowsEverySyscallThatTracefsLists) {
  const auto events = kernel_->tracepoints("syscalls", "sys_enter_*");
  if (events.empty()) GTEST_SKIP() << "tracefs is not mounted or cannot be read";
  for (const std::string& event : events) {
    const std::string name = event.substr(std::string_view("syscalls:sys_enter_").size());
    const auto number = find_syscall_number(*find_arch("x86_64"), name);
    ASSERT_TRUE(number.has_value()) << name;
    EXPECT_EQ(find_syscall_name(*find_arch("x86_64"), *number), name);
  }
}

TEST_F(LiveKernel, UnderstandsEveryTracepoint) {
  const auto events = kernel_->tracepoints("s*", "*");
  if (events.empty()) GTEST_SKIP() << "tracefs is not mounted or cannot be read";
  for (const std::string& event : events) {
    const size_t colon = event.find(':');
    const auto tracepoint = kernel_->tracepoint(types_, event.substr(0, colon), event.substr(colon + 1));
    ASSERT_TRUE(tracepoint.has_value()) << event;
    for (const auto& field : tracepoint->fields) {
      if (field.is_data_loc || field.is_relative_loc) continue;
      EXPECT_LE(types_[field.type].size_bytes, field.size_bytes) << event << ' ' << field.c_type << ' ' << field.name;
    }
  }
}

}  // namespace
}  // namespace espy::kernel

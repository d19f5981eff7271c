#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "kernel/kernel.h"

namespace espy::kernel {
namespace {

using types::Types;

std::unique_ptr<Kernel> open_recording(const std::string& name) {
  const auto directory = std::filesystem::path(ESPY_ROOT "/tests/kernels") / name;
  auto kernel = open_recorded_kernel(directory.string());
  CHECK(kernel.has_value());
  return std::move(*kernel);
}

TEST(RecordedKernel, SaysWhichFeaturesItHas) {
  const auto small = open_recording("6.18-x86_64");
  const auto full = open_recording("6.18-full-x86_64");
  EXPECT_TRUE(small->has(Feature::kUprobeMulti));
  EXPECT_FALSE(small->has(Feature::kKprobe));
  for (const FeatureRow& row : feature_rows()) EXPECT_TRUE(full->has(row.feature)) << row.name;
  EXPECT_EQ(small->cpu_count(), 2u);
  EXPECT_EQ(small->arch().name, "x86_64");
}

TEST(RecordedKernel, HasTheListedStructsAndOnlyNamesTheOthers) {
  const auto kernel = open_recording("6.18-x86_64");
  Types types;
  const auto task = kernel->find_struct(types, "task_struct");
  ASSERT_TRUE(task.valid());
  kernel->complete(types, task);
  EXPECT_EQ(to_string(types, find_member(types, task, "comm")->type), "string[16]");
  EXPECT_EQ(find_member(types, task, "pid")->offset_bits / 8, 1264u);
  EXPECT_EQ(types[task].size_bytes, 3264u);
  EXPECT_FALSE(kernel->find_struct(types, "ext4_inode_info").valid());

  const auto group = find_member(types, task, "io_context");
  ASSERT_TRUE(group.has_value());
  const auto pointee = types[group->type].element;
  kernel->complete(types, pointee);
  EXPECT_FALSE(types[pointee].complete) << "declared without members";
  EXPECT_EQ(to_string(types, group->type), "struct io_context *");
}

TEST(RecordedKernel, FollowsAPathThroughStructs) {
  const auto kernel = open_recording("6.18-x86_64");
  Types types;
  auto type = kernel->find_struct(types, "file");
  for (const char* name : {"f_path", "dentry", "d_name", "name"}) {
    if (types[type].kind == types::Kind::kPointer) type = types[type].element;
    kernel->complete(types, type);
    const auto member = find_member(types, type, name);
    ASSERT_TRUE(member.has_value()) << name;
    type = member->type;
  }
  EXPECT_EQ(to_string(types, type), "uint8 *");
}

TEST(RecordedKernel, HasTracepointsAndFunctions) {
  const auto kernel = open_recording("6.18-x86_64");
  Types types;
  const auto openat = kernel->tracepoint(types, "syscalls", "sys_enter_openat");
  ASSERT_TRUE(openat.has_value());
  EXPECT_EQ(openat->fields[2].name, "filename");
  EXPECT_THAT(kernel->tracepoints("sched", "sched_sw*"), testing::Contains("sched:sched_switch"));
  EXPECT_THAT(kernel->functions("vfs_re*"), testing::Contains("vfs_read"));
  EXPECT_EQ(kernel->find_function(types, "vfs_read")->parameters.size(), 4u);
  EXPECT_EQ(kernel->find_raw_tracepoint(types, "sched_process_exit")->parameters[0].name, "p");
  EXPECT_TRUE(kernel->kfunc_id("bpf_rdonly_cast").has_value());
  EXPECT_EQ(to_string(types, kernel->find_typedef(types, "uint64_t")), "uint64");
  EXPECT_TRUE(kernel->symbol_address("vfs_read").has_value());
}

TEST(RecordedKernel, ThatIsIncompleteIsAnError) {
  EXPECT_FALSE(open_recorded_kernel("/nonexistent").has_value());
  EXPECT_FALSE(open_recorded_kernel(testing::TempDir()).has_value());
}

TEST(Features, HaveNames) {
  EXPECT_EQ(find_feature("uprobe_multi"), Feature::kUprobeMulti);
  EXPECT_EQ(find_feature("nonsense"), std::nullopt);
}

}  // namespace
}  // namespace espy::kernel

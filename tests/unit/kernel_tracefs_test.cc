#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/strings.h"
#include "kernel/abi_constants.h"
#include "kernel/functions.h"
#include "kernel/tracefs.h"

namespace espy::kernel {
namespace {

using types::AddressSpace;
using types::Types;

constexpr std::string_view kFormat = R"(name: sample
ID: 372
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;

	field:char prev_comm[16];	offset:8;	size:16;	signed:0;
	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;
	field:mystery_t odd;	offset:28;	size:4;	signed:1;
	field:const char * filename;	offset:32;	size:8;	signed:0;
	field:__data_loc char[] path;	offset:40;	size:4;	signed:0;
	field:__rel_loc u8[] bytes;	offset:44;	size:4;	signed:0;
	field:unsigned long args[6];	offset:48;	size:48;	signed:0;
	field:char name[IFNAMSIZ];	offset:96;	size:16;	signed:0;
	field:const struct nowhere *where;	offset:112;	size:8;	signed:0;
	field:int dfd;	offset:120;	size:8;	signed:0;
	field:bool on;	offset:128;	size:1;	signed:0;
	field:char plain;	offset:129;	size:1;	signed:0;
	field:char minus;	offset:130;	size:1;	signed:1;
	field:known_t ringid;	offset:136;	size:8;	signed:0;

print fmt: "field:%d", REC->odd
)";

class TracepointTest : public testing::Test {
 protected:
  const TracepointField& field(std::string_view name) {
    for (const auto& field : tracepoint_.fields) {
      if (field.name == name) return field;
    }
    ADD_FAILURE() << name;
    return tracepoint_.fields.front();
  }
  std::string type(std::string_view name) { return to_string(types_, field(name).type); }
  void parse(std::string_view category) {
    auto parsed = parse_tracepoint(*kernel_, types_, category, "sample", kFormat);
    ASSERT_TRUE(parsed.has_value());
    tracepoint_ = std::move(*parsed);
  }

  Types types_;
  std::unique_ptr<Kernel> kernel_ = *open_kernel(testing::TempDir(), {[](Feature) { return false; }});
  Tracepoint tracepoint_;
};

TEST_F(TracepointTest, HasTypedFields) {
  parse("sched");
  EXPECT_EQ(tracepoint_.id, 372u);
  EXPECT_EQ(tracepoint_.fields.size(), 14u) << "without the common ones";
  EXPECT_EQ(type("prev_comm"), "string[16]");
  EXPECT_EQ(field("plain").type, types_.char_type(false));
  EXPECT_EQ(field("minus").type, types_.char_type(true));
  EXPECT_EQ(field("prev_comm").c_type, "char[16]");
  EXPECT_EQ(type("prev_pid"), "int32");
  EXPECT_EQ(type("odd"), "int32") << "an unknown typedef has its size and sign";
  EXPECT_EQ(type("path"), "string[256]");
  EXPECT_TRUE(types_[field("path").type].may_be_cut);
  EXPECT_TRUE(field("path").is_data_loc);
  EXPECT_EQ(field("path").c_type, "__data_loc char[]");
  EXPECT_TRUE(field("bytes").is_relative_loc);
  EXPECT_EQ(type("args"), "uint64[6]");
  EXPECT_EQ(type("name"), "string[16]") << "a length that is a macro is in the size";
  EXPECT_EQ(type("where"), "void *");
  EXPECT_EQ(type("on"), "bool");
  EXPECT_EQ(types_[field("filename").type].space, AddressSpace::kKernel);
}

TEST_F(TracepointTest, OfASyscallHasUserPointersAndCTypes) {
  parse("syscalls");
  EXPECT_EQ(field("filename").type, types_.pointer(types_.char_type(), AddressSpace::kUser));
  EXPECT_EQ(field("filename").c_type, "const char *");
  EXPECT_EQ(type("dfd"), "int32") << "though it takes a word of the record";
  EXPECT_EQ(type("ringid"), "uint64") << "an unknown typedef";
  types_.define_alias("known_t", types_.int_type(4, true));
  parse("syscalls");
  EXPECT_EQ(type("ringid"), "int32");
}

TEST_F(TracepointTest, WithThousandsOfStarsHasFewerPointers) {
  const std::string format =
      "ID: 1\nformat:\n\tfield:int " + std::string(100'000, '*') + "deep;\toffset:8;\tsize:8;\tsigned:0;\n";
  const auto parsed = parse_tracepoint(*kernel_, types_, "a", "b", format);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(to_string(types_, parsed->fields.at(0).type), "int32 ****************");
}

TEST_F(TracepointTest, ThatMakesNoSenseIsAnError) {
  EXPECT_FALSE(parse_tracepoint(*kernel_, types_, "a", "b", "").has_value());
  EXPECT_FALSE(parse_tracepoint(*kernel_, types_, "a", "b", "ID: x\nfield:;\nfield:\n").has_value());
  EXPECT_EQ(kernel_->tracepoint(types_, "a", "b").error().code, ENOENT);
}

TEST(Syscalls, HaveTwoSpellings) {
  EXPECT_EQ(find_syscall_number(*find_arch("x86_64"), "openat"), 257u);
  EXPECT_EQ(find_syscall_number(*find_arch("x86_64"), "newfstat"), find_syscall_number(*find_arch("x86_64"), "fstat"));
  EXPECT_EQ(find_syscall_name(*find_arch("x86_64"), 5), "newfstat");
  EXPECT_EQ(find_syscall_number(*find_arch("x86_64"), "file_setattr"), 469u);
  EXPECT_EQ(find_syscall_number(*find_arch("x86_64"), "nonsense"), std::nullopt);
  EXPECT_EQ(find_syscall_name(*find_arch("x86_64"), 400), std::nullopt);
}

TEST(Functions, AreListedOnceWithTheirModule) {
  const std::string path = testing::TempDir() + "espy-kallsyms-" + std::to_string(getpid());
  std::ofstream(path)
      << "ffffffff81000010 T vfs_read\nffffffff81000020 t vfs_write\nffffffff81000030 t vfs_write\n"
         "ffffffff81000040 D vfs_data\nffffffffc0000000 t vfs_mod\t[ext4]\nffffffffc1000000 t vfs_prog\t[bpf]";
  EXPECT_THAT(list_functions("", path, "vfs_*"),
              testing::ElementsAre("vfs_read", "vfs_write", "vfs_write", "vfs_mod [ext4]"));
  using Addresses = std::vector<uint64_t>;
  EXPECT_THAT(find_addresses(path, {"vfs_write", "vfs_mod [ext4]", "vfs_mod", "vfs_data"}),
              testing::ElementsAre(Addresses{0xffffffff81000020u, 0xffffffff81000030u}, Addresses{0xffffffffc0000000u},
                                   Addresses{}, Addresses{}));
  EXPECT_EQ(find_symbol(path, "vfs_data"), 0xffffffff81000040u);
  EXPECT_EQ(find_symbol(path, "vfs_dat"), std::nullopt);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace espy::kernel

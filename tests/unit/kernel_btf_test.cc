#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "kernel/btf.h"
#include "kernel/kernel.h"
#include "kernel_support.h"

namespace espy::kernel {
namespace {

using types::AddressSpace;
using types::Kind;
using types::Types;

constexpr uint32_t kSigned = 1;
constexpr uint32_t kBool = 4;

// struct thing { int count; char name[16]; unsigned flag : 3; struct thing *next; struct { bool on; }; };
struct Sample {
  BtfWriter writer;
  uint32_t thing = 0;

  Sample() {
    const uint32_t integer = writer.integer("int", 4, kSigned);
    const uint32_t letter = writer.integer("char", 1, kSigned);
    const uint32_t word = writer.integer("unsigned int", 4);
    const uint32_t boolean = writer.integer("_Bool", 1, kBool);
    const uint32_t name = writer.array(letter, 16);
    const uint32_t inner = writer.structure("", 1, {{"on", boolean, 0}});
    const uint32_t next = writer.pointer(writer.next_id() + 1);
    thing = writer.structure(
        "thing", 40,
        {{"count", integer, 0}, {"name", name, 32}, {"flag", word, 160, 3}, {"next", next, 192}, {"", inner, 256}});
    const uint32_t tag = writer.add(BtfKind::kTypeTag, "user", writer.add(BtfKind::kConst, "", letter));
    const uint32_t text = writer.pointer(tag);
    const uint32_t proto = writer.prototype(integer, {{"thing", next}, {"text", text}});
    writer.add(BtfKind::kFunc, "do_thing", proto);
    writer.add(BtfKind::kTypedef, "thing_t", thing);
    writer.add(BtfKind::kEnum, "color", 4, {writer.string("RED"), 0, writer.string("NONE"), 0xffff'ffff}, 2, true);
    writer.add(BtfKind::kEnum64, "big", 8, {writer.string("HUGE"), 1, 2}, 1);
    writer.add(BtfKind::kDatasec, ".data", 0, {1, 2, 3}, 1);
    writer.add(BtfKind::kFloat, "double", 8);
    writer.add(BtfKind::kDeclTag, "tag", thing, {0});
    writer.add(BtfKind::kFwd, "elsewhere", 0);
  }
};

// A directory of facts that goes with its owner.
class TemporaryKernel {
 public:
  explicit TemporaryKernel(const std::string& vmlinux) {
    std::string pattern = testing::TempDir() + "espy-kernel-XXXXXX";
    CHECK(mkdtemp(pattern.data()));
    root_ = pattern;
    add("sys/kernel/btf/vmlinux", vmlinux);
  }
  ~TemporaryKernel() { std::filesystem::remove_all(root_); }

  void add(const std::string& path, const std::string& bytes) {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + path).parent_path());
    std::ofstream(root_ + "/" + path, std::ios::binary) << bytes;
  }
  std::unique_ptr<Kernel> open() {
    auto kernel = open_kernel(root_, {[](Feature feature) { return feature == Feature::kRingbuf; }});
    CHECK(kernel.has_value());
    return std::move(*kernel);
  }

 private:
  std::string root_;
};

TEST(Btf, FindsByNameAndById) {
  const Sample sample;
  const auto btf = *Btf::parse(sample.writer.bytes());
  EXPECT_EQ(btf->end_id(), sample.writer.next_id());
  const auto thing = btf->find("thing", kinds(BtfKind::kStruct));
  ASSERT_TRUE(thing.has_value());
  EXPECT_EQ(thing->id, sample.thing);
  EXPECT_EQ(btf->record(sample.thing)->count(), 5u);
  EXPECT_FALSE(btf->find("thing", kinds(BtfKind::kUnion)).has_value());
  EXPECT_FALSE(btf->find("thin", ~0u).has_value()) << "the start of a name is not the name";
  EXPECT_FALSE(btf->find("hing", ~0u).has_value()) << "nor is its end";
  EXPECT_FALSE(btf->find("", ~0u).has_value());
  EXPECT_FALSE(btf->record(0).has_value());
  EXPECT_FALSE(btf->record(sample.writer.next_id()).has_value());
}

TEST(Btf, FindsIdsFarFromAnyMark) {
  BtfWriter writer;
  for (int i = 0; i < 1000; ++i) {
    i % 3 ? writer.integer("n" + std::to_string(i), 4) : writer.structure("n" + std::to_string(i), 4, {{"a", 1, 0}});
  }
  const auto btf = *Btf::parse(writer.bytes());
  for (const uint32_t id : {1000u, 1u, 64u, 65u, 500u, 999u, 128u, 129u}) {
    ASSERT_TRUE(btf->record(id).has_value()) << id;
    EXPECT_EQ(btf->name(*btf->record(id)), "n" + std::to_string(id - 1));
  }
}

TEST(Btf, FindsTheSameWithAnIndexOfNames) {
  BtfWriter writer;
  const uint32_t letter = writer.integer("char", 1, kSigned);
  for (int i = 0; i < 300; ++i) {
    writer.structure("n" + std::to_string(i), 4, {{"a", letter, 0}});
    writer.add(BtfKind::kTypedef, "n" + std::to_string(i), letter);
  }
  const auto btf = *Btf::parse(writer.bytes());
  for (int turn = 0; turn < 2; ++turn) {  // the index is made after some finds
    for (uint32_t i = 0; i < 300; ++i) {
      const std::string name = "n" + std::to_string(i);
      const auto first = btf->find(name, ~0u), alias = btf->find(name, kinds(BtfKind::kTypedef));
      ASSERT_TRUE(first.has_value() && alias.has_value()) << name;
      EXPECT_EQ(first->id, letter + 1 + 2 * i);
      EXPECT_EQ(alias->id, letter + 2 + 2 * i);
      EXPECT_FALSE(btf->find(name, kinds(BtfKind::kUnion)).has_value());
    }
  }
  EXPECT_FALSE(btf->find("n300", ~0u).has_value());
  EXPECT_FALSE(btf->find("", ~0u).has_value());
}

TEST(Btf, RefusesWhatIsNotBtf) {
  EXPECT_FALSE(Btf::parse("").has_value());
  EXPECT_FALSE(Btf::parse(std::string(100, 'x')).has_value());
  std::string bytes = Sample().writer.bytes();
  bytes[2] = 9;
  EXPECT_FALSE(Btf::parse(bytes).has_value()) << "another version";
}

// Everything the kernel room does with BTF, on BTF that may be nonsense.
void use_all(const std::string& bytes) {
  TemporaryKernel directory(bytes);
  const auto kernel = directory.open();
  Types types;
  const auto id = kernel->find_struct(types, "thing");
  if (id.valid()) {
    kernel->complete(types, id);
    to_string(types, id);
    find_member(types, id, "on");
    kernel->btf_location(types, id);
  }
  kernel->find_function(types, "do_thing");
  kernel->find_typedef(types, "thing_t");
  kernel->find_enumerator(types, "HUGE");
  kernel->struct_names("*");
  kernel->raw_tracepoints("*");
  kernel->c_definition("thing");
}

TEST(Btf, SurvivesTruncation) {
  const std::string bytes = Sample().writer.bytes();
  for (size_t size = 0; size < bytes.size(); size += 7) use_all(bytes.substr(0, size));
  // Whole by its header but with its types cut: the records end early.
  for (uint32_t cut = 0; cut < 200; cut += 4) {
    std::string shorter = bytes;
    std::memcpy(shorter.data() + 12, &cut, 4);
    use_all(shorter);
  }
}

TEST(Btf, SurvivesCorruption) {
  const std::string bytes = Sample().writer.bytes();
  std::minstd_rand random(1);
  for (int round = 0; round < 500; ++round) {
    std::string damaged = bytes;
    for (int i = 0; i < 4; ++i) damaged[24 + random() % (bytes.size() - 24)] = static_cast<char>(random());
    use_all(damaged);
  }
}

TEST(Btf, SurvivesTypesThatContainThemselves) {
  BtfWriter writer;
  writer.add(BtfKind::kTypedef, "thing_t", 1);
  writer.add(BtfKind::kPtr, "", 2);
  writer.add(BtfKind::kArray, "", 0, {3, 0, 1000});
  writer.structure("thing", 8, {{"a", 4, 0}, {"b", 3, 0}, {"c", 2, 0}, {"d", 1, 0}});
  const uint32_t proto = writer.next_id();
  writer.prototype(proto, {{"a", proto}, {"b", proto}, {"c", proto}});
  writer.add(BtfKind::kFunc, "do_thing", proto);
  use_all(writer.bytes());
}

TEST(KernelTypes, AreReadWhenAskedFor) {
  TemporaryKernel directory(Sample().writer.bytes());
  const auto kernel = directory.open();
  Types types;
  const auto thing = kernel->find_struct(types, "thing");
  ASSERT_TRUE(thing.valid());
  EXPECT_FALSE(types[thing].complete);
  EXPECT_EQ(types[thing].size_bytes, 40u);
  kernel->complete(types, thing);
  ASSERT_TRUE(types[thing].complete);
  EXPECT_EQ(types[thing].align_bytes, 8u);

  const auto name = find_member(types, thing, "name");
  EXPECT_EQ(types[name->type].kind, Kind::kString);
  EXPECT_EQ(name->offset_bits, 32u);
  const auto flag = find_member(types, thing, "flag");
  EXPECT_EQ(flag->offset_bits, 160u);
  EXPECT_EQ(flag->bit_size, 3u);
  EXPECT_EQ(types[find_member(types, thing, "next")->type].element, thing);
  const auto on = find_member(types, thing, "on");
  ASSERT_TRUE(on.has_value()) << "structs within are complete too";
  EXPECT_EQ(on->type, types.bool_type());
  EXPECT_EQ(on->offset_bits, 256u);

  EXPECT_EQ(kernel->find_typedef(types, "thing_t"), thing);
  EXPECT_EQ(kernel->btf_location(types, thing)->btf_id, Sample().thing);
}

TEST(KernelTypes, TakeTheAddressSpaceFromTags) {
  TemporaryKernel directory(Sample().writer.bytes());
  const auto kernel = directory.open();
  Types types;
  const auto function = kernel->find_function(types, "do_thing");
  ASSERT_TRUE(function.has_value());
  EXPECT_EQ(function->module, "vmlinux");
  ASSERT_EQ(function->parameters.size(), 2u);
  EXPECT_EQ(function->parameters[1].name, "text");
  EXPECT_EQ(function->parameters[1].offset_bits, 64u);
  EXPECT_EQ(types[function->parameters[0].type].space, AddressSpace::kKernel);
  EXPECT_EQ(function->parameters[1].type, types.pointer(types.char_type(), AddressSpace::kUser));
  EXPECT_FALSE(kernel->find_function(types, "do_thing", "nomodule").has_value());
}

TEST(KernelTypes, HaveEnumerators) {
  TemporaryKernel directory(Sample().writer.bytes());
  const auto kernel = directory.open();
  Types types;
  EXPECT_EQ(kernel->find_enumerator(types, "NONE")->value, -1);
  EXPECT_EQ(kernel->find_enumerator(types, "HUGE")->value, 0x2'0000'0001);
  EXPECT_FALSE(kernel->find_enumerator(types, "RE").has_value());
  const auto own = types.define_enum("mine", {{"RED", 7}}, 4, false, {});
  EXPECT_EQ(kernel->find_enumerator(types, "RED")->type, own) << "the script's come first";
}

TEST(KernelTypes, OfTheScriptComeFirst) {
  TemporaryKernel directory(Sample().writer.bytes());
  const auto kernel = directory.open();
  Types types;
  const auto own = types.declare_struct("thing", false, {});
  EXPECT_NE(kernel->find_struct(types, "thing"), own) << "only named, so the kernel's is meant";
  types.define_struct(own, {{.name = "x", .type = types.int64()}}, 8, 8);
  EXPECT_EQ(kernel->find_struct(types, "thing"), own);
}

TEST(KernelTypes, CompleteWhatTheScriptOnlyNamed) {
  TemporaryKernel directory(Sample().writer.bytes());
  const auto kernel = directory.open();
  Types types;
  const auto own = types.declare_struct("thing", false, {});
  kernel->complete(types, own);
  EXPECT_TRUE(find_member(types, own, "count").has_value());
  const auto unknown = types.declare_struct("nothing", false, {});
  kernel->complete(types, unknown);
  EXPECT_FALSE(types[unknown].complete);
}

TEST(KernelTypes, AreFoundInModulesToo) {
  const Sample sample;
  BtfWriter module(sample.writer.next_id(), sample.writer.strings_bytes());
  const uint32_t pointer = module.pointer(sample.thing);
  module.structure("widget", 8, {{"thing", pointer, 0}});
  TemporaryKernel directory(sample.writer.bytes());
  directory.add("sys/kernel/btf/widgets", module.bytes());
  const auto kernel = directory.open();
  Types types;
  const auto widget = kernel->find_struct(types, "widget");
  ASSERT_TRUE(widget.valid());
  kernel->complete(types, widget);
  EXPECT_EQ(types[find_member(types, widget, "thing")->type].element, kernel->find_struct(types, "thing"));
  EXPECT_EQ(kernel->btf_location(types, widget)->module_index, 1u);
  EXPECT_THAT(kernel->struct_names("*"),
              testing::ElementsAre("enum big", "enum color", "struct thing", "struct widget"));
}

// BTF of kernels since 6.2 has unsigned ones, of all CPUs; that of old pahole has `signed char` without a sign.
TEST(KernelTypes, CharacterHasTheSignOfBtf) {
  BtfWriter writer;
  writer.structure("three", 3,
                   {{"plain", writer.integer("char", 1, 0), 0},
                    {"minus", writer.integer("signed char", 1, 0), 8},
                    {"letter", writer.integer("char", 1, kSigned), 16}});
  TemporaryKernel directory(writer.bytes());
  Types types;
  const auto kernel = directory.open();
  const types::TypeId three = kernel->find_struct(types, "three");
  kernel->complete(types, three);
  ASSERT_EQ(types[three].members.size(), 3u);
  EXPECT_EQ(types[three].members[0].type, types.char_type(false));
  EXPECT_EQ(types[three].members[1].type, types.int_type(1, true));
  EXPECT_EQ(types[three].members[2].type, types.char_type(true));
}

TEST(KernelTypes, ListAsC) {
  BtfWriter writer;
  const uint32_t integer = writer.integer("int", 4, kSigned);
  const uint32_t letter = writer.integer("char", 1, kSigned);
  const uint32_t text = writer.pointer(writer.add(BtfKind::kConst, "", letter));
  const uint32_t callback = writer.pointer(writer.prototype(0, {{"", text}, {"", integer}}));
  const uint32_t grid = writer.array(writer.array(integer, 4), 3);
  const uint32_t rows = writer.pointer(writer.array(integer, 4));
  const uint32_t inner = writer.structure("", 4, {{"a", integer, 0}}, BtfKind::kUnion);
  writer.structure("mix", 100,
                   {{"text", text, 0},
                    {"call", callback, 64},
                    {"grid", grid, 128},
                    {"rows", rows, 512},
                    {"", inner, 576},
                    {"bits", integer, 608, 3}});
  TemporaryKernel directory(writer.bytes());
  EXPECT_EQ(directory.open()->c_definition("struct mix"),
            "struct mix {\n\tconst char *text;\n\tvoid (*call)(const char *, int);\n\tint grid[3][4];\n"
            "\tint (*rows)[4];\n\tunion {\n\t\tint a;\n\t};\n\tint bits: 3;\n};");
  EXPECT_EQ(directory.open()->c_definition("union mix"), std::nullopt);
}

TEST(KernelTypes, OfFunctionsKeepTheNamesOfTypedefs) {
  BtfWriter writer;
  const uint32_t integer = writer.integer("int", 4, kSigned);
  const uint32_t offset = writer.add(BtfKind::kTypedef, "loff_t", integer);
  const uint32_t callback = writer.pointer(writer.prototype(integer, {{"", offset}}));
  const uint32_t proto = writer.prototype(offset, {{"pos", writer.pointer(offset)}, {"call", callback}});
  writer.add(BtfKind::kFunc, "do_thing", proto);
  const uint32_t data = writer.pointer(0);
  const uint32_t traced = writer.prototype(0, {{"__data", data}, {"at", offset}});
  writer.add(BtfKind::kTypedef, "btf_trace_thing", writer.pointer(traced));
  TemporaryKernel directory(writer.bytes());
  const auto kernel = directory.open();
  Types types;
  const auto function = kernel->c_types(*kernel->find_function(types, "do_thing"));
  ASSERT_TRUE(function.has_value());
  EXPECT_THAT(function->parameters, testing::ElementsAre("loff_t *", "int (*)(loff_t)"));
  EXPECT_EQ(function->result, "loff_t");
  const auto event = kernel->c_types(*kernel->find_raw_tracepoint(types, "thing"));
  ASSERT_TRUE(event.has_value());
  EXPECT_THAT(event->parameters, testing::ElementsAre("loff_t"));
}

TEST(Kernel, TriesAFeatureOnce) {
  TemporaryKernel directory(Sample().writer.bytes());
  int tries = 0;
  const auto kernel = directory.open();
  EXPECT_TRUE(kernel->has(Feature::kRingbuf));
  EXPECT_FALSE(kernel->has(Feature::kKprobe));
  const auto counted = *open_kernel("/", {[&](Feature) { return ++tries > 0; }});
  EXPECT_TRUE(counted->has(Feature::kKprobe) && counted->has(Feature::kKprobe));
  EXPECT_EQ(tries, 1);
}

}  // namespace
}  // namespace espy::kernel

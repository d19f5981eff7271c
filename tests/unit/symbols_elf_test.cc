#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

#include "symbols/elf_file.h"
#include "symbols_support.h"

namespace espy::symbols {
namespace {

using ::testing::ElementsAre;
using testing::has_tool;
using ::testing::HasSubstr;
using testing::output_of;
using testing::run;
using testing::TempDir;

constexpr std::string_view kProgram = R"(
  int counter = 42;
  __thread int per_thread = 1;
  static __attribute__((noinline)) int hidden(int x) { return x * counter; }
  int visible(int x) { return hidden(x) + 1; }
  int alias_of_visible(int x) __attribute__((alias("visible")));
  static int chosen(void) { return 7; }
  static void *choose(void) { return chosen; }
  int dispatched(void) __attribute__((ifunc("choose")));
  int main(int argc, char **argv) { return visible(argc) + dispatched() + per_thread == 0; }
)";

std::vector<std::string> names(const std::vector<ElfSymbol>& symbols) {
  std::vector<std::string> out;
  for (const ElfSymbol& symbol : symbols) out.push_back(symbol.name);
  return out;
}

// What binutils says: name -> addresses of the defined functions in .symtab or .dynsym.
std::map<std::string, std::set<uint64_t>> readelf_functions(const std::string& path) {
  std::map<std::string, std::set<uint64_t>> out;
  std::istringstream lines(output_of("readelf -sW " + path));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number, value, size, type, binding, visibility, section, name;
    words >> number >> value >> size >> type >> binding >> visibility >> section >> name;
    if ((type != "FUNC" && type != "IFUNC") || section == "UND" || name.empty()) continue;
    out[name.substr(0, name.find('@'))].insert(std::stoull(value, nullptr, 16));
  }
  return out;
}

// As those of the vdso are, where the kernel's SYM_CODE_START() makes them.
TEST(ElfFile, CodeWithoutATypeHasAName) {
  if (!has_tool("cc")) GTEST_SKIP() << "there is no C compiler";
  const TempDir dir;
  const auto file = ElfFile::open(dir.build("program", R"(
    __asm__(".text\n.globl bare\nbare: nop\nnop\n.size bare, . - bare\n");
    extern char bare;
    int main(void) { return &bare == 0; })",
                                            "-O1"));
  ASSERT_TRUE(file);
  const auto bare = output_of("nm " + dir.path("program") + " | sed -n 's/ T bare$//p'");
  const auto symbol = file->function_at(std::stoull(bare, nullptr, 16));
  ASSERT_TRUE(symbol);
  EXPECT_EQ(symbol->name, "bare");
  EXPECT_FALSE(file->find_function("bare")) << "to be probed, it would have to be known to be one";
}

TEST(ElfFile, ErrorsAreOneSentence) {
  const TempDir dir;
  const auto missing = ElfFile::open(dir.path("missing"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ENOENT);
  const auto text = ElfFile::open(dir.write("text", "not a program"));
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message, HasSubstr("text is not an ELF file"));
  const auto empty = ElfFile::open(dir.write("empty", ""));
  EXPECT_FALSE(empty);
  const auto directory = ElfFile::open(dir.path(""));
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().message, HasSubstr("is not a file"));
  ASSERT_EQ(::mkfifo(dir.path("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(ElfFile::open(dir.path("fifo")));
  const auto torn = ElfFile::open(dir.write("torn", std::string_view("\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\3\0", 18)));
  EXPECT_FALSE(torn);
}

class BuiltProgram : public ::testing::TestWithParam<const char*> {
 protected:
  static const TempDir& dir() {
    static const TempDir directory;
    return directory;
  }
  std::string build(const std::string& flags) const {
    const std::string name = "program" + std::to_string(std::hash<std::string>{}(flags));
    if (std::filesystem::exists(dir().path(name))) return dir().path(name);
    return dir().build(name, kProgram, flags);
  }
};

TEST_P(BuiltProgram, FindsFunctionsWhereReadelfSeesThem) {
  const std::string path = build(std::string("-O1 -Wl,--build-id ") + GetParam());
  const auto elf = ElfFile::open(path);
  ASSERT_TRUE(elf) << elf.error().message;
  EXPECT_EQ(elf->is_position_independent(), std::string_view(GetParam()) == "-pie -fPIE");
  EXPECT_TRUE(elf->is_64bit());
  EXPECT_EQ(elf->build_id().size(), 40u);

  const auto expected = readelf_functions(path);
  ASSERT_TRUE(expected.contains("visible"));
  std::set<std::string> wanted;
  for (const auto& [name, addresses] : expected) wanted.insert(name);
  const auto all = elf->functions();
  EXPECT_THAT(names(all), ::testing::ElementsAreArray(wanted));
  for (const ElfSymbol& symbol : all) EXPECT_TRUE(expected.at(symbol.name).contains(symbol.address)) << symbol.name;

  EXPECT_THAT(names(elf->functions("*visible")), ElementsAre("alias_of_visible", "visible"));
  EXPECT_TRUE(elf->find_function("hidden")->is_local);
  EXPECT_FALSE(elf->find_function("visible")->is_local);
  EXPECT_EQ(elf->find_function("alias_of_visible")->file_offset, elf->find_function("visible")->file_offset);
  EXPECT_TRUE(elf->find_function("dispatched")->is_ifunc);
  EXPECT_FALSE(elf->find_function("counter"));
  EXPECT_FALSE(elf->find_function("nowhere"));
}

TEST_P(BuiltProgram, OffsetsPointAtTheCode) {
  const auto elf = ElfFile::open(build(std::string("-O1 -Wl,--build-id ") + GetParam()));
  ASSERT_TRUE(elf);
  const auto visible = elf->find_function("visible");
  ASSERT_TRUE(visible);
  EXPECT_EQ(elf->address_of_offset(visible->file_offset), visible->address);
  EXPECT_EQ(elf->offset_of_address(visible->address), visible->file_offset);
  EXPECT_EQ(elf->function_at(visible->address + visible->size - 1)->name, "visible");
  EXPECT_EQ(elf->function_at_offset(visible->file_offset + 1)->name, "visible");
  EXPECT_EQ(elf->function_at_offset(visible->file_offset + 1)->address, visible->address);
  EXPECT_FALSE(elf->function_at(1));
  EXPECT_FALSE(elf->offset_of_address(~uint64_t{0} - 4096));
}

TEST_P(BuiltProgram, ObjectsHaveAddressAndSize) {
  const auto elf = ElfFile::open(build(std::string("-O1 -Wl,--build-id ") + GetParam()));
  ASSERT_TRUE(elf);
  const auto counter = elf->find_object("counter");
  ASSERT_TRUE(counter);
  EXPECT_EQ(counter->size, sizeof(int));
  EXPECT_NE(counter->address, 0u);
  EXPECT_FALSE(elf->find_object("visible"));
  EXPECT_FALSE(elf->find_object("per_thread"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, BuiltProgram, ::testing::Values("-pie -fPIE", "-no-pie -fno-pie"));

TEST(ElfFile, StrippedFileKeepsItsExports) {
  const TempDir dir;
  const auto elf = ElfFile::open(dir.build("library.so", kProgram, "-O1 -shared -fPIC -s"));
  ASSERT_TRUE(elf);
  EXPECT_TRUE(elf->find_function("visible"));
  EXPECT_FALSE(elf->find_function("hidden"));
  EXPECT_TRUE(elf->find_object("counter"));
  EXPECT_EQ(elf->debug_file_path(), "");
}

// Splits a library into a stripped one and its symbols, as distributions do; `link` adds .gnu_debuglink.
std::string build_split(const TempDir& dir, const std::string& flags, bool link) {
  const std::string path = dir.build("split.so", kProgram, "-O1 -shared -fPIC " + flags);
  EXPECT_TRUE(run("objcopy --only-keep-debug " + path + " " + path + ".debug"));
  EXPECT_TRUE(run("strip " + path));
  if (link) {
    EXPECT_TRUE(run("objcopy --add-gnu-debuglink=" + path + ".debug " + path));
  }
  return path;
}

TEST(ElfFile, DebugLinkByBuildIdAndByCrc) {
  if (!has_tool("objcopy")) GTEST_SKIP() << "needs objcopy";
  for (const char* flags : {"-Wl,--build-id", "-Wl,--build-id=none"}) {
    const TempDir dir;
    const std::string path = build_split(dir, flags, true);
    const auto elf = ElfFile::open(path);
    ASSERT_TRUE(elf);
    const auto hidden = elf->find_function("hidden");
    ASSERT_TRUE(hidden) << flags;
    EXPECT_EQ(elf->function_at_offset(hidden->file_offset)->name, "hidden");
    EXPECT_EQ(elf->debug_file_path(), path + ".debug");
  }
}

TEST(ElfFile, DebugLinkToAnotherBuildIsIgnored) {
  if (!has_tool("objcopy")) GTEST_SKIP() << "needs objcopy";
  for (const char* flags : {"-Wl,--build-id", "-Wl,--build-id=none"}) {
    const TempDir dir;
    const std::string path = build_split(dir, flags, true);
    const std::string other = dir.build("other.so", "static int hidden(void) { return 1; } int (*keep)(void) = hidden;",
                                        std::string("-shared -fPIC ") + flags);
    std::filesystem::rename(other, path + ".debug");
    EXPECT_FALSE(ElfFile::open(path)->find_function("hidden")) << flags;
  }
}

TEST(ElfFile, MiniDebugInfo) {
  if (!has_tool("objcopy") || !has_tool("xz")) GTEST_SKIP() << "needs objcopy and xz";
  const TempDir dir;
  const std::string path = build_split(dir, "-Wl,--build-id", false);
  ASSERT_TRUE(run("xz --force " + path + ".debug"));
  ASSERT_TRUE(run("objcopy --add-section .gnu_debugdata=" + path + ".debug.xz " + path));
  const auto elf = ElfFile::open(path);
  ASSERT_TRUE(elf);
  const auto hidden = elf->find_function("hidden");
  ASSERT_TRUE(hidden);
  EXPECT_EQ(elf->function_at(hidden->address)->name, "hidden");
  EXPECT_THAT(elf->debug_file_path(), HasSubstr(".gnu_debugdata"));
}

TEST(ElfFile, LibcAgreesWithReadelf) {
  const std::string path = output_of("ldconfig -p | awk '/libc\\.so\\.6 .*64/ { print $NF; exit }' | tr -d '\\n'");
  if (path.empty()) GTEST_SKIP() << "no glibc";
  const auto elf = ElfFile::open(path);
  ASSERT_TRUE(elf) << elf.error().message;
  // Where the distribution's debug symbols are installed, they belong to the answer.
  auto expected = readelf_functions(path);
  if (!elf->debug_file_path().empty()) {
    for (const auto& [name, addresses] : readelf_functions(elf->debug_file_path()))
      expected[name].insert(addresses.begin(), addresses.end());
  }
  const auto all = elf->functions();
  size_t unlike = 0;
  for (const ElfSymbol& symbol : all) {
    const auto it = expected.find(symbol.name);
    if (it == expected.end() || !it->second.contains(symbol.address)) ++unlike;
  }
  EXPECT_EQ(unlike, 0u);
  const auto add = [](size_t sum, const auto& of_name) { return sum + of_name.second.size(); };
  EXPECT_EQ(all.size(), std::accumulate(expected.begin(), expected.end(), size_t{0}, add));
  EXPECT_GT(all.size(), 2000u);
  EXPECT_TRUE(elf->find_function("strlen")->is_ifunc);
  EXPECT_EQ(elf->function_at(elf->find_function("__read")->address)->name, "read");
}

TEST(ElfFile, DefaultVersionBeatsOldOnes) {
  const TempDir dir;
  const std::string script = dir.write("versions", "V1 { global: f; local: *; };\nV2 { global: f; } V1;\n");
  const auto elf = ElfFile::open(dir.build("versioned.so", R"(
      int old(void) { return 1; } int current(void) { return 2; }
      __asm__(".symver old,f@V1"); __asm__(".symver current,f@@V2");)",
                                           "-shared -fPIC -Wl,--version-script=" + script));
  ASSERT_TRUE(elf);
  const auto f = elf->find_function("f");
  ASSERT_TRUE(f);
  EXPECT_EQ(f->name, "f");
  EXPECT_EQ(f->address, elf->find_function("current")->address);
  EXPECT_EQ(elf->functions("f").size(), 2u) << "a program that was linked earlier calls the old one";
}

TEST(ElfFile, CppOverloadsByDemangledName) {
  const TempDir dir;
  const auto elf = ElfFile::open(dir.build("overloads.so", R"(
      namespace ns {
      int f(int x) { return x; }
      int f(const char *) { return 0; }
      int ff(int x) { return x; }
      template <class T> T g(T x) { return x; }
      template int g<int>(int);
      struct S { S(); ~S(); int operator[](int); };
      S::S() {} S::~S() {} int S::operator[](int x) { return x; }
      })",
                                           "-shared -fPIC", "c++"));
  ASSERT_TRUE(elf);
  EXPECT_THAT(names(elf->functions_by_demangled_name("ns::f")), ElementsAre("_ZN2ns1fEPKc", "_ZN2ns1fEi"));
  EXPECT_THAT(names(elf->functions_by_demangled_name("ns::f(int)")), ElementsAre("_ZN2ns1fEi"));
  EXPECT_THAT(names(elf->functions_by_demangled_name("ns::f*(int)")), ElementsAre("_ZN2ns1fEi", "_ZN2ns2ffEi"));
  EXPECT_THAT(names(elf->functions_by_demangled_name("ns::f(char const *)")), ElementsAre("_ZN2ns1fEPKc"));
  for (const char* name : {"ns::g", "ns::g<int>", "ns::g<int>(int)", "int ns::g<int>(int)", "ns::g*"})
    EXPECT_THAT(names(elf->functions_by_demangled_name(name)), ElementsAre("_ZN2ns1gIiEET_S1_")) << name;
  EXPECT_THAT(names(elf->functions_by_demangled_name("ns::S::S")), ElementsAre("_ZN2ns1SC1Ev", "_ZN2ns1SC2Ev"));
  EXPECT_THAT(names(elf->functions_by_demangled_name("ns::S::~S")), ElementsAre("_ZN2ns1SD1Ev", "_ZN2ns1SD2Ev"));
  EXPECT_THAT(names(elf->functions_by_demangled_name("ns::S::operator[]")), ElementsAre("_ZN2ns1SixEi"));
  EXPECT_THAT(elf->functions_by_demangled_name("ns::h"), ElementsAre());
}

}  // namespace
}  // namespace espy::symbols

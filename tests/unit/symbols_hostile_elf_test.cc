// ELF files that no linker writes: tiny on disk, and large by what they claim.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "base/end_request.h"
#include "base/limits.h"
#include "base/untrusted_file.h"
#include "symbols/debug_file.h"
#include "symbols/elf_file.h"
#include "symbols/library.h"
#include "symbols/unwind.h"
#include "symbols_support.h"

namespace espy::symbols {
namespace {

using ::testing::HasSubstr;
using testing::read_bytes;
using testing::TempDir;

constexpr uint64_t kMiB = 1 << 20;

struct Section {
  std::string name;
  uint32_t type = SHT_PROGBITS;
  std::string bytes = "";
  uint64_t size_bytes = 0;  // more than `bytes` are a hole in the file
};

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// Writes a file for this CPU with a segment of code at address 0. A .symtab and a .dynamic have the section behind it
// as their strings.
std::string write_elf(const TempDir& dir, std::string_view name, std::vector<Section> sections,
                      uint64_t code_bytes = 0x1000) {
  std::string names(1, '\0'), headers(sizeof(Elf64_Shdr), '\0');
  sections.push_back({".shstrtab", SHT_STRTAB});
  for (const Section& section : sections) names += section.name + '\0';
  sections.back().bytes = names;
  std::ofstream file(dir.path(name), std::ios::binary);
  uint64_t at = 0x1000, name_at = 1;
  for (const Section& section : sections) {
    const auto index = static_cast<uint32_t>(headers.size() / sizeof(Elf64_Shdr));
    Elf64_Shdr header = {};
    header.sh_name = static_cast<Elf64_Word>(name_at);
    header.sh_type = section.type;
    header.sh_offset = at;
    header.sh_size = std::max<uint64_t>(section.size_bytes, section.bytes.size());
    header.sh_addralign = 1;
    if (section.type == SHT_SYMTAB || section.type == SHT_DYNAMIC) header.sh_link = index + 1;
    if (section.type == SHT_SYMTAB) header.sh_entsize = sizeof(Elf64_Sym);
    headers += bytes_of(header);
    file.seekp(static_cast<std::streamoff>(at));
    file << section.bytes;
    at = (at + header.sh_size + 7) / 8 * 8;
    name_at += section.name.size() + 1;
  }
  const auto own = ElfFile::open("/proc/self/exe");
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, "\177ELF\2\1\1", 7);
  header.e_type = ET_DYN;
  header.e_machine = own->machine();
  header.e_version = EV_CURRENT;
  header.e_ehsize = header.e_phoff = sizeof(header);
  header.e_shoff = at;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(headers.size() / sizeof(Elf64_Shdr));
  header.e_shstrndx = header.e_shnum - 1;
  const Elf64_Phdr code = {PT_LOAD, PF_R | PF_X, 0, 0, 0, code_bytes, code_bytes, 0x1000};
  file.seekp(0);
  file << bytes_of(header) << bytes_of(code);
  file.seekp(static_cast<std::streamoff>(at));
  file << headers;
  return dir.path(name);
}

std::string symbols(uint32_t count) {
  std::string out(sizeof(Elf64_Sym), '\0');
  for (uint32_t i = 0; i < count; ++i)
    out += bytes_of(Elf64_Sym{1 + i, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, 0x100 + i, 1});
  return out;
}

std::string build_id_note(uint32_t size_bytes) {
  const Elf64_Nhdr header = {sizeof(ELF_NOTE_GNU), size_bytes, NT_GNU_BUILD_ID};
  return bytes_of(header) + std::string("GNU\0", 4) + std::string((size_bytes + 3) / 4 * 4, '\1');
}

TEST(HostileElf, SectionsMayBeManyInEachClass) {
  const TempDir dir;
  constexpr uint32_t kCount = 200'000, kAt = 0x1000;
  Elf32_Ehdr narrow = {};
  std::memcpy(narrow.e_ident, "\177ELF\1\1\1", 7);
  narrow.e_type = ET_DYN;
  narrow.e_machine = EM_386;
  narrow.e_version = EV_CURRENT;
  narrow.e_shoff = kAt;
  narrow.e_ehsize = sizeof(narrow);
  narrow.e_shentsize = sizeof(Elf32_Shdr);
  Elf32_Shdr first = {};
  first.sh_size = kCount;
  dir.write("narrow", bytes_of(narrow) + std::string(kAt - sizeof(narrow), '\0') + bytes_of(first));
  std::filesystem::resize_file(dir.path("narrow"), kAt + kCount * sizeof(Elf32_Shdr));
  const auto file = ElfFile::open(dir.path("narrow"));
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("too many sections"));
  EXPECT_EQ(file.error().code, kRefusedFile);
}

// Each address would be searched in all of them.
TEST(HostileElf, ProgramHeadersMayBeMany) {
  const TempDir dir;
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, "\177ELF\2\1\1", 7);
  header.e_type = ET_DYN;
  header.e_version = EV_CURRENT;
  header.e_ehsize = header.e_phoff = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  const auto open_with = [&](Elf64_Half count) {
    header.e_phnum = count;
    std::string bytes = bytes_of(header);
    for (int i = 0; i < count; ++i) bytes += bytes_of(Elf64_Phdr{PT_LOAD, PF_R | PF_X, 0, 0, 0, 8, 8, 1});
    return ElfFile::open(dir.write("program", bytes));
  };
  EXPECT_TRUE(open_with(100));
  const auto file = open_with(60'000);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("too many program headers"));
  EXPECT_EQ(file.error().code, kRefusedFile);
}

TEST(HostileElf, AnotherByteOrderIsRefused) {
  const TempDir dir;
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, "\177ELF\2\2\1", 7);
  const auto file = ElfFile::open(dir.write("big-endian", bytes_of(header) + std::string(1000, '\0')));
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("byte order"));
}

TEST(HostileElf, BuildIdsMayBeLarge) {
  const TempDir dir;
  const auto id_of = [&](std::vector<Section> notes) {
    return ElfFile::open(write_elf(dir, "program", std::move(notes)))->build_id();
  };
  EXPECT_EQ(id_of({{".note.gnu.build-id", SHT_NOTE, build_id_note(20)}}).size(), 40u);
  EXPECT_EQ(id_of({{".note.gnu.build-id", SHT_NOTE, build_id_note(64)}}).size(), 128u);
  EXPECT_EQ(id_of({{".note.gnu.build-id", SHT_NOTE, build_id_note(65)}}), "");
  EXPECT_EQ(id_of({{".note.gnu.build-id", SHT_NOTE, build_id_note(0)}}), "");
  EXPECT_EQ(id_of({{".note", SHT_NOTE, build_id_note(0) + build_id_note(16)}}).size(), 32u);
  const uint64_t before = read_bytes();
  EXPECT_EQ(id_of({{".note", SHT_NOTE, build_id_note(20'000'000).substr(0, 16), 20'000'000 + 16}}), "");
  EXPECT_LT(read_bytes() - before, 8 * kMiB);
}

TEST(HostileElf, ALinkMayBeLong) {
  const TempDir dir;
  const auto file = ElfFile::open(write_elf(dir, "program", {{".gnu_debuglink", SHT_PROGBITS, "d", 64 * kMiB}}));
  const uint64_t before = read_bytes();
  EXPECT_EQ(file->debug_file_path(), "");
  EXPECT_LT(read_bytes() - before, 8 * kMiB);
}

TEST(HostileElf, NamesMayShareText) {
  const TempDir dir;
  constexpr uint32_t kCount = 2000;
  const std::string text = std::string(1, '\0') + std::string(kCount + 16'000, 'a') + '\0';
  const std::vector<Section> sections = {{".symtab", SHT_SYMTAB, symbols(kCount)}, {".strtab", SHT_STRTAB, text}};
  const auto file = ElfFile::open(write_elf(dir, "program", sections));
  ASSERT_TRUE(file);
  const std::vector<ElfSymbol> found = file->functions();
  const auto sum = [](uint64_t bytes, const ElfSymbol& symbol) { return bytes + symbol.name.size(); };
  EXPECT_FALSE(found.empty());
  EXPECT_LT(std::accumulate(found.begin(), found.end(), uint64_t{0}, sum), 2 * kMiB);
  ASSERT_TRUE(file->missing_names());
  EXPECT_THAT(file->missing_names()->message, HasSubstr("too many long names"));
}

TEST(HostileElf, NamesMayShareTextBehindTheirVersion) {
  const TempDir dir;
  const std::string text = std::string("\0f@", 3) + std::string(16'000, 'a') + '\0';
  std::string table(sizeof(Elf64_Sym), '\0');
  for (uint32_t i = 0; i < 2000; ++i)
    table += bytes_of(Elf64_Sym{1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, 0x100 + i, 1});
  const auto file =
      ElfFile::open(write_elf(dir, "program", {{".symtab", SHT_SYMTAB, table}, {".strtab", SHT_STRTAB, text}}));
  EXPECT_LT(file->functions().size(), 100u);
  EXPECT_TRUE(file->missing_names());
}

TEST(HostileElf, NoNameOfAProgramIsMissing) {
  const auto file = ElfFile::open("/proc/self/exe");
  EXPECT_GT(file->functions().size(), 1000u);
  EXPECT_FALSE(file->missing_names());
}

TEST(HostileElf, StringsMayHaveNoEnd) {
  const TempDir dir;
  const std::vector<Section> sections = {{".symtab", SHT_SYMTAB, symbols(100)},
                                         {".strtab", SHT_STRTAB, std::string("\0first\0", 7) + std::string(50, 'a')}};
  const auto found = ElfFile::open(write_elf(dir, "program", sections))->functions();
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[0].name, "first");
}

TEST(HostileElf, DecompressedNamesMayTakeTooMuch) {
  if (!MemoryLimit::is_supported()) GTEST_SKIP() << "a sanitizer's allocator ends the process";
  const TempDir dir;
  const auto large = ElfFile::open(write_elf(dir, "large", {{".gnu_debugdata", SHT_PROGBITS, "", 100 * kMiB}}));
  const auto zeros = ElfFile::open(write_elf(dir, "zeros", {{".gnu_debugdata", SHT_PROGBITS, "", 20 * kMiB}}));
  ASSERT_TRUE(large && zeros);
  {
    const MemoryLimit limit(64 * kMiB);
    EXPECT_EQ(large->debug_file_path(), "");
    EXPECT_EQ(zeros->debug_file_path(), "");
  }
  ASSERT_TRUE(large->missing_names());
  EXPECT_THAT(large->missing_names()->message, HasSubstr("large (.gnu_debugdata) was not searched for names"));
  EXPECT_FALSE(zeros->missing_names());
}

// The sections of a Go program whose functions share the sequence of the depth of their stacks.
std::vector<Section> go_sections(uint32_t functions, uint32_t parts) {
  const std::string build_info =
      "\xff Go buildinf:\x08\x02" + std::string(16, '\0') + "\x08go1.20.1" + std::string(16, '\0');
  std::string values = std::string(1, '\0') + "\x12\x01";  // 8 bytes, for an instruction of one byte
  for (uint32_t i = 1; i < parts; ++i) values += i % 2 == 0 ? "\x0f\x01" : "\x10\x01";  // eight less, or more
  values += '\0';
  constexpr uint64_t kHeaderBytes = 72;
  const std::string names = std::string("\0main.f\0", 8) + std::string(1000, 'n');
  const std::string unit(8, '\0'), file(8, '\0');
  std::string table = bytes_of(0xfffffff1) + std::string("\0\0\1\x08", 4);
  for (const uint64_t word : {uint64_t{functions}, uint64_t{1}, uint64_t{0}}) table += bytes_of(word);
  uint64_t at = kHeaderBytes;
  for (const uint64_t size : {names.size(), unit.size(), file.size(), values.size(), size_t{0}}) {
    table += bytes_of(at);
    at += size;
  }
  table += names + unit + file + values;
  for (uint32_t i = 0; i < functions; ++i) table += bytes_of(i * parts) + bytes_of(functions * 8 + 4);
  table += bytes_of(functions * parts);
  for (const uint32_t word : {0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}) table += bytes_of(word);
  return {{".go.buildinfo", SHT_PROGBITS, build_info}, {".gopclntab", SHT_PROGBITS, table}};
}

TEST(HostileElf, FunctionsOfGoMayShareText) {
  const TempDir dir;
  const auto rows_of = [&](uint32_t functions, uint32_t parts, uint64_t hole_bytes) {
    std::vector<Section> sections = go_sections(functions, parts);
    sections.push_back({"hole", SHT_PROGBITS, "", hole_bytes});
    return read_unwind_rows(write_elf(dir, "program", sections, uint64_t{functions} * parts))->size();
  };
  EXPECT_EQ(rows_of(2, 100, 0), 201u);
  EXPECT_EQ(rows_of(1000, 2000, 0), 0u) << "the file does not have the code";
  const uint64_t found = rows_of(1000, 2000, 2 * kMiB);
  EXPECT_GT(found, 0u);
  EXPECT_LT(found, 10'000u);
}

// A program with as many libraries and, for them, directories, of which the last one has the last library.
std::vector<Section> needing(uint32_t libraries, const std::string& run_path) {
  std::string strings = std::string(1, '\0') + run_path + '\0';
  std::string entries = bytes_of(Elf64_Dyn{DT_RUNPATH, {1}});
  for (uint32_t i = 1; i <= libraries; ++i) {
    entries += bytes_of(Elf64_Dyn{DT_NEEDED, {strings.size()}});
    strings += "lib" + std::to_string(i) + ".so" + '\0';
  }
  return {{".dynamic", SHT_DYNAMIC, entries + bytes_of(Elf64_Dyn{DT_NULL, {0}})}, {".dynstr", SHT_STRTAB, strings}};
}

TEST(HostileElf, LibrariesAndTheirDirectoriesMayBeMany) {
  const TempDir dir;
  constexpr uint32_t kDirectories = 400, kFew = 20, kMany = 500;
  std::string run_path, last;
  for (uint32_t i = 0; i < kDirectories; ++i) {
    last = dir.path("directory" + std::to_string(i));
    std::filesystem::create_directory(last);
    run_path += ":" + last;
  }
  for (const uint32_t count : {kFew, kMany}) {
    const std::string library = last + "/lib" + std::to_string(count) + ".so";
    std::ofstream(library) << "x";
    const std::vector<std::string> files = needed_files(write_elf(dir, "program", needing(count, run_path)));
    EXPECT_EQ(std::ranges::count(files, library), count == kFew ? 1 : 0) << count;
  }
}

TEST(HostileElf, WhatLibrariesAreFoundByIsReadOnce) {
  if (read_bytes() == 0) GTEST_SKIP() << "the kernel does not count what is read";
  const TempDir dir;
  const auto read_for = [&](uint32_t libraries) {
    const std::string program = write_elf(dir, "program", needing(libraries, ""));
    const uint64_t before = read_bytes();
    EXPECT_EQ(needed_files(program).size(), 1u);
    return read_bytes() - before;
  };
  constexpr uint64_t kBytesPerName = 5000, kLibraries = 900;
  EXPECT_LT(read_for(kLibraries), read_for(1) + kLibraries * kBytesPerName);
}

TEST(HostileElf, NamesOfLibrariesMayShareText) {
  const TempDir dir;
  std::string entries;
  for (int i = 0; i < 5000; ++i) entries += bytes_of(Elf64_Dyn{DT_NEEDED, {1}});
  const std::string program =
      write_elf(dir, "program",
                {{".dynamic", SHT_DYNAMIC, entries},
                 {".dynstr", SHT_STRTAB, std::string(1, '\0') + std::string(kMiB, 'a') + '\0', 64 * kMiB}});
  const uint64_t before = read_bytes();
  const auto image = ElfImage::open(program);
  ASSERT_TRUE(image);
  uint64_t bytes = 0;
  for (const std::string& name : image->dynamic_needs().libraries) bytes += name.size();
  EXPECT_LT(bytes, 8 * kMiB);
  EXPECT_LT(read_bytes() - before, 8 * kMiB);
}

std::string link_to(std::string_view name, uint32_t crc) {
  std::string out(name);
  out.resize(name.size() / 4 * 4 + 4);
  return out + bytes_of(crc);
}

TEST(HostileElf, ADebugFileMayBeAHole) {
  if (read_bytes() == 0) GTEST_SKIP() << "the kernel does not count what is read";
  const TempDir dir;
  std::filesystem::resize_file(dir.write("hole", ""), 100 * kMiB);
  const auto file = ElfFile::open(write_elf(dir, "program", {{".gnu_debuglink", SHT_PROGBITS, link_to("hole", 1)}}));
  const uint64_t before = read_bytes();
  EXPECT_EQ(file->debug_file_path(), "");
  EXPECT_LT(read_bytes() - before, 8 * kMiB) << "it is not even an ELF file";
}

TEST(HostileElf, ADebugFileOfManyProgramsIsReadOnce) {
  if (read_bytes() == 0) GTEST_SKIP() << "the kernel does not count what is read";
  const TempDir dir;
  write_elf(dir, "debug",
            {{".symtab", SHT_SYMTAB, symbols(1)},
             {".strtab", SHT_STRTAB, std::string("\0f", 2)},
             {"hole", SHT_PROGBITS, "", 30 * kMiB}});
  const uint64_t before = read_bytes();
  for (uint32_t i = 0; i < 4; ++i) {
    const auto file = ElfFile::open(write_elf(dir, "program", {{".gnu_debuglink", SHT_PROGBITS, link_to("debug", i)}}));
    EXPECT_EQ(file->debug_file_path(), "") << "the checksum is another";
  }
  EXPECT_GE(read_bytes() - before, 30 * kMiB);
  EXPECT_LT(read_bytes() - before, 45 * kMiB);
}

TEST(HostileElf, TheSearchForDebugFilesIsBounded) {
  SearchLimit limit;
  const auto count = [&] {
    uint64_t out = 0;
    while (out < 10'000 && limit.take(kMiB)) ++out;
    return out;
  };
  const uint64_t all = count();
  EXPECT_LT(all, 10'000u);
  limit = SearchLimit();
  request_end();
  const uint64_t at_end = count();
  reset_end_request();
  EXPECT_GT(at_end, 0u);
  EXPECT_LT(at_end, all);
}

}  // namespace
}  // namespace espy::symbols

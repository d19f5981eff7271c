#include "tool/executable.h"

#include <elf.h>
#include <sys/auxv.h>

#include <cstring>

#include "base/byte_reader.h"
#include "base/untrusted_file.h"
#include "tool/tool.h"

namespace espy::tool {

namespace {

constexpr std::string_view kScriptSection = ".espy.tool";
constexpr std::string_view kMarkSection = ".espy.mark";
constexpr char kMarkMagic[] = "ESPYMARK";

struct Mark {
  char magic[8] = {};
  uint32_t format = 0;
  uint32_t has_script = 0;
};

// Volatile, as the value in the file is not that of the source.
__attribute__((section(".espy.mark"), used))
const volatile Mark kMark = {{'E', 'S', 'P', 'Y', 'M', 'A', 'R', 'K'}, kFormat, 0};

// The table of sections of an ELF file, read with all bounds checked.
struct Sections {
  Elf64_Ehdr header = {};
  uint64_t count = 0;
  Elf64_Shdr names = {};

  std::optional<Elf64_Shdr> at(std::string_view elf, uint64_t index) const {
    return load_struct<Elf64_Shdr>(elf, header.e_shoff + index * sizeof(Elf64_Shdr));
  }
};

std::optional<std::string_view> bytes_of(std::string_view elf, const Elf64_Shdr& section) {
  if (section.sh_offset > elf.size() || section.sh_size > elf.size() - section.sh_offset) return std::nullopt;
  return elf.substr(section.sh_offset, section.sh_size);
}

std::optional<Sections> read_sections(std::string_view elf) {
  Sections out;
  const auto header = load_struct<Elf64_Ehdr>(elf, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_shentsize != sizeof(Elf64_Shdr) ||
      header->e_shoff > elf.size() || header->e_shstrndx >= header->e_shnum)
    return std::nullopt;
  out.header = *header;
  out.count = header->e_shnum;
  const auto names = out.at(elf, header->e_shstrndx);
  if (!names || !bytes_of(elf, *names)) return std::nullopt;
  out.names = *names;
  return out;
}

std::optional<Elf64_Shdr> find_section(std::string_view elf, const Sections& sections, std::string_view name) {
  const std::string_view names = *bytes_of(elf, sections.names);
  for (uint64_t i = 0; i < sections.count; ++i) {
    const auto section = sections.at(elf, i);
    if (!section || section->sh_name >= names.size()) continue;
    const std::string_view rest = names.substr(section->sh_name);
    if (rest.substr(0, rest.find('\0')) == name && bytes_of(elf, *section)) return section;
  }
  return std::nullopt;
}

// Where the mark is in the file, and what it says.
struct FoundMark {
  uint64_t offset = 0;
  Mark mark;
};

Result<FoundMark> find_mark(std::string_view elf, const Sections& sections) {
  const auto section = find_section(elf, sections, kMarkSection);
  const auto mark = section ? load_struct<Mark>(*bytes_of(elf, *section), 0) : std::nullopt;
  if (!mark || std::memcmp(mark->magic, kMarkMagic, sizeof(mark->magic)) != 0)
    return fail("is not an executable of espy, or one that cannot have a script", kRefusedFile);
  if (mark->format != kFormat)
    return fail("is another version of espy: its tools have another format", kRefusedFile, "use both of one version");
  return FoundMark{section->sh_offset, *mark};
}

template <class T>
void overwrite(std::string& bytes, uint64_t offset, const T& value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void align(std::string& bytes, uint64_t alignment) { bytes.resize((bytes.size() + alignment - 1) & -alignment); }

// The path of the running executable: without /proc the one that it was started by, unless that is not to be trusted.
std::string own_path() {
  constexpr const char* kSelf = "/proc/self/exe";
  if (is_file(kSelf) || ::getauxval(AT_SECURE) != 0) return kSelf;
  const auto* path = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  return path != nullptr ? path : kSelf;
}

// Reads the table of sections and the section alone: the executable is some megabytes long.
Result<std::string> read_script(const UntrustedFile& file) {
  const auto damaged = [] { return fail("the executable was changed: its script cannot be found"); };
  const auto header = load_struct<Elf64_Ehdr>(TRY(file.read_at(0, sizeof(Elf64_Ehdr))), 0);
  if (!header || header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shstrndx >= header->e_shnum) return damaged();
  const std::string table = TRY(file.read_at(header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr)));
  const auto names = load_struct<Elf64_Shdr>(table, header->e_shstrndx * sizeof(Elf64_Shdr));
  if (!names || names->sh_size > file.size_bytes) return damaged();
  const std::string text = TRY(file.read_at(names->sh_offset, names->sh_size));
  for (uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto section = load_struct<Elf64_Shdr>(table, i * sizeof(Elf64_Shdr));
    if (!section || section->sh_name >= text.size() || text.c_str() + section->sh_name != kScriptSection) continue;
    if (section->sh_size > file.size_bytes) return damaged();
    return file.read_at(section->sh_offset, section->sh_size);
  }
  return damaged();
}

}  // namespace

bool runs_tool() { return kMark.has_script != 0; }

Result<std::string> own_script() { return read_script(TRY(open_untrusted(own_path(), max_binary_bytes()))); }

Result<Executable> describe(std::string_view elf) {
  const auto sections = read_sections(elf);
  if (!sections) return fail("is not an ELF executable", kRefusedFile);
  const FoundMark found = TRY(find_mark(elf, *sections));
  Executable out{.elf_machine = sections->header.e_machine, .script = {}};
  if (found.mark.has_script == 0) return out;
  const auto script = find_section(elf, *sections, kScriptSection);
  if (!script) return fail("is a tool whose script was removed", kRefusedFile);
  out.script = *bytes_of(elf, *script);
  return out;
}

Result<std::string> with_script(std::string elf, std::string_view script) {
  const auto sections = read_sections(elf);
  if (!sections) return fail("is not an ELF executable", kRefusedFile);
  FoundMark found = TRY(find_mark(elf, *sections));
  if (found.mark.has_script != 0) return fail("is a tool already", kRefusedFile, "use espy without a script");
  found.mark.has_script = 1;
  overwrite(elf, found.offset, found.mark);

  Elf64_Ehdr header = sections->header;
  const std::string table = elf.substr(header.e_shoff, sections->count * sizeof(Elf64_Shdr));
  std::string names(*bytes_of(elf, sections->names));
  Elf64_Shdr added = {};
  added.sh_name = static_cast<Elf64_Word>(names.size());
  added.sh_type = SHT_PROGBITS;
  added.sh_addralign = 1;
  added.sh_size = script.size();
  names.append(kScriptSection).push_back('\0');

  align(elf, 8);
  added.sh_offset = elf.size();
  elf += script;
  Elf64_Shdr moved_names = sections->names;
  moved_names.sh_offset = elf.size();
  moved_names.sh_size = names.size();
  elf += names;
  align(elf, 8);
  const uint64_t old_names_offset = header.e_shstrndx * sizeof(Elf64_Shdr);
  header.e_shoff = elf.size();
  header.e_shnum = static_cast<Elf64_Half>(header.e_shnum + 1);
  elf += table;
  overwrite(elf, header.e_shoff + old_names_offset, moved_names);
  append(elf, added);
  overwrite(elf, 0, header);
  return elf;
}

}  // namespace espy::tool

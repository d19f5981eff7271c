#include "tool/tool.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <zlib.h>

#include <cstring>

#include "base/byte_reader.h"
#include "base/untrusted_file.h"
#include "recording/encoding.h"

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

namespace {

using recording::append_text;
using recording::append_uleb128;

constexpr std::string_view kMagic = "espytool";

uint32_t checksum_of(std::string_view bytes) {
  return static_cast<uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

template <typename Items, typename Append>
void append_list(std::string& out, const Items& items, Append append) {
  append_uleb128(out, items.size());
  for (const auto& item : items) append(item);
}

void append_texts(std::string& out, const std::vector<std::string>& texts) {
  append_list(out, texts, [&](const std::string& text) { append_text(out, text); });
}

void append_imports(std::string& out, const check::ScriptFiles& files) {
  append_list(out, files.imports, [&](const auto& import) {
    append_text(out, import.first);
    append_list(out, import.second, [&](const check::ImportedFile& file) {
      append_text(out, file.name);
      append_text(out, file.text);
    });
  });
}

void append_headers(std::string& out, const check::ScriptFiles& files) {
  append_list(out, files.headers, [&](const auto& headers) {
    append_text(out, headers.first);
    append_list(out, headers.second.macros, [&](const syntax::CDefine& macro) {
      append_text(out, macro.name);
      append_uleb128(out, macro.is_function_like ? 1 : 0);
      append_texts(out, macro.parameters);
      append_text(out, macro.body);
    });
    append_list(out, headers.second.types, [&](const check::HeaderTypes& types) {
      append_text(out, types.btf);
      append_uleb128(out, types.before_kernel ? 1 : 0);
    });
  });
}

std::string take_text(ByteReader& reader) { return std::string(reader.take_bytes(reader.take_uleb128())); }

// Calls `take` for each item of a list. An item has at least one byte, so that a wrong count ends with the bytes.
template <typename Take>
void take_list(ByteReader& reader, Take take) {
  for (uint64_t left = reader.take_uleb128(); left != 0 && reader.ok(); --left) take();
}

std::vector<std::string> take_texts(ByteReader& reader) {
  std::vector<std::string> out;
  take_list(reader, [&] { out.push_back(take_text(reader)); });
  return out;
}

check::ImportedFile take_file(ByteReader& reader) {
  check::ImportedFile out;
  out.name = take_text(reader);
  out.text = take_text(reader);
  return out;
}

syntax::CDefine take_macro(ByteReader& reader) {
  syntax::CDefine out;
  out.name = take_text(reader);
  out.is_function_like = reader.take_uleb128() != 0;
  out.parameters = take_texts(reader);
  out.body = take_text(reader);
  return out;
}

check::CompiledHeaders take_headers(ByteReader& reader) {
  check::CompiledHeaders out;
  take_list(reader, [&] { out.macros.push_back(take_macro(reader)); });
  take_list(reader, [&] {
    check::HeaderTypes types;
    types.btf = take_text(reader);
    types.before_kernel = reader.take_uleb128() != 0;
    out.types.push_back(std::move(types));
  });
  return out;
}

check::ScriptOption take_option(ByteReader& reader) {
  check::ScriptOption out;
  out.name = take_text(reader);
  out.initial = take_text(reader);
  out.doc = take_text(reader);
  return out;
}

}  // namespace

std::string encode(const Tool& tool) {
  std::string body;
  for (const std::string* text : {&tool.name, &tool.script_name, &tool.script, &tool.cpu}) append_text(body, *text);
  append_texts(body, tool.arguments);
  append_uleb128(body, tool.knows_all_options ? 1 : 0);
  append_list(body, tool.options, [&](const check::ScriptOption& option) {
    for (const std::string* text : {&option.name, &option.initial, &option.doc}) append_text(body, *text);
  });
  append_imports(body, tool.files);
  append_headers(body, tool.files);
  std::string out(kMagic);
  const auto append_u32 = [&](uint32_t number) { out.append(reinterpret_cast<const char*>(&number), sizeof(number)); };
  append_u32(kFormat);
  append_u32(checksum_of(body));
  return out + body;
}

Result<Tool> decode(std::string_view bytes) {
  ByteReader reader(bytes);
  if (reader.take_bytes(kMagic.size()) != kMagic) return fail("the script in the tool is damaged: it has no beginning");
  const uint32_t format = reader.take_le<uint32_t>();
  if (reader.ok() && format != kFormat)
    return fail(
        fmt::format("the tool was built by another version of espy: its format is {}, not {}", format, kFormat));
  Tool out;
  out.checksum = reader.take_le<uint32_t>();
  if (!reader.ok() || out.checksum != checksum_of(bytes.substr(reader.offset())))
    return fail("the script in the tool is damaged: its checksum is wrong");
  for (std::string* text : {&out.name, &out.script_name, &out.script, &out.cpu}) *text = take_text(reader);
  out.arguments = take_texts(reader);
  out.knows_all_options = reader.take_uleb128() != 0;
  take_list(reader, [&] { out.options.push_back(take_option(reader)); });
  take_list(reader, [&] {
    std::vector<check::ImportedFile>& files = out.files.imports[take_text(reader)];
    take_list(reader, [&] { files.push_back(take_file(reader)); });
  });
  take_list(reader, [&] {
    std::string name = take_text(reader);
    out.files.headers[std::move(name)] = take_headers(reader);
  });
  if (!reader.ok() || !reader.at_end()) return fail("the script in the tool is damaged: it is cut off");
  return out;
}

}  // namespace espy::tool

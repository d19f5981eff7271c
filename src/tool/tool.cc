#include "tool/tool.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/byte_reader.h"
#include "base/format_version.h"
#include "base/strings.h"
#include "base/untrusted_file.h"
#include "recording/encoding.h"
#include "source/source.h"
#include "syntax/parser.h"

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
  if (mark->format > kFormat)
    return fail_later_format("is espy with tools", mark->format,
                             load_struct<uint32_t>(*bytes_of(elf, *section), sizeof(Mark)).value_or(0));
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
  if (reader.ok() && format > kFormat)
    return fail_later_format("the script in the tool is", format, reader.take_le<uint32_t>());
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

// ---- The head of a script

namespace {

// The lines of the comment, without the slashes and one blank.
std::vector<std::string_view> head_lines(std::string_view script) {
  std::vector<std::string_view> out;
  for (std::string_view line : split(script, '\n')) {
    if (out.empty() && line.starts_with("#!")) continue;
    if (!line.starts_with("//")) break;
    line.remove_prefix(2);
    if (line.starts_with(' ')) line.remove_prefix(1);
    out.push_back(line);
  }
  return out;
}

bool is_parameter(std::string_view word) {
  const auto is_capital = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; };
  return !word.empty() && word[0] >= 'A' && word[0] <= 'Z' && std::ranges::all_of(word, is_capital);
}

// "[-- --failed]" is how the script's file takes what the tool takes as "[--failed]".
std::string without_dashes(std::string_view arguments) {
  std::string out(arguments);
  if (const size_t at = out.find("-- "); at != out.npos) out.erase(at, 3);
  return out;
}

constexpr std::string_view kNumbers[] = {"INTERVAL", "SECONDS", "COUNT", "HZ", "PORT", "PID", "N"};

}  // namespace

std::optional<ToolHead> tool_head(std::string_view script) {
  const std::vector<std::string_view> lines = head_lines(script);
  ToolHead out;
  if (lines.empty()) return std::nullopt;
  const size_t dash = lines[0].find(" - ");
  if (dash == std::string_view::npos || lines[0].find(' ') != dash) return std::nullopt;
  out.name = lines[0].substr(0, dash);
  out.sentence = lines[0].substr(dash + 3);
  bool has_usage = false;
  for (const std::string_view line : std::span(lines).subspan(1)) {
    std::string_view call = trim(line);
    const bool is_call = !has_usage && line.starts_with("  ") && call.starts_with(out.name);
    if (is_call) call.remove_prefix(out.name.size());
    if (is_call && call.starts_with(".bt")) call.remove_prefix(3);
    if (is_call && (call.empty() || call[0] == ' ')) {
      has_usage = true;
      out.arguments = without_dashes(trim(call));
    } else if (has_usage || !line.empty() || !out.rest.empty()) {
      out.rest += fmt::format("{}\n", line);
    }
  }
  if (!has_usage) return std::nullopt;
  for (std::string_view word : split(out.arguments, ' ')) {
    while (word.starts_with('[')) word.remove_prefix(1);
    while (word.ends_with(']') || word.ends_with('.')) word.remove_suffix(1);
    if (is_parameter(word)) out.parameters.emplace_back(word);
  }
  return out;
}

Status check_parameters(const ToolHead& head, std::span<const std::string> words) {
  const std::string hint = fmt::format("usage: {}{}{}", head.name, head.arguments.empty() ? "" : " ", head.arguments);
  if (words.size() > head.parameters.size())
    return fail(head.parameters.empty() ? fmt::format("{} takes no argument `{}`", head.name, words[0])
                                        : fmt::format("{} takes {} arguments at most, and `{}` is one more", head.name,
                                                      head.parameters.size(), words[head.parameters.size()]),
                0, hint);
  for (size_t i = 0; i < words.size(); ++i) {
    if (std::ranges::find(kNumbers, head.parameters[i]) == std::end(kNumbers)) continue;
    const auto number = parse_int(words[i]);
    if (!number || *number < 1)
      return fail(fmt::format("{} takes a whole number from 1 on, not `{}`", head.parameters[i], words[i]), 0, hint);
  }
  return {};
}

// ---- getopt() in a tree

namespace {

constexpr std::string_view kOptionCall = "getopt";

// The default as text, as check::ScriptOption::initial; nullopt if it is not a literal.
std::optional<std::string> literal_text(const syntax::Ast& ast, syntax::ExprId id) {
  if (const auto* text = ast.get<syntax::StringLiteral>(id)) return "\"" + text->value + "\"";
  if (const auto* number = ast.get<syntax::IntegerLiteral>(id)) return fmt::format("{}", number->value);
  if (const auto* truth = ast.get<syntax::BoolLiteral>(id)) return truth->value ? "true" : "false";
  if (const auto* unary = ast.get<syntax::Unary>(id); unary != nullptr && unary->op == syntax::UnaryOp::kNegate)
    if (const auto number = literal_text(ast, unary->operand)) return "-" + *number;
  return std::nullopt;
}

}  // namespace

std::vector<check::ScriptOption> script_options(std::string_view script) {
  source::Sources sources;
  source::Diagnostics diagnostics;
  const syntax::Ast ast = syntax::parse(sources, sources.add("script", std::string(script)), diagnostics);
  std::vector<check::ScriptOption> out;
  for (const syntax::Expr& expr : ast.exprs) {
    const auto* call = std::get_if<syntax::Call>(&expr.node);
    if (call == nullptr || call->name != kOptionCall || call->arguments.empty()) continue;
    const auto* name = ast.get<syntax::StringLiteral>(call->arguments[0]);
    if (name == nullptr) continue;
    check::ScriptOption option{name->value, "false", {}};
    if (call->arguments.size() > 1) {
      const auto initial = literal_text(ast, call->arguments[1]);
      if (!initial) continue;
      option.initial = *initial;
    }
    if (call->arguments.size() > 2)
      if (const auto* doc = ast.get<syntax::StringLiteral>(call->arguments[2])) option.doc = doc->value;
    const auto known = std::ranges::find(out, option.name, &check::ScriptOption::name);
    if (known == out.end())
      out.push_back(std::move(option));
    else if (known->doc.empty())
      known->doc = option.doc;
  }
  return out;
}

Status check_value(const check::ScriptOption& option, std::string_view value) {
  constexpr std::string_view kTruths[] = {"", "true", "false", "1", "0"};
  if (option.is_switch()) {
    if (std::ranges::find(kTruths, to_lower(value)) != std::end(kTruths)) return {};
    return fail(fmt::format("--{} takes true or false, not `{}`", option.name, value));
  }
  if (option.initial.starts_with('"') || parse_int(value)) return {};
  return fail(fmt::format("--{} takes a number, not `{}`", option.name, value), 0,
              option.doc.empty() ? "" : fmt::format("--{}=N: {}", option.name, option.doc));
}

}  // namespace espy::tool

// Sources: the Go internal ABI specification (cmd/compile/abi-internal.md) and the package debug/buildinfo.
#include "symbols/go_functions.h"

#include <algorithm>

#include "base/byte_reader.h"
#include "base/strings.h"
#include "symbols/elf_image.h"

namespace espy::symbols {

namespace {

using types::Kind;
using types::LocationPiece;
using types::TypeId;
using types::ValueLocation;
using Op = types::LocationOp::Code;

constexpr std::string_view kMagic = "\xff Go buildinf:";
constexpr size_t kFlagsAt = 15;
constexpr size_t kPointersAt = 16;
constexpr size_t kInlineAt = 32;
constexpr uint32_t kWordBytes = 8;

// Returns the bytes of the file that are loaded at a virtual address; empty if they are not all in the file.
std::string bytes_at_address(const ElfImage& image, uint64_t address, uint64_t size) {
  const std::optional<uint64_t> offset = image.offset_of_address(address);
  return offset ? image.bytes_at(*offset, size) : std::string();
}

// Since 1.18 the section holds the version, preceded by its length; before, a pointer to a Go string.
std::string version_of(const ElfImage& image, std::string_view info) {
  constexpr uint8_t kIsInline = 2;
  if (static_cast<uint8_t>(info[kFlagsAt]) & kIsInline) {
    const auto length = static_cast<uint8_t>(info[kInlineAt]);
    return length < 0x80 ? std::string(info.substr(kInlineAt + 1, length)) : "";
  }
  const std::string header = bytes_at_address(image, load_le(info, kPointersAt), 2 * kWordBytes);
  constexpr uint64_t kLongest = 100;
  const uint64_t length = load_le(header, kWordBytes);
  return length > kLongest ? "" : bytes_at_address(image, load_le(header, 0), length);
}

// "go1.17.3" -> 17
std::optional<int64_t> minor_version(std::string_view version) {
  constexpr std::string_view kPrefix = "go1.";
  const size_t at = version.find(kPrefix);
  if (at == version.npos) return std::nullopt;
  const std::string_view rest = version.substr(at + kPrefix.size());
  return parse_int(rest.substr(0, rest.find_first_not_of("0123456789")));
}

// ---- The calling convention: the scalars of a value go into registers, or, if there are too few, the whole value goes
// onto the stack.

struct Scalar {  // of a value: a number or pointer at an offset
  uint32_t offset_bytes;
  uint32_t size_bytes;
  bool is_float;
};

// Appends the scalars of a value. Returns false if the value must go onto the stack.
bool append_scalars(const types::Types& types, TypeId id, uint32_t offset_bytes, std::vector<Scalar>& out) {
  const types::Type& type = types[id];
  switch (type.kind) {
    case Kind::kStruct:
      if (!type.complete || type.is_union) return false;
      return std::ranges::all_of(type.members, [&](const types::Member& member) {
        return append_scalars(types, member.type, offset_bytes + member.offset_bytes(), out);
      });
    case Kind::kArray:
      if (type.count == 0) return true;
      return type.count == 1 && append_scalars(types, type.element, offset_bytes, out);
    case Kind::kVoid: return false;  // complex numbers
    default: out.push_back({offset_bytes, type.size_bytes, type.kind == Kind::kFloat}); return true;
  }
}

class ValueAssigner {
 public:
  ValueAssigner(const types::Types& types, const kernel::Arch& arch) : types_(types), arch_(arch) {}

  std::optional<ValueLocation> next(TypeId type) {
    std::vector<Scalar> scalars;
    const bool is_possible = append_scalars(types_, type, 0, scalars);
    const auto floats = static_cast<size_t>(std::ranges::count(scalars, true, &Scalar::is_float));
    const size_t integers = scalars.size() - floats;
    if (!is_possible || integers_ + integers > arch_.go.argument_offsets.size() ||
        floats_ + floats > arch_.go.vector_register_count)
      return on_stack(type);
    floats_ += floats;
    ValueLocation out;
    uint32_t done = 0;
    for (const Scalar& scalar : scalars) {
      if (scalar.offset_bytes > done) out.pieces.push_back({LocationPiece::Kind::kNothing, scalar.offset_bytes - done});
      if (!scalar.is_float)
        out.pieces.push_back({LocationPiece::Kind::kValue,
                              scalar.size_bytes,
                              {{Op::kRegister, arch_.go.argument_offsets[integers_++]}}});
      done = scalar.offset_bytes + scalar.size_bytes;
    }
    if (floats > 0) return std::nullopt;
    if (out.pieces.empty() || done < types_[type].size_bytes)
      out.pieces.push_back({LocationPiece::Kind::kNothing, types_[type].size_bytes - done});
    return out;
  }

 private:
  ValueLocation on_stack(TypeId id) {
    const types::Type& type = types_[id];
    const uint32_t align = std::max(type.align_bytes, 1u);
    stack_at_ = (stack_at_ + align - 1) / align * align;
    const int64_t displacement = arch_.go.stack_argument_start_bytes + stack_at_;
    stack_at_ += type.size_bytes;
    return {{{LocationPiece::Kind::kMemory,
              0,
              {{Op::kRegister, arch_.stack_pointer_offset}, {Op::kConstant, displacement}, {Op::kAdd}}}}};
  }

  const types::Types& types_;
  const kernel::Arch& arch_;
  size_t integers_ = 0;
  size_t floats_ = 0;
  uint32_t stack_at_ = 0;
};

}  // namespace

std::optional<GoBinary> read_go_binary(const ElfImage& image) {
  const std::string_view info = image.section_bytes(".go.buildinfo");
  if (!info.starts_with(kMagic) || info.size() <= kInlineAt) return std::nullopt;
  GoBinary out{version_of(image, info)};
  constexpr int64_t kFirstWithRegisters = 17;
  out.uses_registers = minor_version(out.version).value_or(kFirstWithRegisters) >= kFirstWithRegisters;
  return out;
}

std::vector<std::optional<ValueLocation>> go_locations(const types::Types& types, const kernel::Arch& arch,
                                                       const std::vector<TypeId>& values) {
  ValueAssigner assigner(types, arch);
  std::vector<std::optional<ValueLocation>> out;
  for (const TypeId value : values) out.push_back(assigner.next(value));
  return out;
}

uint64_t after_stack_check(const kernel::Arch& arch, std::span<const uint8_t> code) {
  return arch.go.find_stack_check_end == nullptr ? 0 : arch.go.find_stack_check_end(code);
}

// ---- The table begins with a header: a magic number (u32), two zeros, the quantum of addresses and the size of
// pointers.
//
// - Go 1.2: the number of functions; a list of their addresses and of the offsets of their records; the address where
//   the last one ends; the offset of the list of files. All offsets are from the start of the table.
// - Go 1.16: the numbers of functions and of files, and the offsets of five parts: names, compilation units, files,
//   values by address, and the list with the records, whose offsets are from the start of the list.
// - Go 1.18: the address of the text comes before the offsets of the parts, and addresses are u32 relative to it.
// - Go 1.20: another magic number.
//
// A record has its address and then, in words of 4 bytes: the name, the size of the arguments, the place of deferred
// returns, and the offsets of three sequences of values by address: the depth of the stack, the file and the line. The
// number of further sequences follows, the compilation unit (Go 1.16), the first line (Go 1.20), and then, in bytes,
// the kind of the function and its flags (Go 1.17).

namespace {

constexpr uint32_t kMagic2 = 0xfffffffb;
constexpr uint32_t kMagic16 = 0xfffffffa;
constexpr uint32_t kMagic18 = 0xfffffff0;
constexpr uint32_t kMagic20 = 0xfffffff1;
constexpr size_t kTableHeaderBytes = 8;
constexpr size_t kMaxGoNameBytes = 2048;
constexpr uint64_t kMaxFunctions = 4 << 20;
constexpr int kMaxTries = 16;  // of places that have the magic number of a table

// Fields of a record, in words of 4 bytes after the address.
enum RecordField : uint8_t { kName = 0, kStackSequence = 3, kFileSequence = 4, kLineSequence = 5, kUnit = 7 };
constexpr uint64_t kIsOutermost = 1, kIsStackWritten = 2;  // cmd/internal/objabi: FuncFlag_TOPFRAME, FuncFlag_SPWRITE

bool has_magic(std::string_view bytes) {
  const uint64_t magic = load_le(bytes, 0, 4);
  if (bytes.size() < kTableHeaderBytes || bytes[4] != 0 || bytes[5] != 0) return false;
  if (bytes[6] != 1 && bytes[6] != 2 && bytes[6] != 4) return false;
  return bytes[7] == 8 && (magic == kMagic2 || magic == kMagic16 || magic == kMagic18 || magic == kMagic20);
}

// Returns what a relative relocation writes to an address; 0 if there is none.
uint64_t relocated_word(const ElfImage& image, uint64_t address) {
  for (const std::string_view section : {".rela.dyn", ".rela"}) {  // by linkers of C, by Go's own
    const std::string_view rows = image.section_bytes(section);
    for (size_t at = 0; at + sizeof(Elf64_Rela) <= rows.size(); at += sizeof(Elf64_Rela)) {
      const auto row = load_struct<Elf64_Rela>(rows, at);
      if (row && row->r_offset == address && ELF64_R_SYM(row->r_info) == 0) return static_cast<uint64_t>(row->r_addend);
    }
  }
  return 0;
}

bool is_code(const ElfImage& image, uint64_t address) {
  return std::ranges::any_of(image.segments(), [&](const Segment& segment) {
    return segment.executable && segment.contains_address(address);
  });
}

// The linker may start .text with other code than Go's. A table says where the text begins, but in a
// position-independent binary that word is written by a relocation; tables since Go 1.26 leave it 0.
uint64_t text_address(const ElfImage& image, std::string_view table, uint64_t table_address) {
  constexpr uint64_t kTextAt = kTableHeaderBytes + 16;
  const uint64_t own = load_le(table, kTextAt);
  if (is_code(image, own)) return own;
  const uint64_t relocated = relocated_word(image, table_address + kTextAt);
  return is_code(image, relocated) ? relocated : image.section_address(".text").value_or(0);
}

std::optional<GoFunctionTable> parse_in(const ElfImage& image, std::string_view section, size_t offset) {
  const std::string_view table = image.section_bytes(section).substr(offset);
  const uint64_t address = image.section_address(section).value_or(0) + offset;
  auto out = GoFunctionTable::parse(table, text_address(image, table, address));
  const auto is_outside = [&](const GoFunction& function) { return !is_code(image, function.address); };
  if (!out || std::ranges::any_of(out->functions(), is_outside)) return std::nullopt;
  return out;
}

}  // namespace

std::optional<GoFunctionTable> GoFunctionTable::parse(std::string_view bytes, uint64_t text) {
  if (!has_magic(bytes)) return std::nullopt;
  GoFunctionTable out;
  out.bytes_ = bytes;
  Layout& layout = out.layout_;
  const auto word = [&](size_t index) { return load_le(bytes, kTableHeaderBytes + index * layout.word_bytes); };
  layout.quantum = static_cast<uint8_t>(bytes[6]);
  layout.count = word(0);
  const auto magic = static_cast<uint32_t>(load_le(bytes, 0, 4));
  if (magic == kMagic2) {
    layout.list = kTableHeaderBytes + layout.word_bytes;
  } else {
    size_t next = 2;
    if (magic != kMagic16) {
      layout.entry_bytes = 4;
      layout.text = text;
      layout.flags_word = magic == kMagic18 ? 8 : 9;
      ++next;
    }
    for (uint64_t* part : {&layout.names, &layout.units, &layout.files, &layout.values, &layout.list})
      *part = word(next++);
    layout.has_units = true;
  }
  const uint64_t row_bytes = uint64_t{layout.entry_bytes} * 2;
  if (layout.list > bytes.size() || layout.count > (bytes.size() - layout.list) / row_bytes ||
      layout.count > kMaxFunctions)
    return std::nullopt;
  if (magic == kMagic2) layout.files = load_le(bytes, layout.list + layout.count * row_bytes + layout.entry_bytes, 4);
  out.read_functions();
  if (out.functions_.empty()) return std::nullopt;
  return out;
}

void GoFunctionTable::read_functions() {
  const uint64_t row_bytes = uint64_t{layout_.entry_bytes} * 2;
  const uint64_t records = layout_.has_units ? layout_.list : 0;
  functions_.reserve(layout_.count);
  uint64_t address = load_le(bytes_, layout_.list, layout_.entry_bytes);
  for (uint64_t i = 0; i < layout_.count; ++i) {
    const uint64_t row = layout_.list + i * row_bytes;
    const uint64_t next = load_le(bytes_, row + row_bytes, layout_.entry_bytes);
    const uint64_t record = records + load_le(bytes_, row + layout_.entry_bytes, layout_.entry_bytes);
    const bool is_inside = record >= records && record < bytes_.size();
    const uint64_t name = load_le(bytes_, record + layout_.entry_bytes + uint64_t{kName} * 4, 4);
    const std::string_view text = is_inside ? string_at(layout_.names + name) : std::string_view();
    if (next < address) break;  // the addresses ascend
    if (!text.empty()) {
      functions_.push_back({text, layout_.text + address, next - address, record});
      GoFunction& function = functions_.back();
      const uint64_t flags = has_flags() ? field(function, layout_.flags_word) >> 8 : 0;
      function.is_outermost = (flags & kIsOutermost) != 0;
      function.is_stack_written = (flags & kIsStackWritten) != 0;
    }
    address = next;
  }
}

std::string_view GoFunctionTable::string_at(uint64_t offset) const {
  if (offset >= bytes_.size()) return {};
  const std::string_view rest = bytes_.substr(offset, kMaxGoNameBytes);
  const size_t end = rest.find('\0');
  return end == rest.npos ? std::string_view() : rest.substr(0, end);
}

template <class Part>
void GoFunctionTable::walk(uint64_t offset, uint64_t begin, Part part) const {
  if (offset == 0 || layout_.values > bytes_.size() || offset >= bytes_.size() - layout_.values) return;
  std::string_view rest = bytes_.substr(layout_.values + offset);
  const auto take = [&]() -> std::optional<uint32_t> {
    constexpr size_t kMaxNumberBytes = 5;  // of 32 bits; a corrupt one could go on to the end of the table
    ByteReader reader(rest.substr(0, kMaxNumberBytes));
    const auto number = static_cast<uint32_t>(reader.take_uleb128());
    rest.remove_prefix(reader.offset());
    return reader.ok() ? std::optional(number) : std::nullopt;
  };
  uint32_t value = UINT32_MAX;  // -1: values wrap
  uint64_t at = begin;
  for (bool is_first = true;; is_first = false) {
    const auto delta = take();
    if (!delta || (*delta == 0 && !is_first)) break;
    value += (*delta & 1) != 0 ? ~(*delta >> 1) : *delta >> 1;  // the lowest bit is the sign
    const auto length = take();
    if (!length) break;
    at += uint64_t{*length} * layout_.quantum;
    if (!part(static_cast<int32_t>(value), at)) break;
  }
}

std::optional<int64_t> GoFunctionTable::value_at(uint64_t offset, uint64_t begin, uint64_t address) const {
  std::optional<int64_t> out;
  walk(offset, begin, [&](int64_t value, uint64_t end) {
    if (address < end) out = value;
    return !out;
  });
  return out;
}

uint64_t GoFunctionTable::field(const GoFunction& function, uint8_t word) const {
  return load_le(bytes_, function.record + layout_.entry_bytes + uint64_t{word} * 4, 4);
}

std::vector<GoStackDepth> GoFunctionTable::stack_depths(const GoFunction& function) const {
  std::vector<GoStackDepth> out;
  uint64_t at = function.address;
  walk(field(function, kStackSequence), function.address, [&](int64_t depth_bytes, uint64_t end) {
    const bool is_inside = at - function.address < function.size;
    if (!is_inside || end <= at) return false;  // a part has an instruction at least
    out.push_back({at, depth_bytes});
    at = end;
    return true;
  });
  return out;
}

std::string_view GoFunctionTable::file_name(uint64_t record, int64_t number) const {
  const auto index = static_cast<uint64_t>(number);
  if (number < 0 || index > bytes_.size()) return {};
  if (!layout_.has_units) return string_at(load_le(bytes_, layout_.files + index * 4, 4));
  const uint64_t unit = load_le(bytes_, record + layout_.entry_bytes + uint64_t{kUnit} * 4, 4);
  const uint64_t file = load_le(bytes_, layout_.units + (unit + index) * 4, 4);
  return string_at(layout_.files + file);
}

std::optional<GoLine> GoFunctionTable::line_at(uint64_t address) const {
  const auto after = std::ranges::upper_bound(functions_, address, {}, &GoFunction::address);
  if (after == functions_.begin()) return std::nullopt;
  const GoFunction& function = *std::prev(after);
  if (address - function.address >= function.size) return std::nullopt;
  const auto value = [&](RecordField sequence) {
    return value_at(field(function, sequence), function.address, address);
  };
  const auto line = value(kLineSequence);
  if (!line || *line <= 0 || *line > UINT32_MAX) return std::nullopt;
  const auto file = value(kFileSequence);
  return GoLine{file ? file_name(function.record, *file) : std::string_view(), static_cast<uint32_t>(*line)};
}

std::optional<GoFunctionTable> find_go_functions(const ElfImage& image) {
  if (!image.is_64bit() || !read_go_binary(image)) return std::nullopt;
  for (const std::string_view name : {".gopclntab", ".data.rel.ro.gopclntab"})
    if (auto found = parse_in(image, name, 0)) return found;
  // A C linker merges the section into another one.
  constexpr size_t kAlignment = 32;
  for (const std::string_view name : {".data.rel.ro", ".rodata"}) {
    const std::string_view bytes = image.section_bytes(name);
    const size_t begin = -image.section_address(name).value_or(0) % kAlignment;
    // A file can be full of magic numbers, and each try reads all that follows.
    int tries = 0;
    for (size_t at = begin; at < bytes.size() && tries < kMaxTries; at += kAlignment) {
      if (!has_magic(bytes.substr(at))) continue;
      ++tries;
      if (auto found = parse_in(image, name, at)) return found;
    }
  }
  return std::nullopt;
}

}  // namespace espy::symbols

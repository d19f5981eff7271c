// Sources: the Go internal ABI specification (cmd/compile/abi-internal.md) and the package debug/buildinfo.
#include "symbols/go.h"

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

}  // namespace espy::symbols

#include "bpf/disassemble.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <unordered_map>

#include "bpf/machine_code.h"
#include "ir/ir.h"

namespace espy::bpf {
namespace {

using program::BpfInsn;

unsigned dst_of(const BpfInsn& insn) { return insn.registers & 0x0f; }
unsigned src_of(const BpfInsn& insn) { return insn.registers >> 4; }
bool has_register(const BpfInsn& insn) { return (insn.code & kReg) != 0; }

// 32-bit operations name the registers w0-w10.
char prefix(uint8_t code) { return class_of(code) == kAlu32 || class_of(code) == kJmp32 ? 'w' : 'r'; }

std::string invalid(const BpfInsn& insn) {
  return fmt::format("(invalid: code {:#04x} regs {:#04x} off {} imm {})", insn.code, insn.registers, insn.offset,
                     insn.imm);
}

std::string second_operand(const BpfInsn& insn) {
  return has_register(insn) ? fmt::format("{}{}", prefix(insn.code), src_of(insn)) : fmt::format("{}", insn.imm);
}

std::string_view alu_symbol(uint8_t operation) {
  switch (operation) {
    case kAdd: return "+=";
    case kSub: return "-=";
    case kMul: return "*=";
    case kDiv: return "/=";
    case kOr: return "|=";
    case kAnd: return "&=";
    case kLsh: return "<<=";
    case kRsh: return ">>=";
    case kMod: return "%=";
    case kXor: return "^=";
    case kMov: return "=";
    case kArsh: return "s>>=";
    default: return "";
  }
}

std::string byte_swap(const BpfInsn& insn) {
  std::string_view name = class_of(insn.code) == kAlu64 ? "bswap" : has_register(insn) ? "be" : "le";
  return fmt::format("r{} = {}{} r{}", dst_of(insn), name, insn.imm, dst_of(insn));
}

std::string alu(const BpfInsn& insn) {
  uint8_t operation = operation_of(insn.code);
  char reg = prefix(insn.code);
  unsigned dst = dst_of(insn);
  if (operation == kEnd) return byte_swap(insn);
  if (operation == kNeg) return fmt::format("{}{} = -{}{}", reg, dst, reg, dst);
  std::string_view symbol = alu_symbol(operation);
  bool is_division = operation == kDiv || operation == kMod;
  if (symbol.empty()) return invalid(insn);
  if (operation == kMov && insn.offset == 1)
    return fmt::format("r{} = addr_space_cast(r{}, {:#x})", dst, src_of(insn), insn.imm);
  if (operation == kMov && insn.offset != 0)
    return fmt::format("{}{} = (s{}){}", reg, dst, insn.offset, second_operand(insn));
  std::string_view sign = is_division && insn.offset == 1 ? "s" : "";
  return fmt::format("{}{} {}{} {}", reg, dst, sign, symbol, second_operand(insn));
}

std::string_view type_name(uint8_t code, bool is_signed) {
  switch (size_of(code)) {
    case kByte: return is_signed ? "s8" : "u8";
    case kHalf: return is_signed ? "s16" : "u16";
    case kWord: return is_signed ? "s32" : "u32";
    default: return is_signed ? "s64" : "u64";
  }
}

std::string memory(const BpfInsn& insn, unsigned base, bool is_signed = false) {
  return fmt::format("*({} *)(r{} {:+})", type_name(insn.code, is_signed), base, insn.offset);
}

std::string_view atomic_symbol(int32_t operation) {
  switch (operation) {
    case kAtomicAdd: return "add";
    case kAtomicOr: return "or";
    case kAtomicAnd: return "and";
    case kAtomicXor: return "xor";
    default: return "";
  }
}

std::string_view atomic_assignment(int32_t operation) {
  switch (operation) {
    case kAtomicAdd: return "+=";
    case kAtomicOr: return "|=";
    case kAtomicAnd: return "&=";
    default: return "^=";
  }
}

std::string atomic(const BpfInsn& insn) {
  bool is_wide = size_of(insn.code) == kDouble;
  unsigned dst = dst_of(insn), src = src_of(insn);
  char reg = is_wide ? 'r' : 'w';
  std::string_view kind = is_wide ? "atomic64_" : "atomic_";
  std::string pointer = fmt::format("({} *)(r{} {:+})", type_name(insn.code, false), dst, insn.offset);
  switch (insn.imm) {
    case kXchg: return fmt::format("{}{} = {}xchg({}, {}{})", reg, src, kind, pointer, reg, src);
    case kCmpxchg: return fmt::format("{}0 = {}cmpxchg({}, {}0, {}{})", reg, kind, pointer, reg, reg, src);
    case kLoadAcquire:
      return fmt::format("{}{} = load_acquire(({} *)(r{} {:+}))", reg, dst, type_name(insn.code, false), src,
                         insn.offset);
    case kStoreRelease: return fmt::format("store_release({}, {}{})", pointer, reg, src);
    default: break;
  }
  std::string_view symbol = atomic_symbol(insn.imm & ~kFetch);
  if (symbol.empty()) return invalid(insn);
  if ((insn.imm & kFetch) != 0)
    return fmt::format("{}{} = {}fetch_{}({}, {}{})", reg, src, kind, symbol, pointer, reg, src);
  return fmt::format("lock *{} {} {}{}", pointer, atomic_assignment(insn.imm), reg, src);
}

std::string load_or_store(const BpfInsn& insn) {
  uint8_t mode = mode_of(insn.code);
  bool is_signed = mode == kModeMemSigned;
  switch (class_of(insn.code)) {
    case kLdx:
      if (mode != kModeMem && !is_signed) return invalid(insn);
      return fmt::format("r{} = {}", dst_of(insn), memory(insn, src_of(insn), is_signed));
    case kSt:
      if (mode != kModeMem) return invalid(insn);
      return fmt::format("{} = {}", memory(insn, dst_of(insn)), insn.imm);
    default:
      if (mode == kModeAtomic) return atomic(insn);
      if (mode != kModeMem) return invalid(insn);
      return fmt::format("{} = r{}", memory(insn, dst_of(insn)), src_of(insn));
  }
}

std::string_view jump_symbol(uint8_t operation) {
  switch (operation) {
    case kJeq: return "==";
    case kJgt: return ">";
    case kJge: return ">=";
    case kJset: return "&";
    case kJne: return "!=";
    case kJsgt: return "s>";
    case kJsge: return "s>=";
    case kJlt: return "<";
    case kJle: return "<=";
    case kJslt: return "s<";
    case kJsle: return "s<=";
    default: return "";
  }
}

std::string_view helper_name(int32_t number) {
  switch (number) {
#define HELPER(name, number, arguments, effect) \
  case number:                                  \
    return #name;
#include "ir/helpers.def"
#undef HELPER
    default: return "helper";
  }
}

std::string call(const BpfInsn& insn) {
  switch (src_of(insn)) {
    case kCallFunction: return fmt::format("call pc{:+}", insn.imm);
    case kCallKfunc: return fmt::format("call kfunc#{}", insn.imm);
    default: return fmt::format("call {}#{}", helper_name(insn.imm), insn.imm);
  }
}

std::string jump(const BpfInsn& insn) {
  uint8_t operation = operation_of(insn.code);
  if (insn.code == (kJmp | kExit)) return "exit";
  if (operation == kCall) return call(insn);
  if (insn.code == (kJmp | kJa)) return fmt::format("goto pc{:+}", insn.offset);
  if (insn.code == (kJmp32 | kJa)) return fmt::format("gotol pc{:+}", insn.imm);
  if (insn.code == (kJmp | kJcond)) return fmt::format("may_goto pc{:+}", insn.offset);
  std::string_view symbol = jump_symbol(operation);
  if (symbol.empty()) return invalid(insn);
  return fmt::format("if {}{} {} {} goto pc{:+}", prefix(insn.code), dst_of(insn), symbol, second_operand(insn),
                     insn.offset);
}

// `map` is the name of the referenced map; if empty, the immediate is shown.
std::string wide_constant(const BpfInsn& insn, const BpfInsn& second, std::string_view map) {
  std::string name = map.empty() ? fmt::format("{}", insn.imm) : std::string(map);
  unsigned dst = dst_of(insn);
  switch (src_of(insn)) {
    case kPseudoMapFd: return fmt::format("r{} = map[{}]", dst, name);
    case kPseudoMapValue: return fmt::format("r{} = map_value[{}]{:+}", dst, name, second.imm);
    case kPseudoBtfId: return fmt::format("r{} = btf_id[{}]", dst, insn.imm);
    case kPseudoFunction: return fmt::format("r{} = func[pc{:+}]", dst, insn.imm);
    case kPseudoMapIndex: return fmt::format("r{} = map_by_index[{}]", dst, insn.imm);
    case kPseudoMapIndexValue: return fmt::format("r{} = map_value_by_index[{}]{:+}", dst, insn.imm, second.imm);
    default: break;
  }
  uint64_t value = static_cast<uint32_t>(insn.imm) | static_cast<uint64_t>(static_cast<uint32_t>(second.imm)) << 32;
  return fmt::format("r{} = {:#x} ll", dst, value);
}

std::string text_of(const std::vector<BpfInsn>& code, uint32_t index, std::string_view map) {
  const BpfInsn& insn = code[index];
  if (insn.code == kLdImm64) {
    if (index + 1 >= code.size()) return invalid(insn);
    return wide_constant(insn, code[index + 1], map);
  }
  switch (class_of(insn.code)) {
    case kLd: return invalid(insn);
    case kLdx:
    case kSt:
    case kStx: return load_or_store(insn);
    case kAlu32:
    case kAlu64: return alu(insn);
    default: return jump(insn);
  }
}

}  // namespace

std::string disassemble_one(const std::vector<BpfInsn>& code, uint32_t index) { return text_of(code, index, ""); }

std::string disassemble(const program::BpfProgram& code, const program::Program& program, const LineComment& comment) {
  std::unordered_map<uint32_t, program::MapId> maps;
  for (const program::MapReference& reference : code.map_references) maps[reference.insn] = reference.map;
  std::string out;
  auto line = code.lines.begin();
  auto function = code.functions.begin();
  for (uint32_t i = 0; i < code.code.size(); ++i) {
    if (function != code.functions.end() && function->insn == i) out += fmt::format("{}:\n", function++->name);
    for (; line != code.lines.end() && line->insn <= i; ++line) {
      std::string text = comment ? comment(line->span) : "";
      if (!text.empty()) out += fmt::format("; {}\n", text);
    }
    auto map = maps.find(i);
    bool is_known = map != maps.end() && program.maps.contains(map->second);
    std::string_view name = is_known ? std::string_view(program.maps[map->second].name) : "";
    out += fmt::format("{:4}: {}\n", i, text_of(code.code, i, name));
    if (code.code[i].code == kLdImm64) ++i;
  }
  return out;
}

}  // namespace espy::bpf

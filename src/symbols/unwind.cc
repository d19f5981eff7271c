// Reads call frame information into rows that a BPF program can search.
//
// A function without a frame pointer leaves no trace of its caller but the return address, somewhere above the stack
// pointer. How far above changes with each push, and only the compiler knows: it writes that down in .eh_frame, for
// exceptions. The section has an entry for each function (an FDE, frame description entry): a small program that builds
// a table of rules by code address, such as "from here on the CFA is SP + 16, and FP is saved at CFA - 16". The CFA,
// canonical frame address, is the stack pointer of the caller before the call. Of all registers that a debugger
// restores, a stack trace needs three: the instruction pointer, SP, and FP, since some functions (those with alloca,
// for example) compute the CFA from FP. On x86-64, where a call pushes the return address, it is at CFA - 8, for
// example:
//
//   push FP            CFA = SP + 8      FP unchanged              row 1
//   mov  FP, SP        CFA = SP + 16     FP at CFA - 16            row 2
//   ...                CFA = FP + 16     FP at CFA - 16            row 3
//   leave; ret         CFA = SP + 8      FP unchanged              row 4
//
// All entries are run here, once, and their rows sorted by address: 25,000 for a C library. The rules take few distinct
// values, so a rule fits 32 bits and a row with its address 64 (FrameRule). To unwind a frame, BPF needs a binary
// search, an addition and one or two reads.
//
// A rule can be any expression. Compilers and the C library use four, each of which is a kind of row: the one for .plt,
// which depends on the offset in an entry; two that load a saved stack pointer from memory; and that of the signal
// trampoline, whose registers are in a sigcontext. Assembly code of cryptography libraries uses a few other registers
// for an instruction or two: those rows are kUnknown, and the unwinder follows frame pointers from there.
//
// Go has no .eh_frame, but a table of its own with the depth of the stack.
//
// libdw reads all of this too, but takes 13 ms for a C library where this takes one: it finds the entry and runs it
// from its start for each row, and caches all that it reads. When a probe has just been attached and a process is about
// to hit it, that decides whether the first stacks are complete. tests/unit/symbols_unwind_test.cc compares the rows
// with the output of readelf for whole libraries.
//
// Where a call leaves the return address in a register, functions save that and FP together, and functions that call no
// other do not save it at all. The code to which a signal handler returns has no entry on such CPUs, but a symbol.
//
// References: Linux Standard Base, "Exception Frames" (.eh_frame, its encodings and augmentations); DWARF 5, 6.4 (the
// instructions); the psABI of x86-64, 3.6 (register numbers); DWARF for the Arm 64-bit Architecture, 4.1 and 5
// (register numbers, negate_ra_state).
#include "symbols/unwind.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "base/byte_reader.h"
#include "symbols/elf_file.h"
#include "symbols/elf_image.h"
#include "symbols/go_functions.h"
#include "symbols/traced_process.h"

namespace espy::symbols {

namespace {

// ---- Bytes --------------------------------------------------------------------------------------------------------

// Reads .eh_frame, and knows the virtual address of what it reads.
class EhFrameReader : public ByteReader {
 public:
  EhFrameReader(std::string_view bytes, uint64_t address) : ByteReader(bytes), start_address_(address) {}

  uint64_t address() const { return start_address_ + offset(); }

  EhFrameReader take_reader(uint64_t count) {
    const uint64_t start = address();
    return {take_bytes(count), start};
  }

  // A number in the format that the low four bits of a DW_EH_PE encoding name.
  uint64_t take_formatted(uint8_t encoding) {
    switch (encoding & 15) {
      case 0x0: return take_le<uint64_t>();
      case 0x1: return take_uleb128();
      case 0x2: return take_le<uint16_t>();
      case 0x3: return take_le<uint32_t>();
      case 0x4: return take_le<uint64_t>();
      case 0x9: return static_cast<uint64_t>(take_sleb128());
      case 0xa: return static_cast<uint64_t>(int64_t{take_le<int16_t>()});
      case 0xb: return static_cast<uint64_t>(int64_t{take_le<int32_t>()});
      case 0xc: return take_le<uint64_t>();
      default: fail(); return 0;
    }
  }

  // A virtual address, absolute or relative to its own place. Linkers for this CPU use no other base.
  uint64_t take_pointer(uint8_t encoding) {
    constexpr uint8_t kOmitted = 0xff, kRelative = 0x10, kBases = 0x70;
    if (encoding == kOmitted) return 0;
    const uint64_t here = address();
    const uint64_t value = take_formatted(encoding);
    if ((encoding & kBases) == kRelative) return here + value;
    if ((encoding & kBases) != 0) fail();
    return value;
  }

 private:
  uint64_t start_address_ = 0;
};

// ---- Entries ------------------------------------------------------------------------------------------------------

// A CIE, common information entry: what the entries of several functions share.
struct CommonEntry {
  uint64_t code_alignment = 1;
  int64_t data_alignment = 1;
  uint8_t pointer_encoding = 0;
  bool has_augmentation_data = false;
  bool is_signal_frame = false;
  CfiRules initial = {};
};

// Runs the instructions of an entry.
class Interpreter {
 public:
  Interpreter(const kernel::Arch& arch, const CommonEntry& common, uint64_t address)
      : registers_(arch.unwind), common_(common), rules_(common.initial), address_(address) {}

  const CfiRules& rules() const { return rules_; }

  // Calls `row(address, rules)` for each address at which new rules become valid. Returns false if malformed.
  template <class Row>
  bool run(EhFrameReader code, Row row) {
    while (!code.at_end() && code.ok()) {
      const uint64_t before = address_;
      const CfiRules known = rules_;
      if (!step(code)) return false;
      if (address_ != before) row(before, known);
    }
    row(address_, rules_);
    return code.ok();
  }

 private:
  bool step(EhFrameReader& code) {
    const auto op = code.take_le<uint8_t>();
    const uint64_t operand = op & 0x3f;
    switch (op >> 6) {
      case 1: return advance(operand);
      case 2: return set(operand, at_cfa(static_cast<int64_t>(code.take_uleb128())));
      case 3: return restore(operand);
      default: break;
    }
    return op <= 0x09 || op == 0x2d || op == 0x2e || op == 0x2f ? step_register(op, code) : step_frame(op, code);
  }

  bool step_register(uint8_t op, EhFrameReader& code) {
    using How = RegisterRule::Kind;
    switch (op) {
      case 0x00: return true;                                                          // nop
      case 0x01: address_ = code.take_pointer(common_.pointer_encoding); return true;  // set_loc
      case 0x02: return advance(code.take_le<uint8_t>());                              // advance_loc1
      case 0x03: return advance(code.take_le<uint16_t>());                             // advance_loc2
      case 0x04: return advance(code.take_le<uint32_t>());                             // advance_loc4
      case 0x06: return restore(code.take_uleb128());                                  // restore_extended
      case 0x07: return set(code.take_uleb128(), {How::kUndefined});                   // undefined
      case 0x08: return set(code.take_uleb128(), {How::kSame});                        // same_value
      case 0x2d: return true;                                                          // AARCH64_negate_ra_state
      case 0x2e: code.take_uleb128(); return true;                                     // GNU_args_size
      default: break;
    }
    const uint64_t reg = code.take_uleb128();
    switch (op) {
      case 0x05: return set(reg, at_cfa(static_cast<int64_t>(code.take_uleb128())));   // offset_extended
      case 0x09: code.take_uleb128(); return set(reg, {How::kOther});                  // register
      case 0x2f: return set(reg, at_cfa(static_cast<int64_t>(-code.take_uleb128())));  // GNU_negative_offset_extended
      default: return false;
    }
  }

  bool step_frame(uint8_t op, EhFrameReader& code) {
    using How = RegisterRule::Kind;
    const auto expression = [&] { return code.take_bytes(code.take_uleb128()); };
    switch (op) {
      case 0x0a:  // remember_state
        remembered_.push_back(rules_);
        return remembered_.size() <= kMostRemembered;
      case 0x0b:  // restore_state
        if (remembered_.empty()) return false;
        rules_ = remembered_.back();
        remembered_.pop_back();
        return true;
      case 0x0c:  // def_cfa
        define_cfa(code.take_uleb128());
        rules_.cfa_offset = static_cast<int64_t>(code.take_uleb128());
        return true;
      case 0x0d: define_cfa(code.take_uleb128()); return true;                                // def_cfa_register
      case 0x0e: rules_.cfa_offset = static_cast<int64_t>(code.take_uleb128()); return true;  // def_cfa_offset
      case 0x0f:                                                                              // def_cfa_expression
        rules_.is_expression = true;
        rules_.cfa_expression = expression();
        return true;
      case 0x12:  // def_cfa_sf
        define_cfa(code.take_uleb128());
        rules_.cfa_offset = scaled(code.take_sleb128());
        return true;
      case 0x13: rules_.cfa_offset = scaled(code.take_sleb128()); return true;  // def_cfa_offset_sf
      default: break;
    }
    const uint64_t reg = code.take_uleb128();
    switch (op) {
      case 0x10: return set(reg, {How::kAtExpression, 0, expression()});  // expression
      case 0x11: return set(reg, at_cfa(code.take_sleb128()));            // offset_extended_sf
      case 0x14: code.take_uleb128(); return set(reg, {How::kOther});     // val_offset
      case 0x15: code.take_sleb128(); return set(reg, {How::kOther});     // val_offset_sf
      case 0x16: expression(); return set(reg, {How::kOther});            // val_expression
      default: return false;                                              // of unknown length
    }
  }

  bool advance(uint64_t units) {
    address_ += units * common_.code_alignment;
    return true;
  }
  void define_cfa(uint64_t reg) {
    rules_.is_expression = false;
    rules_.cfa_register = reg;
  }
  // Wraps around for the numbers of a malformed file.
  int64_t scaled(int64_t factor) const {
    return static_cast<int64_t>(static_cast<uint64_t>(factor) * static_cast<uint64_t>(common_.data_alignment));
  }
  RegisterRule at_cfa(int64_t factor) const { return {RegisterRule::Kind::kAtCfa, scaled(factor)}; }
  bool set(uint64_t reg, RegisterRule rule) {
    if (reg == registers_.frame_pointer) rules_.frame_pointer = rule;
    if (reg == registers_.return_address) rules_.return_address = rule;
    return true;
  }
  bool restore(uint64_t reg) {
    const CfiRules& initial = common_.initial;
    return set(reg, reg == registers_.frame_pointer ? initial.frame_pointer : initial.return_address);
  }

  // Compilers remember one state or two. Each takes a hundred bytes, and one byte of a file.
  static constexpr size_t kMostRemembered = 64;

  const kernel::UnwindConvention& registers_;
  const CommonEntry& common_;
  CfiRules rules_;
  uint64_t address_;
  std::vector<CfiRules> remembered_;
};

// ---- The section --------------------------------------------------------------------------------------------------

class EhFrameSection {
 public:
  EhFrameSection(const kernel::Arch& arch, const ElfImage& image, std::vector<UnwindRow>& rows,
                 std::vector<uint32_t>& ends)
      : arch_(arch),
        segments_(image.segments()),
        bytes_(image.section_bytes(".eh_frame")),
        address_(image.section_address(".eh_frame").value_or(0)),
        rows_(rows),
        ends_(ends) {}

  // Appends the rows, and the file offsets at which code ends.
  void read() {
    EhFrameReader reader(bytes_, address_);
    while (!reader.at_end()) {
      uint64_t length = reader.take_le<uint32_t>();
      if (length == 0) continue;  // terminates the entries of one input file
      if (length == UINT32_MAX) length = reader.take_le<uint64_t>();
      const size_t id_at = reader.offset();
      EhFrameReader entry = reader.take_reader(length);
      const auto back = entry.take_le<uint32_t>();
      if (!reader.ok()) break;
      if (back == 0)
        read_common(entry, id_at);
      else if (const auto common = commons_.find(id_at - back); common != commons_.end())
        read_function(entry, common->second);
    }
  }

 private:
  // An FDE refers to its CIE by the distance from the FDE's id field to the start of the CIE, its length field.
  void read_common(EhFrameReader entry, size_t id_at) {
    CommonEntry common;
    const auto version = entry.take_le<uint8_t>();
    const std::string_view augmentation = entry.take_string();
    if (version != 1 && version != 3) return;
    common.code_alignment = entry.take_uleb128();
    common.data_alignment = entry.take_sleb128();
    if (version == 1)
      entry.take_le<uint8_t>();
    else
      entry.take_uleb128();
    if (!augmentation.empty() && augmentation[0] != 'z') return;
    common.has_augmentation_data = !augmentation.empty();
    if (common.has_augmentation_data) {
      EhFrameReader data = entry.take_reader(entry.take_uleb128());
      for (const char what : augmentation.substr(1)) {
        if (what == 'R') common.pointer_encoding = data.take_le<uint8_t>();
        if (what == 'L') data.take_le<uint8_t>();
        if (what == 'P') data.take_formatted(data.take_le<uint8_t>());
        if (what == 'S') common.is_signal_frame = true;
      }
    }
    const CommonEntry without_rules = common;
    Interpreter interpreter(arch_, without_rules, 0);
    if (!interpreter.run(entry, [](uint64_t, const CfiRules&) {})) return;
    common.initial = interpreter.rules();
    constexpr size_t kLengthBytes = 4;
    commons_.emplace(id_at - kLengthBytes, common);
  }

  void read_function(EhFrameReader entry, const CommonEntry& common) {
    const uint64_t start = entry.take_pointer(common.pointer_encoding);
    const uint64_t size = entry.take_formatted(common.pointer_encoding);
    if (common.has_augmentation_data) entry.take_bytes(entry.take_uleb128());
    const auto segment = std::ranges::find_if(
        segments_, [&](const Segment& each) { return each.executable && each.contains_address(start); });
    // Discarded functions keep an entry, with an address in no segment.
    if (!entry.ok() || size == 0 || segment == segments_.end()) return;
    const uint64_t offset = segment->offset_of_address(start);
    const uint64_t end = std::min(offset + size, segment->file_offset + segment->file_size);
    if (end > UINT32_MAX) return;
    FrameRule last;
    bool is_first = true;
    const auto add = [&](uint64_t address, const CfiRules& rules) {
      const uint64_t at = offset + (address - start);
      const FrameRule rule = encode_rules(arch_, rules, common.is_signal_frame);
      if (at < offset || at >= end || (!is_first && rule == last)) return;
      rows_.push_back({static_cast<uint32_t>(at), rule});
      last = rule;
      is_first = false;
    };
    Interpreter(arch_, common, start).run(entry, add);
    // The code after it has no rule unless another function starts there, see merge().
    ends_.push_back(static_cast<uint32_t>(end));
  }

  const kernel::Arch& arch_;
  const std::vector<Segment>& segments_;
  std::string_view bytes_;
  uint64_t address_;
  std::map<size_t, CommonEntry> commons_;
  std::vector<UnwindRow>& rows_;
  std::vector<uint32_t>& ends_;
};

// The rows of a file, sorted, where each differs from the one before.
std::vector<UnwindRow> merge(std::vector<UnwindRow> rows, const std::vector<uint32_t>& ends) {
  for (const uint32_t end : ends) rows.push_back({end, {}});
  // Of rows at one offset, the rule of a function precedes the end of another.
  std::ranges::stable_sort(rows, [](const UnwindRow& a, const UnwindRow& b) {
    if (a.file_offset != b.file_offset) return a.file_offset < b.file_offset;
    return a.rule.base() != FrameBase::kUnknown && b.rule.base() == FrameBase::kUnknown;
  });
  std::vector<UnwindRow> out;
  out.reserve(rows.size());
  const UnwindRow* last = nullptr;
  for (const UnwindRow& row : rows) {
    if (last != nullptr && row.file_offset == last->file_offset) continue;
    last = &row;
    if (out.empty() || row.rule != out.back().rule) out.push_back(row);
  }
  return out;
}

Result<std::vector<UnwindRow>> read_rows(const ElfImage& image, const kernel::Arch& arch) {
  if (image.machine() != arch.elf_machine || !image.is_64bit())
    return fail(fmt::format("{} is not for {}", image.path(), arch.name));
  for (const Segment& segment : image.segments())
    if (segment.executable && segment.file_offset + segment.file_size > UINT32_MAX)
      return fail(image.path() + " has code beyond 4 GiB");
  return within_memory("the unwind table of " + image.path(), [&]() -> Result<std::vector<UnwindRow>> {
    std::vector<UnwindRow> rows;
    std::vector<uint32_t> ends;
    EhFrameSection(arch, image, rows, ends).read();
    append_go_rows(image, arch, rows, ends);
    return merge(std::move(rows), ends);
  });
}

// Adds a row for the code to which a signal handler returns, if it is a symbol of the image without a rule. Includes
// the instruction in front of it: a return address is looked up by the call in front of it, and none called this code.
void add_signal_trampoline(const ElfImage& image, const kernel::Arch& arch, std::vector<UnwindRow>& rows) {
  const auto symbols = image.symbol_table(SHT_DYNSYM);
  for (size_t i = 0; symbols && i < symbols->size(); ++i) {
    const auto symbol = symbols->at(i);
    if (!symbol || symbol->name != arch.signal_trampoline) continue;
    const auto offset = image.offset_of_address(symbol->address);
    if (!offset || *offset < arch.max_instruction_bytes || *offset > UINT32_MAX - symbol->size) return;
    const auto begin = static_cast<uint32_t>(*offset - arch.max_instruction_bytes);
    const auto end = static_cast<uint32_t>(*offset + symbol->size);
    const UnwindRow* known = find_row(rows, static_cast<uint32_t>(*offset));
    if (known != nullptr && known->rule.base() != FrameBase::kUnknown) return;
    const FrameRule behind = known == nullptr ? FrameRule{} : known->rule;
    std::erase_if(rows, [&](const UnwindRow& row) { return row.file_offset >= begin && row.file_offset < end; });
    const auto next = std::ranges::upper_bound(rows, begin, {}, &UnwindRow::file_offset);
    const bool has_row_at_end = next != rows.end() && next->file_offset == end;
    const auto at = rows.insert(next, {begin, FrameRule::make(FrameBase::kSignalFrame, 0, FrameRule::kSame)});
    if (!has_row_at_end) rows.insert(at + 1, {end, behind});
    return;
  }
}

}  // namespace

Result<std::vector<UnwindRow>> read_unwind_rows(const std::string& path, const kernel::Arch& arch) {
  return read_rows(TRY(ElfImage::open(path)), arch);
}

Result<std::vector<UnwindRow>> read_unwind_rows(const ElfFile& file, const kernel::Arch& arch) {
  return read_rows(file.image(), arch);
}

Result<std::vector<UnwindRow>> read_unwind_rows(std::string image, const std::string& name, const kernel::Arch& arch) {
  return read_rows(TRY(ElfImage::from_bytes(std::move(image), name)), arch);
}

Result<std::vector<UnwindRow>> read_vdso_unwind_rows(const kernel::Arch& arch) {
  const ElfImage image = TRY(ElfImage::from_bytes(read_vdso_image(), "[vdso]"));
  std::vector<UnwindRow> rows = TRY(read_rows(image, arch));
  add_signal_trampoline(image, arch, rows);
  return rows;
}

const UnwindRow* find_row(const std::vector<UnwindRow>& rows, uint32_t file_offset) {
  const auto after = std::ranges::upper_bound(rows, file_offset, {}, &UnwindRow::file_offset);
  return after == rows.begin() ? nullptr : &*(after - 1);
}

namespace {

constexpr uint8_t kOpDeref = 0x06, kOpPlusConstant = 0x23, kOpBreg0 = 0x70, kOpBreg31 = 0x8f;

// "register + offset", then optionally a dereference, then optionally a constant that is added.
struct Expression {
  uint64_t reg = 0;
  int64_t offset_bytes = 0;
  bool is_dereferenced = false;
  uint64_t added = 0;
};

std::optional<Expression> parse_expression(std::string_view bytes) {
  ByteReader reader(bytes);
  Expression out;
  const auto first = reader.take_le<uint8_t>();
  if (first < kOpBreg0 || first > kOpBreg31) return std::nullopt;
  out.reg = first - kOpBreg0;
  out.offset_bytes = reader.take_sleb128();
  if (!reader.at_end()) {
    if (reader.take_le<uint8_t>() != kOpDeref) return std::nullopt;
    out.is_dereferenced = true;
  }
  if (!reader.at_end()) {
    if (reader.take_le<uint8_t>() != kOpPlusConstant) return std::nullopt;
    out.added = reader.take_uleb128();
  }
  if (!reader.ok() || !reader.at_end()) return std::nullopt;
  return out;
}

// Encodes rules for the registers of one CPU.
class RuleEncoder {
 public:
  explicit RuleEncoder(const kernel::Arch& arch) : arch_(arch) {}

  FrameRule encode(const CfiRules& rules, bool is_signal_frame) const {
    using How = RegisterRule::Kind;
    if (rules.return_address.kind == How::kUndefined) return FrameRule::make(FrameBase::kEnd, 0, FrameRule::kSame);
    if (arch_.return_address_bytes == 0) return encode_with_link(rules);
    if (rules.is_expression && is_signal_frame) return encode_expression(rules, true);
    if (!has_usual_return_address(rules)) return {};
    if (rules.is_expression) return encode_expression(rules, false);
    const uint32_t frame_pointer = encode_frame_pointer(rules.frame_pointer);
    if (rules.cfa_register == arch_.unwind.stack_pointer)
      return rule_with_offset(FrameBase::kStackPointer, rules.cfa_offset, frame_pointer);
    if (rules.cfa_register == arch_.unwind.frame_pointer)
      return rule_with_offset(FrameBase::kFramePointer, rules.cfa_offset, frame_pointer);
    return {};
  }

 private:
  // Whether the return address is where FrameRule implies.
  bool has_usual_return_address(const CfiRules& rules) const {
    using How = RegisterRule::Kind;
    const RegisterRule& address = rules.return_address;
    return address.kind == How::kAtCfa && address.offset_bytes == -int64_t{arch_.return_address_bytes};
  }

  // For CPUs whose calls leave the return address in a register.
  FrameRule encode_with_link(const CfiRules& rules) const {
    using How = RegisterRule::Kind;
    const RegisterRule& link = rules.return_address;
    const RegisterRule& frame = rules.frame_pointer;
    const bool is_by_stack = rules.cfa_register == arch_.unwind.stack_pointer;
    if (rules.is_expression || (!is_by_stack && rules.cfa_register != arch_.unwind.frame_pointer)) return {};
    const FrameBase base = is_by_stack ? FrameBase::kStackPointer : FrameBase::kFramePointer;
    if (link.kind == How::kSame && frame.kind == How::kSame)
      return rule_with_offset(base, rules.cfa_offset, FrameRule::kSame);
    if (link.kind != How::kAtCfa) return {};
    if (frame.kind == How::kSame) {
      const auto location = location_in_frame(link, rules.cfa_offset);
      return location && is_by_stack ? rule_with_offset(FrameBase::kSavedLink, rules.cfa_offset, *location)
                                     : FrameRule{};
    }
    const bool are_together = frame.kind == How::kAtCfa &&
                              static_cast<uint64_t>(link.offset_bytes) == static_cast<uint64_t>(frame.offset_bytes) + 8;
    if (!are_together) return {};
    if (const auto location = location_in_frame(frame, rules.cfa_offset))
      return rule_with_offset(base, rules.cfa_offset, *location);
    return {};
  }

  // The location of a saved register from the CFA or, in large frames, from the base of the CFA; nullopt if it has no
  // encoding.
  static std::optional<uint32_t> location_in_frame(const RegisterRule& rule, int64_t cfa_offset) {
    const auto below = words_below_cfa(rule);
    if (below && *below < FrameRule::kAboveBase) return below;
    const auto above = static_cast<uint64_t>(rule.offset_bytes) + static_cast<uint64_t>(cfa_offset);
    const bool fits = above % 8 == 0 && above / 8 < FrameRule::kAtFramePointer - FrameRule::kAboveBase;
    return fits ? std::optional(FrameRule::kAboveBase + static_cast<uint32_t>(above / 8)) : std::nullopt;
  }

  // The distance of a saved register from the CFA in words; nullopt if it has no encoding.
  static std::optional<uint32_t> words_below_cfa(const RegisterRule& rule) {
    const bool fits =
        rule.offset_bytes < 0 && rule.offset_bytes % 8 == 0 && rule.offset_bytes / -8 < FrameRule::kUnrecoverable;
    return fits ? std::optional(static_cast<uint32_t>(rule.offset_bytes / -8)) : std::nullopt;
  }

  uint32_t encode_frame_pointer(const RegisterRule& rule) const {
    using How = RegisterRule::Kind;
    switch (rule.kind) {
      case How::kSame: return FrameRule::kSame;
      case How::kAtCfa: return words_below_cfa(rule).value_or(FrameRule::kUnrecoverable);
      case How::kAtExpression: {
        const auto at = parse_expression(rule.expression);
        const bool is_at_frame =
            at && at->reg == arch_.unwind.frame_pointer && at->offset_bytes == 0 && !at->is_dereferenced;
        return is_at_frame ? FrameRule::kAtFramePointer : FrameRule::kUnrecoverable;
      }
      default: return FrameRule::kUnrecoverable;
    }
  }

  static FrameRule rule_with_offset(FrameBase base, int64_t offset_bytes, uint32_t frame_pointer) {
    const bool fits = offset_bytes % 8 == 0 && offset_bytes <= FrameRule::kMaxOffsetBytes &&
                      offset_bytes >= -FrameRule::kMaxOffsetBytes;
    return fits ? FrameRule::make(base, offset_bytes, frame_pointer) : FrameRule{};
  }

  FrameRule encode_expression(const CfiRules& rules, bool is_signal_frame) const {
    const kernel::UnwindConvention& unwind = arch_.unwind;
    const uint32_t frame_pointer = encode_frame_pointer(rules.frame_pointer);
    if (!unwind.plt_cfa.empty() && rules.cfa_expression == unwind.plt_cfa)
      return FrameRule::make(FrameBase::kPlt, 0, frame_pointer);
    const auto cfa = parse_expression(rules.cfa_expression);
    if (!cfa) return {};
    const bool is_by_stack = cfa->reg == unwind.stack_pointer;
    const bool is_by_frame = cfa->reg == unwind.frame_pointer;
    if (is_signal_frame && is_by_stack && cfa->is_dereferenced &&
        cfa->offset_bytes == unwind.signal_frame.stack_pointer_bytes)
      return FrameRule::make(FrameBase::kSignalFrame, 0, FrameRule::kSame);
    if (!cfa->is_dereferenced && is_by_stack && !is_signal_frame)
      return rule_with_offset(FrameBase::kStackPointer, cfa->offset_bytes, frame_pointer);
    if (!cfa->is_dereferenced) return {};
    if (is_by_stack && cfa->added == 8)
      return rule_with_offset(FrameBase::kLoadFromStackPointer, cfa->offset_bytes, frame_pointer);
    if (is_by_frame && cfa->added == 0)
      return rule_with_offset(FrameBase::kLoadFromFramePointer, cfa->offset_bytes, frame_pointer);
    return {};
  }

  const kernel::Arch& arch_;
};

}  // namespace

FrameRule encode_rules(const kernel::Arch& arch, const CfiRules& rules, bool is_signal_frame) {
  return RuleEncoder(arch).encode(rules, is_signal_frame);
}

// ---- Go's function table has, for each instruction, the depth of the stack below the return address or, on CPUs with
// a link register, below the caller's stack pointer. Frames of Go are linked by frame pointers as well, but these do
// not show the caller of a function that has not set its own yet, or has no frame.
//
// Source: the layouts of frames in cmd/internal/obj/x86/obj6.go and cmd/internal/obj/arm64/obj7.go (preprocess), and in
// cmd/compile/abi-internal.md.

namespace {

RegisterRule at_cfa(int64_t offset_bytes) { return {RegisterRule::Kind::kAtCfa, offset_bytes}; }

// A call pushes the return address, and the frame begins with the caller's FP.
CfiRules rules_behind_pushed_address(const kernel::Arch& arch, int64_t depth_bytes) {
  const int64_t address_bytes = arch.return_address_bytes;
  CfiRules out;
  out.cfa_register = arch.unwind.stack_pointer;
  out.cfa_offset = depth_bytes + address_bytes;
  out.return_address = at_cfa(-address_bytes);
  if (depth_bytes > 0) out.frame_pointer = at_cfa(-2 * address_bytes);
  return out;
}

// A frame ends with the return address at its SP. The caller's FP is below: there Go's frames overlap by a word.
CfiRules rules_with_link(const kernel::Arch& arch, int64_t depth_bytes) {
  CfiRules out;
  out.cfa_register = arch.unwind.stack_pointer;
  out.cfa_offset = depth_bytes;
  if (depth_bytes == 0) return out;
  out.return_address = at_cfa(-depth_bytes);
  out.frame_pointer = at_cfa(-depth_bytes - 8);
  return out;
}

FrameRule rule_of(const kernel::Arch& arch, int64_t depth_bytes) {
  if (depth_bytes < 0 || depth_bytes > FrameRule::kMaxOffsetBytes) return {};
  const CfiRules rules = arch.return_address_bytes == 0 ? rules_with_link(arch, depth_bytes)
                                                        : rules_behind_pushed_address(arch, depth_bytes);
  return encode_rules(arch, rules, false);
}

}  // namespace

void append_go_rows(const ElfImage& image, const kernel::Arch& arch, std::vector<UnwindRow>& rows,
                    std::vector<uint32_t>& ends) {
  const auto table = find_go_functions(image);
  if (!table || !table->has_flags()) return;
  // Linkers let functions share equal sequences, but with names and lines real tables have more than 30 bytes for each
  // part of one.
  constexpr uint64_t kLeastBytesPerPart = 4;
  uint64_t left_parts = table->size_bytes() / kLeastBytesPerPart;
  for (const GoFunction& function : table->functions()) {
    const auto segment = std::ranges::find_if(image.segments(), [&](const Segment& each) {
      return each.executable && each.contains_address(function.address);
    });
    if (segment == image.segments().end()) continue;
    const uint64_t offset = segment->offset_of_address(function.address);
    const uint64_t end = std::min(offset + function.size, segment->file_offset + segment->file_size);
    const auto add = [&](uint64_t address, FrameRule rule) {
      const uint64_t at = offset + (address - function.address);
      if (at < end) rows.push_back({static_cast<uint32_t>(at), rule});
    };
    if (function.is_outermost) {
      add(function.address, FrameRule::make(FrameBase::kEnd, 0, FrameRule::kSame));
    } else if (!function.is_stack_written) {
      const std::vector<GoStackDepth> depths = table->stack_depths(function);
      if (depths.size() > left_parts) return;
      left_parts -= depths.size();
      for (const GoStackDepth& depth : depths) add(depth.address, rule_of(arch, depth.depth_bytes));
    }
    // The bytes that fill up to the next function keep the last rule, which saves rows.
    ends.push_back(static_cast<uint32_t>(end));
  }
}

}  // namespace espy::symbols

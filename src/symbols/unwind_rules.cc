#include "symbols/unwind_rules.h"

#include <optional>

#include "base/byte_reader.h"

namespace espy::symbols {
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
    using Kind = RegisterRule::Kind;
    if (rules.return_address.kind == Kind::kUndefined) return FrameRule::make(FrameBase::kEnd, 0, FrameRule::kSame);
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
    using Kind = RegisterRule::Kind;
    const RegisterRule& address = rules.return_address;
    return address.kind == Kind::kAtCfa && address.offset_bytes == -int64_t{arch_.return_address_bytes};
  }

  // For CPUs whose calls leave the return address in a register.
  FrameRule encode_with_link(const CfiRules& rules) const {
    using Kind = RegisterRule::Kind;
    const RegisterRule& link = rules.return_address;
    const RegisterRule& frame = rules.frame_pointer;
    const bool is_by_stack = rules.cfa_register == arch_.unwind.stack_pointer;
    if (rules.is_expression || (!is_by_stack && rules.cfa_register != arch_.unwind.frame_pointer)) return {};
    const FrameBase base = is_by_stack ? FrameBase::kStackPointer : FrameBase::kFramePointer;
    if (link.kind == Kind::kSame && frame.kind == Kind::kSame)
      return rule_with_offset(base, rules.cfa_offset, FrameRule::kSame);
    if (link.kind != Kind::kAtCfa) return {};
    if (frame.kind == Kind::kSame) {
      const auto location = location_in_frame(link, rules.cfa_offset);
      return location && is_by_stack ? rule_with_offset(FrameBase::kSavedLink, rules.cfa_offset, *location)
                                     : FrameRule{};
    }
    const bool are_together = frame.kind == Kind::kAtCfa &&
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
    using Kind = RegisterRule::Kind;
    switch (rule.kind) {
      case Kind::kSame: return FrameRule::kSame;
      case Kind::kAtCfa: return words_below_cfa(rule).value_or(FrameRule::kUnrecoverable);
      case Kind::kAtExpression: {
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

}  // namespace espy::symbols

#include "symbols/unwind_rules.h"

#include <cstdlib>
#include <optional>

#include "base/byte_reader.h"

namespace espy::symbols {
namespace {

constexpr uint8_t kOpDeref = 0x06, kOpPlusConstant = 0x23, kOpBreg0 = 0x70;

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
  if (first < kOpBreg0 || first > kOpBreg0 + kReturnAddress) return std::nullopt;
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

// rsp + 8 + ((rip & 15) >= 11) * 8: the expression of linkers for .plt, whose entries push an index in the middle.
bool is_plt_expression(std::string_view expression) {
  constexpr std::string_view kBytes("\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22", 11);
  return expression == kBytes;
}

uint32_t encode_rbp(const RegisterRule& rule) {
  using Kind = RegisterRule::Kind;
  switch (rule.kind) {
    case Kind::kSame: return FrameRule::kSame;
    case Kind::kAtCfa: {
      const bool fits =
          rule.offset_bytes < 0 && rule.offset_bytes % 8 == 0 && -rule.offset_bytes / 8 < FrameRule::kUnrecoverable;
      return fits ? static_cast<uint32_t>(-rule.offset_bytes / 8) : FrameRule::kUnrecoverable;
    }
    case Kind::kAtExpression: {
      const auto place = parse_expression(rule.expression);
      const bool is_at_frame = place && place->reg == kRbp && place->offset_bytes == 0 && !place->is_dereferenced;
      return is_at_frame ? FrameRule::kAtFramePointer : FrameRule::kUnrecoverable;
    }
    default: return FrameRule::kUnrecoverable;
  }
}

FrameRule rule_with_offset(FrameBase base, int64_t offset_bytes, uint32_t rbp) {
  const bool fits = offset_bytes % 8 == 0 && std::abs(offset_bytes) <= FrameRule::kMaxOffsetBytes;
  return fits ? FrameRule::make(base, offset_bytes, rbp) : FrameRule{};
}

FrameRule encode_expression(const CfiRules& rules, bool is_signal_frame) {
  constexpr int64_t kSavedRsp = 160;  // offset in the sigcontext of the frame that the kernel builds
  const uint32_t rbp = encode_rbp(rules.rbp);
  if (is_plt_expression(rules.cfa_expression)) return FrameRule::make(FrameBase::kPlt, 0, rbp);
  const auto cfa = parse_expression(rules.cfa_expression);
  if (!cfa) return {};
  if (is_signal_frame && cfa->reg == kRsp && cfa->is_dereferenced && cfa->offset_bytes == kSavedRsp)
    return FrameRule::make(FrameBase::kSignalFrame, 0, FrameRule::kSame);
  if (!cfa->is_dereferenced && cfa->reg == kRsp && !is_signal_frame)
    return rule_with_offset(FrameBase::kStackPointer, cfa->offset_bytes, rbp);
  if (!cfa->is_dereferenced) return {};
  if (cfa->reg == kRsp && cfa->added == 8)
    return rule_with_offset(FrameBase::kLoadFromStackPointer, cfa->offset_bytes, rbp);
  if (cfa->reg == kRbp && cfa->added == 0)
    return rule_with_offset(FrameBase::kLoadFromFramePointer, cfa->offset_bytes, rbp);
  return {};
}

}  // namespace

FrameRule encode_rules(const CfiRules& rules, bool is_signal_frame) {
  using Kind = RegisterRule::Kind;
  if (rules.return_address.kind == Kind::kUndefined) return FrameRule::make(FrameBase::kEnd, 0, FrameRule::kSame);
  if (rules.is_expression && is_signal_frame) return encode_expression(rules, true);
  if (rules.return_address.kind != Kind::kAtCfa || rules.return_address.offset_bytes != -8) return {};
  if (rules.is_expression) return encode_expression(rules, false);
  const uint32_t rbp = encode_rbp(rules.rbp);
  if (rules.cfa_register == kRsp) return rule_with_offset(FrameBase::kStackPointer, rules.cfa_offset, rbp);
  if (rules.cfa_register == kRbp) return rule_with_offset(FrameBase::kFramePointer, rules.cfa_offset, rbp);
  return {};
}

}  // namespace espy::symbols

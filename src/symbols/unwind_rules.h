// The rules of call frame information at one address, and their encoding as a FrameRule. Internal to symbols/unwind.
#pragma once

#include <cstdint>
#include <string_view>

#include "symbols/unwind.h"

namespace espy::symbols {

// How to recover the caller's value of a register.
struct RegisterRule {
  enum class Kind : uint8_t { kSame, kUndefined, kAtCfa, kAtExpression, kOther } kind = Kind::kSame;
  int64_t offset_bytes = 0;  // kAtCfa
  std::string_view expression = {};
};

// The rules for the code at one address. Expressions are views into .eh_frame.
struct CfiRules {
  bool is_expression = false;
  uint64_t cfa_register = 0;
  int64_t cfa_offset = 0;
  std::string_view cfa_expression = {};
  RegisterRule frame_pointer = {};
  RegisterRule return_address = {};
};

// Returns the rule in 32 bits; FrameBase::kUnknown if it has no such form.
FrameRule encode_rules(const kernel::Arch& arch, const CfiRules& rules, bool is_signal_frame);

}  // namespace espy::symbols

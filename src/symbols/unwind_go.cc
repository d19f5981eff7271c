// Go's function table has, for each instruction, the depth of the stack below the return address or, on CPUs with a
// link register, below the caller's stack pointer. Frames of Go are linked by frame pointers as well, but these do not
// show the caller of a function that has not set its own yet, or has no frame.
//
// Source: the layouts of frames in cmd/internal/obj/x86/obj6.go and cmd/internal/obj/arm64/obj7.go (preprocess), and in
// cmd/compile/abi-internal.md.
#include "symbols/unwind_go.h"

#include <algorithm>

#include "symbols/elf_image.h"
#include "symbols/go_functions.h"
#include "symbols/unwind_rules.h"

namespace espy::symbols {

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

// Memory of the program itself ("our memory"): small objects on the stack, larger ones in per-CPU scratch; constants.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lower/emitter.h"
#include "lower/scratch.h"

namespace espy::lower {

class Memory : Emitter {
 public:
  Memory(ModuleContext& module, Functions& functions, Scratch& scratch)
      : Emitter(module, functions), scratch_(scratch) {}

  // True if an object of `size_bytes`, a multiple of 8, shall be on the stack; then it counts as allocated there.
  bool takes_stack(uint32_t size_bytes);
  // See Lowering for these.
  ValueId allocate(uint32_t size_bytes, std::string_view name);
  void zero(ValueId address, uint32_t size_bytes);
  void copy(ValueId destination, ValueId source, uint32_t size_bytes);
  Operand load(ValueId address, TypeId type);
  // The scalar at `address` + offset, by several loads if it is not aligned to its size.
  ValueId load_scalar(ValueId address, int64_t offset_bytes, uint8_t size_bytes, bool is_signed);
  ValueId constant_bytes(std::string_view bytes);

  // The address of `size_bytes` constant zeros.
  ValueId zeros(uint32_t size_bytes) { return constant_bytes(std::string(size_bytes, '\0')); }
  // Copies a zero-padded string without a helper; returns its length.
  ValueId copy_text(ValueId destination, ValueId source, uint32_t capacity_bytes);
  // The largest power of two up to 8 by which `address` + offset is known to be aligned. Stack accesses must be
  // aligned.
  uint32_t alignment_of(ValueId address, int64_t offset_bytes = 0);
  // False under lockdown=confidentiality, which disables the helper that reads kernel memory.
  bool may_copy_from_kernel() const { return kernel().has(kernel::Feature::kProbeReadKernel); }

 private:
  void copy_in_pieces(ValueId destination, ValueId source, uint32_t size_bytes);
  void copy_by_words(ValueId destination, ValueId source, uint32_t size_bytes, uint32_t align_bytes);

  Scratch& scratch_;
  uint32_t stack_bytes_ = 0;  // allocated so far
};

}  // namespace espy::lower

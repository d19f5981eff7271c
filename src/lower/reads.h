// Reads memory of the kernel and of user programs.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string_view>

#include "lower/emitter.h"
#include "lower/failures.h"
#include "lower/memory.h"
#include "lower/scratch.h"

namespace espy::lower {

class Reads : Emitter {
 public:
  Reads(ModuleContext& module, Functions& functions, const check::Unit& unit, Scratch& scratch, Memory& memory,
        Failures& failures);

  // See Lowering for these.
  void read(ValueId destination, uint32_t size_bytes, ValueId source, AddressSpace space);
  ValueId read_scalar(ValueId base, int64_t offset_bytes, uint8_t size_bytes, bool is_signed, AddressSpace space,
                      TypeId struct_type);
  ValueId read_string(ValueId destination, uint32_t capacity_bytes, ValueId source, AddressSpace space, bool zero_rest);
  // The same for the contents of a string type, which may be an array without a NUL. `destination` has its size.
  ValueId read_text(ValueId destination, TypeId string, ValueId source, AddressSpace space, bool zero_rest);
  ValueId call_reader(Helper helper, ValueId destination, ValueId size, uint32_t most_bytes, ValueId source);
  ValueId current_task_field(std::span<const std::string_view> path);
  ValueId current_task_field(std::initializer_list<std::string_view> path) {
    return current_task_field(std::span(path.begin(), path.size()));
  }

  // read() of `size` bytes, at most `most_bytes`.
  void read_dynamic(ValueId destination, ValueId size, uint32_t most_bytes, ValueId source, AddressSpace space);
  // The object of this type at `address` + offset: read if it is a scalar, else its address. `struct_type` as in
  // read_scalar().
  Operand typed(ValueId address, int64_t offset_bytes, TypeId type, AddressSpace space, TypeId struct_type = {});
  // As read_scalar(), always by a helper.
  ValueId copied_scalar(ValueId base, int64_t offset_bytes, uint8_t size_bytes, bool is_signed, AddressSpace space);
  // The object of this type that `pointer` points to.
  Operand dereference(Operand pointer, TypeId type);
  // The address in `pointer`, but that of zeros if it is the null of an absent map element.
  ValueId readable(Operand pointer);
  // An object of this type, which `read` reads at a place of what `pointer` points to; zeros if the pointer is null.
  Operand through(Operand pointer, TypeId type, const std::function<Operand(ValueId address)>& read);

  // True if a read of user memory may sleep in the current function. Callbacks that iterate over a map hold a lock.
  bool may_sleep_here() const { return may_sleep_ && !functions_.is_in_callback(); }
  // True if a read that may sleep was written.
  bool sleeps() const { return sleeps_; }

 private:
  enum class KernelRead : uint8_t { kCast, kTypedCast, kCopy };  // see reads.cc
  KernelRead kernel_read(TypeId struct_type, int64_t offset_bytes, uint8_t size_bytes);
  bool is_plain_member(TypeId struct_type, int64_t offset_bytes, uint8_t size_bytes);
  bool is_iterator_context(ValueId base);
  // Returns true if the pointer may be the result of a map lookup, which is null for an absent key.
  bool may_be_null(Operand pointer);
  Operand padded_text(ValueId address, TypeId string);
  ValueId fault_in(ValueId destination, ValueId size, uint32_t most_bytes, ValueId source);

  const spec::ProbeContext& context_;
  Scratch& scratch_;
  Memory& memory_;
  Failures& failures_;
  const bool may_sleep_;
  bool sleeps_ = false;
};

}  // namespace espy::lower

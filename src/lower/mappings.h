// Emits the search for a mapping of the current task, and for the identity of its file, among the structures of the
// kernel. It is used to unwind user stacks (builtins/unwind_stack.cc), and in the program by which user space learns
// the key of a file (program/unwind_layout.h).
//
// In: the root of the tree of mappings. Memory is read without a lock: if the tree changes at the same time, the search
// may fail or find another mapping, but reads cannot fault.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/builder.h"
#include "lower/module_context.h"

namespace espy::lower {

// Returns the offset of a member of a kernel struct in bytes; -1 if there is none.
int64_t member_offset(kernel::Kernel& kernel, types::Types& types, std::string_view tag, std::string_view name);

// Offsets of the members that are read, from BTF; negative if missing.
struct MappingOffsets {
  int64_t start, end, flags, page, file;                        // vm_area_struct
  int64_t inode;                                                // file
  int64_t mode, number, size, generation, super_block, device;  // inode; the device of the super_block
  int64_t wide_slots = -1, narrow_slots = -1;                   // of the slots in maple nodes, in words
  // Offsets of the node in a vm_area_struct and of its children, before Linux 6.1.
  int64_t link, left = -1, right = -1;

  MappingOffsets(kernel::Kernel& kernel, types::Types& types);
  int64_t area_bytes() const;
  bool is_maple_tree() const { return wide_slots == 16 && narrow_slots == 10; }
  bool is_red_black_tree() const { return link >= 0 && left >= 0 && right >= 0; }
  bool are_known() const;
};

class MappingReader {
 public:
  // Memory that is used: a node of the tree, then the vm_area_struct, then the inode.
  static constexpr int64_t kMemoryBytes = 256;

  // The memory is at `memory_offset` from `base`.
  MappingReader(ir::Builder& ir, const MappingOffsets& offsets, ir::ValueId base, int64_t memory_offset)
      : ir_(ir), offsets_(offsets), base_(base), memory_(memory_offset) {}

  // Emits the descent in the tree. Returns the vm_area_struct whose range contains `address`, or the nearest one; 0 if
  // there is none.
  ir::ValueId find_area(ir::ValueId root, ir::ValueId address);
  // Reads the vm_area_struct, whose members the following load. Jumps to `failed` if it cannot be read.
  void read_area(ir::ValueId area, ir::BlockId failed);
  ir::ValueId start() { return get(offsets_.start); }
  ir::ValueId end() { return get(offsets_.end); }
  ir::ValueId flags() { return get(offsets_.flags); }
  ir::ValueId page() { return get(offsets_.page); }
  ir::ValueId file() { return get(offsets_.file); }
  // Stores the UnwindFileKey of a file at `key_offset` from `key`; 0 for what cannot be read. Jumps to `none` if it is
  // not a regular file.
  void read_key(ir::ValueId file, ir::ValueId key, int64_t key_offset, ir::BlockId none);
  // Emits the load of a member of the struct at `address`, which is not in our memory; 0 if it cannot be read.
  ir::ValueId follow(ir::ValueId address, int64_t member, uint8_t size_bytes);

 private:
  ir::ValueId constant(int64_t value) { return ir_.constant(value); }
  ir::ValueId get(int64_t offset, uint8_t size_bytes = 8) { return ir_.load(size_bytes, base_, memory_ + offset); }
  ir::ValueId variable(const char* name, ir::ValueId value);
  ir::ValueId read(uint64_t size_bytes, ir::ValueId source, int64_t to = 0);
  void branch_if(ir::Condition condition, ir::ValueId a, ir::ValueId b, ir::BlockId done);
  ir::ValueId count_pivots(ir::ValueId address, int64_t pivots);
  ir::ValueId slot_for(ir::ValueId address, int64_t pivots, int64_t first_slot);
  ir::ValueId find_in_red_black_tree(ir::ValueId root, ir::ValueId address);
  ir::ValueId find_in_maple_tree(ir::ValueId root, ir::ValueId address);

  ir::Builder& ir_;
  const MappingOffsets& offsets_;
  ir::ValueId base_;
  int64_t memory_;
};

// Adds the program that reads the key of a mapping, if programs unwind stacks. Requires that those are lowered.
void add_file_key_program(ModuleContext& module);

}  // namespace espy::lower

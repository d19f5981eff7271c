#include "lower/mappings.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "lower/ir_functions.h"
#include "program/unwind_layout.h"

namespace espy::lower {

using ir::BlockId;
using ir::Condition;
using ir::Helper;
using ir::Op;
using ir::ValueId;
using program::UnwindFileKey;
using program::UnwindKeyQuery;

namespace {

int64_t offset_in(kernel::Kernel& kernel, types::Types& types, TypeId type, std::string_view name) {
  if (!type) return -1;
  kernel.complete(types, type);
  const auto found = types::find_member(types, type, name);
  return found ? int64_t{found->offset_bits / 8} : -1;
}

// The type that a member points to; invalid if there is none.
TypeId target_of(kernel::Kernel& kernel, types::Types& types, TypeId type, std::string_view name) {
  if (!type) return {};
  kernel.complete(types, type);
  const auto found = types::find_member(types, type, name);
  if (!found || types[found->type].kind != types::Kind::kPointer) return {};
  return types[found->type].element;
}

}  // namespace

int64_t member_offset(kernel::Kernel& kernel, types::Types& types, std::string_view tag, std::string_view name) {
  return offset_in(kernel, types, kernel.find_struct(types, tag), name);
}

// To find a struct by its name may take 0.3 ms, as BTF has no index.
MappingOffsets::MappingOffsets(kernel::Kernel& kernel, types::Types& types) {
  const auto at = [&](std::string_view tag, std::string_view name) { return member_offset(kernel, types, tag, name); };
  const auto in = [&](TypeId type, std::string_view name) { return offset_in(kernel, types, type, name); };
  const TypeId area = kernel.find_struct(types, "vm_area_struct");
  start = in(area, "vm_start");
  end = in(area, "vm_end");
  flags = in(area, "vm_flags");
  page = in(area, "vm_pgoff");
  file = in(area, "vm_file");
  link = in(area, "vm_rb");
  const TypeId opened = target_of(kernel, types, area, "vm_file");
  inode = in(opened, "f_inode");
  const TypeId node = target_of(kernel, types, opened, "f_inode");
  mode = in(node, "i_mode");
  number = in(node, "i_ino");
  size = in(node, "i_size");
  generation = in(node, "i_generation");
  super_block = in(node, "i_sb");
  device = in(target_of(kernel, types, node, "i_sb"), "s_dev");
  if (link >= 0) {
    left = at("rb_node", "rb_left");
    right = at("rb_node", "rb_right");
  } else {
    wide_slots = at("maple_range_64", "slot") / 8;
    narrow_slots = at("maple_arange_64", "slot") / 8;
  }
}

int64_t MappingOffsets::area_bytes() const { return std::max({start, end, flags, page, file}) + 8; }

bool MappingOffsets::are_known() const {
  const int64_t area_offsets[] = {start, end, flags, page, file};
  const int64_t key_offsets[] = {inode, mode, number, size, generation, super_block, device};
  const auto is_in_memory = [](int64_t at) { return at >= 0 && at + 8 <= MappingReader::kMemoryBytes; };
  return std::ranges::all_of(area_offsets, is_in_memory) &&
         std::ranges::all_of(key_offsets, [](int64_t at) { return at >= 0; }) &&
         (is_maple_tree() || (is_red_black_tree() && is_in_memory(link + std::max(left, right))));
}

ValueId MappingReader::variable(const char* name, ValueId value) {
  const ValueId slot = ir_.slot(ir_.add_variable(name));
  ir_.store(8, slot, value);
  return slot;
}

// Returns 0 if it succeeds. Otherwise the memory is zeroed.
ValueId MappingReader::read(uint64_t size_bytes, ValueId source, int64_t to) {
  const ValueId destination = ir_.binary(Op::k_add, base_, memory_ + to);
  return ir_.call(Helper::probe_read_kernel, {destination, constant(static_cast<int64_t>(size_bytes)), source});
}

void MappingReader::branch_if(Condition condition, ValueId a, ValueId b, BlockId done) {
  const BlockId on = ir_.add_block();
  ir_.branch(condition, a, b, done, on);
  ir_.enter(on);
}

// Emits the number of the node's pivots that are below `address`. A pivot is the last index of its slot; unused ones
// are 0 and count as infinite. Without branches: (pivot - 1) / 2 - address / 2 is negative, and its sign bit 1, for a
// pivot below `address`. The subtraction of 1 turns 0 to the maximum; the halves avoid an overflow.
ValueId MappingReader::count_pivots(ValueId address, int64_t pivots) {
  const ValueId half = ir_.binary(Op::k_shr, address, 1);
  ValueId count = constant(0);
  for (int64_t i = 1; i <= pivots; ++i) {
    const ValueId last = ir_.binary(Op::k_sub, get(8 * i), 1);
    const ValueId below = ir_.binary(Op::k_sub, ir_.binary(Op::k_shr, last, 1), half);
    count = ir_.binary(Op::k_add, count, ir_.binary(Op::k_shr, below, 63));
  }
  return count;
}

// Emits the load of the slot for `address` from the node in memory.
ValueId MappingReader::slot_for(ValueId address, int64_t pivots, int64_t first_slot) {
  const ValueId slot = ir_.binary(Op::k_and, ir_.binary(Op::k_add, count_pivots(address, pivots), first_slot), 31);
  return ir_.load(8, ir_.binary(Op::k_add, base_, ir_.binary(Op::k_shl, slot, 3)), memory_);
}

ValueId MappingReader::find_area(ValueId root, ValueId address) {
  return offsets_.is_maple_tree() ? find_in_maple_tree(root, address) : find_in_red_black_tree(root, address);
}

// The nodes are in the vm_area_structs. A path of the tree is at most twice as long as another, and 65,530 mappings
// are the most that vm.max_map_count allows without being raised.
ValueId MappingReader::find_in_red_black_tree(ValueId root, ValueId address) {
  constexpr int64_t kLevels = 32;
  const ValueId entry = variable("entry", root);
  const ValueId area = variable("area", constant(0));
  const int64_t bytes =
      std::max({offsets_.start, offsets_.end, offsets_.link + std::max(offsets_.left, offsets_.right)}) + 8;
  ir_.count_up(kLevels, [&](ValueId, BlockId done) {
    const ValueId node = ir_.load(8, entry);
    branch_if(Condition::eq, node, constant(0), done);
    const ValueId here = ir_.binary(Op::k_sub, node, offsets_.link);
    branch_if(Condition::ne, read(static_cast<uint64_t>(bytes), here), constant(0), done);
    when(
        ir_, Condition::ult, address, get(offsets_.end),
        [&] {
          ir_.store(8, area, here);
          branch_if(Condition::uge, address, get(offsets_.start), done);
          ir_.store(8, entry, get(offsets_.link + offsets_.left));
        },
        [&] { ir_.store(8, entry, get(offsets_.link + offsets_.right)); });
  });
  return ir_.load(8, area);
}

// Bits 3 to 6 of a node's address are its type.
ValueId MappingReader::find_in_maple_tree(ValueId root, ValueId address) {
  constexpr int64_t kLevels = 6, kInNode = ~int64_t{0xff}, kLastLeafType = 1, kArange64 = 3, kNodeTag = 2;
  const ValueId entry = variable("entry", root);
  const ValueId area = variable("area", constant(0));
  const ValueId tag = ir_.binary(Op::k_and, ir_.load(8, entry), 3);
  when(ir_, Condition::eq, tag, constant(kNodeTag), [&] {
    ir_.count_up(kLevels, [&](ValueId, BlockId done) {
      const ValueId node = ir_.load(8, entry);
      const ValueId type = ir_.binary(Op::k_and, ir_.binary(Op::k_shr, node, 3), 15);
      const ValueId result = read(kMemoryBytes, ir_.binary(Op::k_and, node, kInNode));
      branch_if(Condition::ne, result, constant(0), done);
      when(
          ir_, Condition::eq, type, constant(kArange64),
          [&] { ir_.store(8, entry, slot_for(address, offsets_.narrow_slots - 1, offsets_.narrow_slots)); },
          [&] { ir_.store(8, entry, slot_for(address, offsets_.wide_slots - 1, offsets_.wide_slots)); });
      const BlockId leaf = ir_.add_block("leaf"), inner = ir_.add_block("inner");
      ir_.branch(Condition::ule, type, kLastLeafType, leaf, inner);
      ir_.enter(leaf);
      ir_.store(8, area, ir_.load(8, entry));
      ir_.jump(done);
      ir_.enter(inner);
    });
  });
  return ir_.load(8, area);
}

void MappingReader::read_area(ValueId area, BlockId failed) {
  branch_if(Condition::ne, read(static_cast<uint64_t>(offsets_.area_bytes()), area), constant(0), failed);
}

ValueId MappingReader::follow(ValueId address, int64_t member, uint8_t size_bytes) {
  constexpr int64_t kAt = kMemoryBytes - 8;
  read(size_bytes, ir_.binary(Op::k_add, address, member), kAt);
  return get(kAt, size_bytes);
}

void MappingReader::read_key(ValueId file, ValueId key, int64_t key_offset, BlockId none) {
  // Of an inode, which has some 600: all members, except that the generation was near its end before Linux 6.11.
  constexpr int64_t kInodeBytes = 128;
  constexpr int64_t kType = 0170000, kRegular = 0100000;  // S_IFMT, S_IFREG
  const ValueId inode = follow(file, offsets_.inode, 8);
  read(kInodeBytes, inode);
  const auto member = [&](int64_t offset, uint8_t size_bytes) {
    return offset + size_bytes <= kInodeBytes ? get(offset, size_bytes) : follow(inode, offset, size_bytes);
  };
  branch_if(Condition::ne, ir_.binary(Op::k_and, member(offsets_.mode, 2), kType), constant(kRegular), none);
  const auto put = [&](uint8_t size_bytes, size_t at, ValueId value) {
    ir_.store(size_bytes, key, value, key_offset + static_cast<int64_t>(at));
  };
  put(8, offsetof(UnwindFileKey, size_bytes), member(offsets_.size, 8));
  put(8, offsetof(UnwindFileKey, inode), member(offsets_.number, 8));
  put(4, offsetof(UnwindFileKey, generation), member(offsets_.generation, 4));
  put(4, offsetof(UnwindFileKey, device), follow(member(offsets_.super_block, 8), offsets_.device, 4));
}

namespace {

// Emits the root of the tree of the current task's mappings.
ValueId root_of_mappings(ModuleContext& module, ir::Builder& ir, const MappingOffsets& offsets, MappingReader& reader) {
  const auto at = [&](std::string_view tag, std::string_view name) {
    return member_offset(module.kernel, module.types, tag, name);
  };
  const int64_t root = offsets.is_maple_tree() ? at("mm_struct", "mm_mt") + at("maple_tree", "ma_root")
                                               : at("mm_struct", "mm_rb") + at("rb_root", "rb_node");
  const ValueId mm = reader.follow(ir.call(Helper::get_current_task, {}), at("task_struct", "mm"), 8);
  return reader.follow(mm, root, 8);
}

}  // namespace

void add_file_key_program(ModuleContext& module) {
  if (!module.program.unwinding.files.valid()) return;
  const MapId map = module.program.maps.add({.name = std::string(program::kUnwindKeyName),
                                             .value_size = sizeof(UnwindKeyQuery) + MappingReader::kMemoryBytes,
                                             .is_mmapable = true});
  const program::ProgramId program =
      module.program.programs.add({.name = std::string(program::kUnwindKeyName), .hook = program::Hook::kNone});
  ir::Function function{.name = std::string(program::kUnwindKeyName)};
  ir::Builder ir(function);
  ir.enter(ir.add_block("entry"));
  const ValueId query = ir.map_value(map, 0);
  const ValueId address = ir.load(8, query, offsetof(UnwindKeyQuery, address));
  const MappingOffsets offsets(module.kernel, module.types);
  MappingReader reader(ir, offsets, query, sizeof(UnwindKeyQuery));
  const ValueId area = reader.find_area(root_of_mappings(module, ir, offsets, reader), address);
  const BlockId none = ir.add_block("none");
  end_program_if(ir, Condition::eq, area, 0);
  reader.read_area(area, none);
  end_program_if(ir, Condition::ne, reader.start(), address);
  const ValueId file = reader.file();
  end_program_if(ir, Condition::eq, file, 0);
  reader.read_key(file, query, offsetof(UnwindKeyQuery, key), none);
  ir.store(8, query, ir.constant(1), offsetof(UnwindKeyQuery, is_known));
  ir.jump(none);
  ir.enter(none);
  ir.ret(0);
  const ir::FunctionId id = module.ir.functions.add(std::move(function));
  module.ir.units.push_back({program, {id}});
}

}  // namespace espy::lower

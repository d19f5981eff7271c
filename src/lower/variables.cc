#include "lower/variables.h"

#include <algorithm>

namespace espy::lower {

VariableStorage& Variables::storage(VariableId variable) {
  std::vector<VariableStorage>& all = scope_.activation().storage;
  if (all.size() <= variable.index) all.resize(variable.index + 1);
  VariableStorage& storage = all[variable.index];
  // An unrolled body makes a callback in each copy, and a slot belongs to one function.
  if (storage.slot.valid() && storage.owner != functions_.current()) storage = {};
  return storage;
}

// The storage, with a place.
VariableStorage& Variables::placed(VariableId variable) {
  VariableStorage& storage = this->storage(variable);
  if (!storage.is_placed()) storage = place(variable);
  return storage;
}

VariableStorage Variables::place(VariableId variable) {
  const check::Variable& info = scope_.unit().variables[variable];
  const bool is_shared = scope_.activation().shared_variables.contains(variable.index);
  if (is_scalar(info.type)) {
    if (is_shared) return {.frame_offset = frame_.add_word()};
    return {.slot = new_slot(info.name), .owner = functions_.current()};
  }
  const auto size = static_cast<uint32_t>(round_up(std::max(types()[info.type].size_bytes, 1u), 8));
  if (!memory_.takes_stack(size)) return {.scratch_offset = scratch_.reserve(size)};
  if (is_shared) return {.frame_offset = frame_.add(size)};
  return {.slot = ir().add_slot(size, 8, info.name), .owner = functions_.current()};
}

ValueId Variables::address(VariableId variable) {
  const VariableStorage& storage = placed(variable);
  if (storage.scratch_offset) return scratch_.address(*storage.scratch_offset);
  if (storage.frame_offset) return offset(frame_.address(), storage.frame_offset);
  CHECK(!is_scalar(scope_.unit().variables[variable].type));
  return ir().slot(storage.slot);
}

Operand Variables::read(VariableId variable) {
  const TypeId type = scope_.unit().variables[variable].type;
  if (!is_scalar(type)) return {type, address(variable), true};
  if (!storage(variable).is_placed()) write(variable, {type, ir().constant(0)});
  const VariableStorage& storage = placed(variable);
  if (storage.frame_offset) return {type, ir().load(8, frame_.address(), storage.frame_offset)};
  return {type, read_slot(storage.slot)};
}

void Variables::write(VariableId variable, Operand operand) {
  const TypeId type = scope_.unit().variables[variable].type;
  if (!is_scalar(type)) return conversions_.store_converted(address(variable), operand, type);
  const bool is_integer = types::is_integer(types()[type]);
  const ValueId value = conversions_.convert(operand, type).value;
  const VariableStorage& storage = placed(variable);
  if (storage.frame_offset) {
    ir().store(8, frame_.address(), value, storage.frame_offset);
    // As in Laundering::launder().
    if (is_integer) ir().store(1, frame_.address(), value, storage.frame_offset);
  } else {
    write_slot(storage.slot, is_integer && laundering_.is_in_converging_loop() ? laundering_.launder(value) : value);
  }
}

void Variables::clear(VariableId variable) {
  const TypeId type = scope_.unit().variables[variable].type;
  if (!type.valid() || types()[type].kind == Kind::kVoid) return;
  if (is_scalar(type)) return write(variable, {type, ir().constant(0)});
  memory_.zero(address(variable), types()[type].size_bytes);
}

void Variables::launder_all() {
  if (!laundering_.kernel_has_may_goto()) return;  // the verifier must see the end of each loop itself
  const std::vector<VariableStorage> all = scope_.activation().storage;
  for (uint32_t i = 0; i < all.size(); ++i) {
    const bool is_integer = types::is_integer(types()[scope_.unit().variables[VariableId{i}].type]);
    const bool is_here = all[i].slot.valid() && all[i].owner == functions_.current();
    if (is_integer && is_here) write_slot(all[i].slot, laundering_.launder(read_slot(all[i].slot)));
  }
}

}  // namespace espy::lower

#include "lower/variables.h"

namespace espy::lower {

VariableStorage& Variables::storage(VariableId variable) {
  std::vector<VariableStorage>& all = scope_.activation().storage;
  if (all.size() <= variable.index) all.resize(variable.index + 1);
  VariableStorage& storage = all[variable.index];
  // An unrolled body makes a callback in each copy, and a slot belongs to one function.
  if (storage.slot.valid() && storage.owner != functions_.current()) storage = {};
  return storage;
}

// Assigns storage at the first declaration; later ones, in other copies of an unrolled body, keep it.
VariableStorage& Variables::declare(VariableId variable) {
  VariableStorage& storage = this->storage(variable);
  const check::Variable& info = scope_.unit().variables[variable];
  const bool is_shared = scope_.activation().shared_variables.contains(variable.index);
  storage.owner = functions_.current();
  const bool is_new = !storage.slot.valid() && !storage.address.valid() && !storage.frame_offset;
  if (is_new && is_shared) storage.frame_offset = frame_.add_word();
  if (!is_scalar(info.type)) {
    allocate(storage, info);
  } else if (is_new && !is_shared) {
    storage.slot = new_slot(info.name);
  }
  return storage;
}

// Memory from an earlier declaration may belong to another function, or to a block that does not dominate this one, so
// each declaration allocates. The address of a callback's stack must not be in the frame, which outlives it.
void Variables::allocate(VariableStorage& storage, const check::Variable& variable) {
  const uint32_t size = types()[variable.type].size_bytes;
  const bool must_outlive = storage.frame_offset && functions_.is_in_callback();
  storage.address = must_outlive ? scratch_.allocate(size) : memory_.allocate(size, variable.name);
  if (storage.frame_offset) return ir().store(8, frame_.address(), storage.address, storage.frame_offset);
  if (!storage.slot.valid()) storage.slot = new_slot(variable.name);
  write_slot(storage.slot, storage.address);
}

VariableStorage& Variables::declared(VariableId variable) {
  VariableStorage& storage = this->storage(variable);
  return storage.slot.valid() || storage.frame_offset ? storage : declare(variable);
}

ValueId Variables::address(VariableId variable) {
  const VariableStorage& storage = declared(variable);
  if (!is_scalar(scope_.unit().variables[variable].type)) {
    if (storage.frame_offset) return ir().load(8, frame_.address(), storage.frame_offset);
    return read_slot(storage.slot);
  }
  CHECK(storage.frame_offset);
  return offset(frame_.address(), storage.frame_offset);
}

Operand Variables::read(VariableId variable) {
  const TypeId type = scope_.unit().variables[variable].type;
  if (!is_scalar(type)) return {type, address(variable), true};
  const VariableStorage& found = this->storage(variable);
  if (!found.slot.valid() && !found.frame_offset) {
    declare(variable);
    write(variable, {type, ir().constant(0)});
  }
  const VariableStorage& storage = this->storage(variable);
  if (storage.frame_offset) return {type, ir().load(8, frame_.address(), storage.frame_offset)};
  return {type, read_slot(storage.slot)};
}

void Variables::write(VariableId variable, Operand operand) {
  const TypeId type = scope_.unit().variables[variable].type;
  declared(variable);
  if (!is_scalar(type)) return conversions_.store_converted(address(variable), operand, type);
  const bool is_integer = types::is_integer(types()[type]);
  const ValueId value = conversions_.convert(operand, type).value;
  const VariableStorage& storage = this->storage(variable);
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
  declare(variable);
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

#include "lower/emitter.h"

#include "lower/control.h"

namespace espy::lower {

ValueId Emitter::offset(ValueId address, int64_t offset_bytes) {
  return offset_bytes == 0 ? address : ir().binary(Op::k_add, address, offset_bytes);
}

ValueId Emitter::extend(ValueId value, uint8_t size_bytes, bool is_signed) {
  switch (size_bytes) {
    case 1: return ir().unary(is_signed ? Op::k_sext8 : Op::k_zext8, value);
    case 2: return ir().unary(is_signed ? Op::k_sext16 : Op::k_zext16, value);
    case 4: return ir().unary(is_signed ? Op::k_sext32 : Op::k_zext32, value);
    default: return value;
  }
}

ValueId Emitter::cpu() { return ir().call(Helper::get_smp_processor_id, {}); }

ValueId Emitter::select(Condition condition, ValueId a, ValueId b, const std::function<ValueId()>& if_true,
                        const std::function<ValueId()>& if_false) {
  return lower::select(ir(), condition, a, b, if_true, if_false);
}

void Emitter::when(Condition condition, ValueId a, ValueId b, const std::function<void()>& then,
                   const std::function<void()>& otherwise) {
  lower::when(ir(), condition, a, b, then, otherwise);
}

void Emitter::count_loss(program::LossKind kind, std::string_view what) {
  module_.count_loss(ir(), functions_.program(), kind, what);
}

void Emitter::count_loss_here(program::LossKind kind, std::string_view what) {
  module_.count_loss(ir(), functions_.program(), kind, what, ir().span());
}

}  // namespace espy::lower

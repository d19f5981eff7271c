#include "lower/failures.h"

#include <algorithm>
#include <cerrno>

namespace espy::lower {
namespace {

bool reads_memory(Helper helper) {
  constexpr Helper kReads[] = {Helper::probe_read_kernel, Helper::probe_read_kernel_str, Helper::probe_read_user,
                               Helper::probe_read_user_str, Helper::copy_from_user};
  return std::ranges::find(kReads, helper) != std::end(kReads);
}

}  // namespace

void Failures::emit(Helper helper, ValueId result) {
  if (config().warn_helper_errors) write(helper, result);
}

void Failures::emit_absent_key(bool is_statement) {
  const ValueId result = ir().constant(-ENOENT);
  if (config().warn_helper_errors) return write(Helper::map_delete_elem, result);
  if (!is_statement || !config().warns) return;
  const ValueId is_said = ir().map_value(module_.program.globals, module_.add_global(8, 8));
  when(Condition::eq, ir().load(8, is_said), ir().constant(0), [&] {
    ir().store(8, is_said, ir().constant(1));
    write(Helper::map_delete_elem, result);
  });
}

void Failures::write(Helper helper, ValueId result) {
  program::EventSchema schema{.literals = {std::string(ir::info(helper).name)}, .span = ir().span()};
  schema.fields.push_back({.type = types().int64()});
  const RecordWriter::Record record = writer_.begin(std::move(schema), 0);
  const uint32_t at = module_.program.events[record.event].fields.front().offset_bytes;
  ir().store(8, offset(record.address, at), result);
  writer_.finish(record, record.fixed_bytes, false);
}

void Failures::report(Helper helper, ValueId result) {
  const bool is_counted = reads_memory(helper);  // costs a comparison, and more only when it fails
  if (!config().warn_helper_errors && !is_counted) return;
  when(Condition::slt, result, ir().constant(0), [&] {
    emit(helper, result);
    if (is_counted) count_loss(program::LossKind::kRead, "reads of memory that was not there gave zeros");
  });
}

}  // namespace espy::lower

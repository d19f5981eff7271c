#include "lower/exits.h"

#include "lower/control.h"

namespace espy::lower {
namespace {

// Timers of one rate, attached one after the other, are due within this time.
constexpr int64_t kSameTimeNs = 2'000'000;

}  // namespace

void Exits::go_to(BlockId block) {
  ir().jump(block);
  ir().enter(ir().add_block("unreachable"));
}

// Ends the iteration over the map by returning 1. The code after the helper call checks how it was left.
void Exits::leave_callback(int64_t how) {
  ir().store(8, frame_.address(), ir().constant(how), kFrameLeftOffset);
  ir().ret(1);
  ir().enter(ir().add_block("unreachable"));
}

void Exits::end_action() {
  if (functions_.is_in_callback()) return leave_callback(kLeftAction);
  go_to(end_);
}

void Exits::end_function() {
  const Activation& activation = scope_.activation();
  if (activation.callback_depth > 0) return leave_callback(kLeftFunction);
  if (activation.return_block.valid()) return go_to(activation.return_block);
  end_action();
}

void Exits::set_exit_flag(ValueId status) {
  ir().store(8, ir().map_value(module_.program.globals, module_.program.exit_status_offset), status);
  ir().store(8, ir().map_value(module_.program.globals, module_.program.exit_flag_offset),
             ir().call(Helper::ktime_get_ns, {}));
}

void Exits::leave_if_exited(spec::AfterExit after) {
  using spec::AfterExit;
  if (after == AfterExit::kAlways) return;
  const ValueId flag = ir().load(8, ir().map_value(module_.program.globals, module_.program.exit_flag_offset));
  if (after == AfterExit::kStop) return end_program_if(ir(), Condition::ne, flag, 0);
  if (after == AfterExit::kUntilEnd) return end_program_if(ir(), Condition::eq, flag, program::kEndedByUserSpace);
  when(Condition::ne, flag, ir().constant(0), [&] {
    const ValueId since_exit_ns = ir().binary(Op::k_sub, ir().call(Helper::ktime_get_ns, {}), flag);
    end_program_if(ir(), Condition::ugt, since_exit_ns, kSameTimeNs);
  });
}

}  // namespace espy::lower

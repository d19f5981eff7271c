// --follow is a map and three small programs. The map has a key for each process that the traced one, or one of these,
// has started: its number in the kernel's first pid namespace, in whatever namespace it is, so that a container that is
// started is followed as well. The first process itself has no key: its number is in the code.
//
//   sched_process_fork  before the new process runs for the first time, it gets a key
//   sched_process_exit  of its last thread: its value becomes 0, by which espy knows that it need not wait for it
//   sched_process_free  nothing of it can fire any more: the key goes
//
// That another process has the number by then, and would lose its key, takes that all numbers were given out since.
#include "lower/processes.h"

#include <functional>
#include <string>

#include "lower/lowering.h"

namespace espy::lower {
namespace {

using ir::BlockId;
using ir::Builder;
using ir::Condition;
using ir::Helper;
using ir::Op;
using ir::ValueId;
using kernel::Feature;

constexpr uint32_t kMostProcesses = 65536;
constexpr uint64_t kAlive = 1;

ValueId key_of(Builder& ir, ValueId process) {
  const ValueId key = ir.slot(ir.add_slot(8, 8, "process"));
  ir.store(4, key, process);
  return key;
}

// A program on a raw tracepoint, whose `body` leaves by return.
class Follower {
 public:
  Follower(ModuleContext& module, std::string_view tracepoint, const std::function<void(Follower&)>& body)
      : module_(module), function_{.name = std::string(tracepoint)}, ir_(function_) {
    program_ = module.program.programs.add({.name = std::string(tracepoint)});
    ir_.enter(ir_.add_block("entry"));
    body(*this);
    ir_.ret(0);
    const ir::FunctionId id = module.ir.functions.add(std::move(function_));
    module.ir.units.push_back({program_, {id}});
    module.program.following.programs.emplace_back(tracepoint, program_);
  }

  Builder& ir() { return ir_; }
  ValueId map() { return ir_.map(module_.program.following.processes); }
  ValueId argument(uint32_t index) { return ir_.load(8, ir_.context(), index * 8); }

  // Goes on in a block of its own where the condition holds, else ends the program.
  void only_if(Condition condition, ValueId a, ValueId b) {
    const BlockId stay = ir_.add_block();
    const BlockId leave = ir_.add_block();
    ir_.branch(condition, a, b, stay, leave);
    ir_.enter(leave);
    ir_.ret(0);
    ir_.enter(stay);
  }

  // A member of the struct at `base`, of 4 or 8 bytes; by a plain load where lockdown forbids to copy.
  ValueId member(ValueId base, std::string_view struct_name, std::string_view name, uint8_t size_bytes) {
    const TypeId type = module_.kernel.find_struct(module_.types, std::string(struct_name));
    module_.kernel.complete(module_.types, type);
    const auto found = types::find_member(module_.types, type, name);
    const auto location = module_.kernel.btf_location(module_.types, type);
    if (!module_.kernel.has(Feature::kProbeReadKernel) && module_.kernel.has(Feature::kRdonlyCastTyped) && location) {
      const ValueId typed =
          ir_.kfunc(*module_.kernel.kfunc_id("bpf_rdonly_cast"), {base, ir_.constant(location->btf_id)}, true);
      return ir_.load(size_bytes, typed, found ? found->offset_bits / 8 : 0);
    }
    const ValueId copy = ir_.slot(ir_.add_slot(8, 8, std::string(name)));
    const ValueId address = ir_.binary(Op::k_add, base, found ? found->offset_bits / 8 : 0);
    ir_.call(Helper::probe_read_kernel, {copy, ir_.constant(size_bytes), address});
    return ir_.load(size_bytes, copy);
  }

  void count_loss(std::string_view what) {
    const uint32_t offset = module_.loss_counter(program::LossKind::kUpdate, program_, what);
    ir_.atomic_add(8, ir_.map_value(module_.program.globals, offset), ir_.constant(1));
  }

 private:
  ModuleContext& module_;
  ir::Function function_;
  Builder ir_;
  program::ProgramId program_;
};

}  // namespace

ValueId current_process(Builder& ir) { return ir.binary(Op::k_shr, ir.call(Helper::get_current_pid_tgid, {}), 32); }

ValueId ids_in(Builder& ir, const spec::PidNamespace& space) {
  const ValueId ids = ir.slot(ir.add_slot(8, 8, "ids"));
  ir.call(Helper::get_ns_current_pid_tgid, {ir.constant(static_cast<int64_t>(space.device)),
                                            ir.constant(static_cast<int64_t>(space.inode)), ids, ir.constant(8)});
  return ids;
}

void skip_other_processes(Builder& ir, const ModuleContext& module) {
  const spec::Config& config = module.checked.config;
  const auto only = config.only_process();
  if (!only) return;
  const BlockId other = ir.add_block("other_process");
  const BlockId same = ir.add_block("same_process");
  const ValueId number = config.pid_namespace ? ir.load(4, ids_in(ir, *config.pid_namespace), 4) : current_process(ir);
  if (const MapId started = module.program.following.processes; started.valid()) {
    const BlockId maybe = ir.add_block("maybe_started");
    ir.branch(Condition::eq, number, *only, same, maybe);
    ir.enter(maybe);
    const ValueId found = ir.call(Helper::map_lookup_elem, {ir.map(started), key_of(ir, current_process(ir))});
    ir.branch(Condition::ne, found, 0, same, other);
  } else {
    ir.branch(Condition::eq, number, *only, same, other);
  }
  ir.enter(other);
  ir.ret(0);
  ir.enter(same);
}

void add_followed_map(ModuleContext& module) {
  if (!module.checked.config.follows) return;
  module.program.following.processes =
      module.program.maps.add({.name = "processes", .kind = program::MapKind::kHash, .max_entries = kMostProcesses});
}

void add_followers(ModuleContext& module) {
  if (!module.checked.config.follows) return;
  // What lets go of a process is attached before what takes one on, so that none is kept for ever.
  const Follower free(module, "sched_process_free", [](Follower& f) {  // (task)
    const ValueId process = f.member(f.argument(0), "task_struct", "tgid", 4);
    f.only_if(Condition::eq, process, f.member(f.argument(0), "task_struct", "pid", 4));
    f.ir().call(Helper::map_delete_elem, {f.map(), key_of(f.ir(), process)});
  });
  const Follower exit(module, "sched_process_exit", [](Follower& f) {  // (task)
    const ValueId task = f.argument(0);
    const ValueId process = f.member(task, "task_struct", "tgid", 4);
    const ValueId found = f.ir().call(Helper::map_lookup_elem, {f.map(), key_of(f.ir(), process)});
    f.only_if(Condition::ne, found, f.ir().constant(0));
    const ValueId threads = f.member(f.member(task, "task_struct", "signal", 8), "signal_struct", "live", 4);
    f.only_if(Condition::eq, threads, f.ir().constant(0));
    f.ir().store(8, found, f.ir().constant(0));
  });
  const Follower fork(module, "sched_process_fork", [&](Follower& f) {  // (parent, child); the parent runs
    skip_other_processes(f.ir(), module);
    const ValueId started = f.member(f.argument(1), "task_struct", "tgid", 4);
    f.only_if(Condition::ne, started, current_process(f.ir()));  // else it is a thread
    const ValueId alive = f.ir().slot(f.ir().add_slot(8, 8, "alive"));
    f.ir().store(8, alive, f.ir().constant(kAlive));
    const ValueId failed =
        f.ir().call(Helper::map_update_elem, {f.map(), key_of(f.ir(), started), alive, f.ir().constant(0)});
    f.only_if(Condition::ne, failed, f.ir().constant(0));
    f.count_loss("processes that were started could not be followed, there were too many at a time");
  });
}

}  // namespace espy::lower

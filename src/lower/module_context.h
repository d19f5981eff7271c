// What the programs of one script share while they are lowered: the IR module, the program, its maps and constants.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "check/checked.h"
#include "ir/builder.h"
#include "kernel/kernel.h"
#include "program/program.h"

namespace espy::lower {

inline constexpr uint32_t kCacheLineBytes = 64;
inline constexpr uint32_t kCallerTableBytes = program::Gates::kCallers * program::Gates::kCallerBytes;  // of a CPU

using program::MapId;
using types::TypeId;

struct ModuleContext {
  const check::Checked& checked;
  types::Types& types;
  kernel::Kernel& kernel;
  ir::Module ir = {};
  program::Program program = {};

  uint32_t globals_bytes = 0;
  uint32_t scratch_bytes = 0;
  MapId scratch = {};
  std::string constants = {};  // the contents of .rodata
  std::map<std::string, uint32_t, std::less<>> constant_offsets = {};
  uint32_t longest_record_bytes = 0;
  std::map<types::Kind, std::vector<uint32_t>> fired_indices = {};  // by ProbeId
  std::map<program::ScriptMapId, bool> interrupted = {};            // see is_interrupted
  std::map<program::ScriptMapId, bool> kept_keys = {};              // see keeps_keys
  std::vector<uint32_t> call_numbers = {};                          // by ProbeId, if there are gates; see pair_calls
  bool makes_loops_for_unroll = false;
  bool has_copies = false;         // see Lowered
  std::vector<bool> targets = {};  // by ExprId: it is assigned to; see find_targets

  // The number of CPUs rounded up to a power of two, so that `and` bounds an index for the verifier.
  uint32_t cpu_slots() const;
  const program::ScriptMap& script_map(program::ScriptMapId id) const { return program.script_maps[id]; }
  // Completes the type if it is a struct, and returns it.
  TypeId complete(TypeId type);
  // See Lowering.
  uint32_t fired_index(types::Kind kind, program::ProbeId probe);

  // Reserves zeroed bytes in `globals`; returns their offset.
  uint32_t add_global(uint32_t size_bytes, uint32_t align_bytes);
  // Adds `bytes` to .rodata at a multiple of 8, unless it has them already; returns their offset.
  uint32_t add_constant(std::string_view bytes);
  // Returns the offset in `globals` of the program's counter for this kind and text.
  uint32_t loss_counter(program::LossKind kind, program::ProgramId by, std::string_view what, source::Span span = {});
  // Adds one to that counter.
  void count_loss(ir::Builder& builder, program::ProgramId by, program::LossKind kind, std::string_view what,
                  source::Span span = {});
  // Returns the offset in `globals` of a counter: the runs that wait for memory of their process; makes the program
  // sleepable.
  uint32_t waiting_counter(program::ProgramId of);
  // These add the map at first use.
  MapId scratch_map();
  MapId ring_map();
  program::StackMaps stack_maps(TypeId type);

  // True if two programs update the aggregation in this map, and one of them may interrupt the other on the same CPU in
  // the middle of an update. (A program never interrupts itself: the kernel skips the second run and counts it.)
  bool is_interrupted(program::ScriptMapId map);

  // True if an element that was found in the map stays its key's as long as the program runs. The script then removes
  // no keys, user space replaces none, and the kernel evicts none.
  bool keeps_keys(program::ScriptMapId map);

  // The maps that the unit assigns to.
  std::set<program::ScriptMapId> maps_assigned_by(const check::Unit& unit);

  // True if the unit, or any function of the script, uses stacks.
  bool takes_stacks(const check::Unit& unit) const;

  // In order, before the units are lowered:
  void add_fixed_maps();                  // globals with the words of the runtime, .rodata
  void add_hit_counters();                // if losses are counted
  void add_script_maps();                 // with the ids of checked.maps
  void add_gates(uint32_t programs);      // if a budget is kept
  void add_own_times(uint32_t programs);  // if the kernel does not time programs
  void choose_ring_size();                // by the probes that may emit
  // Gives the program a table of the processes that its events are in, if it may be detached to keep the budget
  // (program::Gates::caller_tables). Requires that its hook is known.
  void add_caller_table(program::ProgramId id);
  // After the units are lowered: the sizes that are known only now.
  void finish();

 private:
  program::HitCounters add_probe_counters();
  void find_targets();
  bool pair_calls();
  void add_storage_in_globals(program::ScriptMap& out);
  void add_task_storage(const check::CheckedMap& map, program::ScriptMap& out);
  void add_hash(const check::CheckedMap& map, bool has_irq_off, program::ScriptMap& out);
  void preallocate_if_required();
  uint32_t value_bytes(TypeId type) const;
};

// An element of ModuleContext::call_numbers: a number from 1 on, which entry and return of a function share. It also
// says whether the program is the first at the entry, or the last at the return. 0: the script probes only one of both.
constexpr uint32_t kCallLeader = 1U << 31;
constexpr uint32_t kCallNumberMask = kCallLeader - 1;

template <class T>
constexpr T round_up(T value, std::type_identity_t<T> align) {
  return (value + align - 1) / align * align;
}

}  // namespace espy::lower

// What the programs of one script share while they are lowered: the IR module, the program, its maps and constants.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "check/checked.h"
#include "ir/ir.h"
#include "kernel/kernel.h"
#include "program/program.h"

namespace espy::lower {

using program::MapId;
using types::TypeId;

struct ModuleContext {
  const check::Checked& checked;
  types::Types& types;
  kernel::Kernel& kernel;
  ir::Module module = {};
  program::Program program = {};

  uint32_t globals_bytes = 0;
  uint32_t scratch_bytes = 0;
  MapId scratch = {};
  std::string constants = {};
  std::map<std::string, uint32_t, std::less<>> constant_offsets = {};
  uint32_t longest_record_bytes = 0;
  std::map<types::Kind, std::vector<uint32_t>> fired_indices = {};  // by ProbeId

  // CPUs rounded up to a power of two, so that `and` bounds an index for the verifier.
  uint32_t cpu_slots() const;

  // See Lowering.
  uint32_t fired_index(types::Kind kind, program::ProbeId probe);

  // `size_bytes` of zeros in `globals`; the offset.
  uint32_t add_global(uint32_t size_bytes, uint32_t align_bytes);
  // `bytes` in .rodata, at a multiple of 8; the offset. Equal ones are kept once.
  uint32_t add_constant(std::string_view bytes);
  // The counter's offset in `globals`; one for each program and sentence.
  uint32_t loss_counter(program::LossKind kind, program::ProgramId by, std::string_view what);
  MapId scratch_map();
  MapId ring_map();
  MapId stack_map(TypeId type);

  // Whether two programs aggregate into this map of which one may interrupt the other on a CPU, in the middle of an
  // update. (A program never interrupts itself: the kernel skips and counts that.)
  bool is_interrupted(program::ScriptMapId map) const;

  // Whether it, or a function of the script, has to do with stacks.
  bool takes_stacks(const check::Unit& unit) const;

  void add_fixed_maps();  // globals with the runtime's words, .rodata
  void add_hit_counters();
  void add_script_maps();   // one for each CheckedMap, by the same id
  void choose_ring_size();  // by what may emit
  void finish();            // sizes that are known only now
};

constexpr uint64_t round_up(uint64_t value, uint64_t align) { return (value + align - 1) / align * align; }

}  // namespace espy::lower

// Per-CPU scratch memory, in the map `scratch`: for objects that are too large for the stack.
//
// Where a program may be preempted, two threads can run it on one CPU at a time. Each then takes one of a few regions
// of its CPU by an atomic operation on a bit mask, and releases it at the end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "lower/emitter.h"

namespace espy::lower {

// Regions of a CPU, if the program also waits for pages; it does in the first of them only.
constexpr uint32_t kRegionsIfAsleep = 16;
constexpr uint32_t kWaitingRegions = 8;

class Scratch : Emitter {
 public:
  Scratch(ModuleContext& module, Functions& functions, const spec::ProbeContext& context)
      : Emitter(module, functions), context_(context) {}

  // Adds the value of the base address to the main function. write_setup() defines it.
  void begin();
  // Reserves `size_bytes` that live until the action ends; returns their offset.
  uint32_t reserve(uint32_t size_bytes);
  // The address of what is reserved at `offset_bytes`, in the current function.
  ValueId address(uint32_t offset_bytes);
  // How often the base address was used so far.
  uint32_t use_count() const { return use_count_; }

  // Runs `body`, which writes a callback that gets the base address as `base`.
  void with_callback(ValueId base, const std::function<void()>& body);

  // Defines the base address, in the current block of the main function. If threads may share a CPU, there are
  // `region_count` regions, and `if_none_is_free` writes what happens without one; it must end the program.
  ValueId write_setup(uint32_t region_count, const std::function<void()>& if_none_is_free);
  // Releases the region, if write_setup() has taken one.
  void write_release();

  // The number of the region that this run has taken, from 0; 0 if there are none.
  ValueId region_number();

  // The address of `size_bytes` that this program has on this CPU, by their name; zero at first. They keep what is
  // stored from one event to the next, and global functions have them too.
  ValueId cpu_memory(const std::string& name, uint32_t size_bytes);

 private:
  // Of memory that each CPU has: its offset in the map, and a power of two.
  struct CpuMemory {
    uint32_t at = 0;
    uint32_t stride_bytes = 0;
  };

  ValueId base();
  CpuMemory add_cpu_memory(uint32_t size_bytes);
  ValueId cpu_address(const CpuMemory& memory);
  uint32_t region_bytes() const;
  ValueId take_region(ValueId cpu_address, uint32_t region_count, const std::function<void()>& if_none_is_free);

  const spec::ProbeContext& context_;
  ValueId main_base_;
  ValueId callback_base_;
  uint32_t size_bytes_ = 0;  // allocated so far
  uint32_t use_count_ = 0;
  std::map<std::string, CpuMemory> cpu_memories_;
  ir::SlotId cpu_slot_, number_slot_;  // the taken region: address of its CPU's mask, its number
};

}  // namespace espy::lower

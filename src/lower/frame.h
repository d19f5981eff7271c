// The frame: an object on the main function's stack that holds what callbacks share with it. The kernel passes its
// address to each callback.
#pragma once

#include <cstdint>
#include <functional>

#include "lower/emitter.h"

namespace espy::lower {

// Layout, in bytes from the frame's start.
constexpr uint32_t kFrameScratchOffset = 0;  // base address of this run's scratch memory
constexpr uint32_t kFrameLeftOffset = 8;     // how the callback's loop was left: 0 or kLeft...
constexpr uint32_t kFrameContextOffset = 16;
constexpr uint32_t kFrameProbeOffset = 24;  // index of the probe that fired, with Dispatch::kNumber
constexpr uint32_t kFrameHeaderBytes = 32;  // what add() has added follows

constexpr int64_t kLeftFunction = 2;  // by `return`
constexpr int64_t kLeftAction = 3;    // by exit()

class Frame : Emitter {
 public:
  Frame(ModuleContext& module, Functions& functions) : Emitter(module, functions) {}

  // Reserves the frame's slot in the main function.
  void begin();
  // The frame's address in the current function.
  ValueId address();
  // Adds `size_bytes`, a multiple of 8, zero at first; returns their offset.
  uint32_t add(uint32_t size_bytes);
  uint32_t add_word() { return add(8); }

  // Runs `body`, which writes a callback that gets the frame's address as `address`.
  void with_callback(ValueId address, const std::function<void()>& body);

  // Writes the main function's initialization of the frame, if anything uses it. `probe_index` may be invalid.
  void write_setup(ValueId scratch_base, ValueId probe_index);

 private:
  ir::SlotId slot_;  // in the main function
  uint32_t size_bytes_ = kFrameHeaderBytes;
  bool has_callbacks_ = false;
  ValueId callback_address_;  // in a callback: its parameter
};

}  // namespace espy::lower

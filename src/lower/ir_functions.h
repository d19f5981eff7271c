// Writes functions of the IR: structured control flow over a Builder, and the functions of one BPF program.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "ir/builder.h"
#include "lower/module_context.h"

namespace espy::lower {

using ir::BlockId;
using ir::FunctionId;
using ir::ValueId;

// Returns the value that `if_true` returns if the condition holds, otherwise the value of `if_false`.
ValueId select(ir::Builder& ir, ir::Condition condition, ValueId a, ValueId b, const std::function<ValueId()>& if_true,
               const std::function<ValueId()>& if_false);

// Runs `then` where the condition holds, else `otherwise`. Both may be null.
void when(ir::Builder& ir, ir::Condition condition, ValueId a, ValueId b, const std::function<void()>& then,
          const std::function<void()>& otherwise = nullptr);

// Returns 0 from the program if the condition holds; continues in a new block otherwise.
void end_program_if(ir::Builder& ir, ir::Condition condition, ValueId a, ValueId b);
inline void end_program_if(ir::Builder& ir, ir::Condition condition, ValueId a, int64_t b) {
  end_program_if(ir, condition, a, ir.constant(b));
}
// Makes `leave` return 0 from the program and continues in `stay`.
void end_program_in(ir::Builder& ir, BlockId leave, BlockId stay);

// Returns the byte at `a` minus that at `b` where they first differ, else 0. Requires size_bytes >= 1.
ValueId first_difference(ir::Builder& ir, ValueId a, ValueId b, uint32_t size_bytes);

// The frame: an object on the main function's stack that holds what callbacks share with it. The kernel passes its
// address to each callback. Layout, in bytes from its start:
constexpr uint32_t kFrameScratchOffset = 0;  // base address of this run's scratch memory
constexpr uint32_t kFrameLeftOffset = 8;     // how the callback's loop was left: 0 or kLeft...
constexpr uint32_t kFrameContextOffset = 16;
constexpr uint32_t kFrameProbeOffset = 24;  // index of the probe that fired, with Dispatch::kNumber
constexpr uint32_t kFrameHeaderBytes = 32;  // variables follow

constexpr int64_t kLeftFunction = 2;  // by `return`
constexpr int64_t kLeftAction = 3;    // by exit()

// The functions of one BPF program while they are written: the main function, callbacks that helpers such as
// bpf_for_each_map_elem call, and global functions, which the main function calls itself.
class Functions {
 public:
  // `out` is the program; its main function exists already, other functions are added to it.
  Functions(ModuleContext& module, ir::Unit& out) : module_(module), out_(out), main_(out.functions.front()) {}

  // Writes at the end of the current block of the current function.
  ir::Builder& ir() { return *builder_; }
  ir::Function& function() { return bodies_.at(current_); }
  FunctionId current() const { return current_; }
  bool is_in_callback() const { return current_ != main_; }
  program::ProgramId program() const { return out_.program; }
  size_t count() const { return out_.functions.size(); }

  // Makes the main function, still without blocks, the current one.
  void begin_main();
  // Adds a callback. Its entry block is current while `body` runs.
  FunctionId add_callback(std::string name, uint32_t parameters, const std::function<void()>& body);
  // The callback of this name; `body` writes it the first time.
  FunctionId shared_callback(const std::string& name, uint32_t parameters, const std::function<void()>& body);
  // The global function of this name, whose parameters are numbers; `body` writes it the first time.
  FunctionId global_function(const std::string& name, uint32_t parameters, const std::function<void()>& body);
  // Moves the callbacks into the module and returns the main function.
  ir::Function finish();

 private:
  FunctionId write(FunctionId id, ir::Function head, const std::function<void()>& body);
  FunctionId shared(ir::Function head, const std::function<void()>& body);
  FunctionId add_function();

  ModuleContext& module_;
  ir::Unit& out_;
  FunctionId main_;
  FunctionId current_;
  ir::Builder* builder_ = nullptr;
  std::optional<ir::Builder> main_builder_;
  std::map<FunctionId, ir::Function> bodies_;  // a map, because builders refer to its elements
  std::map<std::string, FunctionId> shared_;
};

}  // namespace espy::lower

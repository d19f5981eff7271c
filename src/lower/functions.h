// The functions of one BPF program while they are written: the main function, callbacks that helpers such as
// bpf_for_each_map_elem call, and global functions, which the main function calls itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "ir/builder.h"
#include "lower/module_context.h"

namespace espy::lower {

class Functions {
 public:
  // `out` is the program; its main function exists already, other functions are added to it.
  Functions(ModuleContext& module, ir::Unit& out) : module_(module), out_(out), main_(out.functions.front()) {}

  // Writes at the end of the current block of the current function.
  ir::Builder& ir() { return *builder_; }
  ir::Function& function() { return bodies_.at(current_); }
  ir::FunctionId current() const { return current_; }
  bool is_in_callback() const { return current_ != main_; }
  program::ProgramId program() const { return out_.program; }
  size_t count() const { return out_.functions.size(); }

  // Makes the main function, still without blocks, the current one.
  void begin_main();
  // Adds a callback. Its entry block is current while `body` runs.
  ir::FunctionId add_callback(std::string name, uint32_t parameters, const std::function<void()>& body);
  // The callback of this name; `body` writes it the first time.
  ir::FunctionId shared_callback(const std::string& name, uint32_t parameters, const std::function<void()>& body);
  // The global function of this name, whose parameters are numbers; `body` writes it the first time.
  ir::FunctionId global_function(const std::string& name, uint32_t parameters, const std::function<void()>& body);
  // Moves the callbacks into the module and returns the main function.
  ir::Function finish();

 private:
  ir::FunctionId write(ir::FunctionId id, ir::Function head, const std::function<void()>& body);
  ir::FunctionId shared(ir::Function head, const std::function<void()>& body);
  ir::FunctionId add_function();

  ModuleContext& module_;
  ir::Unit& out_;
  ir::FunctionId main_;
  ir::FunctionId current_;
  ir::Builder* builder_ = nullptr;
  std::optional<ir::Builder> main_builder_;
  std::map<ir::FunctionId, ir::Function> bodies_;  // a map, since builders refer to its elements
  std::map<std::string, ir::FunctionId> shared_;
};

}  // namespace espy::lower

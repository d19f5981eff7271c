#include "lower/functions.h"

#include "lower/frame.h"

namespace espy::lower {
namespace {

using ir::BlockId;
using ir::FunctionId;
using ir::Op;
using ir::ValueId;

std::vector<bool> find_reachable_blocks(const ir::Function& function) {
  std::vector<bool> is_reached(function.blocks.size());
  std::vector<BlockId> left{BlockId{0}};
  is_reached[0] = true;
  while (!left.empty()) {
    const ir::Block& block = function.blocks[left.back()];
    left.pop_back();
    for (const ir::Target& target : function.values[block.instructions.back()].targets) {
      if (is_reached[target.block.index]) continue;
      is_reached[target.block.index] = true;
      left.push_back(target.block);
    }
  }
  return is_reached;
}

// Unreachable code, such as what follows a `return`, may use values that no path defines. It is replaced by a return.
void prune_unreachable(ir::Function& function, const std::vector<bool>& is_reached) {
  for (const BlockId id : function.blocks.ids()) {
    if (is_reached[id.index]) continue;
    const ValueId zero = function.values.add({.op = Op::k_konst});
    const ValueId end = function.values.add({.op = Op::k_ret, .operands = {zero}});
    function.blocks[id].parameters.clear();
    function.blocks[id].instructions = {zero, end};
  }
}

// The context is a parameter of the main function. A callback loads it from the frame, whose address is the first
// value of its entry block.
void load_context_from_frame(ir::Function& callback, const std::vector<bool>& is_reached) {
  for (const BlockId id : callback.blocks.ids()) {
    for (const ValueId each : callback.blocks[id].instructions) {
      ir::Instruction& instruction = callback.values[each];
      if (instruction.op != Op::k_context || !is_reached[id.index]) continue;
      const ValueId frame = callback.blocks[BlockId{0}].instructions.front();
      CHECK(callback.values[frame].op == Op::k_param);
      instruction = {
          .op = Op::k_load, .width = 8, .imm = kFrameContextOffset, .operands = {frame}, .span = instruction.span};
    }
  }
}

}  // namespace

void Functions::begin_main() {
  current_ = main_;
  ir::Function& body = bodies_[main_];
  body = {.name = module_.program.programs[out_.program].name, .parameter_count = 1};
  builder_ = &main_builder_.emplace(body);
}

FunctionId Functions::add_function() {
  const FunctionId id = module_.ir.functions.add({});
  out_.functions.push_back(id);
  return id;
}

// `head`: a function without blocks.
FunctionId Functions::write(FunctionId id, ir::Function head, const std::function<void()>& body) {
  ir::Function& function = bodies_[id];
  function = std::move(head);
  const FunctionId outer = current_;
  ir::Builder* outer_builder = builder_;
  ir::Builder builder(function);
  builder.at(outer_builder->span());
  current_ = id;
  builder_ = &builder;
  builder.enter(builder.add_block("entry"));
  body();
  current_ = outer;
  builder_ = outer_builder;
  return id;
}

FunctionId Functions::shared(ir::Function head, const std::function<void()>& body) {
  const auto [known, is_new] = shared_.try_emplace(head.name);
  if (is_new) known->second = add_function();
  return is_new ? write(known->second, std::move(head), body) : known->second;
}

FunctionId Functions::add_callback(std::string name, uint32_t parameters, const std::function<void()>& body) {
  return write(add_function(), {.name = std::move(name), .parameter_count = parameters, .is_callback = true}, body);
}

FunctionId Functions::shared_callback(const std::string& name, uint32_t parameters, const std::function<void()>& body) {
  return shared({.name = name, .parameter_count = parameters, .is_callback = true}, body);
}

FunctionId Functions::global_function(const std::string& name, uint32_t parameters, const std::function<void()>& body) {
  return shared({.name = name, .parameter_count = parameters, .is_global = true}, body);
}

ir::Function Functions::finish() {
  builder_ = nullptr;
  for (auto& [id, body] : bodies_) {
    const std::vector<bool> is_reached = find_reachable_blocks(body);
    prune_unreachable(body, is_reached);
    if (id == main_) continue;
    load_context_from_frame(body, is_reached);
    module_.ir.functions[id] = std::move(body);
  }
  return std::move(bodies_.at(main_));
}

}  // namespace espy::lower

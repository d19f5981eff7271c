#include "lower/ir_functions.h"

namespace espy::lower {

// ---- Control flow

ValueId select(ir::Builder& ir, ir::Condition condition, ValueId a, ValueId b, const std::function<ValueId()>& if_true,
               const std::function<ValueId()>& if_false) {
  const BlockId yes = ir.add_block("then");
  const BlockId no = ir.add_block("else");
  const BlockId join = ir.add_block("join");
  const ValueId result = ir.add_block_parameter(join);
  ir.branch(condition, a, b, yes, no);
  ir.enter(yes);
  const ValueId first = if_true();
  ir.jump(join, {first});
  ir.enter(no);
  const ValueId second = if_false();
  ir.jump(join, {second});
  ir.enter(join);
  return result;
}

void when(ir::Builder& ir, ir::Condition condition, ValueId a, ValueId b, const std::function<void()>& then,
          const std::function<void()>& otherwise) {
  const BlockId yes = ir.add_block("then");
  const BlockId join = ir.add_block("join");
  const BlockId no = otherwise ? ir.add_block("else") : join;
  ir.branch(condition, a, b, yes, no);
  ir.enter(yes);
  if (then) then();
  ir.jump(join);
  if (otherwise) {
    ir.enter(no);
    otherwise();
    ir.jump(join);
  }
  ir.enter(join);
}

void end_program_if(ir::Builder& ir, ir::Condition condition, ValueId a, ValueId b) {
  const BlockId leave = ir.add_block("leave");
  const BlockId stay = ir.add_block("stay");
  ir.branch(condition, a, b, leave, stay);
  end_program_in(ir, leave, stay);
}

void end_program_in(ir::Builder& ir, BlockId leave, BlockId stay) {
  ir.enter(leave);
  ir.ret(0);
  ir.enter(stay);
}

ValueId first_difference(ir::Builder& ir, ValueId a, ValueId b, uint32_t size_bytes) {
  const ir::SlotId found = ir.add_variable("difference");
  ir.count_up(size_bytes, [&](ValueId index, BlockId done) {
    const ValueId left = ir.load(1, ir.binary(ir::Op::k_add, a, index));
    const ValueId right = ir.load(1, ir.binary(ir::Op::k_add, b, index));
    const ValueId difference = ir.binary(ir::Op::k_sub, left, right);
    ir.store(8, ir.slot(found), difference);
    const BlockId next = ir.add_block("next");
    ir.branch(ir::Condition::ne, difference, ir.constant(0), done, next);
    ir.enter(next);
  });
  return ir.load(8, ir.slot(found));
}

// ---- The functions of a program

namespace {

using ir::Op;

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

// The printer; docs/internals/ir.md has the grammar.
#include "ir/ir_text.h"

#include <fmt/format.h>

#include <cctype>
#include <iterator>
#include <optional>

#include "base/strings.h"
#include "ir/analysis.h"

namespace espy::ir {

namespace {

class Printer {
 public:
  void function(FunctionId id, const Function& function);
  void unit(const Unit& unit);
  std::string take() { return std::move(out_); }

 private:
  template <class... Arguments>
  void put(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }
  void id(char letter, uint32_t index) {
    if (index == ValueId::kNone) {
      put("{}?", letter);
    } else {
      put("{}{}", letter, index);
    }
  }
  void value(ValueId value) { id('v', value.index); }
  void values(const std::vector<ValueId>& list, size_t first = 0);
  void address(ValueId base, int64_t offset);
  void target(const Target& target);
  void slot(SlotId slot_id, const Slot& slot);
  void block(BlockId block_id, const Function& function);
  void instruction(const Instruction& instruction);
  bool constant_like(const Instruction& instruction);
  bool memory(const Instruction& instruction);
  bool call(const Instruction& instruction);
  bool end(const Instruction& instruction);

  std::string out_;
};

void Printer::values(const std::vector<ValueId>& list, size_t first) {
  for (size_t i = first; i < list.size(); ++i) {
    if (i > first) put(", ");
    value(list[i]);
  }
}

void Printer::address(ValueId base, int64_t offset) {
  put("[");
  value(base);
  if (offset > 0) put(" + {}", offset);
  if (offset < 0) put(" - {}", -static_cast<uint64_t>(offset));
  put("]");
}

void Printer::target(const Target& target) {
  id('b', target.block.index);
  if (target.arguments.empty()) return;
  put("(");
  values(target.arguments);
  put(")");
}

bool Printer::constant_like(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::k_konst:
    case Op::k_param: put(" {}", instruction.imm); return true;
    case Op::k_slot:
      put(" ");
      id('s', instruction.slot.index);
      return true;
    case Op::k_map:
      put(" ");
      id('m', instruction.map.index);
      return true;
    case Op::k_map_value:
      put(" ");
      id('m', instruction.map.index);
      put(", {}", instruction.imm);
      return true;
    case Op::k_func:
      put(" ");
      id('f', instruction.function.index);
      return true;
    default: return false;
  }
}

bool Printer::memory(const Instruction& instruction) {
  if (accesses_memory(instruction.op)) {
    put(".{}{} ", instruction.is_signed ? "s" : "", instruction.width);
    address(instruction.operands.empty() ? ValueId{} : instruction.operands[0], instruction.imm);
    if (instruction.operands.size() > 1) put(", ");
    values(instruction.operands, 1);
    return true;
  }
  if (instruction.op != Op::k_zero && instruction.op != Op::k_copy) return false;
  put(" ");
  values(instruction.operands);
  put(", {}", instruction.imm);
  return true;
}

bool Printer::call(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::k_call: put(" {}(", info(instruction.helper).name); break;
    case Op::k_kfunc: put(" {}(", instruction.imm); break;
    case Op::k_call_function:
      put(" ");
      id('f', instruction.function.index);
      put("(");
      break;
    default: return false;
  }
  values(instruction.operands);
  put(")");
  if (instruction.is_pure) put(" pure");
  return true;
}

bool Printer::end(const Instruction& instruction) {
  if (instruction.targets.empty()) return false;
  if (instruction.op == Op::k_branch) {
    put(" {} ", name(instruction.condition));
    values(instruction.operands);
    put(",");
  }
  for (size_t i = 0; i < instruction.targets.size(); ++i) {
    put("{}", i ? ", " : " ");
    target(instruction.targets[i]);
  }
  return true;
}

void Printer::instruction(const Instruction& instruction) {
  put("{}", info(instruction.op).name);
  if (!constant_like(instruction) && !memory(instruction) && !call(instruction) && !end(instruction) &&
      !instruction.operands.empty()) {
    put(" ");
    values(instruction.operands);
  }
  if (instruction.is_nullable) put(" nullable");
  put("\n");
}

void Printer::block(BlockId block_id, const Function& function) {
  const Block& block = function.blocks[block_id];
  id('b', block_id.index);
  if (!block.name.empty()) put(" \"{}\"", escape(block.name));
  if (!block.parameters.empty()) {
    put("(");
    values(block.parameters);
    put(")");
  }
  put(":\n");
  for (ValueId each : block.instructions) {
    put("  ");
    if (info(function.values[each].op).has_result) {
      value(each);
      put(" = ");
    }
    instruction(function.values[each]);
  }
}

void Printer::slot(SlotId slot_id, const Slot& slot) {
  put("  slot ");
  id('s', slot_id.index);
  put(" \"{}\" size {} align {}{}\n", escape(slot.name), slot.size_bytes, slot.align_bytes,
      slot.is_variable ? " variable" : "");
}

void Printer::function(FunctionId function_id, const Function& function) {
  if (!out_.empty()) put("\n");
  put("function ");
  id('f', function_id.index);
  put(" \"{}\" parameters {}{}", escape(function.name), function.parameter_count,
      function.is_callback ? " callback" : "");
  if (function.is_global) put(" global");
  if (function.memory_bytes != 0) put(" memory {}", function.memory_bytes);
  put(" {{\n");
  for (SlotId each : function.slots.ids()) slot(each, function.slots[each]);
  for (BlockId each : function.blocks.ids()) block(each, function);
  put("}}\n");
}

void Printer::unit(const Unit& unit) {
  put("unit ");
  id('p', unit.program.index);
  put(":");
  for (size_t i = 0; i < unit.functions.size(); ++i) {
    put("{}", i ? ", " : " ");
    id('f', unit.functions[i].index);
  }
  put("\n");
}

}  // namespace

std::string print(const Function& function, const Module& module) {
  FunctionId id;
  for (FunctionId each : module.functions.ids())
    if (&module.functions[each] == &function) id = each;
  Printer printer;
  printer.function(id, function);
  return printer.take();
}

std::string print(const Module& module) {
  Printer printer;
  for (const Unit& unit : module.units) printer.unit(unit);
  for (FunctionId id : module.functions.ids()) printer.function(id, module.functions[id]);
  return printer.take();
}

// ---- The reader; docs/internals/ir.md has the grammar.
//
// Each line is one entity: a unit, a function header, a slot, a block header, an instruction. Ids keep their numbers.
// Since uses may precede definitions in the text (loops, block order), a value is created as an unused constant when
// its number first appears and filled in at its definition. Instructions without a result have no number in the text;
// they receive ids after all others when the function is complete.

namespace {

constexpr uint32_t kMaxId = 1'000'000;

// A cursor over one line. After a failure, all further operations fail.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) { skip_blanks(); }

  bool accept(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    bool is_word = is_word_char(token.back());
    if (is_word && rest_.size() > token.size() && is_word_char(rest_[token.size()])) return false;
    rest_.remove_prefix(token.size());
    skip_blanks();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail_with(fmt::format("expected `{}`", token));
  }
  std::string_view word() {
    size_t size = 0;
    while (size < rest_.size() && is_word_char(rest_[size])) ++size;
    std::string_view word = rest_.substr(0, size);
    rest_.remove_prefix(size);
    if (word.empty()) fail_with("expected a word");
    return word;  // does not skip blanks: `load.8` differs from `load .8`
  }
  int64_t number() {
    bool is_negative = rest_.starts_with('-');
    if (is_negative) rest_.remove_prefix(1);
    std::string text = (is_negative ? "-" : "") + std::string(word());
    std::optional<int64_t> value = parse_int(text);
    if (!value) fail_with("expected a number");
    skip_blanks();
    return value.value_or(0);
  }
  template <class IdType>
  IdType id(char letter) {
    if (!rest_.starts_with(letter)) {
      fail_with(fmt::format("expected `{}` and a number", letter));
      return IdType{0};
    }
    rest_.remove_prefix(1);
    int64_t value = rest_.empty() || !std::isdigit(static_cast<unsigned char>(rest_[0])) ? -1 : number();
    if (value < 0 || value > kMaxId) fail_with(fmt::format("expected `{}` and a number", letter));
    return IdType{failed() ? 0 : static_cast<uint32_t>(value)};
  }
  bool accept_letter(char letter) {  // a digit may follow
    if (!rest_.starts_with(letter)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool starts_with(char c) const { return rest_.starts_with(c); }
  std::string quoted();
  void skip_blanks() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\r')) rest_.remove_prefix(1);
    if (rest_.starts_with("//")) rest_ = {};
  }
  bool at_end() const { return rest_.empty(); }
  void fail_with(std::string message) {
    if (error_.empty()) error_ = fmt::format("{} at `{}`", message, rest_);
    rest_ = {};
  }
  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }

 private:
  static bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

  std::string_view rest_;
  std::string error_;
};

// The inverse of `escape`.
std::string Line::quoted() {
  std::string out;
  expect("\"");
  while (!rest_.empty() && rest_[0] != '"') {
    char c = rest_[0];
    rest_.remove_prefix(1);
    if (c == '\\' && !rest_.empty()) {
      char code = rest_[0];
      rest_.remove_prefix(1);
      if (code == 'x') {
        std::optional<int64_t> byte = parse_int("0x" + std::string(rest_.substr(0, 2)));
        rest_.remove_prefix(std::min<size_t>(2, rest_.size()));
        if (!byte) fail_with("bad escape");
        c = static_cast<char>(byte.value_or(0));
      } else {
        c = code == 'n' ? '\n' : code == 't' ? '\t' : code == 'r' ? '\r' : code;
      }
    }
    out += c;
  }
  expect("\"");
  return out;
}

class Reader {
 public:
  Result<Module> read(std::string_view text);

 private:
  void line(Line& line);
  void unit(Line& line);
  void function_head(Line& line);
  void slot(Line& line);
  void block_head(Line& line);
  void instruction(Line& line);
  void fill(Line& line, Instruction& out);
  void operands(Line& line, Instruction& out);
  void constant_like(Line& line, Instruction& out);
  void memory(Line& line, Instruction& out);
  void call(Line& line, Instruction& out);
  void end(Line& line, Instruction& out);
  void finish_function(Line& line);

  ValueId value(Line& line);
  ValueId define(Line& line);
  void values_until(Line& line, std::vector<ValueId>& out, std::string_view close);
  Target target(Line& line);

  // An instruction in its block, with or without a number.
  struct Entry {
    ValueId id;
    Instruction unnumbered;
  };

  Module module_;
  Function function_;
  bool is_in_function_ = false;
  std::vector<bool> is_defined_;
  std::vector<std::vector<Entry>> bodies_;  // by block
};

Result<Module> Reader::read(std::string_view text) {
  size_t number = 0;
  for (std::string_view each : split(text, '\n')) {
    ++number;
    Line current(each);
    if (!current.at_end()) line(current);
    if (!current.failed() && !current.at_end()) current.fail_with("expected the end of the line");
    if (current.failed()) return fail(fmt::format("line {}: {}", number, current.error()));
  }
  if (is_in_function_) return fail(fmt::format("line {}: expected `}}`", number));
  return std::move(module_);
}

void Reader::line(Line& line) {
  if (!is_in_function_) {
    if (line.accept("unit")) return unit(line);
    line.expect("function");
    return function_head(line);
  }
  if (line.accept("}")) return finish_function(line);
  if (bodies_.empty() && line.accept("slot")) return slot(line);
  Line trial = line;
  BlockId block = trial.starts_with('b') ? trial.id<BlockId>('b') : BlockId{};
  if (block.valid() && !trial.failed()) return block_head(line);
  instruction(line);
}

void Reader::unit(Line& line) {
  Unit unit{.program = line.id<program::ProgramId>('p')};
  line.expect(":");
  do unit.functions.push_back(line.id<FunctionId>('f'));
  while (line.accept(","));
  module_.units.push_back(std::move(unit));
}

void Reader::function_head(Line& line) {
  if (line.id<FunctionId>('f') != module_.functions.next_id()) line.fail_with("functions must be numbered in order");
  function_ = {};
  is_defined_.clear();
  bodies_.clear();
  function_.name = line.quoted();
  line.expect("parameters");
  function_.parameter_count = static_cast<uint32_t>(line.number());
  function_.is_callback = line.accept("callback");
  function_.is_global = line.accept("global");
  if (line.accept("memory")) function_.memory_bytes = static_cast<uint32_t>(line.number());
  line.expect("{");
  is_in_function_ = true;
}

void Reader::slot(Line& line) {
  if (line.id<SlotId>('s') != function_.slots.next_id()) line.fail_with("slots must be numbered in order");
  Slot slot;
  slot.name = line.quoted();
  line.expect("size");
  slot.size_bytes = static_cast<uint32_t>(line.number());
  line.expect("align");
  slot.align_bytes = static_cast<uint32_t>(line.number());
  slot.is_variable = line.accept("variable");
  function_.slots.add(std::move(slot));
}

void Reader::block_head(Line& line) {
  if (line.id<BlockId>('b') != function_.blocks.next_id()) line.fail_with("blocks must be numbered in order");
  Block block;
  if (line.starts_with('"')) block.name = line.quoted();
  if (line.accept("(")) {
    do {
      block.parameters.push_back(define(line));
      function_.values[block.parameters.back()] = {.op = Op::k_param};
    } while (line.accept(","));
    line.expect(")");
  }
  line.expect(":");
  function_.blocks.add(std::move(block));
  bodies_.emplace_back();
}

ValueId Reader::value(Line& line) {
  ValueId id = line.id<ValueId>('v');
  while (function_.values.size() <= id.index) function_.values.add({});
  is_defined_.resize(function_.values.size());
  return id;
}

ValueId Reader::define(Line& line) {
  ValueId id = value(line);
  if (is_defined_[id.index]) line.fail_with(fmt::format("v{} is defined twice", id.index));
  is_defined_[id.index] = true;
  return id;
}

void Reader::instruction(Line& line) {
  if (bodies_.empty()) return line.fail_with("expected a block");
  Instruction made;
  if (!line.starts_with('v')) {
    fill(line, made);
    if (!line.failed() && info(made.op).has_result) line.fail_with("expected `vN = `");
    bodies_.back().push_back({{}, std::move(made)});
    return;
  }
  ValueId id = define(line);
  line.expect("=");
  fill(line, made);
  if (!line.failed() && !info(made.op).has_result) line.fail_with("this operation has no result");
  function_.values[id] = std::move(made);
  bodies_.back().push_back({id, {}});
}

void Reader::fill(Line& line, Instruction& out) {
  std::string_view word = line.word();
  std::optional<Op> op = find_op(word);
  if (!op) return line.fail_with(fmt::format("`{}` is no operation", word));
  out.op = *op;
  accesses_memory(*op) ? memory(line, out) : operands(line, out);
  out.is_nullable = line.accept("nullable");
}

void Reader::operands(Line& line, Instruction& out) {
  switch (out.op) {
    case Op::k_konst:
    case Op::k_param:
    case Op::k_slot:
    case Op::k_map:
    case Op::k_map_value:
    case Op::k_func:
      line.skip_blanks();
      constant_like(line, out);
      break;
    case Op::k_call:
    case Op::k_kfunc:
    case Op::k_call_function:
      line.skip_blanks();
      call(line, out);
      break;
    case Op::k_jump:
    case Op::k_branch:
    case Op::k_may_goto:
      line.skip_blanks();
      end(line, out);
      break;
    default:
      line.skip_blanks();
      while (line.starts_with('v')) {
        out.operands.push_back(value(line));
        if (!line.accept(",")) break;
      }
      if (out.op == Op::k_zero || out.op == Op::k_copy) out.imm = line.number();
  }
}

void Reader::constant_like(Line& line, Instruction& out) {
  switch (out.op) {
    case Op::k_slot: out.slot = line.id<SlotId>('s'); break;
    case Op::k_func: out.function = line.id<FunctionId>('f'); break;
    case Op::k_map: out.map = line.id<MapId>('m'); break;
    case Op::k_map_value:
      out.map = line.id<MapId>('m');
      line.expect(",");
      out.imm = line.number();
      break;
    default: out.imm = line.number();
  }
}

void Reader::memory(Line& line, Instruction& out) {
  line.expect(".");
  out.is_signed = line.accept_letter('s');
  out.width = static_cast<uint8_t>(line.number());
  line.expect("[");
  out.operands.push_back(value(line));
  if (line.accept("+")) {
    out.imm = line.number();
  } else if (line.accept("-")) {
    out.imm = static_cast<int64_t>(-static_cast<uint64_t>(line.number()));
  }
  line.expect("]");
  while (line.accept(",")) out.operands.push_back(value(line));
}

void Reader::call(Line& line, Instruction& out) {
  if (out.op == Op::k_call) {
    std::string_view name = line.word();
    std::optional<Helper> helper = find_helper(name);
    if (!helper) return line.fail_with(fmt::format("`{}` is no helper", name));
    out.helper = *helper;
  } else if (out.op == Op::k_kfunc) {
    out.imm = line.number();
  } else {
    out.function = line.id<FunctionId>('f');
  }
  line.expect("(");
  values_until(line, out.operands, ")");
  out.is_pure = line.accept("pure");
}

void Reader::end(Line& line, Instruction& out) {
  if (out.op == Op::k_branch) {
    std::string_view name = line.word();
    std::optional<Condition> condition = find_condition(name);
    if (!condition) return line.fail_with(fmt::format("`{}` is no condition", name));
    out.condition = *condition;
    line.skip_blanks();
    for (int i = 0; i < 2; ++i) {
      out.operands.push_back(value(line));
      line.expect(",");
    }
  }
  do out.targets.push_back(target(line));
  while (line.accept(","));
}

Target Reader::target(Line& line) {
  Target target{line.id<BlockId>('b'), {}};
  if (line.accept("(")) values_until(line, target.arguments, ")");
  return target;
}

void Reader::values_until(Line& line, std::vector<ValueId>& out, std::string_view close) {
  if (line.accept(close)) return;
  do out.push_back(value(line));
  while (line.accept(","));
  line.expect(close);
}

void Reader::finish_function(Line& line) {
  for (size_t i = 0; i < is_defined_.size(); ++i) {
    // A number that the text skips is an unused constant in no block; the verifier rejects uses of it.
    if (!is_defined_[i]) function_.values[ValueId{static_cast<uint32_t>(i)}] = {};
  }
  for (BlockId block : function_.blocks.ids()) {
    for (Entry& entry : bodies_[block.index]) {
      if (!entry.id.valid()) entry.id = function_.values.add(std::move(entry.unnumbered));
      function_.blocks[block].instructions.push_back(entry.id);
    }
  }
  module_.functions.add(std::move(function_));
  is_in_function_ = false;
  line.skip_blanks();
}

}  // namespace

Result<Module> read(std::string_view text) { return Reader().read(text); }

}  // namespace espy::ir

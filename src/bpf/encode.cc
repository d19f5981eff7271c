#include "bpf/encode.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <unordered_map>
#include <utility>

#include "ir/analysis.h"

namespace espy::bpf {

namespace {

using namespace ir;

// Operations whose result is rarely 0: map lookups, ring reservations.
bool may_be_null_pointer(const Instruction& instruction) {
  if (instruction.is_nullable) return true;
  if (instruction.op != Op::k_call) return false;
  return instruction.helper == Helper::map_lookup_elem || instruction.helper == Helper::ringbuf_reserve ||
         instruction.helper == Helper::map_lookup_percpu_elem || instruction.helper == Helper::task_storage_get;
}

// Returns the index of the target for a null pointer; -1 if the branch is not a null check.
int null_target(const Function& function, const Instruction& end) {
  if (end.op != Op::k_branch || !may_be_null_pointer(function.values[end.operands[0]])) return -1;
  const Instruction& b = function.values[end.operands[1]];
  if (b.op != Op::k_konst || b.imm != 0) return -1;
  return end.condition == Condition::eq ? 0 : end.condition == Condition::ne ? 1 : -1;
}

}  // namespace

std::vector<BlockId> block_order(const Function& function) {
  std::vector<BlockId> order = reverse_post_order(function);
  // A block is warm if it is the entry, or a successor of a warm block other than by a failed null check. One round in
  // reverse post order suffices, since no block is reachable by back edges alone.
  std::vector<bool> is_warm(function.blocks.size());
  is_warm[0] = true;
  for (BlockId block : order) {
    if (!is_warm[block.index]) continue;
    const Instruction& end = terminator(function, block);
    int null_side = null_target(function, end);
    for (size_t i = 0; i < end.targets.size(); ++i)
      if (static_cast<int>(i) != null_side) is_warm[end.targets[i].block.index] = true;
  }
  std::stable_partition(order.begin(), order.end(), [&](BlockId block) { return is_warm[block.index]; });
  return order;
}

namespace {

using program::BpfInsn;

// The linear code of one function: a block falls through to its successor if that follows, else it jumps.
class Line {
 public:
  Line(const MachineFunction& function, const Target& target) : function_(function), target_(target) {}

  void lay_out();
  // For targets without long jumps: routes jumps that may be out of range through islands of jumps.
  void add_islands();
  // Returns false if a jump leads farther than the target's jumps reach.
  [[nodiscard]] bool find_positions();
  void write(uint32_t index, std::vector<BpfInsn>& out) const;
  const std::vector<MachineInsn>& insns() const { return insns_; }

 private:
  uint32_t real_block(uint32_t block) const;
  void end_block(uint32_t block, uint32_t following);
  uint32_t size_of_insn(uint32_t index) const;
  int64_t distance(uint32_t index) const;
  uint32_t hop(uint32_t from, uint32_t target);
  using IslandJumps = std::map<uint32_t, std::vector<std::pair<uint32_t, uint32_t>>>;  // (number of the jump, target)
  void insert_islands(const IslandJumps& jumps, size_t blocks);
  void write_jump(uint32_t index, std::vector<BpfInsn>& out) const;
  BpfInsn basic(const MachineInsn& insn) const;

  // (island, target block) -> block of the jump within the island
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> islands_;
  const MachineFunction& function_;
  const Target& target_;
  std::vector<MachineInsn> insns_;
  std::vector<uint32_t> first_;  // by block: index into insns_
  std::vector<bool> is_long_;    // by instruction: a jump beyond the 16-bit range
  // By instruction, plus one for the end: position in BPF instructions from the start of the function.
  std::vector<uint32_t> positions_;
};

constexpr uint8_t kJaCode = kJmp | kJa, kLongJaCode = kJmp32 | kJa;

// A quarter of the 16-bit range: the kernel later expands some instructions (map lookups, divisions, context accesses)
// and rejects programs whose jumps then are out of range.
constexpr int64_t kFarthestJump = 8000;

// Returns the first non-empty block from `block` on; jumps to empty blocks go there.
uint32_t Line::real_block(uint32_t block) const {
  for (size_t hops = 0; hops < function_.blocks.size() && block != kNoBlock; ++hops) {
    const MachineBlock& at = function_.blocks[block];
    if (!at.insns.empty() || at.next == kNoBlock || at.next == block) break;
    block = at.next;
  }
  return block;
}

uint8_t inverse_jump(uint8_t operation) {
  switch (operation) {
    case kJeq: return kJne;
    case kJne: return kJeq;
    case kJgt: return kJle;
    case kJle: return kJgt;
    case kJge: return kJlt;
    case kJlt: return kJge;
    case kJsgt: return kJsle;
    case kJsle: return kJsgt;
    case kJsge: return kJslt;
    case kJslt: return kJsge;
    default: return 0;  // no inverse
  }
}

void Line::lay_out() {
  std::vector<uint32_t> order;
  for (uint32_t block = 0; block < function_.blocks.size(); ++block)
    if (real_block(block) == block) order.push_back(block);
  if (order.empty() || order.front() != real_block(0)) insns_.push_back({.code = kJaCode, .target = real_block(0)});
  first_.assign(function_.blocks.size(), 0);
  for (size_t i = 0; i < order.size(); ++i) {
    first_[order[i]] = static_cast<uint32_t>(insns_.size());
    end_block(order[i], i + 1 < order.size() ? order[i + 1] : kNoBlock);
  }
}

// Appends the instructions of a block and, if needed, a jump to its successor.
void Line::end_block(uint32_t block, uint32_t following) {
  const MachineBlock& source = function_.blocks[block];
  insns_.insert(insns_.end(), source.insns.begin(), source.insns.end());
  uint32_t next = real_block(source.next);
  if (!source.insns.empty() && is_conditional_jump(source.insns.back())) {
    MachineInsn& jump = insns_.back();
    jump.target = real_block(jump.target);
    uint8_t inverse = inverse_jump(operation_of(jump.code));
    bool is_may_goto = jump.code == (kJmp | kJcond);
    if (jump.target == next && !is_may_goto) {
      insns_.pop_back();
    } else if (jump.target == following && inverse != 0) {
      jump.code = static_cast<uint8_t>((jump.code & 0x0f) | inverse);
      std::swap(jump.target, next);
    }
  }
  source::Span span = source.insns.empty() ? source::Span{} : source.insns.back().span;
  if (next != kNoBlock && next != following) insns_.push_back({.code = kJaCode, .target = next, .span = span});
}

// Island k precedes instruction k * kIslandStride and has a jump for each block that is reached through it.
// Neighbouring islands are within range even if every instruction in between has a double-width encoding.
constexpr uint32_t kIslandStride = kFarthestJump / 2;

// Returns the first destination of a jump from `from` to `target`: a jump in an island if `target` may be out of range.
// Jumps of islands are numbered after the blocks.
uint32_t Line::hop(uint32_t from, uint32_t target) {
  uint32_t to = first_[target];
  uint32_t distance = from < to ? to - from : from - to;
  if (distance <= kIslandStride) return target;
  uint32_t island = from < to ? from / kIslandStride + 1 : (from - 1) / kIslandStride;
  auto [entry, is_new] = islands_.try_emplace({island, target}, static_cast<uint32_t>(first_.size()));
  if (is_new) first_.push_back(0);
  uint32_t id = entry->second;
  if (is_new) hop(island * kIslandStride, target);  // adds the jump in the next island
  return id;
}

void Line::add_islands() {
  if (insns_.size() <= kIslandStride) return;
  size_t blocks = first_.size();
  std::vector<uint32_t> targets(insns_.size(), kNoBlock);
  for (uint32_t i = 0; i < insns_.size(); ++i)
    if (insns_[i].target != kNoBlock) targets[i] = hop(i, insns_[i].target);
  if (first_.size() == blocks) return;
  IslandJumps jumps;
  for (const auto& [key, id] : std::map(islands_))
    jumps[key.first].emplace_back(id, hop(key.first * kIslandStride, key.second));
  for (uint32_t i = 0; i < insns_.size(); ++i) insns_[i].target = targets[i];
  insert_islands(jumps, blocks);
}

void Line::insert_islands(const IslandJumps& jumps, size_t blocks) {
  std::vector<MachineInsn> old = std::move(insns_);
  std::vector<uint32_t> moved(old.size() + 1);
  insns_.clear();
  for (uint32_t i = 0; i < old.size(); ++i) {
    auto island = i % kIslandStride == 0 ? jumps.find(i / kIslandStride) : jumps.end();
    if (island != jumps.end()) {
      bool is_passed = insns_.empty() || (insns_.back().code != kJaCode && insns_.back().code != (kJmp | kExit));
      size_t over = insns_.size();
      if (is_passed) insns_.push_back({.code = kJaCode, .target = static_cast<uint32_t>(first_.size())});
      for (auto [id, target] : island->second) {
        first_[id] = static_cast<uint32_t>(insns_.size());
        insns_.push_back({.code = kJaCode, .target = target});
      }
      if (is_passed) {
        CHECK(insns_[over].target == first_.size());
        first_.push_back(static_cast<uint32_t>(insns_.size()));
      }
    }
    moved[i] = static_cast<uint32_t>(insns_.size());
    insns_.push_back(old[i]);
  }
  for (size_t block = 0; block < blocks; ++block) first_[block] = moved[first_[block]];
}

// A long conditional jump is `if (c) goto +1; goto +1; gotol target`. The verifier follows the near path first, so that
// the code at the target, mostly of what fails, does not add to the jumps that it has still to explore.
uint32_t Line::size_of_insn(uint32_t index) const {
  const MachineInsn& insn = insns_[index];
  if (insn.code == kLdImm64) return 2;
  if (!is_long_[index] || insn.code == kJaCode) return 1;
  return 3;
}

int64_t Line::distance(uint32_t index) const {
  return int64_t{positions_[first_[insns_[index].target]]} - int64_t{positions_[index + 1]};
}

// Iterates: long jumps lengthen the code, which can put further jumps out of range.
bool Line::find_positions() {
  is_long_.assign(insns_.size(), false);
  positions_.resize(insns_.size() + 1);
  // Without long jumps, islands keep jumps in range, unless these have thousands of targets and are too large
  // themselves.
  const int64_t farthest = target_.v4 ? kFarthestJump : INT16_MAX;
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t i = 0; i < insns_.size(); ++i) positions_[i + 1] = positions_[i] + size_of_insn(i);
    for (uint32_t i = 0; i < insns_.size(); ++i) {
      if (insns_[i].target == kNoBlock || is_long_[i] || std::abs(distance(i)) <= farthest) continue;
      if (!target_.v4) return false;
      is_long_[i] = true;
      changed = true;
    }
  }
  return true;
}

// Requires that a value fits the instruction's field.
template <class Field>
Field narrow(int64_t value) {
  CHECK(std::in_range<Field>(value));
  return static_cast<Field>(value);
}

// Of the immediate operand as the instruction takes it: the low half of a 64-bit constant, the low bits where the
// operation is on fewer than 64 bits, else a number that it sign-extends.
int32_t low_immediate(uint8_t code, int64_t value) {
  const uint8_t of = class_of(code);
  const bool is_narrow_store = of == kSt && size_of(code) != kDouble;
  if (code == kLdImm64) return static_cast<int32_t>(value);
  if ((of == kAlu32 || of == kJmp32 || is_narrow_store) && std::in_range<uint32_t>(value))
    return static_cast<int32_t>(value);
  return narrow<int32_t>(value);
}

BpfInsn Line::basic(const MachineInsn& insn) const {
  int32_t base = insn.object == kNoObject ? 0 : function_.objects[insn.object].offset;
  bool is_memory = class_of(insn.code) >= kLdx && class_of(insn.code) <= kStx;
  Reg dst = insn.dst == kNoReg ? 0 : insn.dst, src = insn.src == kNoReg ? insn.pseudo : insn.src;
  if (insn.object != kNoObject && is_memory) (class_of(insn.code) == kLdx ? src : dst) = kFramePointer;
  CHECK(dst <= kFramePointer && src <= kFramePointer);
  BpfInsn out{.code = insn.code, .registers = static_cast<uint8_t>(dst | src << 4)};
  out.offset = narrow<int16_t>(int64_t{insn.offset} + (is_memory ? base : 0));
  out.imm = low_immediate(insn.code, insn.imm + (is_memory ? 0 : base));
  return out;
}

void Line::write_jump(uint32_t index, std::vector<BpfInsn>& out) const {
  BpfInsn jump = basic(insns_[index]);
  int64_t hop = distance(index);
  if (!is_long_[index]) {
    jump.offset = narrow<int16_t>(hop);
    return out.push_back(jump);
  }
  if (jump.code != kJaCode) {
    jump.offset = 1;
    out.push_back(jump);
    out.push_back({.code = kJaCode, .offset = 1});
  }
  out.push_back({.code = kLongJaCode, .imm = narrow<int32_t>(hop)});
}

void Line::write(uint32_t index, std::vector<BpfInsn>& out) const {
  const MachineInsn& insn = insns_[index];
  if (insn.target != kNoBlock) return write_jump(index, out);
  BpfInsn first = basic(insn);
  if (insn.code != kLdImm64) return out.push_back(first);
  BpfInsn second;
  if (insn.pseudo == 0) second.imm = static_cast<int32_t>(insn.imm >> 32);
  if (insn.pseudo == kPseudoMapValue) std::swap(first.imm, second.imm);
  out.push_back(first);
  out.push_back(second);
}

// A tail call that is never reached. The verifier gives no program with a tail call a stack of the CPU, and sees that
// from all instructions, before it removes those that are not reached (check_subprogs() and check_max_stack_depth() in
// kernel/bpf/verifier.c; load/find_features.cc tries it). The first instruction remains, and a count of tail calls on
// the stack, which take less time than can be measured.
constexpr BpfInsn kKeepThreadStack[] = {
    {.code = kAlu64 | kMov | kImm},                          // r0 = 0
    {.code = kJmp | kJeq | kImm, .offset = 1},               // if r0 == 0 goto +1
    {.code = kJmp | kCall, .imm = 12 /* bpf_tail_call() */}  // of arguments that the verifier never looks at
};

class Encoder {
 public:
  Encoder(const Target& target, program::BpfProgram& out) : target_(target), out_(out) {}

  // Returns false if the function is too long for the target's jumps; then it has no code, and only its first line.
  bool add(const CodedFunction& function) {
    starts_[function.id.index] = here();
    const ir::Function& source = *function.function;
    out_.functions.push_back(
        {here(), source.name, source.parameter_count, source.is_callback, source.is_global, source.memory_bytes});
    if (out_.keeps_thread_stack && here() == 0)
      out_.code.assign(std::begin(kKeepThreadStack), std::end(kKeepThreadStack));
    Line line(function.machine, target_);
    line.lay_out();
    if (!target_.v4) line.add_islands();
    source::Span last;
    if (!line.find_positions()) {
      const auto first = std::ranges::find_if(line.insns(), [](const MachineInsn& insn) { return insn.span.valid(); });
      if (first != line.insns().end()) out_.lines.push_back({here(), first->span});
      return false;
    }
    for (uint32_t i = 0; i < line.insns().size(); ++i) {
      const MachineInsn& insn = line.insns()[i];
      if (insn.span.valid() && !(insn.span == last)) out_.lines.push_back({here(), last = insn.span});
      if (insn.map.valid()) out_.map_references.push_back({here(), insn.map});
      if (insn.function.valid()) function_references_.push_back({here(), insn.function});
      line.write(i, out_.code);
    }
    return true;
  }

  // The imm of calls and function addresses is relative to the next instruction.
  void link() {
    for (auto [insn, function] : function_references_) {
      auto start = starts_.find(function.index);
      CHECK(start != starts_.end());
      out_.code[insn].imm = static_cast<int32_t>(start->second) - static_cast<int32_t>(insn) - 1;
    }
  }

 private:
  struct FunctionReference {
    uint32_t insn;
    ir::FunctionId function;
  };
  uint32_t here() const { return static_cast<uint32_t>(out_.code.size()); }

  const Target& target_;
  program::BpfProgram& out_;
  std::unordered_map<uint32_t, uint32_t> starts_;
  std::vector<FunctionReference> function_references_;
};

}  // namespace

std::vector<ir::FunctionId> encode(const std::vector<CodedFunction>& functions, const Target& target,
                                   program::BpfProgram& out) {
  out.code.clear();
  out.map_references.clear();
  out.lines.clear();
  out.functions.clear();
  Encoder encoder(target, out);
  std::vector<ir::FunctionId> too_long;
  for (const CodedFunction& function : functions)
    if (!encoder.add(function)) too_long.push_back(function.id);
  encoder.link();
  return too_long;
}

}  // namespace espy::bpf

#include <gtest/gtest.h>

#include "bpf/disassemble.h"
#include "bpf/emit.h"
#include "bpf/machine_code.h"
#include "ir/builder.h"

namespace espy::bpf {
namespace {

using program::BpfInsn;

std::string text(BpfInsn insn, int32_t second_imm = 0) { return disassemble_one({insn, {.imm = second_imm}}, 0); }

TEST(Disassemble, Arithmetic) {
  EXPECT_EQ(text({.code = kAlu64 | kAdd | kReg, .registers = 0x21}), "r1 += r2");
  EXPECT_EQ(text({.code = kAlu32 | kMov | kReg, .registers = 0x33}), "w3 = w3");
  EXPECT_EQ(text({.code = kAlu64 | kArsh | kImm, .registers = 0x04, .imm = 7}), "r4 s>>= 7");
  EXPECT_EQ(text({.code = kAlu64 | kDiv | kImm, .registers = 0x04, .offset = 1, .imm = -3}), "r4 s/= -3");
  EXPECT_EQ(text({.code = kAlu64 | kMov | kReg, .registers = 0x10, .offset = 16}), "r0 = (s16)r1");
  EXPECT_EQ(text({.code = kAlu64 | kNeg, .registers = 0x02}), "r2 = -r2");
  EXPECT_EQ(text({.code = kAlu64 | kEnd, .registers = 0x02, .imm = 32}), "r2 = bswap32 r2");
  EXPECT_EQ(text({.code = kAlu32 | kEnd | kReg, .registers = 0x02, .imm = 16}), "r2 = be16 r2");
  EXPECT_EQ(text({.code = kAlu32 | kEnd, .registers = 0x02, .imm = 64}), "r2 = le64 r2");
}

TEST(Disassemble, Memory) {
  EXPECT_EQ(text({.code = kLdx | kModeMem | kDouble, .registers = 0xa1, .offset = -8}), "r1 = *(u64 *)(r10 -8)");
  EXPECT_EQ(text({.code = kLdx | kModeMemSigned | kByte, .registers = 0x21, .offset = 4}), "r1 = *(s8 *)(r2 +4)");
  EXPECT_EQ(text({.code = kSt | kModeMem | kHalf, .registers = 0x0a, .offset = -2, .imm = 5}), "*(u16 *)(r10 -2) = 5");
  EXPECT_EQ(text({.code = kStx | kModeMem | kWord, .registers = 0x3a, .offset = -4}), "*(u32 *)(r10 -4) = r3");
}

TEST(Disassemble, Atomics) {
  auto atomic = [](int32_t imm) {
    return text({.code = kStx | kModeAtomic | kDouble, .registers = 0x21, .offset = 8, .imm = imm});
  };
  EXPECT_EQ(atomic(kAtomicAdd), "lock *(u64 *)(r1 +8) += r2");
  EXPECT_EQ(atomic(kAtomicXor | kFetch), "r2 = atomic64_fetch_xor((u64 *)(r1 +8), r2)");
  EXPECT_EQ(atomic(kXchg), "r2 = atomic64_xchg((u64 *)(r1 +8), r2)");
  EXPECT_EQ(atomic(kCmpxchg), "r0 = atomic64_cmpxchg((u64 *)(r1 +8), r0, r2)");
  EXPECT_EQ(atomic(kLoadAcquire), "r1 = load_acquire((u64 *)(r2 +8))");
  EXPECT_EQ(atomic(kStoreRelease), "store_release((u64 *)(r1 +8), r2)");
  EXPECT_EQ(text({.code = kStx | kModeAtomic | kWord, .registers = 0x21, .imm = kAtomicOr | kFetch}),
            "w2 = atomic_fetch_or((u32 *)(r1 +0), w2)");
}

TEST(Disassemble, JumpsAndCalls) {
  EXPECT_EQ(text({.code = kJmp | kJsge | kReg, .registers = 0x21, .offset = -3}), "if r1 s>= r2 goto pc-3");
  EXPECT_EQ(text({.code = kJmp32 | kJset | kImm, .registers = 0x01, .offset = 3, .imm = 9}), "if w1 & 9 goto pc+3");
  EXPECT_EQ(text({.code = kJmp | kJa, .offset = 2}), "goto pc+2");
  EXPECT_EQ(text({.code = kJmp32 | kJa, .imm = 70000}), "gotol pc+70000");
  EXPECT_EQ(text({.code = kJmp | kJcond, .offset = 5}), "may_goto pc+5");
  EXPECT_EQ(text({.code = kJmp | kCall, .imm = 16}), "call get_current_comm#16");
  EXPECT_EQ(text({.code = kJmp | kCall, .registers = 0x10, .imm = 12}), "call pc+12");
  EXPECT_EQ(text({.code = kJmp | kCall, .registers = 0x20, .imm = 777}), "call kfunc#777");
  EXPECT_EQ(text({.code = kJmp | kExit}), "exit");
}

TEST(Disassemble, WideConstants) {
  EXPECT_EQ(text({.code = kLdImm64, .registers = 0x01, .imm = -1}, 1), "r1 = 0x1ffffffff ll");
  EXPECT_EQ(text({.code = kLdImm64, .registers = 0x11, .imm = 5}), "r1 = map[5]");
  EXPECT_EQ(text({.code = kLdImm64, .registers = 0x21, .imm = 5}, 16), "r1 = map_value[5]+16");
  EXPECT_EQ(text({.code = kLdImm64, .registers = 0x41, .imm = 9}), "r1 = func[pc+9]");
}

TEST(Disassemble, RefusesWhatIsNoInstruction) {
  EXPECT_EQ(text({.code = 0xff}).substr(0, 9), "(invalid:");
  EXPECT_EQ(disassemble_one({{.code = kLdImm64}}, 0).substr(0, 9), "(invalid:");
}

// A callback's address is the distance from the instruction behind its first half, as the kernel counts it.
TEST(Emit, LinksCallbacksAndNamesMaps) {
  ir::Module module;
  program::Program program;
  program.programs.add({.name = "test"});
  program::MapId map = program.maps.add({.name = "counts"});
  ir::Function main{.name = "main"}, callback{.name = "each", .parameter_count = 4, .is_callback = true};
  ir::Builder c(callback);
  c.enter(c.add_block());
  c.ret(0);
  ir::Builder b(main);
  b.enter(b.add_block());
  ir::SlotId slot = b.add_slot(8, 8);
  b.store(8, b.slot(slot), b.constant(0));
  b.call(ir::Helper::for_each_map_elem,
         {b.map(map), b.function_address(ir::FunctionId{1}), b.slot(slot), b.constant(0)});
  b.ret(0);
  module.functions.add(main);
  module.functions.add(callback);
  module.units.push_back({program::ProgramId{0}, {ir::FunctionId{0}, ir::FunctionId{1}}});
  EXPECT_TRUE(emit(module, {}, program).empty());
  const program::BpfProgram& code = program.programs[program::ProgramId{0}];
  EXPECT_EQ(disassemble(code, program),
            "main:\n"
            "   0: *(u64 *)(r10 -8) = 0\n"
            "   1: r1 = map[counts]\n"
            "   3: r2 = func[pc+7]\n"
            "   5: r3 = r10\n"
            "   6: r3 += -8\n"
            "   7: r4 = 0\n"
            "   8: call for_each_map_elem#164\n"
            "   9: r0 = 0\n"
            "  10: exit\n"
            "each:\n"
            "  11: r0 = 0\n"
            "  12: exit\n");
  ASSERT_EQ(code.functions.size(), 2u);
  EXPECT_EQ(code.functions[1].insn, 11u);
  EXPECT_TRUE(code.functions[1].is_callback);
  ASSERT_EQ(code.map_references.size(), 1u);
  EXPECT_EQ(code.map_references[0].insn, 1u);
}

// A function that keeps `slots` slots of 64 bytes in use at once and calls `callee`, if that is valid.
ir::Function with_slots(int slots, ir::FunctionId callee) {
  ir::Function function{.name = "deep"};
  ir::Builder b(function);
  b.enter(b.add_block());
  std::vector<ir::SlotId> ids;
  for (int i = 0; i < slots; ++i) ids.push_back(b.add_slot(64, 8));
  for (ir::SlotId id : ids) b.zero(b.slot(id), 64);
  ir::ValueId sum = callee.valid() ? b.call_function(callee, {}) : b.constant(0);
  for (ir::SlotId id : ids) sum = b.binary(ir::Op::k_add, sum, b.load(8, b.slot(id)));
  b.ret(sum);
  return function;
}

TEST(Emit, ReportsFramesThatAreTooLarge) {
  struct Case {
    int main_slots, callee_slots;
    uint32_t reported_bytes;
  };
  for (Case c : {Case{8, 0, 0}, Case{9, 0, 576}, Case{4, 4, 0}, Case{4, 5, 576}}) {
    ir::Module module;
    program::Program program;
    program.programs.add({.name = "test"});
    bool calls = c.callee_slots > 0;
    module.functions.add(with_slots(c.main_slots, calls ? ir::FunctionId{1} : ir::FunctionId{}));
    module.units.push_back({program::ProgramId{0}, {ir::FunctionId{0}}});
    if (calls) module.units[0].functions.push_back(module.functions.add(with_slots(c.callee_slots, {})));
    std::vector<EmitProblem> problems = emit(module, {}, program);
    EXPECT_EQ(problems.empty() ? 0 : problems[0].stack_bytes, c.reported_bytes)
        << c.main_slots << " " << c.callee_slots;
  }
}

// Slots that are never in use together share their bytes: one after the other, and in the arms of a branch.
TEST(Emit, SharesTheStack) {
  ir::Module module;
  program::Program program;
  program.programs.add({.name = "test"});
  ir::Function main{.name = "main"};
  ir::Builder b(main);
  b.enter(b.add_block());
  ir::ValueId x = b.load(8, b.context());
  for (int i = 0; i < 20; ++i) {
    ir::BlockId yes = b.add_block(), no = b.add_block(), done = b.add_block();
    b.branch(ir::Condition::eq, x, i, yes, no);
    for (ir::BlockId arm : {yes, no}) {
      b.enter(arm);
      ir::SlotId slot = b.add_slot(256, 8);
      b.call(ir::Helper::get_current_comm, {b.slot(slot), b.constant(16)});
      b.jump(done);
    }
    b.enter(done);
  }
  b.ret(0);
  module.functions.add(main);
  module.units.push_back({program::ProgramId{0}, {ir::FunctionId{0}}});
  EXPECT_TRUE(emit(module, {}, program).empty());
}

}  // namespace
}  // namespace espy::bpf

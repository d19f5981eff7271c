// What the back end makes is what the IR means: the running kernel is asked.
#include <sys/mman.h>

#include <limits>

#include "bpf_support.h"

namespace espy::bpf {
namespace {

using namespace ir;

constexpr Target kTargets[] = {{.v3 = true, .v4 = true}, {.v3 = true, .v4 = false}};

class BpfKernel : public testing::Test {
 protected:
  void SetUp() override {
    if (!may_load_programs()) GTEST_SKIP() << "bpf() is not permitted here";
  }

  // Loads and runs for both CPUs, as written and optimised; `build` writes main.
  template <class Build>
  void check(Build build, const Words& words, const Words& expected) {
    for (const Target& target : kTargets) {
      for (bool is_optimised : {false, true}) {
        Code code;
        build(code);
        if (is_optimised) opt::optimize(code.module, opt::verify_after_pass);
        Loaded loaded = load(code, target);
        ASSERT_EQ(loaded.problem, "") << "v4 " << target.v4 << ", optimised " << is_optimised;
        Words got = words;
        got.resize(kWords);
        ASSERT_TRUE(run(loaded.program, got));
        got.resize(expected.size());
        EXPECT_EQ(got, expected) << "v4 " << target.v4 << ", optimised " << is_optimised << "\n"
                                 << ir::print(code.module)
                                 << disassemble(code.program.programs[program::ProgramId{0}], code.program);
      }
    }
  }
};

constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kEdges[] = {
    0, 1, -1, 2, 7, -7, 63, 64, 255, 0x80, 0x8000, 0x80000000, 0xffffffff, 0x100000000, kMin, kMax, 0x123456789abcdef};

uint64_t evaluate(Op op, int64_t a, int64_t b) {
  Module module;
  Function function;
  Builder builder(function);
  builder.enter(builder.add_block());
  bool is_unary = info(op).operands == 1;
  ValueId value = is_unary ? builder.unary(op, builder.constant(a)) : builder.binary(op, builder.constant(a), b);
  builder.ret(value);
  FunctionId id = module.functions.add(function);
  std::vector<uint64_t> nothing;
  return *test::IrMachine(module, id, nothing).run();
}

// words[2] = words[0] OP words[1]
void check_operation(const Target& target, Op op, bool by_constant) {
  bool is_unary = info(op).operands == 1;
  for (int64_t b : kEdges) {
    Code code;
    Builder builder(code.main());
    builder.enter(builder.add_block());
    ValueId context = builder.context();
    ValueId a = builder.load(8, context, 0);
    ValueId right = by_constant ? builder.constant(b) : builder.load(8, context, 8);
    builder.store(8, context, is_unary ? builder.unary(op, a) : builder.binary(op, a, right), 16);
    builder.ret(0);
    Loaded loaded = load(code, target);
    ASSERT_EQ(loaded.problem, "") << info(op).name << " " << b;
    for (int64_t left : kEdges) {
      for (int64_t value : kEdges) {
        if (by_constant && value != b) continue;
        Words words{static_cast<uint64_t>(left), static_cast<uint64_t>(value), 0};
        ASSERT_TRUE(run(loaded.program, words));
        EXPECT_EQ(words[2], evaluate(op, left, value))
            << info(op).name << " " << left << " " << value << " by constant " << by_constant;
      }
    }
    if (!by_constant || is_unary) return;
  }
}

TEST_F(BpfKernel, EveryOperation) {
  for (const Target& target : kTargets) {
    for (int op = static_cast<int>(Op::k_add); op <= static_cast<int>(Op::k_sle); ++op) {
      check_operation(target, static_cast<Op>(op), false);
      check_operation(target, static_cast<Op>(op), true);
    }
  }
}

TEST_F(BpfKernel, Conditions) {
  for (int c = 0; c <= static_cast<int>(Condition::test); ++c) {
    for (int64_t by : {int64_t{0}, int64_t{-1}, int64_t{5}, int64_t{0xffffffff}, kMin}) {
      auto build = [&](Code& code) {
        Builder b(code.main());
        b.enter(b.add_block());
        BlockId yes = b.add_block(), no = b.add_block(), mirror = b.add_block(), done = b.add_block();
        ValueId context = b.context();
        ValueId x = b.load(8, context, 0);
        b.branch(static_cast<Condition>(c), x, by, yes, no);
        b.enter(yes);
        b.store(8, context, b.constant(1), 8);
        b.jump(mirror);
        b.enter(no);
        b.store(8, context, b.constant(2), 8);
        b.jump(mirror);
        b.enter(mirror);
        b.branch(static_cast<Condition>(c), b.constant(by), x, done, done);
        b.enter(done);
        b.ret(0);
      };
      for (int64_t x : {int64_t{0}, int64_t{-1}, int64_t{4}, int64_t{5}, int64_t{6}, kMin, kMax}) {
        int64_t a = x;
        auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(by);
        bool holds[] = {a == by, a != by,      ua<ub, ua <= ub, ua> ub, ua >= ub, a<by, a <= by, a> by,
                        a >= by, (a & by) != 0};
        check(build, {ua}, {ua, holds[c] ? 1ull : 2ull});
      }
    }
  }
}

TEST_F(BpfKernel, SpillsWhatTenRegistersDoNotHold) {
  auto build = [](Code& code) {
    Builder b(code.main());
    b.enter(b.add_block());
    ValueId context = b.context();
    std::vector<ValueId> values;
    for (int64_t i = 0; i < 30; ++i) values.push_back(b.binary(Op::k_mul, b.load(8, context, 8 * (i % 4)), i + 1));
    b.call(Helper::ktime_get_ns, {});
    ValueId sum = b.constant(0);
    for (size_t i = 0; i < values.size(); ++i) {
      sum = b.binary(Op::k_add, b.binary(Op::k_mul, sum, 3), values[i]);
      if (i % 10 == 9) b.call(Helper::ktime_get_ns, {});
    }
    b.store(8, context, sum, 32);
    b.ret(0);
  };
  uint64_t in[] = {3, 1000, ~0ull, 1ull << 40}, sum = 0;
  for (uint64_t i = 0; i < 30; ++i) sum = sum * 3 + in[i % 4] * (i + 1);
  check(build, {in[0], in[1], in[2], in[3]}, {in[0], in[1], in[2], in[3], sum});
}

TEST_F(BpfKernel, RotatesParametersInALoop) {
  auto build = [](Code& code) {
    Builder b(code.main());
    b.enter(b.add_block());
    BlockId loop = b.add_block(), body = b.add_block(), done = b.add_block();
    ValueId i = b.add_block_parameter(loop), x = b.add_block_parameter(loop), y = b.add_block_parameter(loop),
            z = b.add_block_parameter(loop);
    ValueId context = b.context();
    b.jump(loop, {b.constant(0), b.load(8, context, 0), b.load(8, context, 8), b.load(8, context, 16)});
    b.enter(loop);
    b.branch(Condition::ult, i, 7, body, done);
    b.enter(body);
    b.jump(loop, {b.binary(Op::k_add, i, 1), y, z, x});
    b.enter(done);
    b.store(8, context, x, 24);
    b.store(8, context, y, 32);
    b.store(8, context, z, 40);
    b.ret(0);
  };
  check(build, {10, 20, 30}, {10, 20, 30, 20, 30, 10});
}

TEST_F(BpfKernel, MayGotoRunsALoopWithoutBound) {
  auto build = [](Code& code) {
    Builder b(code.main());
    b.enter(b.add_block());
    BlockId loop = b.add_block(), check = b.add_block(), body = b.add_block(), done = b.add_block();
    ValueId i = b.add_block_parameter(loop), sum = b.add_block_parameter(loop), result = b.add_block_parameter(done);
    ValueId context = b.context();
    ValueId n = b.load(8, context, 0);
    b.jump(loop, {b.constant(0), b.constant(0)});
    b.enter(loop);
    b.branch(Condition::ult, i, n, check, b.add_block("out"));
    b.enter(BlockId{5});
    b.jump(done, {sum});
    b.enter(check);
    b.may_goto(body, BlockId{5});
    b.enter(body);
    b.jump(loop, {b.binary(Op::k_add, i, 1), b.binary(Op::k_add, sum, i)});
    b.enter(done);
    b.store(8, context, result, 8);
    b.ret(0);
  };
  check(build, {1000}, {1000, 499500});
}

TEST_F(BpfKernel, CallsSubprogramsWithPermutedArguments) {
  auto build = [](Code& code) {
    Function callee;
    callee.name = "mix";
    callee.parameter_count = 5;
    {
      Builder b(callee);
      b.enter(b.add_block());
      ValueId p[5];
      for (uint32_t i = 0; i < 5; ++i) p[i] = b.param(i);
      ValueId mix = p[0];
      for (int i = 1; i < 5; ++i) mix = b.binary(Op::k_add, b.binary(Op::k_mul, mix, 10), p[i]);
      BlockId rest = b.add_block(), small = b.add_block();
      b.branch(Condition::ugt, mix, 100, rest, small);
      b.enter(rest);
      b.ret(mix);
      b.enter(small);
      b.ret(b.binary(Op::k_sub, mix, p[4]));
    }
    FunctionId id = code.add_function(callee);
    Builder b(code.main());
    b.enter(b.add_block());
    ValueId context = b.context();
    ValueId v[5];
    for (int i = 0; i < 5; ++i) v[i] = b.load(8, context, 8 * i);
    ValueId first = b.call_function(id, {v[4], v[3], v[2], v[1], v[0]});
    ValueId second = b.call_function(id, {v[1], v[2], v[3], v[4], v[0]});
    b.store(8, context, first, 40);
    b.store(8, context, second, 48);
    b.store(8, context, b.call_function(id, {b.constant(0), b.constant(0), b.constant(0), v[0], v[1]}), 56);
    b.ret(0);
  };
  check(build, {1, 2, 3, 4, 5}, {1, 2, 3, 4, 5, 54321, 23451, 10});
}

TEST_F(BpfKernel, MapsNullChecksAndStackKeys) {
  auto build = [](Code& code) {
    MapId hash = code.add_map("hash", make_map(BPF_MAP_TYPE_HASH, 16, 8, 100));
    Builder b(code.main());
    b.enter(b.add_block());
    BlockId hit = b.add_block(), miss = b.add_block(), again = b.add_block(), done = b.add_block();
    ValueId context = b.context();
    SlotId key = b.add_slot(16, 8, "key"), initial = b.add_slot(8, 8, "initial");
    b.zero(b.slot(key), 16);
    b.store(4, b.slot(key), b.load(8, context, 0), 4);
    b.jump(again);
    b.enter(again);
    ValueId found = b.call(Helper::map_lookup_elem, {b.map(hash), b.slot(key)});
    b.branch(Condition::eq, found, 0, miss, hit);
    b.enter(miss);
    b.store(8, b.slot(initial), b.constant(41));
    b.call(Helper::map_update_elem, {b.map(hash), b.slot(key), b.slot(initial), b.constant(0)});
    b.jump(done);
    b.enter(hit);
    b.atomic_add(8, found, b.constant(1));
    b.jump(done);
    b.enter(done);
    ValueId second = b.call(Helper::map_lookup_elem, {b.map(hash), b.slot(key)});
    BlockId there = b.add_block(), out = b.add_block();
    b.branch(Condition::ne, second, 0, there, out);
    b.enter(there);
    ValueId old = b.atomic(Op::k_atomic_fetch_add, 8, second, {b.constant(100)});
    b.store(8, context, old, 8);
    b.store(8, context, b.load(8, second), 16);
    b.jump(out);
    b.enter(out);
    b.ret(0);
  };
  check(build, {7}, {7, 41, 141});
}

TEST_F(BpfKernel, Atomics) {
  auto build = [](Code& code) {
    MapId globals = code.add_map("globals", make_map(BPF_MAP_TYPE_ARRAY, 4, 128, 1));
    Builder b(code.main());
    b.enter(b.add_block());
    ValueId context = b.context();
    ValueId at = b.map_value(globals, 64);
    b.store(8, at, b.load(8, context, 0));
    ValueId x = b.load(8, context, 8);
    ValueId results[] = {b.atomic(Op::k_atomic_fetch_or, 8, at, {x}),
                         b.atomic(Op::k_atomic_fetch_and, 8, at, {x}),
                         b.atomic(Op::k_atomic_xchg, 8, at, {b.constant(77)}),
                         b.atomic(Op::k_atomic_cmpxchg, 8, at, {b.constant(77), x}),
                         b.atomic(Op::k_atomic_cmpxchg, 8, at, {b.constant(77), b.constant(1)}),
                         b.atomic(Op::k_atomic_fetch_add, 4, at, {b.constant(-1)})};
    b.store_release(4, at, b.constant(9), 8);
    int64_t offset = 16;
    for (ValueId result : results) {
      b.store(8, context, result, offset);
      offset += 8;
    }
    b.store(8, context, b.load(8, b.map_value(globals, 72)), offset);
    b.ret(0);
  };
  check(build, {12, 10}, {12, 10, 12, 14, 10, 77, 10, 10, 9});
}

TEST_F(BpfKernel, NarrowLoadsZeroAndCopy) {
  auto build = [](Code& code) {
    Builder b(code.main());
    b.enter(b.add_block());
    ValueId context = b.context();
    SlotId from = b.add_slot(24, 8), to = b.add_slot(24, 8);
    b.store(8, b.slot(from), b.load(8, context, 0));
    b.zero(b.binary(Op::k_add, b.slot(from), 8), 16);
    b.store(2, b.slot(from), b.constant(-2), 20);
    b.copy(b.slot(to), b.slot(from), 23);
    b.store(1, b.slot(to), b.constant(5), 23);
    b.store(8, context, b.load(1, b.slot(to), 1, true), 8);
    b.store(8, context, b.load(2, b.slot(to), 2, true), 16);
    b.store(8, context, b.load(4, b.slot(to), 0, true), 24);
    b.store(8, context, b.load(4, b.slot(to), 20, false), 32);
    b.ret(0);
  };
  check(build, {0x80ff91827384f5e6}, {0x80ff91827384f5e6, ~0x0aull, 0x7384, 0x7384f5e6, 0x0500fffe});
}

TEST_F(BpfKernel, HugeFunctionWithJumpsOver16Bits) {
  Code code;
  Builder b(code.main());
  b.enter(b.add_block());
  ValueId context = b.context();
  ValueId x = b.load(8, context, 0);
  BlockId skip = b.add_block("skip"), body = b.add_block("body");
  BlockId start = b.add_block("start");
  ValueId round = b.add_block_parameter(body);
  b.branch(Condition::test, x, 1, skip, start);
  b.enter(start);
  b.jump(body, {b.constant(0)});
  b.enter(body);
  ValueId sum = x;
  for (int64_t i = 0; i < 45000; ++i) sum = b.binary(i % 3 ? Op::k_add : Op::k_xor, sum, i);
  b.store(8, context, sum, 8);
  ValueId next = b.binary(Op::k_add, round, 1);
  BlockId again = b.add_block("again");
  b.branch(Condition::ult, next, 2, again, skip);
  b.enter(again);
  b.jump(body, {next});
  b.enter(skip);
  b.ret(0);
  uint64_t expected = 2;
  for (uint64_t i = 0; i < 45000; ++i) expected = i % 3 ? expected + i : expected ^ i;
  for (const Target& target : kTargets) {
    Loaded loaded = load(code, target);
    ASSERT_EQ(loaded.problem.substr(0, 300), "") << target.v4;
    Words odd{1, 5}, even{2, 5};
    ASSERT_TRUE(run(loaded.program, odd));
    ASSERT_TRUE(run(loaded.program, even));
    EXPECT_EQ(odd[1], 5u);
    EXPECT_EQ(even[1], expected);
  }
}

}  // namespace
}  // namespace espy::bpf

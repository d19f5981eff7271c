// Random functions of pure operations, variables, stack memory and branches: what the evaluator makes of them must be
// the same before and after the optimiser, and the optimiser must leave correct IR and agree on constants.
#include <gtest/gtest.h>

#include <random>

#include "../support/ir_eval.h"
#include "ir/builder.h"
#include "ir/ir_text.h"
#include "opt/pipeline.h"

namespace espy::opt {
namespace {

using namespace ir;

constexpr int64_t kInteresting[] = {0,
                                    1,
                                    -1,
                                    2,
                                    7,
                                    8,
                                    16,
                                    63,
                                    64,
                                    255,
                                    256,
                                    65535,
                                    0x7fffffff,
                                    0x80000000,
                                    0xffffffff,
                                    std::numeric_limits<int64_t>::min(),
                                    std::numeric_limits<int64_t>::max()};

// Makes a function of two parameters with forward branches and counted loops.
class Generator {
 public:
  Generator(Function& function, uint64_t seed) : builder_(function), random_(seed) {}

  void make(int statements) {
    builder_.enter(builder_.add_block());
    for (int i = 0; i < 4; ++i) variables_.push_back(builder_.add_variable("v"));
    memory_ = builder_.add_slot(64, 8, "m");
    builder_.zero(builder_.slot(memory_), 64);
    values_ = {builder_.param(0), builder_.param(1)};
    body(statements, 0);
    ValueId sum = any();
    for (SlotId variable : variables_) sum = builder_.binary(Op::k_xor, sum, read(variable));
    for (int i = 0; i < 8; ++i) sum = builder_.binary(Op::k_add, sum, builder_.load(8, builder_.slot(memory_), i * 8));
    builder_.ret(sum);
  }

 private:
  uint64_t pick(uint64_t below) { return random_() % below; }
  ValueId read(SlotId variable) { return builder_.load(8, builder_.slot(variable)); }

  ValueId any() {
    if (pick(4) == 0) return builder_.constant(kInteresting[pick(std::size(kInteresting))]);
    if (pick(3) == 0) return read(variables_[pick(variables_.size())]);
    return values_[values_.size() - 1 - pick(std::min<size_t>(values_.size(), 8))];
  }

  void body(int statements, int depth) {
    for (int i = 0; i < statements; ++i) {
      switch (pick(depth < 3 ? 12 : 9)) {
        case 0:
        case 1: builder_.store(8, builder_.slot(variables_[pick(variables_.size())]), any()); break;
        case 2: memory_access(); break;
        case 3: {
          Op op = static_cast<Op>(static_cast<int>(Op::k_neg) +
                                  pick(static_cast<int>(Op::k_bswap64) - static_cast<int>(Op::k_neg) + 1));
          values_.push_back(builder_.unary(op, any()));
          break;
        }
        case 9:
        case 10: branch(depth); break;
        case 11: loop(depth); break;
        default: binary();
      }
    }
  }

  void binary() {
    constexpr Op kOps[] = {Op::k_add, Op::k_sub, Op::k_mul, Op::k_udiv, Op::k_sdiv, Op::k_umod, Op::k_smod,
                           Op::k_and, Op::k_or,  Op::k_xor, Op::k_shl,  Op::k_shr,  Op::k_sar,  Op::k_eq,
                           Op::k_ne,  Op::k_ult, Op::k_ule, Op::k_slt,  Op::k_sle};
    Op op = kOps[pick(std::size(kOps))];
    ValueId a = any(), b = any();
    values_.push_back(builder_.binary(op, a, b));
  }

  void memory_access() {
    uint8_t width = static_cast<uint8_t>(1 << pick(4));
    int64_t offset = static_cast<int64_t>(pick(64 / width)) * width;
    ValueId address = builder_.slot(memory_);
    if (pick(2)) {
      address = builder_.binary(Op::k_add, address, offset);
      offset = 0;
    }
    if (pick(2)) {
      ValueId value = any();
      builder_.store(width, address, value, offset);
    } else {
      values_.push_back(builder_.load(width, address, offset, pick(2) != 0 && width < 8));
    }
  }

  void branch(int depth) {
    BlockId yes = builder_.add_block(), no = builder_.add_block(), join = builder_.add_block();
    Condition condition = static_cast<Condition>(pick(11));
    ValueId a = any(), b = any();
    builder_.branch(condition, a, b, yes, no);
    size_t visible = values_.size();
    for (BlockId side : {yes, no}) {
      builder_.enter(side);
      body(static_cast<int>(pick(4)), depth + 1);
      builder_.jump(join);
      values_.resize(visible);
    }
    builder_.enter(join);
  }

  void loop(int depth) {
    SlotId counter = builder_.add_variable("i");
    BlockId head = builder_.add_block(), inside = builder_.add_block(), done = builder_.add_block();
    ValueId zero = builder_.constant(0);
    builder_.store(8, builder_.slot(counter), zero);
    builder_.jump(head);
    builder_.enter(head);
    builder_.branch(Condition::ult, read(counter), static_cast<int64_t>(1 + pick(3)), inside, done);
    builder_.enter(inside);
    size_t visible = values_.size();
    body(static_cast<int>(pick(4)), depth + 1);
    values_.resize(visible);
    ValueId next = builder_.binary(Op::k_add, read(counter), 1);
    builder_.store(8, builder_.slot(counter), next);
    builder_.jump(head);
    builder_.enter(done);
  }

  Builder builder_;
  std::mt19937_64 random_;
  std::vector<SlotId> variables_;
  SlotId memory_;
  std::vector<ValueId> values_;
};

Module random_module(uint64_t seed, int statements) {
  Module module;
  FunctionId id = module.functions.add({.name = "random", .parameter_count = 2});
  Generator(module.functions[id], seed).make(statements);
  return module;
}

TEST(OptRandom, KeepsWhatFunctionsGive) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    Module before = random_module(seed, 5 + static_cast<int>(seed % 40));
    ASSERT_EQ(verify(before), "") << print(before);
    Module after = before;
    optimize(after, verify_after_pass);
    ASSERT_EQ(verify(after), "") << "seed " << seed << "\n" << print(before) << print(after);
    for (int64_t a : kInteresting) {
      std::vector<uint64_t> parameters = {static_cast<uint64_t>(a), static_cast<uint64_t>(a) * seed + 1};
      auto wanted = test::IrEvaluator(before.functions[FunctionId{0}]).run(parameters);
      auto got = test::IrEvaluator(after.functions[FunctionId{0}]).run(parameters);
      ASSERT_TRUE(wanted) << "seed " << seed;
      ASSERT_EQ(got, wanted) << "seed " << seed << "\n" << print(before) << print(after);
    }
  }
}

TEST(OptRandom, LeavesNoVariableInMemory) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Module module = random_module(seed, 30);
    optimize(module, verify_after_pass);
    const Function& function = module.functions[FunctionId{0}];
    for (const Block& block : function.blocks)
      for (ValueId id : block.instructions) {
        if (function.values[id].op != Op::k_slot) continue;
        EXPECT_FALSE(function.slots[function.values[id].slot].is_variable);
      }
  }
}

TEST(OptRandom, FoldsConstantsAsTheEvaluatorDoes) {
  for (size_t i = 0; i < static_cast<size_t>(Op::k_context); ++i) {
    Op op = static_cast<Op>(i);
    if (op == Op::k_konst) continue;
    for (int64_t a : kInteresting) {
      for (int64_t b : kInteresting) {
        Function function;
        Builder builder(function);
        builder.enter(builder.add_block());
        ValueId x = builder.constant(a);
        builder.ret(info(op).operands == 2 ? builder.binary(op, x, b) : builder.unary(op, x));
        std::optional<int64_t> folded = evaluate(op, a, b);
        ASSERT_TRUE(folded) << info(op).name;
        ASSERT_EQ(test::IrEvaluator(function).run({}), static_cast<uint64_t>(*folded))
            << info(op).name << " " << a << ", " << b;
      }
    }
  }
}

TEST(OptRandom, ReadsBackWhatItPrints) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Module module = random_module(seed, 30);
    optimize(module, verify_after_pass);
    std::string text = print(module);
    Result<Module> again = read(text);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(print(*again), text);
  }
}

}  // namespace
}  // namespace espy::opt

// Random functions: the kernel, running them as written and optimised, must agree with the evaluator.
#include <random>

#include "bpf_support.h"

namespace espy::bpf {
namespace {

using namespace ir;

// Writes a function of arithmetic, branches, short loops, calls and stack slots over the context's first four words;
// all that is alive at the end goes into the result.
class Generator {
 public:
  Generator(Function& function, uint32_t seed) : builder_(function), random_(seed) {}

  void run() {
    builder_.enter(builder_.add_block());
    context_ = builder_.context();
    for (int i = 0; i < 4; ++i) pool_.push_back(builder_.load(8, context_, 8 * i));
    for (int i = 0; i < 3; ++i) {
      slots_.push_back(builder_.add_slot(16, 8));
      builder_.zero(builder_.slot(slots_.back()), 16);
    }
    body(20 + below(50), 2);
    ValueId result = builder_.constant(0);
    for (ValueId value : pool_) result = builder_.binary(Op::k_add, builder_.binary(Op::k_mul, result, 31), value);
    builder_.store(8, context_, result, 32);
    builder_.ret(0);
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  ValueId any() { return below(5) == 0 ? builder_.constant(constant()) : pool_[random_() % pool_.size()]; }

  int64_t constant() {
    constexpr int64_t kSome[] = {0, 1, -1, 3, 8, 63, 255, 0x7fffffff, 0x80000000, 0x123456789};
    return below(2) ? kSome[below(10)] : static_cast<int32_t>(random_());
  }

  void body(int length, int depth) {
    for (int i = 0; i < length; ++i) {
      int kind = below(40);
      if (kind == 0 && depth > 0) {
        conditional(depth);
      } else if (kind == 1 && depth > 0) {
        loop(depth);
      } else if (kind == 2) {
        builder_.call(Helper::ktime_get_ns, {});
      } else if (kind < 6) {
        memory();
      } else {
        arithmetic();
      }
    }
  }

  void arithmetic() {
    int range = static_cast<int>(Op::k_sle) - static_cast<int>(Op::k_add) + 1;
    auto op = static_cast<Op>(static_cast<int>(Op::k_add) + below(range));
    pool_.push_back(info(op).operands == 1 ? builder_.unary(op, any()) : builder_.binary(op, any(), any()));
  }

  void memory() {
    ValueId slot = builder_.slot(slots_[random_() % slots_.size()]);
    constexpr uint8_t kWidths[] = {1, 2, 4, 8};
    uint8_t width = kWidths[below(4)];
    int64_t offset = width * below(16 / width);
    if (below(2))
      builder_.store(width, slot, any(), offset);
    else
      pool_.push_back(builder_.load(width, slot, offset, below(2)));
  }

  Condition condition() { return static_cast<Condition>(below(11)); }

  void conditional(int depth) {
    BlockId yes = builder_.add_block(), no = builder_.add_block(), join = builder_.add_block();
    ValueId a = builder_.add_block_parameter(join), b = builder_.add_block_parameter(join);
    size_t before = pool_.size();
    ValueId left = any(), right = any();
    builder_.branch(condition(), left, right, yes, no);
    for (BlockId arm : {yes, no}) {
      builder_.enter(arm);
      body(below(12), depth - 1);
      builder_.jump(join, {any(), any()});
      pool_.resize(before);
    }
    builder_.enter(join);
    pool_.push_back(a);
    pool_.push_back(b);
  }

  void loop(int depth) {
    BlockId head = builder_.add_block(), inside = builder_.add_block(), done = builder_.add_block();
    ValueId count = builder_.add_block_parameter(head), a = builder_.add_block_parameter(head),
            b = builder_.add_block_parameter(head);
    builder_.jump(head, {builder_.constant(0), any(), any()});
    builder_.enter(head);
    size_t before = pool_.size();
    builder_.branch(Condition::ult, count, 1 + below(4), inside, done);
    builder_.enter(inside);
    pool_.insert(pool_.end(), {count, a, b});
    body(below(12), depth - 1);
    if (below(2))
      builder_.jump(head, {builder_.binary(Op::k_add, count, 1), b, a});
    else
      builder_.jump(head, {builder_.binary(Op::k_add, count, 1), any(), any()});
    pool_.resize(before);
    builder_.enter(done);
    pool_.insert(pool_.end(), {count, a, b});
  }

  Builder builder_;
  std::mt19937 random_;
  ValueId context_;
  std::vector<ValueId> pool_;
  std::vector<SlotId> slots_;
};

TEST(BpfRandom, KernelAgreesWithTheEvaluator) {
  if (!may_load_programs()) GTEST_SKIP() << "bpf() is not permitted here";
  const char* wanted = std::getenv("ESPY_SEED");
  uint32_t first = wanted ? static_cast<uint32_t>(std::atoi(wanted)) : 1, count = wanted ? 1 : 150;
  if (const char* many = std::getenv("ESPY_SEEDS")) count = static_cast<uint32_t>(std::atoi(many));
  for (uint32_t seed = first; seed < first + count; ++seed) {
    for (bool is_optimised : {false, true}) {
      Code code;
      Generator(code.main(), seed).run();
      Code original = Code();
      original.module = code.module;
      if (is_optimised) opt::optimize(code.module, opt::verify_after_pass);
      Loaded loaded = load(code, {.v4 = seed % 3 != 0});
      if (loaded.problem == "the stack frame is too large") continue;
      ASSERT_EQ(loaded.problem, "") << "seed " << seed << ", optimised " << is_optimised;
      for (uint64_t input = 0; input < 3; ++input) {
        Words words{seed * input, ~input, input << 33, 5};
        words.resize(kWords);
        Words expected = words;
        ASSERT_TRUE(test::IrMachine(original.module, FunctionId{0}, expected).run().has_value());
        ASSERT_TRUE(run(loaded.program, words));
        ASSERT_EQ(words, expected) << "seed " << seed << ", optimised " << is_optimised << "\n"
                                   << ir::print(code.module)
                                   << disassemble(code.program.programs[program::ProgramId{0}], code.program);
      }
    }
  }
}

}  // namespace
}  // namespace espy::bpf

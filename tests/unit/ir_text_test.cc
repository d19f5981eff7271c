// Round trips through text, what the reader refuses, and each rule of the verifier.
#include "ir/ir_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/builder.h"

namespace espy::ir {
namespace {

using testing::HasSubstr;

constexpr std::string_view kEverything = R"(unit p0: f0, f1

function f0 "main \"it\"" parameters 0 {
  slot s0 "$x" size 8 align 8 variable
  slot s1 "" size 16 align 4
b0 "entry":
  v0 = context
  v1 = konst -9223372036854775808
  v2 = slot s1
  v3 = map m0
  v4 = map_value m1, 24
  v5 = func f1
  v6 = load.s4 [v0 + 8]
  v7 = sext8 v6
  v8 = add v7, v1
  store.2 [v2 - 6], v8
  zero v2, 16
  copy v2, v4, 12
  atomic_add.8 [v4], v8
  v9 = atomic_cmpxchg.4 [v4 + 4], v8, v7
  store_release.4 [v4], v9
  v10 = call map_lookup_elem(v3, v2) nullable
  v11 = call get_current_pid_tgid()
  v12 = kfunc 1234(v11, v10) pure
  branch ult v10, v12, b1(v11), b2
b1 "loop"(v13):
  may_goto b1(v13), b2
b2:
  v14 = call_function f1(v8, v9)
  ret v14
}

function f1 "callback" parameters 2 callback {
b0:
  v0 = param 1
  jump b1(v0, v0)
b1(v1, v2):
  ret v2
}
)";

TEST(IrText, ReadsWhatItPrints) {
  Result<Module> module = read(kEverything);
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_EQ(verify(*module), "");
  EXPECT_EQ(print(*module), kEverything);
}

TEST(IrText, TakesCommentsBlanksAndGapsInNumbers) {
  Result<Module> module =
      read("// head\nfunction f0 \"\" parameters 0 { // tail\nb0:\n v7 = konst 0x10\n\n\tret v7\n}\n");
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_EQ(verify(*module), "");
  EXPECT_EQ(print(*module), "function f0 \"\" parameters 0 {\nb0:\n  v7 = konst 16\n  ret v7\n}\n");
}

TEST(IrText, PrintsWhatTheBuilderMade) {
  Module module;
  Function function{.name = "main"};
  Builder builder(function);
  BlockId entry = builder.add_block("entry"), loop = builder.add_block(), done = builder.add_block();
  ValueId i = builder.add_block_parameter(loop);
  builder.enter(entry);
  builder.jump(loop, {builder.constant(0)});
  EXPECT_TRUE(builder.is_terminated());
  builder.enter(loop);
  ValueId next = builder.binary(Op::k_add, i, 1);
  builder.branch(Condition::ult, next, 10, done, done);
  builder.enter(done);
  builder.ret(0);
  module.functions.add(function);
  EXPECT_EQ(verify(module), "");
  EXPECT_THAT(print(module), HasSubstr("b1(v0):\n  v3 = konst 1\n  v4 = add v0, v3\n"));
  EXPECT_THAT(print(module.functions[FunctionId{0}], module), HasSubstr("function f0 \"main\""));
}

std::string read_error(std::string_view text) {
  Result<Module> module = read(text);
  return module ? "" : module.error().message;
}

std::string with_body(std::string_view body) {
  return "function f0 \"f\" parameters 1 {\n  slot s0 \"\" size 8 align 8\nb0:\n" + std::string(body) + "}\n";
}

TEST(IrText, NamesTheLineOfAnError) {
  EXPECT_EQ(read_error("function f1 \"\" parameters 0 {\n}\n").substr(0, 7), "line 1:");
  EXPECT_THAT(read_error(with_body("  v0 = konst 1\n  v0 = konst 2\n")), HasSubstr("line 5: v0 is defined twice"));
  EXPECT_THAT(read_error(with_body("  v0 = conjure v1\n")), HasSubstr("`conjure` is no operation"));
  EXPECT_THAT(read_error(with_body("  v0 = call conjure()\n")), HasSubstr("`conjure` is no helper"));
  EXPECT_THAT(read_error(with_body("  branch maybe v0, v0, b1, b1\n")), HasSubstr("`maybe` is no condition"));
  EXPECT_THAT(read_error(with_body("  konst 1\n")), HasSubstr("expected `vN = `"));
  EXPECT_THAT(read_error(with_body("  v0 = jump b1\n")), HasSubstr("has no result"));
  EXPECT_THAT(read_error(with_body("  v0 = konst 1 2\n")), HasSubstr("expected the end of the line"));
  EXPECT_THAT(read_error(with_body("  v0 = konst \n")), HasSubstr("expected a word"));
  EXPECT_THAT(read_error(with_body("  ret v99999999999\n")), HasSubstr("line 4"));
  EXPECT_THAT(read_error("function f0 \"\" parameters 0 {\n"), HasSubstr("expected `}`"));
  EXPECT_THAT(read_error("function f0 \"\\x"), HasSubstr("line 1"));
  EXPECT_THAT(read_error("b0:\n"), HasSubstr("expected `function`"));
}

struct Rejection {
  std::string_view sentence;
  std::string text;
};

std::string verify_text(std::string_view text) {
  Result<Module> module = read(text);
  EXPECT_TRUE(module) << module.error().message;
  return module ? verify(*module) : "";
}

class IrVerify : public testing::TestWithParam<Rejection> {};

TEST_P(IrVerify, Rejects) { EXPECT_THAT(verify_text(GetParam().text), HasSubstr(GetParam().sentence)); }

const Rejection kRejections[] = {
    {"more than five parameters", "function f0 \"\" parameters 6 {\n}\n"},
    {"it has no blocks", "function f0 \"\" parameters 0 {\n}\n"},
    {"s0 is not 1 to 512 bytes", "function f0 \"\" parameters 0 {\nslot s0 \"\" size 0 align 8\n}\n"},
    {"alignment is none of", "function f0 \"\" parameters 0 {\nslot s0 \"\" size 8 align 3\n}\n"},
    {"variable s0 is not 8 bytes", "function f0 \"\" parameters 0 {\nslot s0 \"\" size 4 align 4 variable\n}\n"},
    {"the entry block has parameters", "function f0 \"\" parameters 0 {\nb0(v0):\n  ret v0\n}\n"},
    {"the block is empty", with_body("")},
    {"an end within a block", with_body("v0 = konst 0\nret v0\nret v0\n")},
    {"the last instruction of the block does not end it", with_body("v0 = konst 0\n")},
    {"1 operands instead of 2", with_body("v0 = konst 0\nv1 = add v0\nret v1\n")},
    {"more than five arguments", with_body("v0 = konst 0\nv1 = kfunc 1(v0, v0, v0, v0, v0, v0)\nret v1\n")},
    {"2 targets instead of 1", with_body("jump b1, b1\nb1:\nv0 = konst 0\nret v0\n")},
    {"none of 1, 2, 4, 8", with_body("v0 = slot s0\nv1 = load.3 [v0]\nret v1\n")},
    {"neither 4 nor 8", with_body("v0 = slot s0\natomic_add.2 [v0], v0\nret v0\n")},
    {"not 1 to 512 bytes", with_body("v0 = slot s0\ncopy v0, v0, 513\nret v0\n")},
    {"not a multiple of 8", with_body("v0 = slot s0\nzero v0, 4\nret v0\n")},
    {"no such parameter", with_body("v0 = param 1\nret v0\n")},
    {"no such slot", with_body("v0 = slot s1\nret v0\n")},
    {"there is no such function", with_body("v0 = func f1\nret v0\n")},
    {"do not match the function's parameters", with_body("v0 = call_function f0()\nret v0\n")},
    {"map_lookup_elem takes 2 arguments", with_body("v0 = call map_lookup_elem()\nret v0\n")},
    {"a target that is not a block", with_body("jump b7\n")},
    {"a jump to the entry block", with_body("jump b0\n")},
    {"do not match the parameters of b1", with_body("jump b1\nb1(v0):\nret v0\n")},
    {"which is in no block", with_body("ret v3\n")},
    {"v0 before its definition", with_body("v1 = neg v0\nv0 = konst 0\nret v0\n")},
    {"not dominated", with_body("v0 = konst 0\nbranch eq v0, v0, b1, b2\nb1:\nv1 = konst 1\njump b2\nb2:\nret v1\n")},
    {"has no main function", "unit p0: f0\n"},
    {"there is no function f9", "unit p0: f0, f9\n" + with_body("v0 = konst 0\nret v0\n")},
};

INSTANTIATE_TEST_SUITE_P(Rules, IrVerify, testing::ValuesIn(kRejections));

TEST(IrVerify, NamesFunctionBlockAndValue) {
  EXPECT_EQ(verify_text(with_body("v0 = konst 0\nv1 = add v0\nret v1\n")),
            "function f0 (f), b0, v1 (add): 1 operands instead of 2");
}

// What text cannot say.
TEST(IrVerify, RejectsBrokenTables) {
  Module module;
  FunctionId id = module.functions.add({});
  Function& function = module.functions[id];
  Builder builder(function);
  BlockId entry = builder.add_block();
  builder.enter(entry);
  ValueId zero = builder.constant(0);
  builder.store(8, zero, zero);
  builder.ret(zero);
  ASSERT_EQ(verify(module), "");

  auto broken = [&](auto change) {
    Module copy = module;
    change(copy.functions[id]);
    return verify(copy);
  };
  EXPECT_THAT(broken([&](Function& f) { f.blocks[entry].instructions[0] = ValueId{99}; }), HasSubstr("no such value"));
  EXPECT_THAT(broken([&](Function& f) { f.blocks[entry].instructions[1] = zero; }), HasSubstr("it is in two places"));
  EXPECT_THAT(broken([&](Function& f) { f.values[ValueId{2}].operands[0] = ValueId{99}; }),
              HasSubstr("a value that does not exist"));
  EXPECT_THAT(broken([&](Function& f) { f.values[ValueId{2}].operands[0] = ValueId{1}; }), HasSubstr("has no result"));
  EXPECT_THAT(broken([&](Function& f) { f.values[zero] = {.op = Op::k_map}; }), HasSubstr("it names no map"));
  EXPECT_THAT(broken([&](Function& f) { f.values[zero] = {.op = Op::k_call}; }), HasSubstr("there is no such helper"));
  EXPECT_THAT(broken([&](Function& f) { f.values[zero] = {.op = Op::kCount}; }), HasSubstr("no such operation"));
  EXPECT_THAT(broken([&](Function& f) {
                BlockId second = f.blocks.add({});
                f.blocks[second].parameters.push_back(f.values.add({}));
              }),
              HasSubstr("op must be param"));
}

TEST(IrTables, FindWhatTheyName) {
  for (size_t i = 0; i < static_cast<size_t>(Op::kCount); ++i)
    EXPECT_EQ(find_op(info(static_cast<Op>(i)).name), static_cast<Op>(i));
  EXPECT_EQ(info(Helper::map_lookup_elem).name, "map_lookup_elem");
  EXPECT_EQ(find_helper("ktime_get_tai_ns"), Helper::ktime_get_tai_ns);
  EXPECT_FALSE(find_helper("?"));
  EXPECT_EQ(find_condition("sge"), Condition::sge);
}

}  // namespace
}  // namespace espy::ir

#include "builtins/percentile.h"

#include <cstdint>

#include "check/checker.h"
#include "program/layout.h"

namespace espy::builtins {
namespace {

using ir::BlockId;
using ir::Condition;
using ir::Op;
using ir::ValueId;
using lower::Lowering;
using types::Kind;

uint32_t bucket_count(const types::Type& type) {
  if (type.kind == Kind::kHist) return program::hist_bucket_count(type.hist_bits);
  return static_cast<uint32_t>(program::lhist_bucket_count(type.lhist_min, type.lhist_max, type.lhist_step));
}

class Buckets {
 public:
  Buckets(Lowering& lowering, ValueId buckets, uint32_t count)
      : lowering_(lowering), ir_(lowering.ir()), buckets_(buckets), count_(count) {}

  // The number of values.
  ValueId sum() {
    const ValueId sum = lowering_.memory(8, "sum");
    ir_.store(8, sum, ir_.constant(0));
    ir_.count_up(count_, [&](ValueId index, BlockId) { add(sum, index); });
    return ir_.load(8, sum);
  }

  // The index of the bucket that counts the value of a rank: 1 is that of the least.
  ValueId bucket_of(ValueId rank) {
    const ValueId sum = lowering_.memory(8, "sum");
    const ValueId found = lowering_.memory(8, "bucket");
    ir_.store(8, found, ir_.constant(0));
    ir_.store(8, sum, ir_.constant(0));
    ir_.count_up(count_, [&](ValueId index, BlockId done) {
      add(sum, index);
      ir_.store(8, found, index);
      const BlockId next = ir_.add_block("next");
      ir_.branch(Condition::uge, ir_.load(8, sum), rank, done, next);
      ir_.enter(next);
    });
    return ir_.load(8, found);
  }

 private:
  void add(ValueId sum, ValueId index) {
    const ValueId bucket = ir_.binary(Op::k_add, buckets_, ir_.binary(Op::k_shl, index, 3));
    ir_.store(8, sum, ir_.binary(Op::k_add, ir_.load(8, sum), ir_.load(8, bucket)));
  }

  Lowering& lowering_;
  ir::Builder& ir_;
  ValueId buckets_;
  uint32_t count_;
};

// Emits program::hist_bucket_start(bucket + 1, bits) - 1.
ValueId end_of_hist_bucket(Lowering& lowering, ValueId bucket, uint8_t bits) {
  ir::Builder& ir = lowering.ir();
  const int64_t parts = int64_t{1} << bits;
  const ValueId next = lowering.select(
      Condition::ult, bucket, ir.constant(parts), [&] { return bucket; },
      [&] {
        const ValueId shift = ir.binary(Op::k_sub, ir.binary(Op::k_shr, bucket, bits), 1);
        const ValueId part = ir.binary(Op::k_add, ir.binary(Op::k_and, bucket, parts - 1), parts);
        return ir.binary(Op::k_shl, part, shift);
      });
  return ir.binary(Op::k_sub, next, 1);
}

ValueId end_of_lhist_bucket(Lowering& lowering, ValueId bucket, const types::Type& type) {
  ir::Builder& ir = lowering.ir();
  return lowering.select(
      Condition::eq, bucket, ir.constant(bucket_count(type) - 1), [&] { return ir.constant(type.lhist_max); },
      [&] {
        return ir.binary(Op::k_add, ir.binary(Op::k_mul, bucket, ir.constant(type.lhist_step)), type.lhist_min - 1);
      });
}

// Emits sum * part / whole, rounded up, and at least 1.
ValueId rank(Lowering& lowering, ValueId sum, ValueId part, int64_t whole) {
  ir::Builder& ir = lowering.ir();
  const ValueId rounded = ir.binary(Op::k_add, ir.binary(Op::k_mul, sum, part), whole - 1);
  const ValueId rank = ir.binary(Op::k_udiv, rounded, whole);
  return lowering.select(
      Condition::eq, rank, ir.constant(0), [&] { return ir.constant(1); }, [&] { return rank; });
}

}  // namespace

types::TypeId check_percentile(check::Checker& checker, const spec::CallSite& call) {
  const auto part = checker.integer(call.arguments[1]);
  const int64_t whole = call.arguments.size() > 2 ? checker.integer(call.arguments[2]).value_or(0) : 100;
  if (whole < 1 || whole > 1'000'000)
    checker.error("percentile", checker.ast()[call.arguments[2]].span, "the whole must be from 1 to 1,000,000");
  else if (part && (*part < 0 || *part > whole))
    checker.error("percentile", checker.ast()[call.arguments[1]].span,
                  "the part must be from 0 to " + std::to_string(whole),
                  whole == 100 ? "`percentile(@h, 999, 1000)` is that of 99.9 %" : "");
  return checker.types().int64();
}

lower::Operand lower_percentile(Lowering& lowering, const spec::CallSite& call) {
  const types::Type type = lowering.types()[lowering.type(call.arguments[0])];
  const ValueId buckets = lowering.value(call.arguments[0]).value;
  const int64_t whole = call.arguments.size() > 2 ? lowering.integer(call.arguments[2]).value_or(1) : 100;
  const ValueId part = lowering.scalar(call.arguments[1]);
  Buckets histogram(lowering, buckets, bucket_count(type));
  const ValueId sum = histogram.sum();
  const auto end = [&] {
    const ValueId bucket = histogram.bucket_of(rank(lowering, sum, part, whole));
    return type.kind == Kind::kHist ? end_of_hist_bucket(lowering, bucket, type.hist_bits)
                                    : end_of_lhist_bucket(lowering, bucket, type);
  };
  ir::Builder& ir = lowering.ir();
  const ValueId value = lowering.select(
      Condition::eq, sum, ir.constant(0), [&] { return ir.constant(0); }, end);
  return lowering.scalar_operand(lowering.types().int64(), value);
}

}  // namespace espy::builtins

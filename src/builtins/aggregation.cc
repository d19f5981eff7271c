
#include <time.h>

#include <cstddef>
#include <cstdint>

#include "builtins/builtin_support.h"
#include "check/checker.h"
#include "program/layout.h"
#include "runtime/resolver.h"

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
                  whole == 100 ? "`percentile(@h, 999, 1000)` computes the 99.9th percentile" : "");
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

// ---- Aggregations: count, sum, min, max, avg, stats, hist, lhist, tseries, recent.
//
// An aggregation has a value per CPU (layout: program/layout.h), which the program updates in place without a lookup in
// user space or a lock; `lower_update` emits this update. User space merges the values of all CPUs when it reads the
// map, so that no CPU overwrites what another one counted.
//
// Two threads can still update the same value if a program can be preempted, as in uprobes. `is_atomic` tells
// `lower_update` so. Sums and counts are then added atomically. A minimum or maximum is exchanged, and what is to be
// set as a whole is marked as being set meanwhile; a thread that comes then is counted as lost.
//
// Limits: all values are 64 bits wide. Where a sum wraps around on its CPU, that is counted; the total of several CPUs
// wraps around without a sign of it. A histogram counts each value in one bucket, whose bounds are
// fixed when the script is compiled. How values are merged: output/value.cc.

namespace {

using ir::Condition;
using ir::Op;
using ir::ValueId;
using lower::Lowering;
using spec::BuiltinKind;
using spec::CallSite;
using types::Kind;
using types::TypeId;

constexpr int64_t kSecondWord = 8;
constexpr int64_t kMaxHistBits = 5;
constexpr uint64_t kMaxLinearBuckets = 1000;

// Emits word += value, atomically if the program can be preempted between the load and the store.
void add_to(Lowering& lowering, ValueId address, int64_t offset, ValueId value, bool is_atomic) {
  ir::Builder& ir = lowering.ir();
  if (is_atomic) {
    ir.atomic_add(8, address, value, offset);
  } else {
    ir.store(8, address, ir.binary(Op::k_add, ir.load(8, address, offset), value), offset);
  }
}

// One thread may preempt another between two instructions. Linux before 5.12 has no atomic exchange, and preempts no
// program.
bool may_exchange(Lowering& lowering) { return lowering.kernel().has(kernel::Feature::kAtomicFetch); }

// Emits word += value, and counts where the sum wraps around: no sum of two numbers of one sign has the other sign, and
// none of two without signs is less than one of them.
void add_to_sum(Lowering& lowering, ValueId address, int64_t offset, ValueId value, bool is_signed, bool is_atomic) {
  ir::Builder& ir = lowering.ir();
  if (is_atomic && !may_exchange(lowering)) return ir.atomic_add(8, address, value, offset);
  const ValueId old =
      is_atomic ? ir.atomic(Op::k_atomic_fetch_add, 8, address, {value}, offset) : ir.load(8, address, offset);
  const ValueId sum = ir.binary(Op::k_add, old, value);
  if (!is_atomic) ir.store(8, address, sum, offset);
  const auto count = [&] {
    lowering.count_loss(program::LossKind::kValue,
                        "sum(s) wrapped around at 64 bits in sum(), avg(), stats() or tseries()");
  };
  if (!is_signed) return lowering.when(Condition::ult, sum, old, count);
  const ValueId signs = ir.binary(Op::k_and, ir.binary(Op::k_xor, old, sum), ir.binary(Op::k_xor, value, sum));
  lowering.when(Condition::slt, signs, ir.constant(0), count);
}

void update_count(Lowering& lowering, const CallSite&, ValueId address, bool is_atomic) {
  add_to(lowering, address, 0, lowering.ir().constant(1), is_atomic);
}

void update_sum(Lowering& lowering, const CallSite& call, ValueId address, bool is_atomic) {
  const ValueId value = lowering.scalar(call.arguments[0]);
  const bool is_signed = lowering.types()[lowering.type(call.expr)].is_signed;
  add_to_sum(lowering, address, 0, lowering.opaque_copy(value), is_signed, is_atomic);
}

void update_stats(Lowering& lowering, const CallSite& call, ValueId address, bool is_atomic) {
  update_sum(lowering, call, address, is_atomic);
  add_to(lowering, address, kSecondWord, lowering.ir().constant(1), is_atomic);
}

void lose_to_other_thread(Lowering& lowering) {
  lowering.count_loss(program::LossKind::kUpdate,
                      "update(s) lost: another thread stored a value of min(), max() or tseries() at the same time");
}

Condition better_extreme(bool is_max, bool is_signed) {
  if (is_max) return is_signed ? Condition::sgt : Condition::ugt;
  return is_signed ? Condition::slt : Condition::ult;
}

// Emits word = value if the value is better, whatever other threads store meanwhile.
void exchange_extreme(Lowering& lowering, ValueId address, int64_t offset, ValueId value, Condition better) {
  constexpr int kTries = 4;  // each but the last was preempted by a thread with a better value than those before
  ir::Builder& ir = lowering.ir();
  const ir::BlockId done = ir.add_block("extreme");
  ValueId old = ir.load(8, address, offset);
  for (int i = 0; i < kTries; ++i) {
    const ir::BlockId exchange = ir.add_block("exchange");
    const ir::BlockId again = ir.add_block("again");
    ir.branch(better, value, old, exchange, done);
    ir.enter(exchange);
    const ValueId seen = ir.atomic(Op::k_atomic_cmpxchg, 8, address, {old, value}, offset);
    ir.branch(Condition::eq, seen, old, done, again);
    ir.enter(again);
    old = seen;
  }
  lose_to_other_thread(lowering);
  ir.jump(done);
  ir.enter(done);
}

// Emits what update_extreme() does where threads preempt one another: the first one marks the value as being set.
void exchange_or_set_extreme(Lowering& lowering, ValueId address, ValueId value, Condition better) {
  ir::Builder& ir = lowering.ir();
  const ValueId busy = ir.constant(static_cast<int64_t>(program::kExtremeBusy));
  const ValueId set = ir.load(8, address, kSecondWord);
  const ValueId before = lowering.select(
      Condition::eq, set, ir.constant(0),
      [&] {
        return ir.atomic(Op::k_atomic_cmpxchg, 8, address, {ir.constant(0), busy}, kSecondWord);
      },
      [&] { return set; });
  lowering.when(
      Condition::eq, before, ir.constant(0),
      [&] {
        ir.store(8, address, value);
        ir.store_release(8, address, ir.constant(1), kSecondWord);
      },
      [&] {
        lowering.when(
            Condition::eq, before, busy, [&] { lose_to_other_thread(lowering); },
            [&] { exchange_extreme(lowering, address, 0, value, better); });
      });
}

// The first value is always stored, since min and max have no neutral value; the second word says whether there is one.
template <bool kIsMax>
void update_extreme(Lowering& lowering, const CallSite& call, ValueId address, bool is_atomic) {
  ir::Builder& ir = lowering.ir();
  const ValueId value = lowering.opaque_copy(lowering.scalar(call.arguments[0]));
  const Condition better = better_extreme(kIsMax, lowering.types()[lowering.type(call.expr)].is_signed);
  if (is_atomic && may_exchange(lowering)) return exchange_or_set_extreme(lowering, address, value, better);
  const auto store_value = [&] {
    ir.store(8, address, value);
    ir.store(8, address, ir.constant(1), kSecondWord);
  };
  lowering.when(Condition::eq, ir.load(8, address, kSecondWord), ir.constant(0), store_value,
                [&] { lowering.when(better, value, ir.load(8, address), store_value); });
}

template <Kind kKind>
TypeId check_signed_like(check::Checker& checker, const CallSite& call) {
  const bool is_signed = call.arguments.empty() || checker.types()[checker.type(call.arguments[0])].is_signed;
  return checker.types().simple(kKind, is_signed);
}

TypeId check_count(check::Checker& checker, const CallSite&) { return checker.types().simple(Kind::kCount); }

// ---- Histograms -----------------------------------------------------------------------------------------------------

TypeId check_hist(check::Checker& checker, const CallSite& call) {
  int64_t bits = 0;
  if (call.arguments.size() > 1) {
    bits = checker.integer(call.arguments[1]).value_or(0);
    if (bits < 0 || bits > kMaxHistBits) {
      checker.error("hist-bits", checker.ast()[call.arguments[1]].span,
                    "the second argument of `hist` must be from 0 to 5");
      bits = 0;
    }
  }
  return checker.types().hist(static_cast<uint8_t>(bits));
}

// A table of hist_bucket(n, 0) for each byte n: 1 for 0, else 2 + log2(n).
std::string byte_buckets() {
  std::string out;
  for (int64_t n = 0; n < 256; ++n) out += static_cast<char>(program::hist_bucket(n, 0));
  return out;
}

// Emits the shift that moves the highest set bit of n to the low byte: 0, 8, ... 56. This is a binary search of three
// branches, which predict well, because most values of a histogram are of similar size.
ValueId byte_shift(Lowering& lowering, ValueId n, int lowest, int highest) {
  ir::Builder& ir = lowering.ir();
  if (lowest == highest) return ir.constant(lowest);
  const int middle = (lowest + highest + 8) / 2;
  return lowering.select(
      Condition::ult, n, ir.constant(int64_t{1} << middle), [&] { return byte_shift(lowering, n, lowest, middle - 8); },
      [&] { return byte_shift(lowering, n, middle, highest); });
}

// Emits hist_bucket(n, 0) for n >= 0, by the table for a byte and the shift.
ValueId plain_bucket(Lowering& lowering, ValueId n) {
  ir::Builder& ir = lowering.ir();
  const ValueId shift = byte_shift(lowering, n, 0, 56);
  const ValueId byte = ir.binary(Op::k_and, ir.binary(Op::k_shr, n, shift), 0xff);
  const ValueId table = lowering.constant_bytes(byte_buckets());
  return ir.binary(Op::k_add, ir.load(1, ir.binary(Op::k_add, table, byte)), shift);
}

// Emits program::hist_bucket(value, bits). Values of 64 bits are signed, whatever their type: `retval` and `arg0`,
// which are registers, are negative when a function fails.
ValueId hist_index(Lowering& lowering, ValueId value, uint8_t bits) {
  ir::Builder& ir = lowering.ir();
  const int64_t small = int64_t{1} << bits;
  const auto large = [&] {
    const ValueId log = ir.binary(Op::k_sub, plain_bucket(lowering, value), 2);
    const ValueId shift = ir.binary(Op::k_sub, log, bits);
    const ValueId base = ir.binary(Op::k_shl, ir.binary(Op::k_add, shift, 1), bits);
    const ValueId within = ir.binary(Op::k_sub, ir.binary(Op::k_shr, value, shift), small);
    return ir.binary(Op::k_add, ir.binary(Op::k_add, base, within), 1);
  };
  const auto bucket = [&] {
    if (bits == 0) return plain_bucket(lowering, value);
    return lowering.select(
        Condition::ult, value, ir.constant(small), [&] { return ir.binary(Op::k_add, value, 1); }, large);
  };
  return lowering.select(
      Condition::slt, value, ir.constant(0), [&] { return ir.constant(0); }, bucket);
}

// Emits buckets[index] += 1. The comparison, which is always true, gives the verifier the bound of the index.
void count_bucket(Lowering& lowering, ValueId address, ValueId index, uint32_t buckets, bool is_atomic) {
  ir::Builder& ir = lowering.ir();
  lowering.when(Condition::ult, index, ir.constant(buckets), [&] {
    const ValueId bucket = ir.binary(Op::k_add, address, ir.binary(Op::k_shl, index, 3));
    add_to(lowering, bucket, 0, ir.constant(1), is_atomic);
  });
}

void update_hist(Lowering& lowering, const CallSite& call, ValueId address, bool is_atomic) {
  const uint8_t bits = lowering.types()[lowering.type(call.expr)].hist_bits;
  const ValueId index = hist_index(lowering, lowering.opaque_copy(lowering.scalar(call.arguments[0])), bits);
  count_bucket(lowering, address, index, program::hist_bucket_count(bits), is_atomic);
}

TypeId check_lhist(check::Checker& checker, const CallSite& call) {
  const auto number = [&](size_t i) { return checker.integer(call.arguments[i]).value_or(0); };
  const int64_t min = number(1), max = number(2), step = number(3);
  const auto steps = [&] { return program::lhist_bucket_count(min, max, step) - 2; };
  const source::Span span = checker.ast()[call.arguments[1]].span;
  if (step <= 0) {
    checker.error("lhist-step", checker.ast()[call.arguments[3]].span, "the step of `lhist` must be at least 1");
  } else if (max <= min) {
    checker.error("lhist-range", span, "the max of `lhist` must be greater than its min");
  } else if (steps() > kMaxLinearBuckets) {
    checker.error("lhist-buckets", span, "`lhist` would have more than 1000 buckets", "use a larger step");
  } else if (min == INT64_MIN ||
             steps() > (uint64_t{INT64_MAX} - static_cast<uint64_t>(min)) / static_cast<uint64_t>(step)) {
    checker.error("lhist-range", span, "the bounds of `lhist` and the end of its last step must fit into 64 bits");
  } else {
    return checker.types().lhist(min, max, step);
  }
  return checker.types().lhist(0, 1, 1);
}

// Emits value / divisor, where 0 <= value < limit. A division takes as long as ten other instructions, so for small
// numbers this multiplies by the reciprocal instead, in units of 2^-32 and rounded up. The reciprocal is too large by
// less than one unit, the product by less than limit units; the quotient is exact as long as limit * divisor < 2^32.
ValueId divide_below(Lowering& lowering, ValueId value, uint64_t limit, int64_t divisor) {
  constexpr uint64_t kWhole = uint64_t{1} << 32;
  ir::Builder& ir = lowering.ir();
  const auto by = static_cast<uint64_t>(divisor);
  const bool is_power = (by & (by - 1)) == 0;
  if (is_power || limit >= kWhole || by >= kWhole || limit * by >= kWhole) return ir.binary(Op::k_udiv, value, divisor);
  const auto reciprocal = static_cast<int64_t>(kWhole / by + 1);
  return ir.binary(Op::k_shr, ir.binary(Op::k_mul, value, reciprocal), 32);
}

void update_lhist(Lowering& lowering, const CallSite& call, ValueId address, bool is_atomic) {
  ir::Builder& ir = lowering.ir();
  const types::Type type = lowering.types()[lowering.type(call.expr)];
  const auto buckets =
      static_cast<uint32_t>(program::lhist_bucket_count(type.lhist_min, type.lhist_max, type.lhist_step));
  const ValueId value = lowering.opaque_copy(lowering.scalar(call.arguments[0]));
  const auto step = [&] {
    const ValueId above = ir.binary(Op::k_sub, value, type.lhist_min);
    const uint64_t range = static_cast<uint64_t>(type.lhist_max) - static_cast<uint64_t>(type.lhist_min);
    return ir.binary(Op::k_add, divide_below(lowering, above, range, type.lhist_step), 1);
  };
  const ValueId index = lowering.select(  // signed, as that of hist
      Condition::slt, value, ir.constant(type.lhist_min), [&] { return ir.constant(0); },
      [&] {
        return lowering.select(
            Condition::sge, value, ir.constant(type.lhist_max), [&] { return ir.constant(buckets - 1); }, step);
      });
  count_bucket(lowering, address, index, buckets, is_atomic);
}

// ---- Time series: a slot for each interval; slots are reused in turn ------------------------------------------------

constexpr int64_t kMaxIntervals = 1000;  // the kernel limits per-CPU values to 32 KiB
constexpr int64_t kSlotBytes = sizeof(program::TseriesSlot);
constexpr int64_t kSlotValue = offsetof(program::TseriesSlot, value);
constexpr int64_t kSlotCount = offsetof(program::TseriesSlot, count);

struct SeriesRow {
  std::string_view word;
  Kind kind;
};
constexpr SeriesRow kSeries[] = {{"avg", Kind::kAvg}, {"max", Kind::kMax}, {"min", Kind::kMin}, {"sum", Kind::kSum}};

TypeId check_tseries(check::Checker& checker, const CallSite& call) {
  const auto span = [&](size_t i) { return checker.ast()[call.arguments[i]].span; };
  const int64_t interval = checker.integer(call.arguments[1]).value_or(1);
  const int64_t intervals = checker.integer(call.arguments[2]).value_or(1);
  types::TseriesParams params{1, 1, Kind::kVoid};
  if (interval < 1)
    checker.error("tseries-interval", span(1), "the interval must be at least 1 nanosecond");
  else
    params.interval_ns = static_cast<uint64_t>(interval);
  if (intervals < 1 || intervals > kMaxIntervals)
    checker.error("tseries-intervals", span(2), "the number of intervals must be from 1 to 1000");
  else
    params.intervals = static_cast<uint32_t>(intervals);
  if (call.arguments.size() > 3) {
    const std::string word = checker.text(call.arguments[3]).value_or("");
    std::vector<std::string> words;
    for (const SeriesRow& row : kSeries) {
      words.emplace_back(row.word);
      if (row.word == word) params.aggregation = row.kind;
    }
    if (params.aggregation == Kind::kVoid)
      checker.error("tseries-aggregation", span(3), "`tseries` has no aggregation `" + word + "`",
                    suggestion(word, words));
  }
  return checker.types().tseries(params, checker.types()[checker.type(call.arguments[0])].is_signed);
}

// Emits the update of a slot that already has a value of the current interval. `now`: the time.
void update_slot(Lowering& lowering, ValueId slot, ValueId value, ValueId now, const types::Type& type, Kind kind,
                 bool is_atomic) {
  ir::Builder& ir = lowering.ir();
  const auto replace = [&] { ir.store(8, slot, value, kSlotValue); };
  const Condition better = better_extreme(kind == Kind::kMax, type.is_signed);
  switch (kind) {
    case Kind::kSum:
    case Kind::kAvg: add_to_sum(lowering, slot, kSlotValue, value, type.is_signed, is_atomic); break;
    case Kind::kMin:
    case Kind::kMax:
      if (is_atomic && may_exchange(lowering))
        exchange_extreme(lowering, slot, kSlotValue, value, better);
      else
        lowering.when(better, value, ir.load(8, slot, kSlotValue), replace);
      break;
    default: replace(); return ir.store(8, slot, now, kSlotCount);
  }
  add_to(lowering, slot, kSlotCount, ir.constant(1), is_atomic);
}

// Emits the first value of an interval. With `is_atomic` the slot is marked as being set, unless another thread has it
// by now, or has set it to a later interval.
void set_slot(Lowering& lowering, ValueId slot, ValueId epoch, bool is_atomic, const std::function<void()>& store) {
  ir::Builder& ir = lowering.ir();
  if (!is_atomic || !may_exchange(lowering)) {
    ir.store(8, slot, epoch);
    return store();
  }
  const ValueId old = ir.load(8, slot);
  const ValueId busy = ir.constant(static_cast<int64_t>(program::kTseriesBusy));
  const auto lose = [&] { lose_to_other_thread(lowering); };
  const auto exchange = [&] {
    const ValueId seen = ir.atomic(Op::k_atomic_cmpxchg, 8, slot, {old, busy});
    const auto set = [&] {
      store();
      ir.store_release(8, slot, epoch);
    };
    lowering.when(Condition::eq, seen, old, set, lose);
  };
  lowering.when(Condition::ult, old, epoch, exchange, lose);
}

void update_tseries(Lowering& lowering, const CallSite& call, ValueId address, bool is_atomic) {
  ir::Builder& ir = lowering.ir();
  const TypeId type_id = lowering.type(call.expr);
  const types::Type type = lowering.types()[type_id];
  const types::TseriesParams params = lowering.types().tseries_params(type_id);
  const ValueId value = lowering.scalar(call.arguments[0]);
  // Intervals are aligned to the wall clock, by its offset when espy started, or when the recording began.
  const recording::Description* recording = lowering.kernel().recording();
  const int64_t offset_ns = recording != nullptr
                                ? static_cast<int64_t>(recording->started_wall_ns - recording->started_ns)
                                : runtime::wall_clock_offset_ns(CLOCK_BOOTTIME);
  const ValueId now = ir.binary(Op::k_add, ir.call(ir::Helper::ktime_get_boot_ns, {}), offset_ns);
  const ValueId epoch = ir.binary(Op::k_udiv, now, static_cast<int64_t>(params.interval_ns));
  const ValueId index = ir.binary(Op::k_umod, epoch, params.intervals);
  lowering.when(Condition::ult, index, ir.constant(params.intervals), [&] {  // always true; a bound for the verifier
    const ValueId slot = ir.binary(Op::k_add, address, ir.binary(Op::k_mul, index, kSlotBytes));
    lowering.when(
        Condition::eq, ir.load(8, slot), epoch,
        [&] { update_slot(lowering, slot, value, now, type, params.aggregation, is_atomic); },
        [&] {
          set_slot(lowering, slot, epoch, is_atomic, [&] {
            ir.store(8, slot, value, kSlotValue);
            ir.store(8, slot, params.aggregation == Kind::kVoid ? now : ir.constant(1), kSlotCount);
          });
        });
  });
}

// ---- The last values: written by lower/maps.cc, since several CPUs share a ring -----------------------------------

constexpr int64_t kMaxRecent = 65536;

TypeId check_recent(check::Checker& checker, const CallSite& call) {
  int64_t count = checker.integer(call.arguments[0]).value_or(1);
  if (count < 1 || count > kMaxRecent) {
    checker.error("recent-count", checker.ast()[call.arguments[0]].span,
                  "the number of values that `recent` keeps must be from 1 to 65536");
    count = 1;
  }
  return checker.types().recent(checker.type(call.arguments[1]), static_cast<uint32_t>(count));
}

constexpr spec::Builtin kRows[] = {
    {.sig = "any count()",
     .doc = "Counts the assignments.",
     .kind = BuiltinKind::kAggregation,
     .check = check_count,
     .lower_update = update_count,
     .example = "begin { @ = count(); }"},
    {.sig = "any sum(int n)",
     .doc = "Keeps the sum of the values.",
     .kind = BuiltinKind::kAggregation,
     .check = check_signed_like<Kind::kSum>,
     .lower_update = update_sum,
     .example = "begin { @ = sum(2); @ = sum(3); }"},
    {.sig = "any min(int n)",
     .doc = "Keeps the smallest value.",
     .kind = BuiltinKind::kAggregation,
     .check = check_signed_like<Kind::kMin>,
     .lower_update = update_extreme<false>,
     .example = "begin { @ = min(2); @ = min(3); }"},
    {.sig = "any max(int n)",
     .doc = "Keeps the largest value.",
     .kind = BuiltinKind::kAggregation,
     .check = check_signed_like<Kind::kMax>,
     .lower_update = update_extreme<true>,
     .example = "begin { @ = max(2); @ = max(3); }"},
    {.sig = "any avg(int n)",
     .doc = "Keeps the average of the values; printed truncated toward zero.",
     .kind = BuiltinKind::kAggregation,
     .check = check_signed_like<Kind::kAvg>,
     .lower_update = update_stats,
     .example = "begin { @ = avg(2); @ = avg(4); }"},
    {.sig = "any stats(int n)",
     .doc = "Keeps the count, average and total of the values.",
     .kind = BuiltinKind::kAggregation,
     .check = check_signed_like<Kind::kStats>,
     .lower_update = update_stats,
     .example = "begin { @ = stats(4); }"},
    {.sig = "any hist(int n, literal int bits = 0)",
     .doc = "Keeps a histogram with power-of-two buckets, each split into 2^bits parts.",
     .kind = BuiltinKind::kAggregation,
     .check = check_hist,
     .lower_update = update_hist,
     .example = "begin { @ = hist(100); }"},
    {.sig = "any lhist(int n, literal int min, literal int max, literal int step)",
     .doc = "Keeps a linear histogram: buckets of `step` from `min` to `max`, and one for the values below and above.",
     .kind = BuiltinKind::kAggregation,
     .check = check_lhist,
     .lower_update = update_lhist,
     .example = "begin { @ = lhist(3, 0, 10, 5); }"},
    {.sig = "any tseries(int n, literal int interval, literal int intervals, literal string aggregation = last)",
     .doc = "Keeps a value for each of the last `intervals` intervals of `interval` nanoseconds: the last value "
            "assigned, or their `avg`, `max`, `min` or `sum`.",
     .kind = BuiltinKind::kAggregation,
     .check = check_tseries,
     .lower_update = update_tseries,
     .example = "begin { @ = tseries(3, 1s, 5); }"},
    {.sig = "any recent(literal int count, any value)",
     .doc =
         "Keeps the last `count` values of each key, or, without a key, of the machine. `print(@m[key])` shows them, "
         "oldest first, `for ($v : @m[key])` iterates over them, `len(@m[key])` counts them.",
     .kind = BuiltinKind::kAggregation,
     .check = check_recent,
     .needs = kernel::Feature::kAtomicFetch,
     .example = "begin { @last[tid] = recent(2, (1, \"a\")); @last[tid] = recent(2, (2, \"b\")); print(@last[tid]); }"},
};

}  // namespace

extern const spec::BuiltinFamily kAggregation = {
    .title = "Aggregations", .note = "These stand only on the right of a map assignment.", .rows = kRows};

}  // namespace espy::builtins

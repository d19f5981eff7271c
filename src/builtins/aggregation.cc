// What sums up: count, sum, min, max, avg, stats, hist, lhist. Each CPU has a value of its own (program/layout.h says
// how it lies), which `lower_update` folds the argument into; reading merges them. So nothing is ever lost between
// CPUs.
#include <time.h>

#include <cstddef>

#include "builtins/common.h"
#include "program/layout.h"
#include "runtime/resolver.h"

namespace espy::builtins {

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

// word += value, for this CPU. Another thread may come between only where the program can be preempted.
void add_to(Lowering& lowering, ValueId address, int64_t offset, ValueId value, bool is_atomic) {
  ir::Builder& ir = lowering.ir();
  if (is_atomic) {
    ir.atomic_add(8, address, value, offset);
  } else {
    ir.store(8, address, ir.binary(Op::k_add, ir.load(8, address, offset), value), offset);
  }
}

void update_count(Lowering& lowering, const CallSite&, ValueId address, bool is_atomic) {
  add_to(lowering, address, 0, lowering.ir().constant(1), is_atomic);
}

void update_sum(Lowering& lowering, const CallSite& call, ValueId address, bool is_atomic) {
  add_to(lowering, address, 0, lowering.scalar(call.arguments[0]), is_atomic);
}

void update_stats(Lowering& lowering, const CallSite& call, ValueId address, bool is_atomic) {
  add_to(lowering, address, 0, lowering.scalar(call.arguments[0]), is_atomic);
  add_to(lowering, address, kSecondWord, lowering.ir().constant(1), is_atomic);
}

// The first value wins, as there is no neutral one. A preempted update may lose to the one that came between: both are
// real values and the later comparison is repeated at the next event, which a compare-and-exchange would not make more
// right.
template <bool kIsMax>
void update_extreme(Lowering& lowering, const CallSite& call, ValueId address, bool) {
  ir::Builder& ir = lowering.ir();
  const ValueId value = lowering.opaque_copy(lowering.scalar(call.arguments[0]));
  const bool is_signed = lowering.types()[lowering.type(call.arguments[0])].is_signed;
  const Condition better =
      kIsMax ? (is_signed ? Condition::sgt : Condition::ugt) : (is_signed ? Condition::slt : Condition::ult);
  const auto take = [&] {
    ir.store(8, address, value);
    ir.store(8, address, ir.constant(1), kSecondWord);
  };
  lowering.when(Condition::eq, ir.load(8, address, kSecondWord), ir.constant(0), take,
                [&] { lowering.when(better, value, ir.load(8, address), take); });
}

template <Kind kKind>
TypeId check_signed_like(check::Checker& checker, const CallSite& call) {
  const bool is_signed = call.arguments.empty() || checker.types()[checker.type(call.arguments[0])].is_signed;
  return checker.types().simple(kKind, is_signed);
}

TypeId check_count(check::Checker& checker, const CallSite&) { return checker.types().simple(Kind::kCount); }

// ---- Histograms
// -------------------------------------------------------------------------------------------------------

TypeId check_hist(check::Checker& checker, const CallSite& call) {
  int64_t bits = 0;
  if (call.arguments.size() > 1) {
    bits = checker.integer(call.arguments[1]).value_or(0);
    if (bits < 0 || bits > kMaxHistBits) {
      checker.error("hist-bits", checker.ast()[call.arguments[1]].span, "hist's second argument is between 0 and 5");
      bits = 0;
    }
  }
  return checker.types().hist(static_cast<uint8_t>(bits));
}

// Which bucket of hist(n, 0) a byte is in: 1 for 0, else 2 + log2.
std::string byte_buckets() {
  std::string out;
  for (int64_t n = 0; n < 256; ++n) out += static_cast<char>(program::hist_bucket(n, 0));
  return out;
}

// The shift that brings n's highest set bit into the low byte: 0, 8, ... 56. Three branches, which are predicted, as
// most values of a histogram are of the same few sizes.
ValueId byte_shift(Lowering& lowering, ValueId n, int lowest, int highest) {
  ir::Builder& ir = lowering.ir();
  if (lowest == highest) return ir.constant(lowest);
  const int middle = (lowest + highest + 8) / 2;
  return lowering.select(
      Condition::ult, n, ir.constant(int64_t{1} << middle), [&] { return byte_shift(lowering, n, lowest, middle - 8); },
      [&] { return byte_shift(lowering, n, middle, highest); });
}

// hist_bucket(n, 0) of n >= 0: a table of bytes, and the shift.
ValueId plain_bucket(Lowering& lowering, ValueId n) {
  ir::Builder& ir = lowering.ir();
  const ValueId shift = byte_shift(lowering, n, 0, 56);
  const ValueId byte = ir.binary(Op::k_and, ir.binary(Op::k_shr, n, shift), 0xff);
  const ValueId table = lowering.constant_bytes(byte_buckets());
  return ir.binary(Op::k_add, ir.load(1, ir.binary(Op::k_add, table, byte)), shift);
}

// program::hist_bucket in IR.
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
  return lowering.select(
      Condition::slt, value, ir.constant(0), [&] { return ir.constant(0); },
      [&] {
        if (bits == 0) return plain_bucket(lowering, value);
        return lowering.select(
            Condition::ult, value, ir.constant(small), [&] { return ir.binary(Op::k_add, value, 1); }, large);
      });
}

// buckets[index] += 1, with the index clamped where the verifier can see it.
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
    checker.error("lhist-step", checker.ast()[call.arguments[3]].span, "lhist's step must be 1 or more");
  } else if (max <= min) {
    checker.error("lhist-range", span, "lhist's max must be larger than its min");
  } else if (steps() > kMaxLinearBuckets) {
    checker.error("lhist-buckets", span, "lhist has more than 1000 buckets", "take a larger step");
  } else if (min == INT64_MIN ||
             steps() > (uint64_t{INT64_MAX} - static_cast<uint64_t>(min)) / static_cast<uint64_t>(step)) {
    checker.error("lhist-range", span, "lhist's bounds must fit into 64 bits, and so must the end of its last step");
  } else {
    return checker.types().lhist(min, max, step);
  }
  return checker.types().lhist(0, 1, 1);
}

// value / divisor, where 0 <= value < limit. A division takes the CPU as long as ten other instructions; for small
// numbers, a multiplication with the divisor's reciprocal does, in units of 2^-32 and rounded up. It is too large by
// less than one unit for each step, all in all less than one: exact while limit * divisor units are less than a whole.
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
  const ValueId index = lowering.select(
      Condition::slt, value, ir.constant(type.lhist_min), [&] { return ir.constant(0); },
      [&] {
        return lowering.select(
            Condition::sge, value, ir.constant(type.lhist_max), [&] { return ir.constant(buckets - 1); },
            [&] {
              const ValueId above = ir.binary(Op::k_sub, value, type.lhist_min);
              const uint64_t range = static_cast<uint64_t>(type.lhist_max) - static_cast<uint64_t>(type.lhist_min);
              return ir.binary(Op::k_add, divide_below(lowering, above, range, type.lhist_step), 1);
            });
      });
  count_bucket(lowering, address, index, buckets, is_atomic);
}

// ---- Time series: a slot for each interval, used again when its time has passed
// --------------------------------------

constexpr int64_t kMaxIntervals = 1000;  // a per-CPU value has at most 32 KiB
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
    checker.error("tseries-interval", span(1), "the interval must be 1 nanosecond or more");
  else
    params.interval_ns = static_cast<uint64_t>(interval);
  if (intervals < 1 || intervals > kMaxIntervals)
    checker.error("tseries-intervals", span(2), "a time series has 1 to 1000 intervals");
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
      checker.error("tseries-aggregation", span(3), "a time series cannot keep the `" + word + "` of an interval",
                    choices(word, words));
  }
  return checker.types().tseries(params, checker.types()[checker.type(call.arguments[0])].is_signed);
}

// A further value in an interval that has some.
void update_slot(Lowering& lowering, ValueId slot, ValueId value, const types::Type& type, Kind kind, bool is_atomic) {
  ir::Builder& ir = lowering.ir();
  const auto replace = [&] { ir.store(8, slot, value, kSlotValue); };
  switch (kind) {
    case Kind::kSum:
    case Kind::kAvg: add_to(lowering, slot, kSlotValue, value, is_atomic); break;
    case Kind::kMin:
      lowering.when(type.is_signed ? Condition::slt : Condition::ult, value, ir.load(8, slot, kSlotValue), replace);
      break;
    case Kind::kMax:
      lowering.when(type.is_signed ? Condition::sgt : Condition::ugt, value, ir.load(8, slot, kSlotValue), replace);
      break;
    default: replace();
  }
  add_to(lowering, slot, kSlotCount, ir.constant(1), is_atomic);
}

void update_tseries(Lowering& lowering, const CallSite& call, ValueId address, bool is_atomic) {
  ir::Builder& ir = lowering.ir();
  const TypeId type_id = lowering.type(call.expr);
  const types::Type type = lowering.types()[type_id];
  const types::TseriesParams params = lowering.types().tseries_params(type_id);
  const ValueId value = lowering.scalar(call.arguments[0]);
  // Intervals begin at whole ones of the wall clock, as it was when espy started.
  const ValueId now =
      ir.binary(Op::k_add, ir.call(ir::Helper::ktime_get_boot_ns, {}), runtime::wall_clock_offset_ns(CLOCK_BOOTTIME));
  const ValueId epoch = ir.binary(Op::k_udiv, now, static_cast<int64_t>(params.interval_ns));
  const ValueId index = ir.binary(Op::k_umod, epoch, params.intervals);
  lowering.when(Condition::ult, index, ir.constant(params.intervals), [&] {  // always; for the verifier
    const ValueId slot = ir.binary(Op::k_add, address, ir.binary(Op::k_mul, index, kSlotBytes));
    lowering.when(
        Condition::eq, ir.load(8, slot), epoch,
        [&] { update_slot(lowering, slot, value, type, params.aggregation, is_atomic); },
        [&] {
          ir.store(8, slot, epoch);
          ir.store(8, slot, value, kSlotValue);
          ir.store(8, slot, ir.constant(1), kSlotCount);
        });
  });
}

constexpr spec::Builtin kRows[] = {
    {.sig = "any count()",
     .doc = "Counts how often it is assigned.",
     .kind = BuiltinKind::kAggregation,
     .check = check_count,
     .lower_update = update_count,
     .example = "begin { @ = count(); }"},
    {.sig = "any sum(int n)",
     .doc = "Adds up.",
     .kind = BuiltinKind::kAggregation,
     .check = check_signed_like<Kind::kSum>,
     .lower_update = update_sum,
     .example = "begin { @ = sum(2); @ = sum(3); }"},
    {.sig = "any min(int n)",
     .doc = "Keeps the smallest.",
     .kind = BuiltinKind::kAggregation,
     .check = check_signed_like<Kind::kMin>,
     .lower_update = update_extreme<false>,
     .example = "begin { @ = min(2); @ = min(3); }"},
    {.sig = "any max(int n)",
     .doc = "Keeps the largest.",
     .kind = BuiltinKind::kAggregation,
     .check = check_signed_like<Kind::kMax>,
     .lower_update = update_extreme<true>,
     .example = "begin { @ = max(2); @ = max(3); }"},
    {.sig = "any avg(int n)",
     .doc = "Keeps the average, truncated toward zero when shown.",
     .kind = BuiltinKind::kAggregation,
     .check = check_signed_like<Kind::kAvg>,
     .lower_update = update_stats,
     .example = "begin { @ = avg(2); @ = avg(4); }"},
    {.sig = "any stats(int n)",
     .doc = "Keeps count, average and total.",
     .kind = BuiltinKind::kAggregation,
     .check = check_signed_like<Kind::kStats>,
     .lower_update = update_stats,
     .example = "begin { @ = stats(4); }"},
    {.sig = "any hist(int n, literal int bits = 0)",
     .doc = "Keeps a histogram over powers of two, each split into 2^bits parts.",
     .kind = BuiltinKind::kAggregation,
     .check = check_hist,
     .lower_update = update_hist,
     .example = "begin { @ = hist(100); }"},
    {.sig = "any lhist(int n, literal int min, literal int max, literal int step)",
     .doc = "Keeps a histogram with equal steps from min to max.",
     .kind = BuiltinKind::kAggregation,
     .check = check_lhist,
     .lower_update = update_lhist,
     .example = "begin { @ = lhist(3, 0, 10, 5); }"},
    {.sig = "any tseries(int n, literal int interval, literal int intervals, literal string aggregation = last)",
     .doc = "Keeps a value for each of the last `intervals` stretches of `interval` nanoseconds: the last one, or the "
            "`avg`, `max`, `min` or `sum`.",
     .kind = BuiltinKind::kAggregation,
     .check = check_tseries,
     .lower_update = update_tseries,
     .example = "begin { @ = tseries(3, 1s, 5); }"},
};

}  // namespace

extern const spec::BuiltinFamily kAggregation = {
    .title = "Aggregations", .note = "These stand only on the right of a map assignment.", .rows = kRows};

}  // namespace espy::builtins

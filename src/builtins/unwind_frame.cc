// Emits the step of unwinding (see unwind.cc for the algorithm), as one BPF function: find the mapping of the code
// address, store the frame, find the rule for it, compute the caller's registers.
//
// The function is verified once, for all frames of all stacks, so all state is in memory (UnwindState) and not in
// registers. Indexes are bounded by `and` where they are used, which is all that the verifier must know of them.
#include "builtins/unwind_frame.h"

#include <algorithm>
#include <bit>

#include "builtins/builtin_support.h"
#include "program/unwind_layout.h"
#include "symbols/unwind.h"

namespace espy::builtins {

namespace {

using ir::BlockId;
using ir::Condition;
using ir::Helper;
using ir::Op;
using ir::ValueId;
using lower::Lowering;
using symbols::FrameBase;
using symbols::FrameRule;

constexpr auto kGoldenRatio = static_cast<int64_t>(0x9e3779b97f4a7c15);

constexpr int64_t number_of(FrameBase base) { return static_cast<int64_t>(base); }
// A single bit of the base selects the frame pointer (odd) or the stack pointer (even) as its origin; see find_cfa.
static_assert(number_of(FrameBase::kFramePointer) % 2 == 1 && number_of(FrameBase::kLoadFromFramePointer) % 2 == 1 &&
              number_of(FrameBase::kStackPointer) % 2 == 0 && number_of(FrameBase::kLoadFromStackPointer) % 2 == 0);
// FP is the address of the caller's FP and, above it, the return address. The CFA is FP + 16 if the call pushed the
// address; it is not known, but not lower, if the function saved both somewhere in its frame.
int64_t follow_frame_pointer(bool has_link_register) {
  return FrameRule::make(FrameBase::kFramePointer, 16, has_link_register ? FrameRule::kAtFramePointer : 2).bits;
}

class StepEmitter {
 public:
  StepEmitter(Lowering& lowering, uint32_t frames, ValueId state)
      : lowering_(lowering),
        offsets_(lowering.kernel(), lowering.types()),
        mappings_(lowering.ir(), offsets_, state, UnwindState::kNode),
        frames_(frames),
        state_(state) {}

  void write() {
    const ValueId index = ir().param(0);
    when(Condition::eq, get(UnwindState::kRoot), constant(0), [&] { stop(); });  // a kernel thread
    const ValueId pc = ir().binary(Op::k_sub, get(UnwindState::kIp), get(UnwindState::kIsCaller));
    const ValueId entry = known_rule(pc, [&] {
      when_outside(pc, current_map(), [&] { switch_mapping(pc, index); });
      map_ = current_map();
      return find_rule(pc);
    });
    store_frame(index, tag_of(ir().load(8, entry, UnwindRule::kAddress)));
    const ValueId rule = ir().load(4, entry, UnwindRule::kRule);
    has_link_register() ? move_to_caller_by_link(rule) : move_to_caller(rule);
    ir().ret(0);
  }

 private:
  ir::Builder& ir() { return lowering_.ir(); }
  const kernel::UnwindConvention& unwind() { return lowering_.kernel().arch().unwind; }
  bool has_link_register() { return lowering_.kernel().arch().return_address_bytes == 0; }
  ValueId constant(int64_t value) { return ir().constant(value); }
  ValueId get(int64_t offset, uint8_t width = 8) { return ir().load(width, state_, offset); }
  void put(int64_t offset, ValueId value) { ir().store(8, state_, value, offset); }
  ValueId address_of(int64_t offset) { return ir().binary(Op::k_add, state_, offset); }
  void when(Condition condition, ValueId a, ValueId b, const std::function<void()>& then,
            const std::function<void()>& otherwise = nullptr) {
    lowering_.when(condition, a, b, then, otherwise);
  }
  void return_value(int64_t result) {
    ir().ret(result);
    ir().enter(ir().add_block("unreachable"));
  }
  void stop() { return_value(1); }
  ValueId variable(const std::string& name, ValueId value) {
    const ValueId slot = ir().slot(ir().add_variable(name));
    ir().store(8, slot, value);
    return slot;
  }
  ValueId value_of(ValueId variable) { return ir().load(8, variable); }

  void branch_if(Condition condition, ValueId a, ValueId b, BlockId done) {
    const BlockId on = ir().add_block();
    ir().branch(condition, a, b, done, on);
    ir().enter(on);
  }

  // Emits a read to an offset of the state; runs `failed` if the read fails.
  void read(Helper helper, int64_t destination, uint64_t size_bytes, ValueId source,
            const std::function<void()>& failed) {
    const ValueId result =
        ir().call(helper, {address_of(destination), constant(static_cast<int64_t>(size_bytes)), source});
    when(Condition::ne, result, constant(0), failed);
  }

  ValueId without_tag(ValueId address) { return ir().binary(Op::k_and, address, int64_t{program::kCodeAddress}); }
  ValueId tag_of(ValueId address) {
    return ir().binary(Op::k_shl, ir().binary(Op::k_shr, address, program::kCodeTagShift), program::kCodeTagShift);
  }

  void store_frame(ValueId index, ValueId tag) {
    when(Condition::ult, index, constant(frames_), [&] {
      const ValueId ip = ir().binary(Op::k_or, get(UnwindState::kIp), tag);
      const ValueId at = ir().binary(Op::k_add, state_, ir().binary(Op::k_shl, index, 3));
      ir().store(8, at, ip, UnwindState::kFrames);
      put(UnwindState::kFrameCount, ir().binary(Op::k_add, index, 1));
      put(UnwindState::kTag, tag);
      const ValueId mixed = ir().binary(Op::k_mul, ir().binary(Op::k_xor, get(UnwindState::kHash), ip), kGoldenRatio);
      put(UnwindState::kHash, ir().binary(Op::k_xor, mixed, ir().binary(Op::k_shr, mixed, 32)));
    });
  }

  // ---- Mappings

  ValueId map_at(ValueId index) {
    const ValueId bounded = ir().binary(Op::k_and, index, UnwindMap::kCount - 1);
    return ir().binary(Op::k_add, address_of(UnwindState::kMaps), ir().binary(Op::k_shl, bounded, UnwindMap::kShift));
  }
  ValueId current_map() { return map_at(get(UnwindState::kCurrent)); }
  void when_outside(ValueId pc, ValueId map, const std::function<void()>& then) {
    const ValueId distance = ir().binary(Op::k_sub, pc, ir().load(8, map, UnwindMap::kStart));
    when(Condition::uge, distance, ir().load(8, map, UnwindMap::kSize), then);
  }

  // Makes the mapping that contains `pc` the current one: a cached one, or the result of a lookup, which replaces the
  // oldest.
  void switch_mapping(ValueId pc, ValueId index) {
    const ValueId known = variable("known", constant(UnwindMap::kCount));
    for (int64_t i = 0; i < UnwindMap::kCount; ++i) {
      const BlockId next = ir().add_block("next");
      when_outside(pc, map_at(constant(i)), [&] {
        ir().jump(next);
        ir().enter(ir().add_block("unreachable"));
      });
      ir().store(8, known, constant(i));
      ir().jump(next);
      ir().enter(next);
    }
    put(UnwindState::kCurrent, value_of(known));
    when(Condition::eq, value_of(known), constant(UnwindMap::kCount), [&] {
      const ValueId oldest = get(UnwindState::kNext);
      put(UnwindState::kNext, ir().binary(Op::k_add, oldest, 1));
      put(UnwindState::kCurrent, oldest);
      map_ = map_at(oldest);
      ir().store(8, map_, constant(0), UnwindMap::kSize);
      ir().store(8, map_, constant(0), UnwindMap::kIsNew);
      find_mapping(pc);
      // Unwinding stops where nothing is mapped. The first frame is stored even so, since it is where the probe fired.
      when(Condition::eq, ir().load(8, current_map(), UnwindMap::kSize), constant(0), [&] {
        when(Condition::eq, index, constant(0), [&] { store_frame(index, constant(0)); });
        stop();
      });
    });
  }

  // Fills in the current mapping if `pc` is in executable memory.
  void find_mapping(ValueId pc) {
    constexpr int64_t kExecutable = 4;  // VM_EXEC
    const int64_t page_shift = std::countr_zero(lowering_.kernel().page_size_bytes());
    const ValueId area = mappings_.find_area(get(UnwindState::kRoot), pc);
    const BlockId outside = ir().add_block("outside");
    branch_if(Condition::eq, area, constant(0), outside);
    mappings_.read_area(area, outside);
    const ValueId start = mappings_.start();
    const ValueId size = ir().binary(Op::k_sub, mappings_.end(), start);
    branch_if(Condition::uge, ir().binary(Op::k_sub, pc, start), size, outside);
    const ValueId flags = ir().binary(Op::k_and, mappings_.flags(), kExecutable);
    branch_if(Condition::eq, flags, constant(0), outside);
    ir().store(8, map_, start, UnwindMap::kStart);
    ir().store(8, map_, size, UnwindMap::kSize);
    const ValueId offset = ir().binary(Op::k_shl, mappings_.page(), page_shift);
    ir().store(8, map_, ir().binary(Op::k_sub, offset, start), UnwindMap::kBias);
    ir().store(8, map_, constant(0), UnwindMap::kFile);  // no table
    ir().store(8, map_, constant(int64_t{program::kAnonymousCode} << program::kCodeTagShift), UnwindMap::kTag);
    find_key(start, outside);
    ir().store(8, map_, constant(1), UnwindMap::kIsNew);
    put(UnwindState::kHasNew, constant(1));
    find_table(pc);
    ir().jump(outside);
    ir().enter(outside);
  }

  // Sets the key of the mapped file. Jumps to `none` if the memory is not of a regular file nor the vdso.
  void find_key(ValueId start, BlockId none) {
    const ValueId file = mappings_.file();
    when(
        Condition::ne, file, constant(0),
        [&] {
          mappings_.read_key(file, map_, UnwindMap::kKey, none);
          const ValueId mixed = ir().binary(
              Op::k_mul,
              ir().binary(Op::k_xor, ir().load(8, map_, UnwindMap::kKey + 8), ir().load(8, map_, UnwindMap::kBias)),
              static_cast<int64_t>(program::kCodeHashFactor));
          const ValueId tag =
              ir().binary(Op::k_add, ir().binary(Op::k_shr, mixed, program::kCodeHashShift), program::kFileCode);
          ir().store(8, map_, ir().binary(Op::k_shl, tag, program::kCodeTagShift), UnwindMap::kTag);
        },
        [&] {
          branch_if(Condition::ne, start, get(UnwindState::kVdso), none);
          ir().store(8, map_, constant(int64_t{program::kVdsoCode} << program::kCodeTagShift), UnwindMap::kTag);
          const auto words = std::bit_cast<program::UnwindFileKey::Words>(program::kUnwindVdso);
          for (size_t i = 0; i < words.size(); ++i)
            ir().store(8, map_, constant(static_cast<int64_t>(words[i])),
                       UnwindMap::kKey + static_cast<int64_t>(i) * 8);
        });
  }

  void find_table(ValueId pc) {
    const ValueId files = ir().map(lowering_.program().unwinding.files);
    const ValueId key = ir().binary(Op::k_add, map_, UnwindMap::kKey);
    const ValueId found = ir().call(Helper::map_lookup_elem, {files, key});
    when(
        Condition::ne, found, constant(0),
        [&] {
          ir().store(8, map_, ir().load(8, found), UnwindMap::kFile);
          ir().store(8, map_, ir().load(8, found, 8), UnwindMap::kFile + 8);
        },
        [&] {
          when(Condition::eq, get(UnwindState::kMissingPc), constant(0), [&] {
            for (int64_t at = 0; at < int64_t{sizeof(program::UnwindFileKey)}; at += 8)
              put(UnwindState::kMissing + at, ir().load(8, map_, UnwindMap::kKey + at));
            put(UnwindState::kMissingPc, pc);
          });
        });
  }

  // ---- Tables

  // Emits the lookup of `pc` in the cache. Without an entry, `find` emits its rule, and its tag is the tag of map_.
  // Returns the address of the UnwindRule.
  ValueId known_rule(ValueId pc, const std::function<ValueId()>& find) {
    const ValueId mixed = ir().binary(Op::k_mul, pc, kGoldenRatio);
    const ValueId slot = ir().binary(Op::k_shr, mixed, 64 - UnwindRule::kCountShift);
    const ValueId entry =
        ir().binary(Op::k_add, address_of(UnwindState::kRules), ir().binary(Op::k_shl, slot, UnwindRule::kShift));
    const ValueId generation = get(UnwindState::kGeneration, 4);
    const ValueId differs =
        ir().binary(Op::k_or, ir().binary(Op::k_xor, without_tag(ir().load(8, entry, UnwindRule::kAddress)), pc),
                    ir().binary(Op::k_xor, ir().load(4, entry, UnwindRule::kGeneration), generation));
    when(Condition::ne, differs, constant(0), [&] {
      ir().store(4, entry, find(), UnwindRule::kRule);
      ir().store(4, entry, generation, UnwindRule::kGeneration);
      ir().store(8, entry, ir().binary(Op::k_or, pc, ir().load(8, map_, UnwindMap::kTag)), UnwindRule::kAddress);
    });
    return entry;
  }

  uint32_t chunk_cells() {
    const program::Program& program = lowering_.program();
    return program.maps[program.unwinding.cells].value_size / sizeof(uint64_t);
  }

  // Returns the address of the chunk with the cell `index`. Jumps to `none` if it is not there, which does not occur: a
  // chunk is added before a cell of it is referred to.
  ValueId chunk_of(ValueId index, BlockId none) {
    const auto& maps = lowering_.program().unwinding;
    const ValueId number = ir().binary(Op::k_shr, index, std::countr_zero(chunk_cells()));
    const BlockId found = ir().add_block("chunk");
    const ValueId chunk = ir().add_block_parameter(found);
    const BlockId first = ir().add_block("first_chunk");
    const BlockId other = ir().add_block("other_chunk");
    ir().branch(Condition::eq, number, 0, first, other);
    ir().enter(first);
    ir().jump(found, {ir().map_value(maps.cells, 0)});
    ir().enter(other);
    const ValueId key = ir().slot(ir().add_slot(4, 4, "chunk"));
    ir().store(4, key, number);
    const ValueId array = ir().call(Helper::map_lookup_elem, {ir().map(maps.more_cells), key});
    branch_if(Condition::eq, array, constant(0), none);
    ir().store(4, key, constant(0));
    const ValueId value = ir().call(Helper::map_lookup_elem, {array, key});
    branch_if(Condition::eq, value, constant(0), none);
    ir().jump(found, {value});
    ir().enter(found);
    return chunk;
  }

  ValueId cell(ValueId chunk, ValueId index) {
    const ValueId bounded = ir().binary(Op::k_shl, ir().binary(Op::k_and, index, int64_t{chunk_cells()} - 1), 3);
    return ir().load(8, ir().binary(Op::k_add, chunk, bounded));
  }

  // Emits the binary search for the rule of `pc`. Without a table or a known rule, returns the rule of frame pointers.
  ValueId find_rule(ValueId pc) {
    const ValueId rule = variable("rule", constant(follow_frame_pointer(has_link_register())));
    when(Condition::ne, ir().load(4, map_, UnwindMap::kFile), constant(0), [&] {
      const ValueId offset = ir().binary(Op::k_add, pc, ir().load(8, map_, UnwindMap::kBias));
      const ValueId page = ir().binary(Op::k_sub, ir().binary(Op::k_shr, offset, program::kUnwindPageShift),
                                       ir().load(4, map_, UnwindMap::kFile + 8));
      const BlockId none = ir().add_block("no_rule");
      branch_if(Condition::uge, page, ir().load(4, map_, UnwindMap::kFile + 12), none);
      const ValueId first = ir().binary(Op::k_add, page, ir().load(4, map_, UnwindMap::kFile + 4));
      const ValueId found = find_row(cell(chunk_of(first, none), first), offset, none);
      branch_if(Condition::eq, ir().binary(Op::k_and, found, 15), constant(number_of(FrameBase::kUnknown)), none);
      ir().store(8, rule, found);
      ir().jump(none);
      ir().enter(none);
    });
    return value_of(rule);
  }

  // Emits the search among the rows of a page for the rule that holds at `offset`. `rows`: the page's cell. `low` never
  // exceeds `high`. They stay unknown numbers of 32 bits for the verifier, without bounds that a comparison teaches it,
  // so that it follows one path of each step only.
  ValueId find_row(ValueId rows, ValueId offset, BlockId none) {
    constexpr int64_t kMaxSteps = std::bit_width(program::kUnwindPageRows - 1);
    const ValueId first = ir().unary(Op::k_zext32, rows);
    const ValueId chunk = chunk_of(first, none);
    const ValueId low = variable("low", first);
    const ValueId high = variable("high", ir().binary(Op::k_shr, rows, 32));
    ir().count_up(kMaxSteps, [&](ValueId, BlockId done) {
      branch_if(Condition::eq, ir().binary(Op::k_sub, value_of(high), value_of(low)), constant(0), done);
      const ValueId sum = ir().binary(Op::k_add, value_of(low), value_of(high));
      const ValueId middle = ir().binary(Op::k_shr, ir().binary(Op::k_add, sum, 1), 1);
      when(
          Condition::ule, ir().binary(Op::k_shr, cell(chunk, middle), 32), offset, [&] { ir().store(8, low, middle); },
          [&] { ir().store(8, high, ir().unary(Op::k_zext32, ir().binary(Op::k_sub, middle, 1))); });
    });
    return ir().unary(Op::k_zext32, cell(chunk, value_of(low)));
  }

  // ---- The stack

  // Emits the address of a copy of the two words at `address` of the user's stack, which is good until the next call.
  // Runs `failed` if they cannot be read.
  ValueId stack_words(ValueId address, const std::function<void()>& failed) {
    constexpr int64_t kStarts = kWindowBytes - 15;
    const ValueId distance = ir().binary(Op::k_sub, address, get(UnwindState::kWindowStart));
    when(Condition::uge, distance, get(UnwindState::kWindowStarts), [&] {
      const ValueId sp = get(UnwindState::kSp);
      const ValueId start = lowering_.select(
          Condition::ult, ir().binary(Op::k_sub, address, sp), constant(kStarts), [&] { return sp; },
          [&] { return address; });
      put(UnwindState::kWindowStart, start);
      put(UnwindState::kWindowStarts, constant(kStarts));
      read(Helper::probe_read_user, UnwindState::kWindow, kWindowBytes, start, [&] {
        put(UnwindState::kWindowStart, address);
        put(UnwindState::kWindowStarts, constant(1));
        read(Helper::probe_read_user, UnwindState::kWindow, 16, address, [&] {
          put(UnwindState::kWindowStarts, constant(0));
          failed();
        });
      });
    });
    const ValueId at = ir().binary(Op::k_sub, address, get(UnwindState::kWindowStart));
    return ir().binary(Op::k_add, address_of(UnwindState::kWindow), ir().binary(Op::k_and, at, kWindowBytes - 1));
  }

  // ---- The caller's registers

  void move_to_caller(ValueId rule) {
    const ValueId base = ir().binary(Op::k_and, rule, 15);
    when(Condition::eq, base, constant(number_of(FrameBase::kEnd)), [&] { stop(); });
    when(Condition::eq, base, constant(number_of(FrameBase::kSignalFrame)), [&] { return_from_signal(); });
    const ValueId cfa = find_cfa(rule, base);
    when(Condition::ule, cfa, get(UnwindState::kSp), [&] { stop(); });
    const ValueId words = stack_words(ir().binary(Op::k_add, cfa, -16), [&] { stop(); });
    const ValueId caller = ir().load(8, words, 8);
    restore_frame_pointer(rule, cfa, ir().load(8, words));
    when(Condition::eq, caller, constant(0), [&] { stop(); });
    put(UnwindState::kIp, caller);
    put(UnwindState::kSp, cfa);
    put(UnwindState::kIsCaller, constant(1));
  }

  // ---- The caller's registers, on CPUs whose calls leave the return address in a register

  // Functions save the register with FP, in a frame record to which FP then points.
  void move_to_caller_by_link(ValueId rule) {
    const ValueId base = ir().binary(Op::k_and, rule, 15);
    const ValueId location = ir().binary(Op::k_and, ir().binary(Op::k_shr, rule, 4), 255);
    when(Condition::eq, base, constant(number_of(FrameBase::kEnd)), [&] { stop(); });
    when(Condition::eq, base, constant(number_of(FrameBase::kSignalFrame)), [&] {
      when(Condition::eq, get(UnwindState::kIsSpUnknown), constant(0), [&] { return_from_signal(); });
      stop();
    });
    const LinkedFrame frame = find_linked_frame(rule, base, location);
    when(Condition::ult, value_of(frame.cfa), get(UnwindState::kSp), [&] { stop(); });
    const ValueId caller = variable("caller", get(UnwindState::kLink));
    when(
        Condition::eq, location, constant(FrameRule::kSame),
        [&] { when(Condition::ne, get(UnwindState::kIsCaller), constant(0), [&] { stop(); }); },
        [&] { restore_record(base, value_of(frame.record), caller); });
    const auto mask = static_cast<int64_t>(lowering_.kernel().arch().code_address_mask);
    const ValueId address = ir().binary(Op::k_and, value_of(caller), mask);
    when(Condition::eq, address, constant(0), [&] { stop(); });
    put(UnwindState::kIp, address);
    put(UnwindState::kSp, value_of(frame.cfa));
    put(UnwindState::kIsCaller, constant(1));
    put(UnwindState::kIsSpUnknown, ir().binary(Op::k_eq, rule, follow_frame_pointer(true)));
  }

  struct LinkedFrame {
    ValueId cfa;     // variables
    ValueId record;  // address of the saved FP and return address
  };

  LinkedFrame find_linked_frame(ValueId rule, ValueId base, ValueId location) {
    const ValueId offset = ir().binary(Op::k_shl, ir().binary(Op::k_sar, ir().unary(Op::k_sext32, rule), 12), 3);
    const ValueId fp = get(UnwindState::kFp);
    const ValueId origin = lowering_.select(
        Condition::test, base, constant(1), [&] { return fp; }, [&] { return get(UnwindState::kSp); });
    const ValueId words = ir().binary(Op::k_shl, ir().binary(Op::k_and, location, FrameRule::kAboveBase - 1), 3);
    const ValueId distance = lowering_.select(
        Condition::test, location, constant(FrameRule::kAboveBase),
        [&] { return ir().binary(Op::k_sub, offset, words); }, [&] { return words; });
    const ValueId cfa = variable("cfa", ir().binary(Op::k_add, origin, offset));
    const ValueId record = variable("record", ir().binary(Op::k_sub, value_of(cfa), distance));
    when(Condition::eq, location, constant(FrameRule::kAtFramePointer), [&] { ir().store(8, record, fp); });
    // Behind a frame that was followed by FP alone, the record is where FP points, and the CFA at its distance from it.
    const ValueId is_by_stack = ir().binary(Op::k_xor, ir().binary(Op::k_and, base, 1), 1);
    when(Condition::ne, ir().binary(Op::k_and, get(UnwindState::kIsSpUnknown), is_by_stack), constant(0), [&] {
      when(Condition::eq, base, constant(number_of(FrameBase::kSavedLink)), [&] { stop(); });
      ir().store(8, record, fp);
      ir().store(8, cfa, ir().binary(Op::k_add, fp, distance));
    });
    return {cfa, record};
  }

  void restore_record(ValueId base, ValueId record, ValueId caller) {
    const ValueId words = stack_words(record, [&] { stop(); });
    const ValueId first = ir().load(8, words), second = ir().load(8, words, 8);
    when(
        Condition::eq, base, constant(number_of(FrameBase::kSavedLink)), [&] { ir().store(8, caller, first); },
        [&] {
          ir().store(8, caller, second);
          put(UnwindState::kFp, first);
        });
  }

  // The kernel saved all registers in a ucontext on the signal handler's stack.
  void return_from_signal() {
    const auto& saved = unwind().signal_frame;
    const int64_t last_saved = has_link_register() ? saved.link_register_bytes : saved.frame_pointer_bytes;
    const auto [first, last] = std::minmax(
        {saved.frame_pointer_bytes, saved.stack_pointer_bytes, saved.instruction_pointer_bytes, last_saved});
    read(Helper::probe_read_user, UnwindState::kWords, static_cast<uint64_t>(last + 8 - first),
         ir().binary(Op::k_add, get(UnwindState::kSp), first), [&] { stop(); });
    put(UnwindState::kFp, get(UnwindState::kWords + saved.frame_pointer_bytes - first));
    put(UnwindState::kSp, get(UnwindState::kWords + saved.stack_pointer_bytes - first));
    put(UnwindState::kIp, get(UnwindState::kWords + saved.instruction_pointer_bytes - first));
    if (has_link_register()) put(UnwindState::kLink, get(UnwindState::kWords + saved.link_register_bytes - first));
    put(UnwindState::kIsCaller, constant(0));
    return_value(0);
  }

  ValueId find_cfa(ValueId rule, ValueId base) {
    const ValueId words = ir().binary(Op::k_sar, ir().unary(Op::k_sext32, rule), 12);
    const ValueId base_value = lowering_.select(
        Condition::test, base, constant(1), [&] { return get(UnwindState::kFp); },
        [&] { return get(UnwindState::kSp); });
    const ValueId cfa = variable("cfa", ir().binary(Op::k_add, base_value, ir().binary(Op::k_shl, words, 3)));
    when(Condition::uge, base, constant(number_of(FrameBase::kLoadFromStackPointer)), [&] {
      when(
          Condition::eq, base, constant(number_of(FrameBase::kPlt)),
          [&] {
            const ValueId within = ir().binary(Op::k_and, get(UnwindState::kIp), unwind().plt_entry_bytes - 1);
            const ValueId pushed_from = constant(unwind().plt_pushed_from_bytes);
            const ValueId pushed = ir().binary(Op::k_shl, ir().binary(Op::k_ule, pushed_from, within), 3);
            ir().store(8, cfa, ir().binary(Op::k_add, ir().binary(Op::k_add, get(UnwindState::kSp), 8), pushed));
          },
          [&] {
            const ValueId saved = stack_words(value_of(cfa), [&] { stop(); });
            const ValueId adjustment = ir().binary(
                Op::k_shl, ir().binary(Op::k_eq, base, constant(number_of(FrameBase::kLoadFromStackPointer))), 3);
            ir().store(8, cfa, ir().binary(Op::k_add, ir().load(8, saved), adjustment));
          });
    });
    return value_of(cfa);
  }

  // `next`: the word below the return address, which usually is the frame pointer.
  void restore_frame_pointer(ValueId rule, ValueId cfa, ValueId next) {
    const ValueId location = ir().binary(Op::k_and, ir().binary(Op::k_shr, rule, 4), 255);
    when(
        Condition::eq, location, constant(2), [&] { put(UnwindState::kFp, next); },
        [&] {
          when(Condition::ne, location, constant(0), [&] {
            const ValueId saved = lowering_.select(
                Condition::eq, location, constant(FrameRule::kAtFramePointer), [&] { return get(UnwindState::kFp); },
                [&] { return ir().binary(Op::k_sub, cfa, ir().binary(Op::k_shl, location, 3)); });
            put(UnwindState::kFp, constant(0));
            const BlockId unknown = ir().add_block("no_frame_pointer");
            branch_if(Condition::eq, location, constant(FrameRule::kUnrecoverable), unknown);
            const ValueId words = stack_words(saved, [&] {
              ir().jump(unknown);
              ir().enter(ir().add_block("unreachable"));
            });
            put(UnwindState::kFp, ir().load(8, words));
            ir().jump(unknown);
            ir().enter(unknown);
          });
        });
  }

  Lowering& lowering_;
  lower::MappingOffsets offsets_;
  lower::MappingReader mappings_;
  int64_t frames_;
  ValueId state_;
  ValueId map_;
};

}  // namespace

void write_unwind_step(Lowering& lowering, uint32_t frames, ValueId state) {
  StepEmitter(lowering, frames, state).write();
}

}  // namespace espy::builtins

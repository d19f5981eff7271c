#include "lower/map_elements.h"

#include <bit>
#include <cerrno>

#include "types/recent_layout.h"

namespace espy::lower {
namespace {

using program::Storage;

constexpr int64_t kAny = 0;      // BPF_ANY
constexpr int64_t kNoExist = 1;  // BPF_NOEXIST
constexpr int64_t kCreate = 1;   // BPF_LOCAL_STORAGE_GET_F_CREATE

}  // namespace

ValueId MapElements::assigned_word(const program::ScriptMap& map, ValueId cpu) {
  const ValueId start = ir().map_value(module_.program.globals, map.offset_bytes);
  if (map.storage == Storage::kGlobal) return start;
  const ValueId slot = ir().binary(Op::k_and, cpu, module_.cpu_slots() - 1);
  return ir().binary(Op::k_add, start, ir().binary(Op::k_shl, slot, std::countr_zero(map.stride_bytes)));
}

ValueId MapElements::assigned_word(const program::ScriptMap& map) {
  return assigned_word(map, map.storage == Storage::kGlobal ? ValueId{} : cpu());
}

ValueId MapElements::lookup(const Element& element) {
  const program::ScriptMap map = module_.script_map(element.map);
  if (map.storage == Storage::kThread) {
    const ir::SlotId found = new_slot("found");
    write_slot(found, ir().constant(0));
    with_thread_word(
        map, [&](ValueId word) { write_slot(found, offset(word, 8)); }, nullptr);
    return read_slot(found);
  }
  if (!element.key.valid()) return offset(assigned_word(map), 8);
  return ir().call(Helper::map_lookup_elem, {ir().map(map.map), element.key});
}

ValueId MapElements::slot(const program::ScriptMap& map, ValueId found, ValueId cpu) {
  const ValueId bounded = ir().binary(Op::k_and, cpu, module_.cpu_slots() - 1);
  return ir().binary(Op::k_add, found, ir().binary(Op::k_mul, bounded, ir().constant(map.stride_bytes)));
}

ValueId MapElements::own_value(const program::ScriptMap& map, ValueId found) {
  return map.storage == Storage::kSlotHash ? slot(map, found, cpu()) : found;
}

void MapElements::with_value(const Element& element, const std::function<void(ValueId)>& then,
                             const std::function<void()>& otherwise) {
  const bool has_key = element.key.valid();
  const program::ScriptMap map = module_.script_map(element.map);
  if (map.storage == Storage::kThread) {
    const auto use = [&](ValueId word) {
      if (then) then(offset(word, 8));
    };
    return with_thread_word(map, use, otherwise);
  }
  const ValueId found = has_key ? lookup(element) : assigned_word(map);
  const auto use = [&] {
    if (then) then(has_key ? own_value(map, found) : offset(found, 8));
  };
  when(Condition::ne, has_key ? found : ir().load(8, found), ir().constant(0), use, otherwise);
}

// The storage is looked up in any case, so that each lookup is on the way to the next one, which can reuse it.
ValueId MapElements::thread_word(const program::ScriptMap& map, bool creates) {
  const ValueId task = ir().call(Helper::get_current_task_btf, {});
  const ValueId word = ir().call(Helper::task_storage_get,
                                 {ir().map(map.map), task, ir().constant(0), ir().constant(creates ? kCreate : 0)});
  const ValueId tid = extend(ir().call(Helper::get_current_pid_tgid, {}), 4, false);
  return select(
      Condition::eq, tid, ir().constant(0), [&] { return ir().map_value(module_.program.globals, map.offset_bytes); },
      [&] { return word; });
}

void MapElements::with_thread_word(const program::ScriptMap& map, const std::function<void(ValueId)>& use,
                                   const std::function<void()>& otherwise) {
  const ValueId word = thread_word(map, false);
  const BlockId found = ir().add_block("found");
  const BlockId assigned = ir().add_block("assigned");
  const BlockId absent = ir().add_block("absent");
  const BlockId done = ir().add_block("done");
  ir().branch(Condition::ne, word, 0, found, absent);
  ir().enter(found);
  ir().branch(Condition::ne, ir().load(8, word), 0, assigned, absent);
  ir().enter(assigned);
  use(word);
  ir().jump(done);
  ir().enter(absent);
  if (otherwise) otherwise();
  ir().jump(done);
  ir().enter(done);
}

void MapElements::with_new_thread_word(const program::ScriptMap& map, const std::function<void(ValueId)>& use) {
  const ValueId word = thread_word(map, true);
  when(
      Condition::ne, word, ir().constant(0), [&] { use(word); },
      [&] {
        failures_.emit(Helper::task_storage_get, ir().constant(-ENOMEM));
        count_loss(program::LossKind::kUpdate,
                   map.name + " was busy on that CPU, or the kernel had no memory at hand for a thread; updates lost");
      });
}

// `failed` is the result of map_update_elem.
void MapElements::lose_update(const program::ScriptMap& map, ValueId failed) {
  const std::string full = map.name + " is full at " + std::to_string(module_.program.maps[map.map].max_entries) +
                           " keys (raise max_map_keys, or the number it is declared with); updates lost";
  const std::string busy =
      map.name + " was busy on that CPU, or the kernel had no memory at hand for a new key; updates lost";
  // Before Linux 6.4 the upper half of the result is 0 (d7ba4cc900bf).
  const ValueId error = ir().unary(Op::k_zext32, failed);
  when(
      Condition::eq, error, ir().constant(static_cast<uint32_t>(-E2BIG)),
      [&] { count_loss(program::LossKind::kUpdate, full); }, [&] { count_loss(program::LossKind::kUpdate, busy); });
}

// An absent key is inserted with zeros, unless another CPU has inserted it meanwhile, and looked up again. So `then`
// updates the value in place, and no update of another CPU is overwritten.
void MapElements::with_new_value(const Element& element, const std::function<void(ValueId)>& then) {
  const program::ScriptMap map = module_.script_map(element.map);
  if (map.storage == Storage::kThread) {
    return with_new_thread_word(map, [&](ValueId word) {
      when(Condition::eq, ir().load(8, word), ir().constant(0),
           [&] { memory_.zero(word, module_.program.maps[map.map].value_size); });
      ir().store(8, word, ir().constant(1));
      then(offset(word, 8));
    });
  }
  if (!element.key.valid()) {
    const ValueId assigned = assigned_word(map);
    ir().store(8, assigned, ir().constant(1));
    return then(offset(assigned, 8));
  }
  const ValueId found = lookup(element);
  const BlockId use = ir().add_block("value");
  const ValueId address = ir().add_block_parameter(use);
  const BlockId miss = ir().add_block("miss");
  const BlockId hit = ir().add_block("hit");
  const BlockId full = ir().add_block("full");
  const BlockId inserted = ir().add_block("inserted");
  const BlockId done = ir().add_block("done");
  ir().branch(Condition::ne, found, 0, hit, miss);
  ir().enter(hit);
  ir().jump(use, {found});
  ir().enter(miss);
  const uint32_t size = module_.program.maps[map.map].value_size;
  const ValueId failed = ir().call(Helper::map_update_elem,
                                   {ir().map(map.map), element.key, memory_.zeros(size), ir().constant(kNoExist)});
  if (map.keys_offset) when(Condition::eq, failed, ir().constant(0), [&] { count_key(map, 1); });
  const ValueId again = lookup(element);
  ir().branch(Condition::ne, again, 0, inserted, full);
  ir().enter(inserted);
  ir().jump(use, {again});
  ir().enter(full);
  fail_update(map, failed);
  ir().jump(done);
  ir().enter(use);
  then(own_value(map, address));
  ir().jump(done);
  ir().enter(done);
}

// A number whose key is there is stored in place: the kernel would allocate a new element. Longer values are replaced
// as a whole, so that others see either the old one or the new one.
void MapElements::store(const Element& element, Operand value) {
  const program::ScriptMap map = module_.script_map(element.map);
  if (map.storage == Storage::kThread) {
    return with_new_thread_word(map, [&](ValueId word) {
      conversions_.store_converted(offset(word, 8), value, map.value);
      ir().store(8, word, ir().constant(1));
    });
  }
  if (!element.key.valid()) {
    const ValueId assigned = assigned_word(map);
    conversions_.store_converted(offset(assigned, 8), value, map.value);
    return ir().store(8, assigned, ir().constant(1));
  }
  if (!is_scalar(map.value) || !module_.keeps_keys(element.map)) {
    const auto set = [&](int64_t flags) {
      const ValueId failed = update(element, value, flags);
      when(Condition::ne, failed, ir().constant(0), [&] { fail_update(map, failed); });
    };
    if (!map.keys_offset) return set(kAny);
    // The kernel evicts keys of this map, and new ones are counted.
    return when(
        Condition::ne, lookup(element), ir().constant(0), [&] { set(kAny); },
        [&] {
          const ValueId failed = update(element, value, kNoExist);
          when(
              Condition::eq, failed, ir().constant(0), [&] { count_key(map, 1); },
              [&] {                                                      // another CPU may have added the key
                const ValueId error = ir().unary(Op::k_zext32, failed);  // see lose_update
                when(
                    Condition::eq, error, ir().constant(static_cast<uint32_t>(-EEXIST)), [&] { set(kAny); },
                    [&] { fail_update(map, failed); });
              });
        });
  }
  const auto store_at = [&](ValueId found) { conversions_.store_converted(found, value, map.value); };
  const ValueId found = lookup(element);
  when(
      Condition::ne, found, ir().constant(0), [&] { store_at(found); }, [&] { insert(element, value, store_at); });
}

// An element that another CPU has inserted since the lookup is not replaced either: the kernel would give the old one
// to another key at once, while a third CPU may have found it and be about to store into it.
void MapElements::insert(const Element& element, Operand value, const std::function<void(ValueId)>& store_at) {
  const program::ScriptMap map = module_.script_map(element.map);
  const ValueId failed = update(element, value, kNoExist);
  const auto store_again = [&] {
    const ValueId again = lookup(element);
    when(Condition::ne, again, ir().constant(0), [&] { store_at(again); });
  };
  when(Condition::ne, failed, ir().constant(0), [&] {
    const ValueId error = ir().unary(Op::k_zext32, failed);  // see lose_update
    when(Condition::eq, error, ir().constant(static_cast<uint32_t>(-EEXIST)), store_again,
         [&] { fail_update(map, failed); });
  });
}

// Sets a value by a new element. Returns the result of map_update_elem.
ValueId MapElements::update(const Element& element, Operand value, int64_t flags) {
  const program::ScriptMap map = module_.script_map(element.map);
  const uint32_t size = module_.program.maps[map.map].value_size;
  const ValueId copy = memory_.allocate(size, "new");
  if (types()[map.value].size_bytes % 8) memory_.zero(copy, size);
  conversions_.store_converted(copy, value, map.value);
  return ir().call(Helper::map_update_elem, {ir().map(map.map), element.key, copy, ir().constant(flags)});
}

void MapElements::fail_update(const program::ScriptMap& map, ValueId failed) {
  failures_.emit(Helper::map_update_elem, failed);
  lose_update(map, failed);
}

ValueId MapElements::remove(const Element& element, bool is_statement) {
  const auto report = [&] { failures_.emit_absent_key(is_statement); };
  const program::ScriptMap map = module_.script_map(element.map);
  if (map.storage == Storage::kThread) {
    const ir::SlotId was = new_slot("was");
    write_slot(was, ir().constant(0));
    with_thread_word(
        map,
        [&](ValueId word) {
          write_slot(was, ir().constant(1));
          ir().store(8, word, ir().constant(0));
        },
        report);
    return read_slot(was);
  }
  if (!element.key.valid()) return clear(map);
  const ValueId failed = ir().call(Helper::map_delete_elem, {ir().map(map.map), element.key});
  when(Condition::ne, failed, ir().constant(0), report);
  if (map.keys_offset) when(Condition::eq, failed, ir().constant(0), [&] { count_key(map, -1); });
  return ir().binary(Op::k_eq, failed, ir().constant(0));
}

void MapElements::count_key(const program::ScriptMap& map, int64_t change) {
  ir().atomic_add(8, ir().map_value(module_.program.globals, map.keys_offset), ir().constant(change));
}

// Zeroes a map without keys, on all CPUs. Returns whether it was assigned.
ValueId MapElements::clear(const program::ScriptMap& map) {
  const types::Type type = types()[map.value];
  uint32_t size = static_cast<uint32_t>(round_up(type.size_bytes, 8));
  if (type.kind == Kind::kRecent)  // values without a stamp are not there
    size = types::RecentLayout(type.count, types()[type.element].size_bytes).values_offset;
  const ir::SlotId was = new_slot("was");
  write_slot(was, ir().constant(0));
  const auto clear_one = [&](ValueId assigned) {
    write_slot(was, ir().binary(Op::k_or, read_slot(was), ir().load(8, assigned)));
    memory_.zero(assigned, 8 + size);
  };
  if (map.storage == Storage::kGlobal) {
    clear_one(assigned_word(map));
  } else {
    ir().count_up(module_.program.cpu_count, [&](ValueId cpu, BlockId) { clear_one(assigned_word(map, cpu)); });
  }
  return read_slot(was);
}

ValueId MapElements::length(ScriptMapId id) {
  const program::ScriptMap map = module_.script_map(id);
  if (!map.map.valid()) return ir().load(8, assigned_word(map));
  if (const auto sum = kernel().kfunc_id("bpf_map_sum_elem_count")) return ir().kfunc(*sum, {ir().map(map.map)}, false);
  return count_keys(map);
}

ValueId MapElements::count_keys(const program::ScriptMap& map) {
  // On the stack in any case: Linux 6.1 passes no other address to the callback.
  const ValueId counter = ir().slot(ir().add_slot(8, 8, "length"));
  ir().store(8, counter, ir().constant(0));
  const FunctionId count = functions_.shared_callback("count_keys", 4, [&] {
    const ValueId address = ir().param(3);
    ir().store(8, address, ir().binary(Op::k_add, ir().load(8, address), 1));
    ir().ret(0);
  });
  ir().call(Helper::for_each_map_elem, {ir().map(map.map), ir().function_address(count), counter, ir().constant(0)});
  return ir().load(8, counter);
}

}  // namespace espy::lower

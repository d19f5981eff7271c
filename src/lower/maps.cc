// Maps of the script: their elements, aggregations and recent().
#include <algorithm>
#include <bit>
#include <cerrno>

#include "lower/lowering.h"
#include "program/layout.h"
#include "program/program.h"
#include "spec/builtin.h"
#include "syntax/print.h"
#include "types/parts.h"

namespace espy::lower {
namespace {

using program::Storage;

constexpr int64_t kAny = 0;      // BPF_ANY
constexpr int64_t kNoExist = 1;  // BPF_NOEXIST
constexpr int64_t kCreate = 1;   // BPF_LOCAL_STORAGE_GET_F_CREATE
constexpr auto kBusy = static_cast<int64_t>(program::kRecentBusy);
constexpr int64_t kIntervalBytes = 24;  // of a time series: epoch, value, count or time

// The parts of a tuple or record; null for other expressions.
const std::vector<ExprId>* parts_of(const syntax::Ast& ast, ExprId expr) {
  if (const auto* tuple = ast.get<syntax::Tuple>(expr)) return &tuple->elements;
  const auto* record = ast.get<syntax::Record>(expr);
  return record ? &record->values : nullptr;
}

Condition is_better(bool is_max, bool is_signed) {
  if (is_max) return is_signed ? Condition::sgt : Condition::ugt;
  return is_signed ? Condition::slt : Condition::ult;
}

}  // namespace

// Such an element has no key: it is found by the current thread.
bool Lowering::is_of_thread(ScriptMapId map) const { return module_.script_map(map).storage == Storage::kThread; }

Lowering::MapElement Lowering::element(ScriptMapId map, ExprId key) {
  const TypeId type = module_.script_map(map).key;
  if (types()[type].kind == Kind::kVoid || is_of_thread(map)) return {map, {}};
  if (const auto* tuple = ast().get<syntax::Tuple>(key)) return element(map, tuple->elements);
  const uint32_t size = types()[type].size_bytes;
  const ValueId address = memory(size, "key");
  if (writes_bytes(key)) zero(address, size);
  store_member(address, 0, key, type);
  return {map, address};
}

Lowering::MapElement Lowering::element(ScriptMapId map, const std::vector<ExprId>& parts) {
  if (is_of_thread(map)) return {map, {}};
  if (parts.size() == 1) return element(map, parts[0]);
  const types::Type key = types()[module_.script_map(map).key];
  const ValueId address = zeroed_memory(key.size_bytes, "key");
  for (size_t i = 0; i < parts.size() && i < key.members.size(); ++i)
    store_member(address, key.members[i].offset_bytes(), parts[i], key.members[i].type);
  return {map, address};
}

Lowering::MapElement Lowering::element(ExprId map_expr) {
  const ScriptMapId map = unit().fact(map_expr).map;
  const auto* index = ast().get<syntax::Index>(map_expr);
  if (index == nullptr) return {map, {}};
  note_key_names(map, index->indices);
  return element(map, index->indices);
}

// The first use of the map gives its keys their names.
void Lowering::note_key_names(ScriptMapId map, const std::vector<ExprId>& indices) {
  std::vector<std::string>& names = module_.program.script_maps[map].key_names;
  const auto* tuple = indices.size() == 1 ? ast().get<syntax::Tuple>(indices[0]) : nullptr;
  if (names.empty())
    for (const ExprId part : tuple ? tuple->elements : indices) names.push_back(value_name(ast(), unit(), part));
}

void Lowering::note_sampling(ScriptMapId id) {
  program::ScriptMap& map = module_.program.script_maps[id];
  const program::SamplePeriod sampled =
      types()[map.value].kind == Kind::kCount ? context_.sampled : program::SamplePeriod{};
  map.sampled = map.sampled.value_or(sampled) == sampled ? sampled : program::SamplePeriod{};
}

// While the program waits for a page, another thread may assign another value, or remove the key, whose element the
// kernel then gives to another one.
Operand Lowering::copied_element(Operand value) {
  const auto size = round_up(types()[value.type].size_bytes, 8);
  const ValueId own = memory(size, "element");
  copy(own, value.value, size);
  value.value = own;
  return value;
}

Operand Lowering::read_element(const MapElement& element) {
  const program::ScriptMap map = module_.script_map(element.map);
  if (types::is_aggregation(types()[map.value])) return merged_aggregation(element);
  const bool is_reference = !is_scalar(map.value);
  const auto load_value = [&](ValueId address) {
    const Operand value = load(address, map.value);
    return is_reference && context_.may_sleep ? copied_element(value) : value;
  };
  if (!map.map.valid()) return load_value(element_address(element));  // zeros until it is assigned
  const ir::SlotId result = new_slot("element");
  with_value(
      element, [&](ValueId address) { write_slot(result, load_value(address).value); },
      [&] {
        const uint32_t size = module_.program.maps[map.map].value_size;
        write_slot(result, is_reference ? zeros(size) : ir().constant(0));
        emit_failure(Helper::map_lookup_elem, ir().constant(0));
      });
  return {map.value, read_slot(result), is_reference};
}

ValueId Lowering::find_into(const MapElement& element, ExprId variable_expr) {
  const VariableId variable = unit().fact(variable_expr).variable;
  const program::ScriptMap map = module_.script_map(element.map);
  const bool is_aggregation = types::is_aggregation(types()[map.value]);
  const ir::SlotId is_there = new_slot("is_there");
  write_slot(is_there, ir().constant(0));
  const check::Variable& info = unit().variables[variable];
  // If this declares the variable, the declaration must dominate both branches.
  if (info.span == ast()[variable_expr].span) clear_variable(variable);
  with_value(
      element,
      [&](ValueId address) {
        write_slot(is_there, ir().constant(1));
        if (!is_aggregation) return write_variable(variable, load(address, map.value));
        const Operand whole = merged_aggregation(element);
        write_variable(variable, is_scalar(info.type) ? reduce(whole, info.type) : whole);
      },
      nullptr);
  return read_slot(is_there);
}

// A value is computed before the key, an aggregation after it: `@[$i] = ++$i` and `@[$i] = sum(++$i)` have different
// keys.
void Lowering::assign_map(ExprId target, ExprId source) {
  const auto* call = ast().get<syntax::Call>(source);
  const spec::Builtin* builtin = call ? unit().fact(source).builtin : nullptr;
  if (!builtin || builtin->kind != spec::BuiltinKind::kAggregation) {
    const Operand operand = value(source);
    return store_element(this->element(target), operand);
  }
  const MapElement element = this->element(target);
  note_sampling(element.map);
  if (types()[module_.script_map(element.map).value].kind == Kind::kRecent)
    return add_recent(element, call->arguments[1]);
  const bool is_atomic = context_.is_preemptible || module_.is_interrupted(element.map);
  const auto update = [&] {
    with_new_value(element, [&](ValueId address) { update_aggregation(source, *builtin, address, is_atomic); });
  };
  if (call->arguments.empty() || !element.key.valid() || !may_wait_for(call->arguments[0])) return update();
  with_scalar(call->arguments[0], update);
}

// Whether a program may wait for a page while it evaluates an argument. It must not have looked up an element then: if
// another thread removes the key meanwhile, the kernel gives the element to another key.
bool Lowering::may_wait_for(ExprId argument) const {
  const bool is_plain = ast().get<syntax::Name>(argument) || ast().get<syntax::Variable>(argument);
  return context_.may_sleep && !is_plain && !is_constant(argument);
}

std::string value_name(const syntax::Ast& ast, const check::Unit& unit, ExprId expr) {
  const auto* call = ast.get<syntax::Call>(expr);
  const spec::Builtin* builtin = call ? unit.fact(expr).builtin : nullptr;
  if (builtin && builtin->reads_text_at && !call->arguments.empty()) return value_name(ast, unit, call->arguments[0]);
  std::string text = syntax::Printer(ast).expr(expr);
  for (const std::string_view prefix : {"args.", "args->", "$"}) {
    const size_t at = text.find(prefix);
    if (at == 0 || (at == 1 && text[0] == '*')) text.erase(at, prefix.size());
  }
  return text;
}

// ---- Elements
//
// A map without keys is an "assigned" word and a value in `globals`, one of each per CPU if it is an aggregation; an
// element of a map with keys is an entry of a hash, or the same word and value in the task storage of the current
// thread.

ValueId Lowering::assigned_word(const program::ScriptMap& map, ValueId cpu) {
  const ValueId start = ir().map_value(module_.program.globals, map.offset_bytes);
  if (map.storage == Storage::kGlobal) return start;
  const ValueId slot = cpu_slot(cpu);
  return ir().binary(Op::k_add, start, ir().binary(Op::k_shl, slot, std::countr_zero(map.stride_bytes)));
}

ValueId Lowering::assigned_word(const program::ScriptMap& map) {
  return assigned_word(map, map.storage == Storage::kGlobal ? ValueId{} : cpu());
}

ValueId Lowering::element_address(const MapElement& element) {
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

ValueId Lowering::slot_address(const program::ScriptMap& map, ValueId found, ValueId cpu) {
  const ValueId slot = cpu_slot(cpu);
  return ir().binary(Op::k_add, found, ir().binary(Op::k_mul, slot, ir().constant(map.stride_bytes)));
}

ValueId Lowering::own_value(const program::ScriptMap& map, ValueId found) {
  return map.storage == Storage::kSlotHash ? slot_address(map, found, cpu()) : found;
}

void Lowering::with_value(const MapElement& element, const std::function<void(ValueId)>& then,
                          const std::function<void()>& otherwise) {
  const bool has_key = element.key.valid();
  const program::ScriptMap map = module_.script_map(element.map);
  if (map.storage == Storage::kThread) {
    const auto use = [&](ValueId word) {
      if (then) then(offset(word, 8));
    };
    return with_thread_word(map, use, otherwise);
  }
  const ValueId found = has_key ? element_address(element) : assigned_word(map);
  const auto use = [&] {
    if (then) then(has_key ? own_value(map, found) : offset(found, 8));
  };
  when(Condition::ne, has_key ? found : ir().load(8, found), ir().constant(0), use, otherwise);
}

// The storage is looked up in any case, so that each lookup is on the way to the next one, which can reuse it.
ValueId Lowering::thread_word(const program::ScriptMap& map, bool creates) {
  const ValueId task = ir().call(Helper::get_current_task_btf, {});
  const ValueId word = ir().call(Helper::task_storage_get,
                                 {ir().map(map.map), task, ir().constant(0), ir().constant(creates ? kCreate : 0)});
  const ValueId tid = extend(ir().call(Helper::get_current_pid_tgid, {}), 4, false);
  return select(
      Condition::eq, tid, ir().constant(0), [&] { return ir().map_value(module_.program.globals, map.offset_bytes); },
      [&] { return word; });
}

void Lowering::with_thread_word(const program::ScriptMap& map, const std::function<void(ValueId)>& use,
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

void Lowering::with_new_thread_word(const program::ScriptMap& map, const std::function<void(ValueId)>& use) {
  const ValueId word = thread_word(map, true);
  when(
      Condition::ne, word, ir().constant(0), [&] { use(word); },
      [&] {
        emit_failure(Helper::task_storage_get, ir().constant(-ENOMEM));
        count_loss(
            program::LossKind::kUpdate,
            "update(s) lost: " + map.name + " was busy on that CPU, or the kernel had no free memory for a thread");
      });
}

// An absent key is inserted with zeros, unless another CPU has inserted it meanwhile, and looked up again. So `then`
// updates the value in place, and no update of another CPU is overwritten.
void Lowering::with_new_value(const MapElement& element, const std::function<void(ValueId)>& then) {
  const program::ScriptMap map = module_.script_map(element.map);
  if (map.storage == Storage::kThread) {
    return with_new_thread_word(map, [&](ValueId word) {
      when(Condition::eq, ir().load(8, word), ir().constant(0),
           [&] { zero(word, module_.program.maps[map.map].value_size); });
      ir().store(8, word, ir().constant(1));
      then(offset(word, 8));
    });
  }
  if (!element.key.valid()) {
    const ValueId assigned = assigned_word(map);
    ir().store(8, assigned, ir().constant(1));
    return then(offset(assigned, 8));
  }
  const ValueId found = element_address(element);
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
  const ValueId failed =
      ir().call(Helper::map_update_elem, {ir().map(map.map), element.key, zeros(size), ir().constant(kNoExist)});
  if (map.keys_offset) when(Condition::eq, failed, ir().constant(0), [&] { count_key(map, 1); });
  const ValueId again = element_address(element);
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
void Lowering::store_element(const MapElement& element, Operand value) {
  const program::ScriptMap map = module_.script_map(element.map);
  if (map.storage == Storage::kThread) {
    return with_new_thread_word(map, [&](ValueId word) {
      store_converted(offset(word, 8), value, map.value);
      ir().store(8, word, ir().constant(1));
    });
  }
  if (!element.key.valid()) {
    const ValueId assigned = assigned_word(map);
    store_converted(offset(assigned, 8), value, map.value);
    return ir().store(8, assigned, ir().constant(1));
  }
  if (!is_scalar(map.value) || !module_.keeps_keys(element.map)) return replace_element(element, value);
  const auto store_at = [&](ValueId found) { store_converted(found, value, map.value); };
  const ValueId found = element_address(element);
  when(
      Condition::ne, found, ir().constant(0), [&] { store_at(found); },
      [&] { insert_element(element, value, store_at); });
}

// Where the kernel evicts keys, new ones are counted. Another CPU may add the same key meanwhile.
void Lowering::replace_element(const MapElement& element, Operand value) {
  const program::ScriptMap map = module_.script_map(element.map);
  const auto set = [&] {
    const ValueId failed = update_element(element, value, kAny);
    when(Condition::ne, failed, ir().constant(0), [&] { fail_update(map, failed); });
  };
  if (!map.keys_offset) return set();
  when(Condition::ne, element_address(element), ir().constant(0), set, [&] {
    const ValueId failed = update_element(element, value, kNoExist);
    when(
        Condition::eq, failed, ir().constant(0), [&] { count_key(map, 1); },
        [&] { when_update_error(failed, EEXIST, set, [&] { fail_update(map, failed); }); });
  });
}

// An element that another CPU has inserted since the lookup is not replaced either: the kernel would give the old one
// to another key at once, while a third CPU may have found it and be about to store into it.
void Lowering::insert_element(const MapElement& element, Operand value, const std::function<void(ValueId)>& store_at) {
  const program::ScriptMap map = module_.script_map(element.map);
  const ValueId failed = update_element(element, value, kNoExist);
  const auto store_again = [&] {
    const ValueId again = element_address(element);
    when(Condition::ne, again, ir().constant(0), [&] { store_at(again); });
  };
  when(Condition::ne, failed, ir().constant(0),
       [&] { when_update_error(failed, EEXIST, store_again, [&] { fail_update(map, failed); }); });
}

// Sets a value by a new element. Returns the result of map_update_elem.
ValueId Lowering::update_element(const MapElement& element, Operand value, int64_t flags) {
  const program::ScriptMap map = module_.script_map(element.map);
  const uint32_t size = module_.program.maps[map.map].value_size;
  const ValueId copy = memory(size, "new");
  if (types()[map.value].size_bytes % 8) zero(copy, size);
  store_converted(copy, value, map.value);
  return ir().call(Helper::map_update_elem, {ir().map(map.map), element.key, copy, ir().constant(flags)});
}

// `failed` is the result of map_update_elem.
void Lowering::fail_update(const program::ScriptMap& map, ValueId failed) {
  emit_failure(Helper::map_update_elem, failed);
  const std::string full = "update(s) lost: " + map.name + " is full at " +
                           std::to_string(module_.program.maps[map.map].max_entries) +
                           " keys (raise max_map_keys, or the number in its declaration)";
  const std::string busy =
      "update(s) lost: " + map.name + " was busy on that CPU, or the kernel had no free memory for a new key";
  when_update_error(
      failed, E2BIG, [&] { count_loss(program::LossKind::kUpdate, full); },
      [&] { count_loss(program::LossKind::kUpdate, busy); });
}

// Before Linux 6.4 the upper half of the result of map_update_elem is 0 (d7ba4cc900bf).
void Lowering::when_update_error(ValueId failed, int error, const std::function<void()>& then,
                                 const std::function<void()>& otherwise) {
  const ValueId low = ir().unary(Op::k_zext32, failed);
  when(Condition::eq, low, ir().constant(static_cast<uint32_t>(-error)), then, otherwise);
}

ValueId Lowering::remove(const MapElement& element, bool is_statement) {
  const auto report = [&] { report_absent_key(is_statement); };
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
  if (!element.key.valid()) return clear_keyless_map(map);
  const ValueId failed = ir().call(Helper::map_delete_elem, {ir().map(map.map), element.key});
  when(Condition::ne, failed, ir().constant(0), report);
  if (map.keys_offset) when(Condition::eq, failed, ir().constant(0), [&] { count_key(map, -1); });
  return ir().binary(Op::k_eq, failed, ir().constant(0));
}

void Lowering::count_key(const program::ScriptMap& map, int64_t change) {
  ir().atomic_add(8, ir().map_value(module_.program.globals, map.keys_offset), ir().constant(change));
}

// Zeroes a map without keys, on all CPUs. Returns whether it was assigned.
ValueId Lowering::clear_keyless_map(const program::ScriptMap& map) {
  const types::Type type = types()[map.value];
  uint32_t size = round_up(type.size_bytes, 8);
  if (type.kind == Kind::kRecent)  // values without a stamp are not there
    size = types::RecentLayout(type.count, types()[type.element].size_bytes).values_offset;
  const ir::SlotId was = new_slot("was");
  write_slot(was, ir().constant(0));
  const auto clear_one = [&](ValueId assigned) {
    write_slot(was, ir().binary(Op::k_or, read_slot(was), ir().load(8, assigned)));
    zero(assigned, 8 + size);
  };
  if (map.storage == Storage::kGlobal) {
    clear_one(assigned_word(map));
  } else {
    ir().count_up(module_.program.cpu_count, [&](ValueId cpu, BlockId) { clear_one(assigned_word(map, cpu)); });
  }
  return read_slot(was);
}

ValueId Lowering::length(ScriptMapId id) {
  const program::ScriptMap map = module_.script_map(id);
  if (!map.map.valid()) return ir().load(8, assigned_word(map));
  if (const auto sum = kernel().kfunc_id("bpf_map_sum_elem_count")) return ir().kfunc(*sum, {ir().map(map.map)}, false);
  return count_keys(map);
}

ValueId Lowering::count_keys(const program::ScriptMap& map) {
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

// ---- recent()
//
// A ring of the last values of each key, which all CPUs add to, or of each CPU, if the map has no keys.
// program/layout.h describes its parts, and how they are used by several CPUs at a time.

void Lowering::add_recent(const MapElement& element, ExprId expr) {
  const program::ScriptMap map = module_.script_map(element.map);
  const std::vector<RecentPart> parts = plan_recent(types()[map.value].element, expr);
  with_new_value(element, [&](ValueId ring) { add_to_recent(ring, map, parts); });
}

// Evaluates what is not written in place, so that a slot is busy for a short time.
std::vector<Lowering::RecentPart> Lowering::plan_recent(TypeId value_type, ExprId expr) {
  const std::vector<ExprId>* exprs = parts_of(ast(), expr);
  if (!exprs || type(expr) != value_type) return {plan_recent_part(0, value_type, expr)};
  const types::Type layout = types()[value_type];
  std::vector<RecentPart> out;
  for (size_t i = 0; i < exprs->size() && i < layout.members.size(); ++i)
    out.push_back(plan_recent_part(layout.members[i].offset_bytes(), layout.members[i].type, (*exprs)[i]));
  return out;
}

Lowering::RecentPart Lowering::plan_recent_part(uint32_t offset_bytes, TypeId type, ExprId expr) {
  RecentPart part{offset_bytes, type, expr, {}};
  if (is_written_in_place(part)) return part;
  part.expr = {};
  part.operand = value(expr);
  if (may_sleep_here() && part.operand.space == AddressSpace::kUser) part.operand = in_our_memory(part.operand);
  return part;
}

// As store_member() does: names of probes, and strings that their builtin writes.
bool Lowering::is_written_in_place(const RecentPart& part) {
  const Kind kind = types()[part.type].kind;
  if (program::is_probe_name(kind)) return text(part.expr).has_value();
  return kind == Kind::kString && part.offset_bytes % 8 == 0 && type(part.expr) == part.type &&
         writes_bytes(part.expr) && !may_sleep_here();
}

void Lowering::write_recent(ValueId address, TypeId type, const std::vector<RecentPart>& parts) {
  if (!is_scalar(type)) zero(address, types()[type].size_bytes);
  for (const RecentPart& part : parts) {
    if (part.expr.valid())
      store_member(address, part.offset_bytes, part.expr, part.type);
    else
      store_converted(offset(address, part.offset_bytes), part.operand, part.type);
  }
}

// Only a thread that was interrupted here for as long as it takes to fill the ring meets a newer stamp.
void Lowering::add_to_recent(ValueId ring, const program::ScriptMap& map, const std::vector<RecentPart>& parts) {
  const types::Type type = types()[map.value];
  const types::RecentLayout layout(type.count, types()[type.element].size_bytes);
  const BlockId free = ir().add_block("free");
  const BlockId own = ir().add_block("own");
  const BlockId lost = ir().add_block("busy");
  const BlockId done = ir().add_block("added");
  const ValueId number = ir().atomic(Op::k_atomic_fetch_add, 8, ring, {ir().constant(1)});
  const ValueId slot = ir().binary(Op::k_and, number, layout.slots - 1);
  const ValueId stamps = offset(ring, types::RecentLayout::kStampsOffset);
  const ValueId stamp_address = ir().binary(Op::k_add, stamps, ir().binary(Op::k_shl, slot, 3));
  const ValueId stamp = map.map.valid() ? ir().binary(Op::k_add, number, 1) : ir().call(Helper::ktime_get_ns, {});
  const ValueId old = ir().load(8, stamp_address);
  ir().branch(Condition::ugt, old, stamp, lost, free);
  ir().enter(free);
  const ValueId seen = ir().atomic(Op::k_atomic_cmpxchg, 8, stamp_address, {old, ir().constant(kBusy)});
  ir().branch(Condition::eq, seen, old, own, lost);
  ir().enter(own);
  const ValueId distance = ir().binary(Op::k_mul, slot, ir().constant(layout.stride_bytes));
  write_recent(ir().binary(Op::k_add, offset(ring, layout.values_offset), distance), type.element, parts);
  ir().store_release(8, stamp_address, stamp);
  ir().jump(done);
  ir().enter(lost);
  count_loss(program::LossKind::kUpdate, "update(s) lost: earlier values of " + map.name + " were still being written");
  ir().jump(done);
  ir().enter(done);
}

ValueId Lowering::kept_count(const MapElement& element) {
  const program::ScriptMap map = module_.script_map(element.map);
  const ir::SlotId sum = new_slot("kept");
  write_slot(sum, ir().constant(0));
  const auto at_most = [&](ValueId taken) {
    const ValueId count = ir().constant(types()[map.value].count);
    return select(
        Condition::ult, taken, count, [&] { return taken; }, [&] { return count; });
  };
  if (map.map.valid()) {
    with_value(
        element, [&](ValueId ring) { write_slot(sum, ir().load(8, ring)); }, nullptr);
  } else {
    ir().count_up(module_.program.cpu_count, [&](ValueId cpu, BlockId) {
      const ValueId taken = ir().load(8, assigned_word(map, cpu), 8);
      write_slot(sum, ir().binary(Op::k_add, read_slot(sum), taken));
    });
  }
  return at_most(read_slot(sum));
}

// ---- Aggregations that the program itself reads
//
// The values of all CPUs are merged into one, with the same layout (program/layout.h).

Operand Lowering::merged_aggregation(const MapElement& element) {
  const TypeId type = module_.script_map(element.map).value;
  if (types()[type].kind == Kind::kRecent) return copied_recent(element, type);
  const uint32_t size = types()[type].size_bytes;
  const ValueId address = zeroed_memory(size, "merged");
  if (!types::is_aggregation(types()[type])) {  // a number in a map that is declared per CPU
    with_value(
        element, [&](ValueId found) { copy(address, found, size); }, nullptr);
    return load(address, type);
  }
  for_each_cpu_value(element, [&](ValueId source) { merge_aggregation(type, address, source); });
  return {type, address, true};
}

// Programs may add values meanwhile. The barriers keep the order that program/layout.h asks for.
Operand Lowering::copied_recent(const MapElement& element, TypeId type_id) {
  const types::Type type = types()[type_id];
  const types::RecentLayout layout(type.count, types()[type.element].size_bytes);
  const ValueId address = memory(type.size_bytes, "recent");
  const auto barrier = [&] { ir().atomic(Op::k_atomic_fetch_add, 8, address, {ir().constant(0)}); };
  with_value(
      element,
      [&](ValueId found) {
        copy(address, found, layout.values_offset);
        barrier();
        copy(offset(address, layout.values_offset), offset(found, layout.values_offset),
             type.size_bytes - layout.values_offset);
        barrier();
        ir().store(8, address, ir().load(8, found));
      },
      [&] { zero(address, type.size_bytes); });
  return {type_id, address, true};
}

void Lowering::for_each_cpu_value(const MapElement& element, const std::function<void(ValueId)>& body) {
  const program::ScriptMap map = module_.script_map(element.map);
  if (map.storage == Storage::kSlotHash) {
    const ValueId found = element_address(element);
    return when(Condition::ne, found, ir().constant(0), [&] {
      ir().count_up(module_.program.cpu_count, [&](ValueId cpu, BlockId) { body(slot_address(map, found, cpu)); });
    });
  }
  ir().count_up(module_.program.cpu_count, [&](ValueId cpu, BlockId) {
    if (!element.key.valid()) return body(offset(assigned_word(map, cpu), 8));
    const ValueId address = ir().call(Helper::map_lookup_percpu_elem, {ir().map(map.map), element.key, cpu});
    when(Condition::ne, address, ir().constant(0), [&] { body(address); });
  });
}

void Lowering::merge_aggregation(TypeId type_id, ValueId destination, ValueId source) {
  const types::Type type = types()[type_id];
  switch (type.kind) {
    case Kind::kMin:
    case Kind::kMax: return merge_extreme(type.kind == Kind::kMax, type.is_signed, destination, source);
    case Kind::kTseries: return merge_tseries(type_id, destination, source);
    default: return merge_words(destination, source, type.size_bytes / 8);
  }
}

void Lowering::merge_words(ValueId destination, ValueId source, uint32_t words) {
  constexpr uint32_t kUnrolled = 4;
  const auto add = [&](ValueId to, ValueId from, int64_t at) {
    ir().store(8, to, ir().binary(Op::k_add, ir().load(8, to, at), ir().load(8, from, at)), at);
  };
  if (words <= kUnrolled) {
    for (uint32_t i = 0; i < words; ++i) add(destination, source, i * 8);
    return;
  }
  ir().count_up(words, [&](ValueId index, BlockId) {
    const ValueId at = ir().binary(Op::k_shl, index, 3);
    add(ir().binary(Op::k_add, destination, at), ir().binary(Op::k_add, source, at), 0);
  });
}

// A minimum or maximum, and whether there is one.
void Lowering::merge_extreme(bool is_max, bool is_signed, ValueId destination, ValueId source) {
  when(Condition::eq, ir().load(8, source, 8), ir().constant(1), [&] {
    const ValueId other = ir().load(8, source);
    const ValueId mine = ir().load(8, destination);
    const BlockId take = ir().add_block("take");
    const BlockId compare = ir().add_block("compare");
    const BlockId join = ir().add_block("join");
    ir().branch(Condition::eq, ir().load(8, destination, 8), 0, take, compare);
    ir().enter(compare);
    ir().branch(is_better(is_max, is_signed), other, mine, take, join);
    ir().enter(take);
    ir().store(8, destination, other);
    ir().store(8, destination, ir().constant(1), 8);
    ir().jump(join);
    ir().enter(join);
  });
}

void Lowering::merge_tseries(TypeId type, ValueId destination, ValueId source) {
  ir().count_up(static_cast<uint32_t>(types().tseries_params(type).intervals), [&](ValueId index, BlockId) {
    const ValueId at = ir().binary(Op::k_mul, index, ir().constant(kIntervalBytes));
    const ValueId to = ir().binary(Op::k_add, destination, at);
    const ValueId from = ir().binary(Op::k_add, source, at);
    const ValueId stored = ir().load(8, from);
    const ValueId epoch = select(
        Condition::eq, stored, ir().constant(static_cast<int64_t>(program::kTseriesBusy)),
        [&] { return ir().constant(0); }, [&] { return stored; });
    when(
        Condition::ugt, epoch, ir().load(8, to), [&] { ir().copy(to, from, kIntervalBytes); },
        [&] { when(Condition::eq, epoch, ir().load(8, to), [&] { merge_interval(type, to, from); }); });
  });
}

// Intervals of the same epoch.
void Lowering::merge_interval(TypeId type, ValueId destination, ValueId source) {
  const Kind aggregation = types().tseries_params(type).aggregation;
  if (aggregation == Kind::kVoid) {  // the last one, by its time
    when(Condition::ugt, ir().load(8, source, 16), ir().load(8, destination, 16),
         [&] { ir().copy(destination, source, kIntervalBytes); });
    return;
  }
  const ValueId mine = ir().load(8, destination, 8);
  const ValueId other = ir().load(8, source, 8);
  ValueId both = ir().binary(Op::k_add, mine, other);
  if (aggregation == Kind::kMax || aggregation == Kind::kMin) {
    both = select(
        is_better(aggregation == Kind::kMax, types()[type].is_signed), other, mine, [&] { return other; },
        [&] { return mine; });
  }
  ir().store(8, destination, both, 8);
  ir().store(8, destination, ir().binary(Op::k_add, ir().load(8, destination, 16), ir().load(8, source, 16)), 16);
}

}  // namespace espy::lower

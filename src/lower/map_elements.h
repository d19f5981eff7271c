// Elements of the script's maps. A map without keys is an "assigned" word and a value in `globals`, one of each per CPU
// if it is an aggregation; an element of a map with keys is an entry of a hash, or the same word and value in the task
// storage of the current thread.
#pragma once

#include <cstdint>
#include <functional>

#include "lower/conversions.h"
#include "lower/emitter.h"
#include "lower/failures.h"
#include "lower/memory.h"

namespace espy::lower {

class MapElements : Emitter {
 public:
  using Element = Lowering::MapElement;

  MapElements(ModuleContext& module, Functions& functions, Memory& memory, Conversions& conversions, Failures& failures)
      : Emitter(module, functions), memory_(memory), conversions_(conversions), failures_(failures) {}

  // See Lowering for these.
  void with_value(const Element& element, const std::function<void(ValueId)>& then,
                  const std::function<void()>& otherwise);
  ValueId remove(const Element& element, bool is_statement);
  ValueId length(ScriptMapId map);

  // Like with_value(), but inserts an absent key first, with a zeroed value.
  void with_new_value(const Element& element, const std::function<void(ValueId)>& then);
  void store(const Element& element, Operand value);
  // The address of the value; null if the key is absent. That of the first CPU, if the map has slots.
  ValueId lookup(const Element& element);
  // The address of a CPU's value in an element with slots that lookup() found.
  ValueId slot(const program::ScriptMap& map, ValueId found, ValueId cpu);
  // The address of the "assigned" word of a map without keys: of this CPU, or of a given one.
  ValueId assigned_word(const program::ScriptMap& map);
  ValueId assigned_word(const program::ScriptMap& map, ValueId cpu);

 private:
  // The address of the value that this CPU updates, of a map with keys.
  ValueId own_value(const program::ScriptMap& map, ValueId found);
  // The address of the "assigned" word of the current thread; null if it has none, or, if `creates`, no memory for one.
  ValueId thread_word(const program::ScriptMap& map, bool creates);
  // Calls `use` with the thread's word if its value is assigned, else `otherwise`.
  void with_thread_word(const program::ScriptMap& map, const std::function<void(ValueId)>& use,
                        const std::function<void()>& otherwise);
  // Calls `use` with the thread's word, new if need be; counts a loss if there is no memory for one.
  void with_new_thread_word(const program::ScriptMap& map, const std::function<void(ValueId)>& use);
  // Adds a key with a value; stores into the element if the key is there meanwhile.
  void insert(const Element& element, Operand value, const std::function<void(ValueId)>& store_at);
  ValueId update(const Element& element, Operand value, int64_t flags);
  void fail_update(const program::ScriptMap& map, ValueId failed);
  void lose_update(const program::ScriptMap& map, ValueId failed);
  // Adds to the number of keys, where it is counted.
  void count_key(const program::ScriptMap& map, int64_t change);
  ValueId clear(const program::ScriptMap& map);
  ValueId count_keys(const program::ScriptMap& map);

  Memory& memory_;
  Conversions& conversions_;
  Failures& failures_;
};

}  // namespace espy::lower

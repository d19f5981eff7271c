// Aggregations that the program itself reads: merges the values of all CPUs into one, with the same layout
// (program/layout.h).
#pragma once

#include <cstdint>
#include <functional>

#include "lower/emitter.h"
#include "lower/map_elements.h"
#include "lower/memory.h"

namespace espy::lower {

class Aggregations : Emitter {
 public:
  Aggregations(ModuleContext& module, Functions& functions, Memory& memory, MapElements& elements)
      : Emitter(module, functions), memory_(memory), elements_(elements) {}

  // The element's merged value; zeros if the key is absent.
  Operand merged(const MapElements::Element& element);

 private:
  // A copy of an element of recent(). Requires a map with keys.
  Operand copied(const MapElements::Element& element, TypeId type);
  void for_each_cpu(const MapElements::Element& element, const std::function<void(ValueId)>& body);
  void merge(TypeId type, ValueId destination, ValueId source);
  void merge_words(ValueId destination, ValueId source, uint32_t words);
  void merge_extreme(bool is_max, bool is_signed, ValueId destination, ValueId source);
  void merge_tseries(TypeId type, ValueId destination, ValueId source);
  void merge_interval(TypeId type, ValueId destination, ValueId source);

  Memory& memory_;
  MapElements& elements_;
};

}  // namespace espy::lower

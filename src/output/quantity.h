// Values with their unit, for people: 1.5 us, 3.2 KiB. Text only; other formats have plain numbers.
#pragma once

#include <cstdint>
#include <string>

#include "output/format.h"
#include "output/sink.h"
#include "types/units.h"

namespace espy::output {

// Returns a number in the unit that suits its size, with up to three decimals: "1.5 us" of 1500 nanoseconds, "2 MiB",
// "90 s". The plain number for kNone.
std::string quantity_text(int64_t number, types::Unit unit);
std::string quantity_text(uint64_t number, types::Unit unit);

// Returns the unit in which the values of a map are shown: none if the configuration does not ask for units, for
// counts, and for numbers that print() divides.
types::Unit unit_for(const MapView& map, const TextStyle& style);

// The same as `to_text`, with numbers, averages and totals, and the bounds of histograms in `unit`.
std::string to_text(const Value& value, types::Unit unit, const TextStyle& style);
void append_text(std::string& out, const Value& value, types::Unit unit, const TextStyle& style);

}  // namespace espy::output

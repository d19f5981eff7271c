#include "types/units.h"

namespace espy::types {

std::optional<Unit> unit_named(std::string_view word) {
  struct Row {
    std::string_view word;
    Unit unit;
  };
  constexpr Row kRows[] = {{"bytes", Unit::kBytes},        {"ns", Unit::kNanoseconds},
                           {"nsecs", Unit::kNanoseconds},  {"us", Unit::kMicroseconds},
                           {"usecs", Unit::kMicroseconds}, {"ms", Unit::kMilliseconds},
                           {"msecs", Unit::kMilliseconds}, {"secs", Unit::kSeconds},
                           {"seconds", Unit::kSeconds},    {"nanoseconds", Unit::kNanoseconds},
                           {"s", Unit::kSeconds}};
  for (const Row& row : kRows)
    if (row.word == word) return row.unit;
  return std::nullopt;
}

// A map of one letter tells nothing by it.
Unit unit_of(std::string_view name) {
  const size_t before = name.find_last_of("_@.");
  const std::string_view word = before == name.npos ? name : name.substr(before + 1);
  return word == "s" ? Unit::kNone : unit_named(word).value_or(Unit::kNone);
}

std::string_view long_name(Unit unit) {
  switch (unit) {
    case Unit::kNone: return "";
    case Unit::kBytes: return "bytes";
    case Unit::kNanoseconds: return "nanoseconds";
    case Unit::kMicroseconds: return "microseconds";
    case Unit::kMilliseconds: return "milliseconds";
    case Unit::kSeconds: return "seconds";
  }
  return "";
}

std::string plain_name(std::string_view map_name, std::string_view otherwise) {
  if (map_name.starts_with('@')) map_name.remove_prefix(1);
  return std::string(map_name.empty() ? otherwise : map_name);
}

}  // namespace espy::types

// JSON as the protocol has it. What a client sends may have any shape: these read it without exceptions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lsp/text.h"

namespace espy::lsp {

using Json = nlohmann::json;

// The member of an object, also of members of members; null if there is none.
inline const Json& at(const Json& object, std::initializer_list<const char*> path) {
  static const Json nothing;
  const Json* out = &object;
  for (const char* name : path) {
    if (!out->is_object()) return nothing;
    const auto found = out->find(name);
    if (found == out->end()) return nothing;
    out = &*found;
  }
  return *out;
}

inline std::string text_of(const Json& value) {
  const auto* text = value.get_ptr<const Json::string_t*>();
  return text ? *text : "";
}

inline uint32_t number_of(const Json& value) {
  return value.is_number_unsigned() ? static_cast<uint32_t>(std::min<uint64_t>(value.get<uint64_t>(), UINT32_MAX)) : 0;
}

inline Position position_of(const Json& value) {
  return {number_of(at(value, {"line"})), number_of(at(value, {"character"}))};
}

inline Json json_of(Position position) { return {{"line", position.line}, {"character", position.character}}; }

// A range of bytes of the text.
inline Json range_of(const Text& text, uint32_t begin, uint32_t end) {
  return {{"start", json_of(text.position(begin))}, {"end", json_of(text.position(end))}};
}

}  // namespace espy::lsp

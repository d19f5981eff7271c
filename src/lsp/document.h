// The documents of the language server, and JSON as the protocol has it.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lsp/script_analysis.h"

namespace espy::lsp {

// ---- A document, and positions in it as editors count them: lines, and UTF-16 code units in a line.

struct Position {  // 0-based
  uint32_t line = 0;
  uint32_t character = 0;
  bool operator==(const Position&) const = default;
};

class Text {
 public:
  explicit Text(std::string bytes);

  const std::string& bytes() const { return bytes_; }
  // The position of the byte at `offset`. An offset beyond the text means its end.
  Position position(uint32_t offset) const;
  // The inverse. A position beyond the end of a line, or of the text, is that end.
  uint32_t offset(Position position) const;

 private:
  uint32_t line_end(uint32_t line) const;

  std::string bytes_;
  std::vector<uint32_t> line_starts_;
};

// ---- JSON as the protocol has it. What a client sends may have any shape: these read it without exceptions.

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

// ---- A document that the editor has open.

struct Document {
  std::string uri;
  std::string path;  // of `uri`; the URI itself if it is not a file's
  Text text{""};
  int64_t version = 0;
  bool is_checked = false;                       // whether `analysis` is of this text
  bool is_unpublished = false;                   // whether the editor lacks its diagnostics
  std::unique_ptr<Analysis> analysis = nullptr;  // null if it could not be checked
};

// "file:///a%20b.bt" is "/a b.bt"; other URIs are returned as they are.
std::string path_of(std::string_view uri);
std::string uri_of(std::string_view path);

}  // namespace espy::lsp

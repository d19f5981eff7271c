// What is being written at a place of a script, by the text before it alone: it may be wrong or unfinished.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace espy::lsp {

struct Place {
  enum class Kind : uint8_t {
    kNothing,      // a comment, a text, a number
    kAttachPoint,  // outside of braces, but not in a predicate
    kMember,       // behind `.` or `->`
    kMap,
    kVariable,
    kName,
  };
  Kind kind = Kind::kNothing;
  uint32_t begin = 0;  // of what is being written
};
Place place_of(std::string_view text, uint32_t offset);

// A call whose arguments the place is among.
struct OpenCall {
  std::string name;
  uint32_t argument = 0;  // index
};
// Returns the innermost call; nullopt if there is none.
std::optional<OpenCall> open_call(std::string_view text, uint32_t offset);

}  // namespace espy::lsp

// Parts: which structs may be defined, given what they contain by value.
//
// The types of a traced program are untrusted. A struct that contains itself is infinite, and nested structs of size
// zero, each with two members of the next type, expand exponentially. Such structs stay incomplete, so code that
// recurses through the members of a value terminates and visits a bounded number of them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>

#include "types/type.h"

namespace espy::types {

class Parts {
 public:
  // Returns whether a struct with these members may be defined; if not, it never will be. Requires that the structs
  // among the members, also as elements of arrays, are complete, unless they cannot be completed: those are refused
  // from then on, so that what was counted here stays true.
  bool may_define(const Types& types, TypeId struct_type, std::span<const Member> members);
  bool is_refused(TypeId struct_type) const { return refused_.contains(struct_type); }

 private:
  struct Extent {
    uint32_t count = 1;  // of members, those of structs within included, and of the struct itself
    uint32_t depth = 1;
  };
  std::map<TypeId, Extent> defined_;
  std::set<TypeId> refused_;
};

}  // namespace espy::types

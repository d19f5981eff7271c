// The tree of a script's C definitions: includes, macros, structs, unions, enums, typedefs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "source/source.h"

namespace espy::syntax {

struct CStruct;
struct CEnum;

// A C type as declared: a base and the declarator's steps, applied to the base in order.
// `char *names[4]` is base char, then pointer, then array 4.
struct CType {
  enum class Tag : uint8_t { kNone, kStruct, kUnion, kEnum };
  struct Step {
    enum class Kind : uint8_t { kPointer, kArray, kFunction } kind;
    std::optional<uint64_t> count;  // kArray; nullopt for `[]`
    std::vector<CType> parameters;  // kFunction
  };
  Tag tag = Tag::kNone;
  std::string name;                              // "unsigned long", "u32", or the tag; words separated by one space
  std::shared_ptr<const CStruct> inline_struct;  // a struct or union defined in place
  std::shared_ptr<const CEnum> inline_enum;
  std::vector<Step> steps;
};

struct CAttributes {
  bool is_packed = false;
  uint32_t align_bytes = 0;  // __attribute__((aligned(n))); 0 if not given
};

struct CMember {
  source::Span span;
  std::string name;  // empty: anonymous
  CType type;
  std::optional<uint32_t> bit_size;
  CAttributes attributes;
};

struct CStruct {
  source::Span span;
  std::string name;
  bool is_union = false;
  CAttributes attributes;
  std::vector<CMember> members;
  bool has_body = true;
};

struct CEnum {
  source::Span span;
  std::string name;
  std::vector<std::pair<std::string, int64_t>> enumerators;
};

struct CTypedef {
  source::Span span;
  std::string name;
  CType type;
  CAttributes attributes;
};

struct CInclude {
  source::Span span;
  std::string path;
  bool is_system = false;  // <...>
};

struct CDefine {
  source::Span span;
  std::string name;
  bool is_function_like = false;
  std::vector<std::string> parameters;
  std::string body;  // the replacement, as typed
};

using CDefinition = std::variant<CStruct, CEnum, CTypedef, CInclude, CDefine>;

}  // namespace espy::syntax

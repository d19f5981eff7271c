// Signatures of builtins, parsed when a row is used. spec/builtin.h describes their syntax.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"
#include "spec/builtin.h"

namespace espy::check {

struct Parameter {
  std::string_view type;  // "int", "uint64", "struct sock *", "map"
  std::string_view name;
  bool is_literal = false;
  bool is_optional = false;
};

struct Signature {
  std::string_view result;
  std::vector<Parameter> parameters;
  bool takes_more = false;  // ends in `...`

  size_t required() const;
};

Signature parse_signature(std::string_view sig);

// "`str` takes 1 or 2 arguments, 3 given"; nullopt if the number is right.
std::optional<std::string> arity_problem(std::string_view name, const Signature& signature, size_t given);

// The type that a signature names: "uint64", "char *", "string[16]"; invalid for words that stand for several types.
types::TypeId signature_type(types::Types& types, kernel::Kernel& kernel, std::string_view text);
// Names of types that are one word, for suggestions.
std::vector<std::string> signature_type_names();

}  // namespace espy::check

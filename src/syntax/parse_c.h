// Parses the C definitions of a script: #include, #define, struct, union, enum, typedef.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "syntax/ast.h"
#include "syntax/lexer.h"

namespace espy::syntax {

// ---- Integer constant expressions of C: array sizes, enumerators, bit fields, `#if`.

// The value of a name; nullopt if unknown.
using NameValue = std::function<std::optional<int64_t>(std::string_view)>;

struct ConstantScope {
  NameValue value;
  std::function<bool(std::string_view)> is_defined;  // defined(X); may be empty outside `#if`
};

// Evaluates `text` in 64-bit arithmetic. nullopt if it is not a constant expression or divides by zero.
std::optional<int64_t> evaluate_constant(std::string_view text, const ConstantScope& scope);

class CParser {
 public:
  // `known` gives the constants that no definition in `out` gives; it may be empty.
  CParser(TokenStream& stream, std::vector<CDefinition>& out, const NameValue& known)
      : stream_(stream), out_(out), known_(known) {}

  // Returns true if the current token begins a definition.
  static bool at_definition(const TokenStream& stream);
  // Parses one definition, or reports an error and panics (lexer.h).
  void definition();

 private:
  void directive();
  void include(const source::Span& span, std::string_view rest);
  void typedef_declaration();
  void tagged_declaration();
  CType specifiers(CAttributes* attributes_of_names = nullptr);
  void tagged(CType& type);
  CStruct struct_body(std::string name, bool is_union);
  CEnum enum_body(std::string name);
  void members(std::vector<CMember>& out);
  void member(std::vector<CMember>& out, const CType& base, const CAttributes& common);
  std::string declarator(std::vector<CType::Step>& steps, CAttributes* attributes_of_name = nullptr);
  CType::Step array_step();
  CType::Step function_step();
  void attributes(CAttributes* target);
  void attribute_list(CAttributes* target);
  void aligned(CAttributes* target);
  std::optional<int64_t> constant(std::string_view what);
  std::optional<int64_t> name_value(std::string_view name, int depth, int& lookups_left) const;
  void define_inline(const CType& type, const source::Span& span);

  TokenStream& stream_;
  std::vector<CDefinition>& out_;
  const NameValue& known_;
  std::vector<std::pair<std::string, int64_t>> enumerators_;  // of the enum that is being parsed
  uint32_t nesting_ = 0;
};

}  // namespace espy::syntax

// Integer constant expressions of C: array sizes, enumerators, bit fields, `#if`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace espy::syntax {

// The value of a name; nullopt if unknown.
using NameValue = std::function<std::optional<int64_t>(std::string_view)>;

struct ConstantScope {
  NameValue value;
  std::function<bool(std::string_view)> is_defined;  // defined(X); may be empty outside `#if`
};

// Evaluates `text` in 64-bit arithmetic. nullopt if it is not a constant expression or divides by zero.
std::optional<int64_t> evaluate_constant(std::string_view text, const ConstantScope& scope);

}  // namespace espy::syntax

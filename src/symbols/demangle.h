// Demangling of C++ (Itanium ABI), Rust legacy and Rust v0 symbol names.
#pragma once

#include <string>
#include <string_view>

namespace espy::symbols {

enum class DemangleStyle {
  kSignature,  // `ns::f(int, char const*)`; Rust names have no parameter list: `core::fmt::write`
  kName,       // without the return type, the parameter list and qualifiers: `ns::f`
};

// Returns the readable form of a symbol name. A name that is not mangled, or malformed, is returned unchanged.
std::string demangle(std::string_view mangled, DemangleStyle style = DemangleStyle::kSignature);

// The same for names of Rust; "" for others. Hashes of crates and of instantiations are omitted. Output and time are
// bounded for any name.
std::string demangle_rust(std::string_view mangled);

}  // namespace espy::symbols

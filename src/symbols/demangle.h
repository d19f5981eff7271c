// Linker names back to what the programmer wrote: C++ (Itanium ABI), Rust legacy and Rust v0.
#pragma once

#include <string>
#include <string_view>

namespace espy::symbols {

enum class DemangleStyle {
  kSignature,  // `ns::f(int, char const*)`; Rust has no parameter lists in its names, so: `core::fmt::write`
  kName,       // the same without the parameter list and what follows it: `ns::f`
};

// The readable form of a linker name. What is not mangled, or not well, comes back unchanged.
std::string demangle(std::string_view mangled, DemangleStyle style = DemangleStyle::kSignature);

// Rust only: "" where the name is in neither of Rust's two schemes. Hashes of crates and of
// instantiations are left out.
std::string demangle_rust(std::string_view mangled);

}  // namespace espy::symbols

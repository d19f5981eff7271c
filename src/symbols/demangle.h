// Demangling of C++ (Itanium ABI), Rust legacy and Rust v0 symbol names.
#pragma once

#include <string>
#include <string_view>

namespace espy::symbols {

enum class DemangleStyle {
  kSignature,  // `ns::f(int, char const*)`; Rust names have no parameter list: `core::fmt::write`
  kOverload,   // without the return type, which only templates have: `ns::f<int>(int)`
  kName,       // without the return type, the parameter list and qualifiers: `ns::f`
};

// Returns the readable form of a symbol name. A name that is not mangled, malformed, longer than 64 KiB in its
// readable form, or takes more than milliseconds is returned unchanged. While a thread has had too many that became
// long or took long, so are names whose readable form is more than 32 times as long, or that might take long.
std::string demangle(std::string_view mangled, DemangleStyle style = DemangleStyle::kSignature);

// Returns the name of a demangled signature: `ns::f<int>` of `void ns::f<int>(int) const`. Text without a parameter
// list (data, Rust) is returned unchanged.
std::string_view name_of_signature(std::string_view signature);

// Returns `ns::f` of `ns::f<int>` and, in Rust, of `ns::f::<i32>`. Other names are returned unchanged.
std::string_view without_template_arguments(std::string_view name);

// The same as `demangle` for names of Rust; "" for others. Hashes of crates and of instantiations are omitted. Output
// and time are bounded for any name.
std::string demangle_rust(std::string_view mangled);

}  // namespace espy::symbols

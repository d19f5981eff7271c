// Compiles the {fmt} library from its headers.
//
// In header-only mode each file that formats takes two seconds longer to compile. Debian ships the library only as a
// shared object, which a static binary cannot link, so this file has the explicit instantiations that the headers
// declare extern. CMakeLists.txt selects header-only mode for versions with other instantiations.
//
// The locales of C++, which no format here asks for, would be 400 KB of the binary.
#ifndef FMT_HEADER_ONLY

#define FMT_STATIC_THOUSANDS_SEPARATOR ','
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template FMT_API dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template FMT_API dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;

template FMT_API thousands_sep_result<char> thousands_sep_impl(locale_ref);
template FMT_API char decimal_point_impl(locale_ref);

template FMT_API void buffer<char>::append(const char*, const char*);
template FMT_API void vformat_to(buffer<char>&, string_view, basic_format_args<FMT_BUFFER_CONTEXT(char)>, locale_ref);

}  // namespace detail
FMT_END_NAMESPACE

#endif

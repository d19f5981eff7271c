// Compiles the {fmt} library from its headers.
//
// In header-only mode each file that formats takes two seconds longer to compile. Debian ships the library only as a
// shared object, which a static binary cannot link. So this file instantiates the templates that the headers declare
// extern. CMakeLists.txt selects header-only mode for versions whose templates are not known here.
//
// FMT_STATIC_THOUSANDS_SEPARATOR leaves out the locales of C++, which no format here uses. From version 11.1 on,
// FMT_USE_LOCALE does (CMakeLists.txt).
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
#if FMT_VERSION < 100000
template FMT_API void vformat_to(buffer<char>&, string_view, basic_format_args<FMT_BUFFER_CONTEXT(char)>, locale_ref);
#elif FMT_VERSION < 110000
template FMT_API void vformat_to(buffer<char>&, string_view, vformat_args<>::type, locale_ref);
#endif

}  // namespace detail
FMT_END_NAMESPACE

#endif

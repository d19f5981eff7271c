// The one place where {fmt} is compiled.
//
// Its header-only form costs every file that formats something two seconds and a copy of the number printer. Debian
// ships the library only as a shared one, which a static binary cannot use; so this file builds it from its headers,
// with the instantiations that the headers declare as living elsewhere. CMakeLists.txt falls back on the header-only
// form for versions whose list may differ.
#ifndef FMT_HEADER_ONLY

#include <fmt/format-inl.h>

#include <locale>

FMT_BEGIN_NAMESPACE
namespace detail {

template FMT_API std::locale locale_ref::get<std::locale>() const;
template FMT_API dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template FMT_API dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;

template FMT_API thousands_sep_result<char> thousands_sep_impl(locale_ref);
template FMT_API thousands_sep_result<wchar_t> thousands_sep_impl(locale_ref);
template FMT_API char decimal_point_impl(locale_ref);
template FMT_API wchar_t decimal_point_impl(locale_ref);

template FMT_API void buffer<char>::append(const char*, const char*);
template FMT_API void vformat_to(buffer<char>&, string_view, basic_format_args<FMT_BUFFER_CONTEXT(char)>, locale_ref);

}  // namespace detail
FMT_END_NAMESPACE

#endif

#include "cli/trace_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/strings.h"
#include "cli/attach_text.h"
#include "syntax/lexer.h"

namespace espy::cli {

namespace {

using syntax::is_word;

// Calls `visit(position, depth of brackets)` for each character that is not in a string literal.
template <class Visit>
void for_each_outside_of_strings(std::string_view text, const Visit& visit) {
  int depth = 0;
  bool is_quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      is_quoted = !is_quoted;
    } else if (!is_quoted) {
      if (text[i] == ')' || text[i] == ']') --depth;
      visit(i, depth);
      if (text[i] == '(' || text[i] == '[') ++depth;
    }
  }
}

// Returns the trimmed parts between the given positions, in their order, of a text.
std::vector<std::string_view> cut_at(std::string_view text, const std::vector<size_t>& positions) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  for (const size_t position : positions) {
    out.push_back(trim(text.substr(begin, position - begin)));
    begin = position + 1;
  }
  out.push_back(trim(text.substr(begin)));
  return out;
}

std::vector<std::string_view> split_list(std::string_view list) {
  std::vector<size_t> commas;
  for_each_outside_of_strings(list, [&](size_t i, int depth) {
    if (depth == 0 && list[i] == ',') commas.push_back(i);
  });
  return cut_at(list, commas);
}

// Whether it compares at its top level. `->` is no comparison, nor is a shift.
bool is_comparison(std::string_view item) {
  bool found = false;
  for_each_outside_of_strings(item, [&](size_t i, int depth) {
    if (depth != 0) return;
    const char before = i > 0 ? item[i - 1] : ' ', c = item[i], next = i + 1 < item.size() ? item[i + 1] : ' ';
    const bool is_pair = next == '=' && (c == '=' || c == '!');
    const bool is_angle = (c == '<' || c == '>') && before != '-' && before != c && next != c;
    found |= is_pair || is_angle;
  });
  return found;
}

}  // namespace

bool names_return(std::string_view expression) { return with_result(expression) != expression; }

std::vector<std::string> split_trace_targets(std::string_view text) {
  std::vector<size_t> commas;
  int angles = 0;  // of template arguments in the name of a function
  for_each_outside_of_strings(text, [&](size_t i, int depth) {
    if (depth != 0) return;
    if (text[i] == '<') ++angles;
    if (text[i] == '>' && angles > 0) --angles;
    if (text[i] == ',' && angles == 0) commas.push_back(i);
  });
  if (angles != 0) commas.clear();  // operator<
  const std::vector<std::string_view> parts = cut_at(text, commas);
  return {parts.begin(), parts.end()};
}

Result<TraceTarget> parse_trace_target(const std::string& text) {
  TraceTarget out;
  out.text = text;
  const size_t open = find_unquoted(text, '(');
  out.place = trim(text.substr(0, open));
  if (out.place.empty()) return fail(fmt::format("`{}` names nothing to trace", text));
  if (open == std::string::npos) return out;
  out.has_list = true;
  const std::string_view rest = trim(std::string_view(text).substr(open + 1));
  if (!rest.ends_with(')')) return fail(fmt::format("`{}` lacks its closing parenthesis at the end", text));
  const std::string_view list = trim(rest.substr(0, rest.size() - 1));
  if (list.empty()) return out;
  for (const std::string_view word : split_list(list)) {
    const TraceItem item{std::string(word), static_cast<size_t>(word.data() - text.data())};
    if (word.empty()) return fail(fmt::format("`{}` has an empty place in its list", text));
    if (word == "return") {
      out.wants_return = true;
    } else if (names_return(word)) {
      if (!is_comparison(word))
        return fail(fmt::format("`{}`: what is returned can be shown as it is or compared", word), 0,
                    "return, or return < 0");
      out.results.push_back(item);
      out.wants_return = true;
    } else if (is_comparison(word)) {
      out.filters.push_back(item);
    } else {
      out.values.push_back(item);
    }
  }
  return out;
}

std::string with_result(std::string_view expression) {
  constexpr std::string_view kReturn = "return", kResult = "retval";
  static_assert(kReturn.size() == kResult.size());
  std::string out(expression);
  for_each_outside_of_strings(expression, [&](size_t i, int) {
    const bool begins = expression.substr(i).starts_with(kReturn) && (i == 0 || !is_word(expression[i - 1]));
    const size_t end = i + kReturn.size();
    if (begins && (end == expression.size() || !is_word(expression[end]))) out.replace(i, kReturn.size(), kResult);
  });
  return out;
}

}  // namespace espy::cli

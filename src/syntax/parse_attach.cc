// Attach points: `kprobe:vfs_*`, `uprobe:/bin/bash:readline`, `BEGIN`.
//
// They do not consist of the language's tokens: a part holds paths, wildcards and offsets, so it is read from the text,
// up to a space, `,` or `{`. The difficult character is `/`, which can continue a path or open a predicate. It belongs
// to the part if the part began with `/`, `.` or a quote, or if a `:` follows before the part can end, since then it is
// within a path: `uprobe:lib/x.so:f`. Else it opens the predicate: `profile:hz:99/pid/{`. After a space it always does.
#include <fmt/format.h>

#include <algorithm>

#include "syntax/literal.h"
#include "syntax/parser_impl.h"

namespace espy::syntax {

std::string AttachPointParser::action_name() {
  if (!stream_.at(TokenKind::kIdentifier) || stream_.peek().kind != TokenKind::kAssign) return "";
  const std::string name(stream_.text(stream_.advance()));
  stream_.advance();
  return name;
}

bool AttachPointParser::attach_points(Action& action) {
  const std::string_view text = stream_.source_text();
  uint32_t offset = stream_.token().begin;
  while (true) {
    AttachPoint point;
    if (!attach_point(offset, point)) break;
    action.attach_points.push_back(std::move(point));
    const uint32_t next = stream_.lexer().skip_trivia(offset);
    if (next >= text.size() || text[next] != ',') break;
    offset = stream_.lexer().skip_trivia(next + 1);
  }
  stream_.seek(offset);
  return stream_.ok();
}

bool AttachPointParser::attach_point(uint32_t& offset, AttachPoint& out) {
  const std::string_view text = stream_.source_text();
  const uint32_t begin = offset;
  out.provider = attach_part(offset, true);
  if (out.provider.text.empty()) {
    stream_.seek(begin);
    stream_.unexpected("a probe",
                       stream_.at(TokenKind::kLeftBrace) ? "such as `begin` or `interval:s:1` before the `{`" : "");
    return false;
  }
  while (offset < text.size() && text[offset] == ':') {
    ++offset;
    out.parts.push_back(attach_part(offset, false));
  }
  out.span = stream_.span(begin, offset);
  return stream_.ok();
}

AttachPart AttachPointParser::attach_part(uint32_t& offset, bool is_provider) {
  const std::string_view text = stream_.source_text();
  const uint32_t begin = offset;
  AttachPart out;
  while (offset < text.size() && !part_ends(offset, begin, is_provider)) {
    if (text[offset] == '"') {
      quoted_piece(offset, out);
    } else {
      out.text += text[offset++];
    }
  }
  out.span = stream_.span(begin, offset);
  return out;
}

bool AttachPointParser::part_ends(uint32_t offset, uint32_t part_begin, bool is_provider) const {
  const std::string_view text = stream_.source_text();
  const char c = text[offset];
  if (is_space(c)) return true;
  switch (c) {
    case ':':
    case ',':
    case '{':
    case '}':
    case ';': return true;
    case '(':
    case ')': return is_provider;
    case '/': break;
    default: return false;
  }
  if (is_provider) return true;
  const char first = text[part_begin];
  if (first == '/' || first == '.' || first == '"') return false;
  for (uint32_t ahead = offset + 1; ahead < text.size(); ++ahead) {
    const char a = text[ahead];
    if (a == ':') return false;
    if (is_space(a) || a == ',' || a == '{') return true;
  }
  return true;
}

// "..." within a part, where everything but the closing quote is itself.
void AttachPointParser::quoted_piece(uint32_t& offset, AttachPart& part) {
  Lexer lexer(stream_.source_text());
  lexer.seek(offset);
  const Token token = lexer.next();
  offset = token.end;
  part.quoted = true;
  if (token.kind != TokenKind::kString) {
    stream_.error("unterminated-string", stream_.span(token), "this string has no end", "add the closing `\"`");
    return;
  }
  StringValue value = read_string(stream_.text(token).substr(1, token.end - token.begin - 2));
  if (value.bad_escape) {
    const uint32_t at = token.begin + 1 + *value.bad_escape;
    stream_.remark("unknown-escape", stream_.span(at, at + 2), "this is no escape",
                   "\\n \\t \\r \\\" \\\\ \\0nn \\xnn are");
  }
  part.text += value.value;
}

void AttachPointParser::expected_body() {
  if (stream_.at(TokenKind::kLeftParen) || stream_.at(TokenKind::kAssign)) {
    stream_.error("statement-outside-action", stream_.span(stream_.token()), "statements stand inside an action",
                  "begin { ... }");
    return;
  }
  stream_.unexpected("`{` or a predicate after the probe", stream_.token().after_newline || stream_.at_end()
                                                               ? ""
                                                               : "a part with spaces in it goes into double quotes");
}

}  // namespace espy::syntax

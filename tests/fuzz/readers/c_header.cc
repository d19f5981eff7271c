// C as scripts and their headers have it: conditional compilation, definitions, constant expressions, literals.
#include "../reader.h"
#include "syntax/format_script.h"
#include "syntax/lexer.h"
#include "syntax/parse_c.h"
#include "syntax/parser.h"

namespace espy::fuzz {

void run_c_header(std::string_view bytes) {
  using namespace syntax;
  source::Sources sources;
  source::Diagnostics diagnostics;
  const source::SourceId source = sources.add("header.h", std::string(bytes));
  const Ast ast = parse(sources, source, diagnostics);
  use(render(diagnostics, sources));
  use(format(ast, sources, source));
  const auto value = [](std::string_view name) { return std::optional<int64_t>(static_cast<int64_t>(name.size())); };
  const auto is_defined = [](std::string_view name) { return name.size() % 2 == 0; };
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  evaluate_constant(line, {value, is_defined});
  use(read_string(line).value);
  read_integer(line);
  use(read_define(line).body);
}

}  // namespace espy::fuzz

// Any bytes may be handed to the parser. What parses without errors must survive being formatted: the text that comes
// back has the same tree and formats to itself.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "../../unit/syntax_support.h"
#include "../reader.h"

namespace espy::fuzz {

void run_parse(std::string_view bytes) {
  const std::string text(bytes);
  const syntax::Parsed parsed(text);
  const std::string once = parsed.formatted();
  const std::string tree = parsed.tree();
  use(parsed.errors());
  if (parsed.diagnostics.has_errors()) return;
  const syntax::Parsed again(once);
  if (again.tree() == tree && again.formatted() == once) return;
  std::fprintf(stderr, "not stable:\n%s\n--- formatted\n%s\n--- again\n%s\n%s", text.c_str(), once.c_str(),
               again.formatted().c_str(), again.errors().c_str());
  std::abort();
}

}  // namespace espy::fuzz

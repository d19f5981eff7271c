// fuzz_parse SECONDS [SEED-FILE...]
//
// Any bytes may be handed to the parser. Whatever parses without errors must survive being formatted: the text that
// comes back has the same tree and formats to itself.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../unit/syntax_support.h"
#include "scripts.h"

namespace {

using espy::syntax::Parsed;

void try_one(const std::string& text, espy::fuzz::Counts& counts) {
  const Parsed parsed(text);
  const std::string once = parsed.formatted();
  parsed.tree();
  parsed.errors();
  if (parsed.diagnostics.has_errors()) return;
  ++counts.of[0];
  const Parsed again(once);
  if (again.tree() == parsed.tree() && again.formatted() == once) return;
  std::fprintf(stderr, "not stable:\n%s\n--- formatted\n%s\n--- again\n%s\n%s", text.c_str(), once.c_str(),
               again.formatted().c_str(), again.errors().c_str());
  std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  const auto mutator = espy::fuzz::ScriptMutator::with_seeds({argv + std::min(argc, 2), argv + argc});
  const auto next = [&](espy::fuzz::Random& random) {
    return random() % 2 == 0 ? mutator.by_bytes(random) : mutator.by_pieces(random);
  };
  return espy::fuzz::drive("parse", argc > 1 ? std::atoi(argv[1]) : 5, 1, {next, try_one, {"without errors"}});
}

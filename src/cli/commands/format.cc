// --fmt: prints a script in the standard layout.
#include "syntax/format.h"

#include <cstdio>
#include <cstdlib>

#include "cli/command.h"
#include "syntax/parser.h"

namespace espy::cli {

namespace {

int format_script(const Options& options, const Host&) {
  source::Sources sources;
  source::Diagnostics diagnostics;
  const auto script = read_script(options, sources);
  if (!script) return complain(script.error());
  const syntax::Ast ast = syntax::parse(sources, *script, diagnostics);
  // Headers are not read, so a length that they define is unknown; definitions in C are printed unchanged.
  source::Diagnostics serious;
  for (const source::Diagnostic& each : diagnostics.all())
    if (each.id != "not-a-constant") serious.add(each);
  if (report(serious, sources, options)) return EXIT_FAILURE;
  std::fputs(syntax::format(ast, sources, *script).c_str(), stdout);
  return EXIT_SUCCESS;
}

}  // namespace

extern const Command kFormat = {
    .option = {0, "fmt", "", "print the formatted program and end"},
    .option_follows = "time",
    .operands = Operands::kScript,
    .run = format_script,
};

}  // namespace espy::cli

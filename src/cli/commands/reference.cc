// --reference: the generated parts of the documents (scripts/make-docs).
#include "cli/reference.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "cli/command.h"
#include "cli/registry.h"

namespace espy::cli {

namespace {

int show_reference(const Options& options, const Host&) {
  const spec::Registry registry = make_registry();
  const auto shell = std::ranges::find(shells(), options.argument, &ShellRow::name);
  std::string text;
  if (options.argument == "manual") {
    text = reference_markdown(registry);
  } else if (options.argument == "options") {
    text = options_mdoc();
  } else if (shell != shells().end()) {
    text = shell->words(registry);
  } else {
    return complain({"--reference takes manual, options, or the name of a shell: bash, zsh or fish"});
  }
  std::fputs(text.c_str(), stdout);
  return EXIT_SUCCESS;
}

}  // namespace

extern const Command kReference = {
    .option = {0, "reference", "PART", "", set_text<&Options::argument>},
    .run = show_reference,
};

}  // namespace espy::cli

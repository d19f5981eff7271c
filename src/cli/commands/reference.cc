// --reference: the generated parts of the documents (scripts/make-docs).
#include "cli/reference.h"

#include <cstdio>
#include <cstdlib>

#include "cli/command.h"
#include "cli/registry.h"

namespace espy::cli {

namespace {

int show_reference(const Options& options, const Host&) {
  const spec::Registry registry = make_registry();
  std::string text;
  if (options.argument == "manual") {
    text = reference_markdown(registry);
  } else if (options.argument == "options") {
    text = options_mdoc();
  } else if (options.argument == "completion") {
    text = completion_words(registry);
  } else {
    return complain({"--reference takes manual, options or completion"});
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

#include <cstdio>
#include <cstdlib>

#include "cli/command.h"

namespace espy::cli {

namespace {

int show_version(const Options&, const Host&) {
  std::puts("espy " ESPY_VERSION);
  return EXIT_SUCCESS;
}

}  // namespace

extern const Command kVersion = {
    .option = {'V', "version", "", "show the version"},
    .run = show_version,
};

}  // namespace espy::cli

#include <cstdio>
#include <cstdlib>

#include "cli/command.h"

int main(int argc, char** argv) {
  using namespace espy::cli;
  const auto options = parse_options({argv + 1, static_cast<size_t>(argc - 1)});
  if (!options) return complain(options.error());
  const int status = options->command->run(*options, Host());
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  return complain({"cannot write to the standard output"});
}

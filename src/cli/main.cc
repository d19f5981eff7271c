#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "cli/command.h"

namespace {

// A closed stdin, stdout or stderr would be the number of the next file that is opened. Opened the wrong way round, it
// still fails where it is used.
void open_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace espy::cli;
  open_standard_descriptors();
  const auto options = parse_options({argv + 1, static_cast<size_t>(argc - 1)});
  if (!options) return complain(options.error());
  const int status = options->command->run(*options, Host());
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  return complain({"cannot write to the standard output"});
}

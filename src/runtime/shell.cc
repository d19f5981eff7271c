#include "runtime/shell.h"

#include <cerrno>
#include <cstdio>

namespace espy::runtime {

Result<std::string> run_shell_command(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "re");
  if (pipe == nullptr) return fail_errno("cannot run `" + command + "`", errno);
  std::string text;
  char chunk[4 * 1024];
  for (size_t got = 0; (got = std::fread(chunk, 1, sizeof(chunk), pipe)) > 0;) text.append(chunk, got);
  ::pclose(pipe);
  return text;
}

}  // namespace espy::runtime

// The readers of the command line, which need all modules.
#include "reader.h"

namespace espy::fuzz {

std::span<const Reader> readers() {
  static constexpr Reader kReaders[] = {{"command_line", run_command_line}};
  return kReaders;
}

}  // namespace espy::fuzz

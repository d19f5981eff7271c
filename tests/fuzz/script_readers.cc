// The readers of what a user writes, scripts and command lines, which need all modules.
#include "reader.h"

namespace espy::fuzz {

std::span<const Reader> readers() {
  static constexpr Reader kReaders[] = {{"check", run_check, Content::kScript},
                                        {"command_line", run_command_line},
                                        {"parse", run_parse, Content::kScript}};
  return kReaders;
}

}  // namespace espy::fuzz

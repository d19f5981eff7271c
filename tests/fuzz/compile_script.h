// Whole compilations of scripts that may be damaged.
#pragma once

#include <optional>
#include <string>

#include "kernel/kernel.h"
#include "program/program.h"
#include "source/source.h"
#include "spec/registry.h"
#include "types/type.h"

namespace espy::fuzz {

struct Compilation {
  types::Types types;
  source::Sources sources;
  bool is_accepted = false;                 // by the checker
  std::optional<program::Program> program;  // nullopt if the script is refused, or too large
};

class ScriptCompiler {
 public:
  explicit ScriptCompiler(kernel::Kernel& kernel);

  // Compiles as espy does. Aborts, with the script, if the IR is unsound after a stage or a pass: what the checker
  // accepts must lower to sound IR, and stay sound.
  void compile(const std::string& script, Compilation& out);

 private:
  kernel::Kernel& kernel_;
  spec::Registry registry_;
};

}  // namespace espy::fuzz

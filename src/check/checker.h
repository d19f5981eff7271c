// What a builtin's `check` may ask and say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/checked.h"
#include "source/diagnostic.h"
#include "spec/registry.h"

namespace espy::check {

class Checker {
 public:
  virtual ~Checker() = default;

  virtual types::Types& types() = 0;
  virtual kernel::Kernel& kernel() = 0;
  virtual symbols::Symbolizer* symbols() = 0;
  virtual const spec::Config& config() const = 0;
  virtual const syntax::Ast& ast() const = 0;
  // The unit being checked: its context and facts so far.
  virtual const Unit& unit() const = 0;
  virtual const program::Probe& first_probe() const = 0;
  // The types of the unit's probes, each once: "uprobe".
  virtual std::vector<std::string> probe_types() const = 0;

  virtual TypeId type(ExprId expr) const = 0;  // arguments are checked before the builtin's `check` runs
  virtual const Constant& constant(ExprId expr) const = 0;
  std::optional<int64_t> integer(ExprId expr) const { return constant_as<int64_t>(constant(expr)); }
  std::optional<std::string> text(ExprId expr) const { return constant_as<std::string>(constant(expr)); }
  // Whether this is a map as a whole that has keys.
  virtual bool is_keyed(ExprId map) const = 0;
  // Somewhere the script asks how many frames a stack that was kept has: so that must be kept with it.
  virtual void measure_stacks() = 0;
  // Makes the call a constant: sizeof, kaddr, pton, getopt.
  virtual void fold(ExprId call, Constant value) = 0;

  virtual void note_option(ScriptOption option) = 0;

  // Inference runs until nothing changes; these speak only in the last round.
  virtual void error(std::string_view id, source::Span span, std::string message, std::string hint = {}) = 0;
  virtual void warning(std::string_view id, source::Span span, std::string message, std::string hint = {}) = 0;
};

}  // namespace espy::check

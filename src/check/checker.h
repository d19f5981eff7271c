// The interface of the checker for builtins' `check` functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
  // The unit being checked, with its context and the facts known so far.
  virtual const Unit& unit() const = 0;
  virtual const program::Probe& first_probe() const = 0;
  // The names of the providers of the unit's probes, each once: "uprobe".
  virtual std::vector<std::string> probe_types() const = 0;

  virtual TypeId type(ExprId expr) const = 0;  // of arguments, which are checked before the call
  virtual const Constant& constant(ExprId expr) const = 0;
  std::optional<int64_t> integer(ExprId expr) const { return constant_as<int64_t>(constant(expr)); }
  std::optional<std::string> text(ExprId expr) const { return constant_as<std::string>(constant(expr)); }
  // True if `map` is a whole map that has keys.
  virtual bool is_keyed(ExprId map) const = 0;
  // Notes that the script asks for the number of frames of stored stacks, which must then be stored with them.
  virtual void measure_stacks() = 0;
  // Notes that the script asks which tasks are traced: its probes then act in all of them.
  virtual void act_in_all_tasks() = 0;
  // Makes the call a constant, as for kaddr, pton and getopt.
  virtual void fold(ExprId call, Constant value) = 0;

  // Notes an option that the script asks for, so that `--help` shows it.
  virtual void note_option(ScriptOption option) = 0;

  // Add a diagnostic. Units are checked in several rounds; only the final round adds.
  virtual void error(std::string_view id, source::Span span, std::string message, std::string hint = {}) = 0;
  virtual void warning(std::string_view id, source::Span span, std::string message, std::string hint = {}) = 0;
};

}  // namespace espy::check

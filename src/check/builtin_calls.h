// Uses of builtins: `pid`, `str(args.filename)`.
#pragma once

#include <string>
#include <vector>

#include "check/arguments.h"
#include "check/checker.h"
#include "check/variables.h"

namespace espy::check {

class BuiltinCalls {
 public:
  BuiltinCalls(Facts& facts, Reporter& reporter, Arguments& arguments, Checker& checker, const Variables& variables,
               kernel::Kernel& kernel, const spec::Config& config)
      : facts_(facts),
        reporter_(reporter),
        arguments_(arguments),
        checker_(checker),
        variables_(variables),
        kernel_(kernel),
        config_(config) {}

  // Checks a use by the builtin's row, and by the row's `check` if the arguments are free of errors.
  TypeId check(ExprId id, const spec::Builtin& builtin, const std::vector<ExprId>& arguments);

 private:
  // False, with an error, if the command line, the kernel or the probe rules the builtin out. One that ends the action
  // is an error in a loop, but its type is known.
  bool is_allowed(const spec::Builtin& builtin, Span span);
  bool is_recorded(const spec::Builtin& builtin, bool has_arguments, Span span);
  bool works_in_probe(const spec::Builtin& builtin, const std::string& name, Span span);
  void report_missing_feature(kernel::Feature feature, const std::string& name, Span span);

  Facts& facts_;
  Reporter& reporter_;
  Arguments& arguments_;
  Checker& checker_;
  const Variables& variables_;
  kernel::Kernel& kernel_;
  const spec::Config& config_;
};

}  // namespace espy::check

// Whether a script runs on a kernel: all stages up to the program, without loading it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "check/checked.h"
#include "cli/command.h"
#include "kernel/snapshot.h"
#include "run/environment.h"

namespace espy::cli {

// What keeps a script from running on a kernel.
struct ScriptProblem {
  std::string place, message, hint;
  std::string text;          // all of it, with the line of the script
  bool is_unknown = false;   // the snapshot does not decide whether it is one
  std::string missing = {};  // the last part of an attach point that matches nothing
};

struct ScriptVerdict {
  std::string name, script;                         // of its source: what messages call it, and its text
  std::vector<ScriptProblem> problems;              // none: it runs there
  bool is_unreadable = false;                       // it has errors of syntax, or imports are missing
  std::vector<check::ScriptOption> options;         // as far as they were found
  std::vector<std::string_view> capabilities = {};  // of a script without problems
};

// Checks and compiles the script that the options name for the environment's kernel. `recorded` is filled with the
// files that it consists of; may be null.
Result<ScriptVerdict> check_script(const Options& options, Environment& environment,
                                   check::ScriptFiles* recorded = nullptr);

// The kernels that scripts are checked for: kernels of snapshots (--on), or else the running one.
class CheckedKernels {
 public:
  Status use(const std::vector<std::string>& paths);
  size_t size() const;
  std::string name(size_t index) const;
  std::string release(size_t index) const;  // as uname(1) prints it
  // `assume`: see kernel::open_recorded_kernel().
  Result<std::unique_ptr<Environment>> environment(size_t index, const Options& options, const Host& host,
                                                   const std::function<bool(kernel::Feature)>& assume = {}) const;
  // The problems of the script that the options name, on one of the kernels. Where they depend on features that are not
  // known there, these are the problem.
  Result<std::vector<ScriptProblem>> problems(size_t index, const Options& options, const Host& host) const;

 private:
  std::vector<kernel::Snapshot> snapshots_;
};

// ---- What can be found out about a function that a kernel of a table lacks. Its debug information, if installed on
// this machine, shows the functions that it was inlined into. The other kernels show its prototype, and functions with
// the same arguments that only the kernel without it has, one of which may be its new name.

class Elsewhere {
 public:
  Elsewhere(const CheckedKernels& kernels, const Options& options, const Host& host)
      : kernels_(kernels), options_(options), host_(host) {}

  // Returns clauses for a hint; "" if nothing is known.
  Result<std::string> tell(const std::string& function, size_t lacking);

 private:
  Result<Environment*> environment(size_t index);
  std::string inlined_into(const std::string& function, size_t lacking);
  Result<std::string> tell_of_others(const std::string& function, size_t lacking);
  std::string with_same_arguments(const std::string& function, Environment& lacking, Environment& having);

  const CheckedKernels& kernels_;
  const Options& options_;
  const Host& host_;
  std::map<size_t, std::unique_ptr<Environment>> environments_;
};

}  // namespace espy::cli

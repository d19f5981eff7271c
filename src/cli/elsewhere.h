// What can be found out about a function that a kernel of a table lacks. Its debug information, where it is installed
// on this machine, tells into which functions it was inlined. The other kernels tell that they have it, with which
// prototype, and which functions with the same arguments only the kernel without it has, as after a change of its name.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "cli/check_script.h"

namespace espy::cli {

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

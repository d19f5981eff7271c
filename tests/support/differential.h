// Judges against each other: what one script leaves in its maps, by different ways.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "kernel/kernel.h"
#include "load/machine.h"

namespace espy::differential {

// With kLoops, `unroll` makes loops.
enum class Way : uint8_t {
  kSimulatedUnoptimized,
  kSimulated,
  kSimulatedLoops,
  kKernel,
  kKernelUnoptimized,
  kKernelLoops
};

// What a script did: its maps' bytes in hexadecimal, by "@name" or "@name[key]"; CPUs' values added up.
struct Effect {
  std::map<std::string, std::string> maps;
  std::set<std::string> unseen;  // maps kept with threads, which are not in `maps`: the script copies what they hold
  std::string rejected;          // what the checker said against it; then nothing ran
  std::string failure;           // a refused load, a fault
  uint64_t lost_updates = 0;     // of maps, as the script's counters of losses say
};

// One kernel of facts for the simulator and, with root, the running one.
class Judges {
 public:
  explicit Judges(const std::string& recorded_kernel);
  ~Judges();
  bool has_kernel() const;  // this machine lets us load programs
  Effect run(const std::string& script, Way way);
  // Programs that exceed the limits of the verifier, which espy reports as such.
  uint32_t too_complex = 0;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Runs the script by all ways there are; the differences and failures, or "". `is_rejected` tells that it did not
// compile. Where a script has @aN and @bN, they must be equal.
std::string judge(Judges& judges, const std::string& script, bool& is_rejected);

}  // namespace espy::differential

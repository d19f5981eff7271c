// The probe types, in the order of the manual and of `espy -l`. A new probe type is a file in this directory and a line
// here.
#include "probes/all_probes.h"

#define ESPY_PROVIDERS(X) \
  X(kBegin)               \
  X(kEnd)                 \
  X(kInterval)            \
  X(kProfile)             \
  X(kSoftware)            \
  X(kHardware)            \
  X(kKprobe)              \
  X(kKretprobe)           \
  X(kFentry)              \
  X(kFexit)               \
  X(kUprobe)              \
  X(kUretprobe)           \
  X(kUsdt)                \
  X(kTracepoint)          \
  X(kRawTracepoint)       \
  X(kWatchpoint)          \
  X(kIter)                \
  X(kSelf)                \
  X(kTest)                \
  X(kBench)

namespace espy::probes {

#define ESPY_DECLARE(name) extern const spec::Provider name;
ESPY_PROVIDERS(ESPY_DECLARE)

#define ESPY_ADDRESS(name) &name,
std::vector<const spec::Provider*> all() { return {ESPY_PROVIDERS(ESPY_ADDRESS)}; }

}  // namespace espy::probes

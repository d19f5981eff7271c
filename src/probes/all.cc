#include "probes/all.h"

namespace espy::probes {

std::vector<const spec::Provider*> all() {
  return {&kBegin,         &kEnd,        &kInterval, &kProfile, &kSoftware,  &kHardware, &kKprobe,
          &kKretprobe,     &kFentry,     &kFexit,    &kUprobe,  &kUretprobe, &kUsdt,     &kTracepoint,
          &kRawTracepoint, &kWatchpoint, &kIter,     &kSelf,    &kTest,      &kBench};
}

}  // namespace espy::probes

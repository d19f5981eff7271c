#include "probes/all.h"

namespace espy::probes {

std::vector<const spec::Provider*> all() {
  return {&kBegin, &kEnd, &kInterval, &kProfile, &kSoftware, &kTracepoint, &kRawTracepoint, &kKprobe, &kKretprobe, &kFentry, &kFexit, &kUprobe, &kUretprobe};
}

}  // namespace espy::probes

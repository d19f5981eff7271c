// Lists the probe types. To add one, add a file with its row, and its line in all.cc.
#pragma once

#include <vector>

#include "spec/provider.h"

namespace espy::probes {

std::vector<const spec::Provider*> all();

extern const spec::Provider kBegin;
extern const spec::Provider kEnd;
extern const spec::Provider kInterval;
extern const spec::Provider kProfile;
extern const spec::Provider kSoftware;
extern const spec::Provider kHardware;
extern const spec::Provider kWatchpoint;
extern const spec::Provider kTracepoint;
extern const spec::Provider kRawTracepoint;
extern const spec::Provider kKprobe;
extern const spec::Provider kKretprobe;
extern const spec::Provider kFentry;
extern const spec::Provider kFexit;
extern const spec::Provider kUprobe;
extern const spec::Provider kUretprobe;
extern const spec::Provider kUsdt;
extern const spec::Provider kIter;
extern const spec::Provider kSelf;
extern const spec::Provider kTest;
extern const spec::Provider kBench;

}  // namespace espy::probes

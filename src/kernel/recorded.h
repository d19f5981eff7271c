// The files of recorded kernels and of snapshots: see tests/kernels/README.md. Internal to kernel/.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/result.h"
#include "kernel/kernel.h"

namespace espy::kernel {

// All others are absent.
struct RecordedFeatures {
  std::set<Feature> present, unknown;
};

// Reads a file `features`. That of a snapshot may be of an earlier or later espy: what it does not list is unknown,
// unless it says that it is absent, and names that are not known here are left out.
Result<RecordedFeatures> read_recorded_features(const std::string& path, bool is_snapshot);

// As open_recorded_kernel(), for the files of a snapshot.
Result<std::unique_ptr<Kernel>> open_snapshot(const std::string& directory, const std::function<bool(Feature)>& assume);

}  // namespace espy::kernel

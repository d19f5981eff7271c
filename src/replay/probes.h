// The probe types of a recording: the words of the language's probe types, and the probes that were recorded.
//
// The events of every probe have fields of one layout (recording::Layout). The function bind() finds it by its name,
// and context() describes the layout as a record, which replay/player.h fills. The function attach() names the probe in
// the simulator, and the player plays its attachments. Timers that were not recorded stay what they are.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "spec/provider.h"

namespace espy::replay {

struct RecordedProvider : spec::Provider {
  const spec::Provider* original = nullptr;
};

class RecordedProviders {
 public:
  // `all`: the rows of espy.
  explicit RecordedProviders(std::span<const spec::Provider* const> all);

  // The rows to use with a kernel that has Kernel::recording(). They refer to this object.
  const std::vector<const spec::Provider*>& rows() const { return rows_; }

 private:
  static void use_recorded(RecordedProvider& row);

  std::vector<const spec::Provider*> rows_;
  std::vector<std::unique_ptr<RecordedProvider>> recorded_;
};

}  // namespace espy::replay

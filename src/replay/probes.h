// The probe types of a recording: the words of the language's probe types, and the probes that were recorded.
//
// Whatever the probe is, its events have fields of one layout (recording::Layout). bind() finds it by its name,
// context() describes the layout as that of a record, which replay/player.h fills; attach() names the probe in the
// simulator, whose attachments the player plays. Timers that were not recorded stay what they are.
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

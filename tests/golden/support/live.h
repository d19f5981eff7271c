// Runs a live test: see live_case.h.
#pragma once

#include "golden/support/execute.h"

namespace espy::golden {

Judgement run_live_test(const std::string& path, const Places& places);

}  // namespace espy::golden

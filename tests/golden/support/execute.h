// A golden test from its file to a verdict.
#pragma once

#include <string>
#include <string_view>

#include "golden/support/case.h"

namespace espy::golden {

enum class Verdict : uint8_t { kPassed, kFailed, kSkipped };

struct Judgement {
  Verdict verdict = Verdict::kPassed;
  std::string text;  // the difference, or why it was skipped
};

struct Places {
  std::string root;           // of the repository
  std::string espy;           // the program for live runs; empty: none
  std::string no_live;        // why the real kernel cannot be used; empty: it can
  bool is_simulated = false;  // the real kernel is not asked for
  bool is_emulated = false;   // live tests may take longer
};

// Standard error with "LINE:COLUMN error [ID]" for each diagnostic of the script `file`, and without what it quotes. A
// diagnostic of another file has its name before the line; other lines stay as they are.
std::string without_texts(std::string_view err, std::string_view file);

// On the simulator. With `bless`, writes what came out into the case instead of judging.
Judgement run_simulated(Case& c, const Places& places, bool bless);
// The same file through the program itself, on this kernel.
// A script of test probes, with --test: in the simulator, and through build/espy on this kernel.
Judgement run_script_tests(const std::string& path, const Places& places, bool is_live);
Judgement run_live(const Case& c, const Places& places);

}  // namespace espy::golden

// A live test's file: a script that runs on this kernel, a workload for it, and what its output must be. All commands
// are for a shell. One of more than 100 characters stands in a block below its key (header.h), where shellcheck sees
// it.
//
//   // workload: dd if=/dev/zero of=/dev/null bs=1 count=1000   once the probes are attached; then espy gets SIGINT
//   // until: grep -q word "$OUT"    what must succeed before SIGINT; it is repeated for half a minute
//   // args: -B line $FILE 7         espy's arguments; $FILE if the line is missing
//   // target: yes >/dev/null        a program, started before espy and killed at the end; $TARGET is its pid
//   // command: cat /etc/hosts      a shell script that espy runs by -c; the test ends with it
//   // run: su nobody -c "$ESPY $FILE"   instead of espy with its arguments
//   // ends: itself                  no SIGINT is sent
//   // expect: REGEX                 some line of stdout matches wholly; `expect stderr:`: of stderr
//   // reject: REGEX                 no line of stdout matches wholly; `reject stderr:`: of stderr
//   // check: SHELL                  succeeds with stdout as its input
//   // needs: test -x /bin/bash      if it fails, the test is skipped
//   // exit: 1                       espy's exit status, if not 0
//   // peer: numbers differ         for tests/judges/compare; ignored here
//   // alone: it measures time       why no other test may run beside it
//   // seconds: 5                    time limit, if not 30; then all processes of the test are killed
//
// $ESPY is the program, $FILE the test, $BIN/programs the directory of the tests' programs, of which the test has
// copies of those that it mentions, $SCRATCH a directory for this run alone, $OUT and $ERR the files of stdout and
// stderr, $TIME_FACTOR by how much all time limits are longer than stated.
#pragma once

#include <cstdint>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "golden/support/child.h"

namespace espy::golden {

// One line that has to hold. For `check` there is no pattern.
struct Demand {
  std::string key;
  std::string text;
  std::regex pattern;
};

struct LiveCase {
  std::string workload, until, arguments = "$FILE", target, command, run, needs, alone;
  bool ends_itself = false;
  int exit_status = 0;
  uint32_t timeout_ms = 30'000;
  std::vector<Demand> demands;  // expect, reject, check
};

// Errors name `path` and the line.
Result<LiveCase> parse_live_case(const std::string& path, std::string_view text);

// Those of `expect`, `reject` and the exit status that `outcome` does not meet, a line each; "" if it meets all.
std::string unmet_demands(const LiveCase& c, const Outcome& outcome);

// The program for bash that runs the case, with its variables in the environment.
std::string shell_program(const LiveCase& c);

}  // namespace espy::golden

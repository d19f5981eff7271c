// A live test: a script that runs on this kernel beside a workload, and lines that its output has to have.
//
//   // workload: dd if=/dev/zero of=/dev/null bs=1 count=1000   by sh, once the probes are attached; then SIGINT is
//   sent
//   // args: -B line $FILE 7         espy's arguments, by sh; $FILE if the line is missing; $TARGET is the target's pid
//   // target: yes >/dev/null        a program to look at, started before and killed behind
//   // run: su nobody -c "$ESPY $FILE"   instead of espy with its arguments
//   // ends: itself                  no signal is sent
//   // expect: REGEX                 some line of stdout is this, wholly; or of stderr, where `stderr` stands before
//   // reject: REGEX                 no line is
//   // check: SHELL                  succeeds with stdout as its input; $OUT and $ERR are the files
//   // needs: test -x /bin/bash        a command by sh: where it fails, the test is skipped
//   // exit: 1
//   // seconds: 5                    what it may take, if not 30; then all that it has started is killed
#pragma once

#include "golden/support/execute.h"

namespace espy::golden {

Judgement run_live_test(const std::string& path, const Places& places);

}  // namespace espy::golden

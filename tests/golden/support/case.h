// A golden test: a script whose comments say what shall happen to it and what shall come out.
//
//   // kernel: 6.18-x86_64                      the recorded kernel (tests/kernels); this one if the line is missing
//   // args: --unsafe $FILE 12                  espy's arguments; $FILE if the line is missing
//   // env: BPFTRACE_MAX_STRLEN=16              for the run
//   // fire: PROBE name=value ... xN            an event, N times; see stage.h
//   // live: no (why)                           the real kernel cannot give the same output
//   // live: yes                                it can, though events are fired here
//   // needs: uprobe_multi                      features of the real kernel that the live run needs
//
//   //--- stdout                                then the expected bytes, a comment a line
//   //--- diagnostics                           errors and warnings without their texts: "3:11 error [unknown-map]";
//   then
//                                             all else on stderr
//   //--- stderr                                the texts, too: tests/golden/messages has each once
//                                             Without "Attached N probes". Without either section, it must be empty.
//   //--- exit 3                                0 if the line is missing
//   //--- json                                  standard output with -f json
//   //--- ast, ir, opt, bpf, ...                what -d STAGE prints
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace espy::golden {

struct Fire {
  std::string probe;
  std::vector<std::pair<std::string, std::string>> facts;
  uint32_t count = 1;
  std::string text;  // the line, for messages
};

struct Section {
  std::string name;
  std::string text;
};

struct Case {
  std::string path;
  std::string script;  // the file up to its first section
  std::string kernel = "6.18-x86_64";
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<Fire> fires;
  std::vector<std::string> needs;
  std::optional<bool> live;  // what the file says, if it does
  std::string why_not_live;
  std::vector<Section> sections;
  int exit_status = 0;

  const Section* find(std::string_view section) const;
  // Whether the real kernel shall give the same output: nothing has to be fired, and it is output that is tested.
  bool runs_live() const;
};

Result<Case> read_case(const std::string& path);
// The file again, with new expectations.
std::string write_case(const Case& c);

// Words separated by spaces; quotes and brackets keep their spaces, and stay.
std::vector<std::string> split_words(std::string_view text);

}  // namespace espy::golden

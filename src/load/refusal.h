// Refusal: why the kernel's verifier rejected a program, from its log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernel/features.h"
#include "program/program.h"
#include "source/diagnostic.h"

namespace espy::load {

struct Refusal {
  program::ProgramId program;
  std::string sentence;  // the error message of the log
  std::string log;
  uint32_t insn = 0;                               // the last instruction in the log
  int code = 0;                                    // errno
  std::optional<kernel::Feature> missing_feature;  // of the kernel, which the instruction needs
};

// Finds the error message and the last instruction in the log.
Refusal read_refusal(program::ProgramId program, std::string log, int code);

// False if the kernel lacked rights or resources for the program, whatever its instructions are.
bool is_by_verifier(const Refusal& refusal);

enum class RefusalReason : uint8_t {
  kTooManyMaps,
  kTooLong,         // more instructions or branches than the verifier follows
  kMissingFeature,  // Refusal::missing_feature
  kLockedDown,
  kMissingHelper,
  kOutside,  // an access that is, or may be, outside of a variable or of an element of a map
  kOther,    // a bug in espy
};

// `code` is the program that was refused.
RefusalReason reason_of(const Refusal& refusal, const program::BpfProgram& code);

// Returns the place in the script of the last instruction in the log.
source::Span span_of(const Refusal& refusal, const program::BpfProgram& code);

// Adds an error for each reason except kTooLong, which compile::report_too_long() reports. `takes_addresses`: the
// script has a `&`, so that kOutside is its error rather than a bug in espy.
void report_refusal(const Refusal& refusal, const program::BpfProgram& code, bool takes_addresses,
                    source::Diagnostics& diagnostics);

}  // namespace espy::load

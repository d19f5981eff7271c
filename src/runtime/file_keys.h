// FileKeys: the key by which programs find the unwind table of a file (program/unwind.h).
#pragma once

#include <optional>

#include "base/untrusted_file.h"
#include "load/machine.h"
#include "program/program.h"
#include "program/unwind.h"

namespace espy::runtime {

class FileKeys {
 public:
  // The arguments must outlive the object.
  FileKeys(load::Machine& machine, const program::Program& program);

  // Maps the file, without touching the memory, and has a program read the key of the mapping: some 5 us. nullopt if
  // the file cannot be mapped.
  std::optional<program::UnwindFileKey> key_of(const UntrustedFile& file);
  // The same for a file as it is opened now. An open file of overlayfs may be mapped as what it was when it was opened,
  // and read as what it has become since, when its owner wrote to it (copy-up).
  std::optional<program::UnwindFileKey> key_now(const UntrustedFile& file);

 private:
  load::Machine& machine_;
  program::MapId query_;
  program::ProgramId program_;
};

}  // namespace espy::runtime

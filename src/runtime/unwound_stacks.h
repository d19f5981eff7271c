// UnwoundStacks: the user stacks that programs have unwound (program/unwind.h). Reads them, and removes those that
// nothing refers to any more, so that a script that clears its maps sees any number of stacks in a run.
//
// A stack is removed when no map of the script has its key and no program has captured it for an epoch, which is longer
// than a program runs and ends only when all records from its beginning were handled. A program may capture it
// nevertheless between the look at its epoch and its removal; therefore the removed stacks are kept until the next
// time, and put back if a map has them then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "load/machine.h"
#include "program/program.h"
#include "types/type.h"

namespace espy::runtime {

class UnwoundStacks {
 public:
  // The arguments must outlive the object.
  UnwoundStacks(load::Machine& machine, const program::Program& program, const types::Types& types);

  // Returns the addresses of a stack, innermost first; none if it is not known.
  std::vector<uint64_t> addresses(types::TypeId type, uint64_t key) const;

  // Removes stacks if a map of them is at least half full. Call it only when all records that were there at the last
  // call have been handled. `now_ns`: of any clock.
  Status collect(uint64_t now_ns);

 private:
  using Keys = std::set<uint64_t>;
  struct Kind {
    const program::Program::UnwoundStacks* maps = nullptr;
    uint64_t removed_count = 0;
    std::unordered_map<uint64_t, std::vector<std::byte>> removed;  // at the last time: values, without unused addresses
  };

  bool is_crowded(const Kind& kind) const;
  std::byte* global(uint32_t offset_bytes) const;
  // Returns the keys that the script's maps have, for each of `kinds_`.
  Result<std::vector<Keys>> keys_in_use() const;
  Status restore(Kind& kind, const Keys& in_use);
  Result<size_t> remove(Kind& kind, const Keys& in_use, uint32_t epoch);

  load::Machine& machine_;
  const program::Program& program_;
  const types::Types& types_;
  std::vector<Kind> kinds_;
  std::vector<program::ScriptMapId> maps_;  // those that have stacks
  bool can_read_all_ = true;                // `maps_`, and there are no records that wait in the kernel
  uint64_t next_ns_ = 0;
  uint64_t interval_ns_;
};

}  // namespace espy::runtime

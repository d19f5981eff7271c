#include "runtime/existing_children.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <span>

#include "base/process.h"
#include "kernel/processes.h"
#include "load/process_events.h"

namespace espy::runtime {

namespace {

class Followed {
 public:
  Followed(load::Machine& machine, program::MapId map, uint32_t pid) : machine_(machine), map_(map), known_{pid} {}

  // Adds all descendants, as far as `children_` tells.
  Status add_all() {
    std::vector<uint32_t> waiting(known_.begin(), known_.end());
    while (!waiting.empty()) {
      const uint32_t parent = waiting.back();
      waiting.pop_back();
      for (const uint32_t child : children_[parent]) {
        if (!known_.insert(child).second) continue;
        TRY_STATUS(add(child));
        waiting.push_back(child);
      }
    }
    return {};
  }

  void note(uint32_t parent, uint32_t child) { children_[parent].insert(child); }
  const std::vector<uint32_t>& added() const { return added_; }

 private:
  // The program that sees the end of a process may have been there before the process is added.
  Status add(uint32_t pid) {
    const auto key = std::as_bytes(std::span(&pid, 1));
    const auto set = [&](uint64_t is_alive) {
      return machine_.update(map_, key, std::as_bytes(std::span(&is_alive, 1)));
    };
    if (!machine_.lookup(map_, key)) TRY_STATUS(set(1));
    const auto state = kernel::parent_of(pid);
    if (!state) {
      TRY(machine_.remove(map_, key));
    } else if (state->is_zombie) {
      TRY_STATUS(set(0));
    } else {
      added_.push_back(pid);
    }
    return {};
  }

  load::Machine& machine_;
  program::MapId map_;
  std::set<uint32_t> known_;
  std::map<uint32_t, std::set<uint32_t>> children_;
  std::vector<uint32_t> added_;
};

}  // namespace

Result<std::vector<uint32_t>> follow_existing_children(load::Machine& machine, const program::Program& program,
                                                       uint32_t pid) {
  load::ProcessEvents events = TRY(load::ProcessEvents::open());
  Followed followed(machine, program.following.processes, pid);
  for (const uint32_t each : numbered_entries("/proc"))
    if (const auto found = kernel::parent_of(each)) followed.note(found->parent, each);
  // Once a process is in the map, the programs add what it starts.
  for (size_t known = SIZE_MAX; known != followed.added().size();) {
    known = followed.added().size();
    TRY_STATUS(followed.add_all());
    events.drain([&](const load::ProcessEvent& event) {
      if (event.kind == load::ProcessEvent::Kind::kStart) followed.note(event.parent, event.pid);
    });
    TRY_STATUS(followed.add_all());
  }
  if (events.lost() > 0)
    return fail(fmt::format("cannot tell which processes {} has started already: too many start at a time", pid), 0,
                "--follow-new leaves them out");
  return followed.added();
}

}  // namespace espy::runtime

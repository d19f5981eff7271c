// The code that processes had at an address, by the events of the kernel. Internal to symbols/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "program/unwind_layout.h"
#include "symbols/traced_process.h"

namespace espy::symbols {

// ---- The mapping at an address when it was captured, among all present and former mappings there. Internal to
// symbols/.

// A mapping, and the process by which its file is opened.
struct Code {
  Process* process = nullptr;
  CodeMapping* mapping = nullptr;
  explicit operator bool() const { return mapping != nullptr; }
};

class CodeChoice {
 public:
  // The address may have a program::CodeTag.
  explicit CodeChoice(uint64_t address) : tag_(program::code_tag(address)) {}

  void add(Process& owner, CodeMapping& mapping) {
    all_.add({&owner, &mapping});
    has_certain_tags_ = has_certain_tags_ || mapping.has_certain_tag();
    if (tag_ != program::kUnknownCode && mapping.tag() == tag_) of_tag_.add({&owner, &mapping});
  }

  bool is_empty() const { return !all_.first; }
  // None if it is not known.
  Code code() const {
    if (of_tag_.first) return of_tag_.agree ? of_tag_.first : Code();
    return may_be_any() && all_.agree ? all_.first : Code();
  }
  bool is_certain() const { return of_tag_.first && of_tag_.agree; }
  // It is none of the known mappings, or it is ambiguous.
  bool is_uncertain() const { return !is_empty() && !code(); }

 private:
  struct Candidates {
    Code first;
    bool agree = true;

    void add(const Code& code) {
      if (!first) first = code;
      agree = agree && is_same_code(*first.mapping, *code.mapping);
    }
  };
  bool may_be_any() const { return tag_ == program::kUnknownCode || !has_certain_tags_; }

  uint8_t tag_;
  Candidates all_, of_tag_;
  bool has_certain_tags_ = false;
};

// ---- WatchedProcesses: the mappings of processes from kernel events. They are for processes that end, or map other
// code at the same addresses, before their /proc/PID/maps can be read. Internal to symbols/.

class WatchedProcesses {
 public:
  // Keeps at most `max_processes`. Beyond it, the least recently used processes are dropped. `on_dropped` is called for
  // dropped processes that were to be kept.
  WatchedProcesses(CodeImages& images, size_t max_processes, std::function<void(uint32_t pid)> on_dropped)
      : images_(images), max_processes_(max_processes), on_dropped_(std::move(on_dropped)) {}

  // A process has started as a copy of `parent`; has executed a program; has mapped code; has ended. Times are of
  // CLOCK_MONOTONIC, 0 if they are not known.
  void start(uint32_t pid, uint32_t parent, uint64_t time_ns);
  void execute(uint32_t pid, uint64_t time_ns);
  void map(uint32_t pid, const Mapping& mapping, uint64_t time_ns);
  void end(uint32_t pid);

  // Keeps the facts about a process, and about its ancestors by fork, after its end. Drops mappings that were gone when
  // its first address was captured.
  void keep(uint32_t pid, uint64_t first_address_ns);
  // Forgets the processes that had ended when this was called last and are not to be kept.
  void forget_ended();

  void clear();

  bool knows(uint32_t pid) const { return processes_.contains(pid); }
  // Calls `visit` with each mapping that the process has, or had, at an address, newest first. Their addresses are
  // valid until the next change.
  template <class Visit>
  void visit(uint32_t pid, uint64_t address, Visit visit);
  // The same for the processes that had the id before.
  template <class Visit>
  void visit_former(uint32_t pid, uint64_t address, Visit visit);
  bool has_former(uint32_t pid) const;
  // Returns the process that it is a copy of; 0 if that is not known.
  uint32_t parent_of(uint32_t pid) const;

 private:
  struct Replaced {
    CodeMapping code;
    uint64_t until_ns = 0;
  };
  struct Space {
    AddressSpace mapped;
    std::vector<Replaced> replaced;  // by other code, oldest first
    uint64_t until_ns = 0;           // the next program was executed

    template <class Visit>
    void visit(uint64_t address, Visit visit) {
      if (CodeMapping* code = mapped.find(address)) visit(*code);
      for (auto each = replaced.rbegin(); each != replaced.rend(); ++each)
        if (each->code.has(address)) visit(each->code);
    }
  };
  struct Watched {
    uint64_t used_at = 0;  // counts uses
    uint32_t parent = 0;
    bool is_kept = false;
    std::vector<Space> spaces;  // one for each program, the last one is current
    size_t former_spaces = 0;   // so many of them, at the front, are of processes that had the id before
  };
  static size_t weight_of(const Space& space);
  void drop_before(Watched& process, uint64_t time_ns);
  using Processes = std::unordered_map<uint32_t, Watched>;
  Watched& find_or_add(uint32_t pid);
  void drop_oldest();
  Processes::iterator erase(Processes::iterator process);

  CodeImages& images_;
  size_t max_processes_;
  std::function<void(uint32_t)> on_dropped_;
  Processes processes_;
  uint64_t uses_ = 0;
  size_t weight_ = 0;                           // of the mappings of all processes; one with a long path has more
  std::vector<uint32_t> ended_, ended_before_;  // since and before the last call of forget_ended
};

template <class Visit>
void WatchedProcesses::visit(uint32_t pid, uint64_t address, Visit visit) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  for (size_t i = found->second.spaces.size(); i > found->second.former_spaces; --i)
    found->second.spaces[i - 1].visit(address, visit);
}

template <class Visit>
void WatchedProcesses::visit_former(uint32_t pid, uint64_t address, Visit visit) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  for (size_t i = found->second.former_spaces; i > 0; --i) found->second.spaces[i - 1].visit(address, visit);
}

}  // namespace espy::symbols

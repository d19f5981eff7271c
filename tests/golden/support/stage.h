// Makes events happen in the simulator, as a golden's `fire` lines script them.
//
//   fire: tracepoint:syscalls:sys_enter_openat comm="cat" pid=7 filename="/etc/passwd" flags=0x80000
//   fire: kprobe:vfs_read arg2=512 x3
//
// comm, pid, tid, uid, gid, ppid, cgroup, cpu and nsecs say who, where and when; kstack and ustack name functions,
// innermost first: kstack=[vfs_read+0x10,ksys_read]. All else are the probe's: fields by name, argN, retval, registers;
// `args.comm` where a field has the name of a fact. A value is a number, a "string" (put into the memory that the
// probe's pointers mean), a ["list","of","strings"] as execve has it, a struct{member=1,...} of the kernel's in kernel
// memory, or a kernel symbol.
#pragma once

#include "golden/support/case.h"
#include "kernel/kernel.h"
#include "simulator/simulator.h"

namespace espy::golden {

class Stage {
 public:
  Stage(simulator::Simulator& machine, const program::Program& program, kernel::Kernel& kernel, types::Types& types)
      : machine_(machine), program_(program), kernel_(kernel), types_(types) {}

  // Also called before begin: `fact` lines of the default task.
  Status fire(const Fire& fire);
  // The current task, as programs may look at it in kernel memory.
  void set_task(const simulator::Task& task);

 private:
  using Bytes = std::vector<std::byte>;
  struct Event {  // one fire line, taken apart
    simulator::Task task;
    std::vector<std::pair<std::string, std::string>> fields;
    const std::string* field(std::string_view name) const;
  };

  Result<Event> take_facts(const Fire& fire);
  Status set_fact(const std::string& name, const std::string& value, Event& event);
  Result<std::vector<uint64_t>> stack(const std::string& value);
  Status fire_syscall(const Fire& fire, const Event& event);
  uint32_t cookie_of(const program::Probe& probe, uint32_t index) const;
  Status fire_probe(const program::Probe& probe, uint32_t index, const Event& event);
  Result<Bytes> context(const program::Probe& probe, const Event& event);
  Result<Bytes> record(const program::Probe& probe, const Event& event);
  Result<Bytes> words(const program::Probe& probe, const Event& event);
  Result<Bytes> registers(const Event& event, bool is_user);
  // What a field's text means as a number: itself, or the address where its bytes were put.
  Result<uint64_t> number(const std::string& value, bool is_user);
  Result<uint64_t> structure(std::string_view name, std::string_view members);
  Result<uint64_t> field_number(const Event& event, std::string_view name, bool is_user);
  void set_member(Bytes& bytes, types::TypeId type, std::string_view path, uint64_t value);

  simulator::Simulator& machine_;
  const program::Program& program_;
  kernel::Kernel& kernel_;
  types::Types& types_;
};

}  // namespace espy::golden

// LinuxMachine: the Machine of the running kernel. linux.cc: maps, programs and what the
// kernel counts; attach.cc: links; find_features.cc: features.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/process.h"
#include "base/result.h"
#include "load/attach.h"
#include "load/bpf.h"
#include "load/machine.h"

struct perf_event_attr;

namespace espy::load {

// Opens an event of a thread (pid) on a CPU; -1: of all. Returns the descriptor, or an error below 0.
long open_perf_event(perf_event_attr& attr, int pid, int cpu);
// The type of a dynamic PMU: /sys/bus/event_source/devices/NAME/type.
Result<uint32_t> pmu_type(const std::string& name);

// An owned mmap(2) mapping.
class Mapping {
 public:
  Mapping() = default;
  Mapping(std::byte* start, size_t size) : start_(start), size_(size) {}
  Mapping(Mapping&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Mapping();
  std::span<std::byte> bytes() const { return {start_, size_}; }

 private:
  std::byte* start_ = nullptr;
  size_t size_ = 0;
};

// Opens the BTF of a kernel module. It must stay open until the program that refers to it is loaded.
Result<OwnedFd> open_module_btf(const std::string& module);

class LinuxMachine final : public Machine {
 public:
  ~LinuxMachine() override { detach_all(); }
  bool try_feature(kernel::Feature feature) override;
  bool try_kfunc(uint32_t btf_id, uint32_t program_type) override;
  void use_btf(BtfLookup lookup) override { btf_ = std::move(lookup); }

  Status load(const program::Program& program, const types::Types& types, const source::Sources& sources) override;
  const std::optional<Refusal>& refusal() const override { return refusal_; }
  void keep_verifier_log(bool keep) override { keep_log_ = keep; }
  const std::string& verifier_log() const override { return log_; }

  std::span<std::byte> memory(MapId map) override;
  Status map_value(MapId map, uint32_t index) override;
  Result<std::vector<std::span<std::byte>>> add_arrays(MapId map, uint32_t first, uint32_t count) override;
  Status for_each(MapId map,
                  const std::function<void(std::span<const std::byte>, std::span<const std::byte>)>& visit) override;
  std::optional<std::vector<std::byte>> lookup(MapId map, std::span<const std::byte> key) override;
  Status update(MapId map, std::span<const std::byte> key, std::span<const std::byte> value) override;
  Result<bool> replace(MapId map, std::span<const std::byte> key, std::span<const std::byte> value) override;
  Result<bool> remove(MapId map, std::span<const std::byte> key) override;
  bool refuses_maps() override;

  Status run(ProgramId program) override;
  Result<Measured> measure(ProgramId program, uint64_t count) override;
  Status count_runs(bool on) override;
  Runs counted_runs(ProgramId program) override;
  uint64_t counting_ns() override;
  uint64_t memory_bytes(MapId map) override;
  Status attach_raw_tracepoint(ProgramId program, const std::string& name, uint64_t cookie) override;
  Status attach_tracing(ProgramId program, uint64_t cookie) override;
  Status attach_perf_event(ProgramId program, const PerfEvent& event, uint64_t cookie) override;
  Status attach_uprobe(ProgramId program, const std::string& path, uint64_t offset, uint64_t reference_counter,
                       bool is_return, std::optional<uint32_t> pid, uint64_t cookie) override;
  Status attach_uprobe_multi(ProgramId program, const UprobeMulti& probes) override;
  Status attach_kprobe(ProgramId program, const Kprobe& probe, uint64_t cookie) override;
  Status attach_kprobe_multi(ProgramId program, const KprobeMulti& probes) override;
  std::vector<std::vector<uint64_t>> kernel_addresses(const std::vector<std::string>& functions) override;
  Status start_iterator(ProgramId program, std::span<const uint32_t> target) override;
  Status pin_iterator(ProgramId program, std::span<const uint32_t> target, const std::string& path) override;
  std::vector<int> iterators() const override;
  uint64_t attached_count() const override { return links_.size() + slow_to_close_.size(); }
  void cancel_attaching_when(const std::function<bool()>& is_cancelled) override { is_cancelled_ = is_cancelled; }
  std::vector<uint32_t> unwatched_cpus() const override { return unwatched_cpus_; }
  void detach_watchpoints(uint64_t address) override;
  std::optional<SkippedRuns> skipped_runs(ProgramId program) override;
  void keep_attachments() override { keeps_attachments_ = true; }
  Status suspend(ProgramId program) override;
  bool is_suspended(ProgramId program) override;
  Status resume(ProgramId program) override;
  std::optional<uint64_t> process_cpu_ns(uint32_t pid) override;
  std::optional<kernel::SchedulingTimes> scheduling_times(uint32_t pid) override;
  void detach_all() override;

  uint64_t now_ns() override;

 private:
  struct LoadedMap {
    OwnedFd fd;
    program::BpfMap shape;
    Mapping mapping;
    uint32_t stored_value_size = 0;  // in user space: of all CPUs for a per-CPU map
  };

  Result<OwnedFd> open_map(const program::BpfMap& shape);
  Status create_map(const program::BpfMap& shape);
  Status fill_and_map(LoadedMap& map);
  static Status map_part(const LoadedMap& map, uint32_t index, size_t size);
  Status load_program(ProgramId id, const program::Program& whole, const source::Sources& sources);
  Status refused(ProgramId id, const program::BpfProgram& program, std::string log, int code);
  Status visit_batches(const LoadedMap& map,
                       const std::function<void(std::span<const std::byte>, std::span<const std::byte>)>& visit);
  enum class Closing : uint8_t { kQuick, kSlow };  // kSlow: after an RCU grace period
  Status keep_link(ProgramId program, long fd, std::string_view what, Closing closing);
  // Returns the link's descriptor, owned by links_.
  Result<uint32_t> link_iterator(ProgramId program, std::span<const uint32_t> target);
  Status may_attach() const;
  // Remembers how a program was attached, for `resume`.
  void keep_attachment(ProgramId program, std::function<Status()> attach);
  void own_link(ProgramId program, OwnedFd fd, Closing closing);
  int add_idle_link(ProgramId program);
  void note_missed_events();
  void note_unwatched_cpus();
  bool may_miss_user_probes();  // of perf events
  std::optional<uint64_t> missed_events(ProgramId program) const;
  std::optional<uint32_t> find_missing_helper(const program::BpfProgram& program, kernel::Feature& feature);
  bool try_helper(uint32_t helper, uint32_t program_type);
  bool try_rdonly_cast(int32_t type_id);

  Table<MapId, LoadedMap> maps_;
  std::vector<LoadedMap> added_arrays_;
  Table<ProgramId, OwnedFd> programs_;
  OwnedFd statistics_;                       // open while the kernel counts runs
  Table<ProgramId, uint32_t> attach_types_;  // expected_attach_type of the loaded programs
  std::vector<OwnedFd> links_;               // of tracepoints and iterators
  std::vector<OwnedFd> slow_to_close_;       // perf events and links of functions
  std::function<bool()> is_cancelled_;
  std::vector<std::pair<ProgramId, int>> counting_links_;       // links that count missed events
  std::optional<bool> may_miss_user_probes_;                    // cached
  std::map<ProgramId, std::optional<uint64_t>> missed_events_;  // of detached links; nullopt: not counted
  std::set<ProgramId> limited_calls_;                           // programs whose links follow a limited number of calls
  bool keeps_attachments_ = false;
  std::map<ProgramId, std::vector<std::function<Status()>>> attachments_;  // if they are kept
  std::map<ProgramId, std::function<long()>> idle_links_;  // of programs at user probes: see add_idle_link
  std::map<ProgramId, std::vector<int>> open_links_;       // of these; owned by the lists above
  std::map<ProgramId, uint64_t> closing_;                  // the last job of `closer_` for a program
  std::unique_ptr<LinkCloser> closer_;
  ReturnProbes return_probes_;
  std::vector<Janitor> pins_;                          // of paths to unlink
  std::vector<std::pair<uint64_t, int>> watchpoints_;  // address, perf event
  struct CpuEvent {
    uint32_t cpu = 0;
    int perf_event = -1;
    uint64_t enabled_at_ns = 0;  // CLOCK_MONOTONIC
    bool on_each_cpu = false;    // as in PerfEvent
  };
  std::vector<CpuEvent> cpu_events_;
  std::vector<uint32_t> unwatched_cpus_;
  std::vector<OwnedFd> iterators_;  // pidfds of helper processes
  std::optional<Refusal> refusal_;
  bool keep_log_ = false;
  std::string log_;
  BtfLookup btf_;
};

// ---- The BPF programs loaded in the kernel: the targets of fentry:bpf.

// A function of a program. btf_id: in the program's BTF.
struct LoadedFunction {
  uint32_t program_id = 0;
  uint32_t btf_id = 0;
  std::string name;
};

// Returns the functions of all programs that have BTF and can be traced (tracing programs cannot), by program id.
std::vector<LoadedFunction> loaded_functions();

Result<OwnedFd> open_program(uint32_t id);

}  // namespace espy::load

// simulator: a Machine that is not a kernel. It runs a program's instructions one by one, in a world that its user
// describes.
//
// In: a Program, and events that are fired. Out: the same maps and records as on a kernel, on every machine alike,
// without privileges. Whether the kernel's verifier would take the program is not asked; but a program that touches
// memory it was not given fails the run.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "load/machine.h"
#include "simulator/interpreter.h"

namespace espy::simulator {

// A place where a program hangs.
struct Attachment {
  program::ProgramId program;
  uint64_t cookie = 0;
  std::string raw_tracepoint;            // its name, if that is what it is
  std::optional<load::PerfEvent> event;  // the same
};

// The place where a program asked for what a recording does not have (World::is_recorded).
struct Unrecorded {
  program::ProgramId program;
  uint32_t insn = 0;
  std::string sentence;    // "the stack was not recorded"
  std::string hint;        // which option of the recorder records it; empty: none
  bool is_memory = false;  // it has read memory, at `address`
  uint64_t address = 0;
};

class Simulator final : public load::Machine {
 public:
  World& world() { return world_; }
  // Set once a program was stopped, which is an error of its run.
  const std::optional<Unrecorded>& unrecorded() const { return unrecorded_; }
  const std::vector<Attachment>& attachments() const { return attachments_; }
  // Runs an attached program: its event happens. `context` is what the program may read.
  Status fire(const Attachment& attachment, std::span<std::byte> context);

  bool try_feature(kernel::Feature) override { return true; }
  void use_btf(BtfLookup lookup) override { btf_ = std::move(lookup); }
  Status load(const program::Program& program, const types::Types& types, const source::Sources& sources) override;
  const std::optional<load::Refusal>& refusal() const override { return refusal_; }
  void keep_verifier_log(bool) override {}
  const std::string& verifier_log() const override { return log_; }

  std::span<std::byte> memory(program::MapId map) override { return maps_[map.index].array_bytes(); }
  Status for_each(program::MapId map,
                  const std::function<void(std::span<const std::byte>, std::span<const std::byte>)>& visit) override;
  std::optional<std::vector<std::byte>> lookup(program::MapId map, std::span<const std::byte> key) override;
  Status update(program::MapId map, std::span<const std::byte> key, std::span<const std::byte> value) override;
  Result<bool> replace(program::MapId map, std::span<const std::byte> key, std::span<const std::byte> value) override;
  Result<bool> remove(program::MapId map, std::span<const std::byte> key) override;

  Status run(program::ProgramId program) override;
  Result<Measured> measure(program::ProgramId program, uint64_t count) override;
  Status attach_raw_tracepoint(program::ProgramId program, const std::string& name, uint64_t cookie) override;
  Status attach_tracing(program::ProgramId program, uint64_t cookie) override;
  Status attach_perf_event(program::ProgramId program, const load::PerfEvent& event, uint64_t cookie) override;
  Status attach_uprobe(program::ProgramId program, const std::string& path, uint64_t offset, uint64_t reference_counter,
                       bool is_return, std::optional<uint32_t> pid, uint64_t cookie) override;
  Status attach_uprobe_multi(program::ProgramId program, const load::UprobeMulti& probes) override;
  Status attach_kprobe(program::ProgramId program, const load::Kprobe& probe, uint64_t cookie) override;
  Status attach_kprobe_multi(program::ProgramId program, const load::KprobeMulti& probes) override;
  uint64_t attached_count() const override { return attachments_.size(); }
  void detach_all() override { attachments_.clear(); }
  uint64_t now_ns() override { return world_.now_ns; }
  std::optional<int64_t> wall_clock_offset_ns() override { return world_.wall_clock_offset_ns; }
  const recording::FrameNames* frame_names() override { return world_.frame_names; }

 private:
  Status execute(program::ProgramId program, std::span<std::byte> context);

  std::optional<Unrecorded> unrecorded_;
  uint64_t last_result_ = 0;  // of the last program that ran
  World world_;
  std::vector<SimMap> maps_;                   // by MapId
  std::vector<program::BpfProgram> programs_;  // by ProgramId, as are their interpreters
  std::vector<Interpreter> interpreters_;
  std::vector<Attachment> attachments_;
  std::optional<load::Refusal> refusal_;
  std::string log_;
  BtfLookup btf_;
  KfuncIds kfuncs_;
};

}  // namespace espy::simulator

// A Machine that does nothing, for tests of what needs a part of one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "load/machine.h"

namespace espy::load {

class IdleMachine : public Machine {
 public:
  bool try_feature(kernel::Feature) override { return true; }
  void use_btf(BtfLookup) override {}
  Status load(const program::Program&, const types::Types&, const source::Sources&) override { return {}; }
  const std::optional<Refusal>& refusal() const override { return refusal_; }
  void keep_verifier_log(bool) override {}
  const std::string& verifier_log() const override { return log_; }
  std::span<std::byte> memory(program::MapId) override { return {}; }
  Status for_each(program::MapId,
                  const std::function<void(std::span<const std::byte>, std::span<const std::byte>)>&) override {
    return {};
  }
  std::optional<std::vector<std::byte>> lookup(program::MapId, std::span<const std::byte>) override { return {}; }
  Status update(program::MapId, std::span<const std::byte>, std::span<const std::byte>) override { return {}; }
  Result<bool> replace(program::MapId, std::span<const std::byte>, std::span<const std::byte>) override {
    return false;
  }
  Result<bool> remove(program::MapId, std::span<const std::byte>) override { return false; }
  Status run(program::ProgramId) override { return {}; }
  Result<Measured> measure(program::ProgramId, uint64_t) override { return Measured{}; }
  Status attach_raw_tracepoint(program::ProgramId, const std::string&, uint64_t) override { return {}; }
  Status attach_tracing(program::ProgramId, uint64_t) override { return {}; }
  Status attach_perf_event(program::ProgramId, const PerfEvent&, uint64_t) override { return {}; }
  Status attach_uprobe(program::ProgramId, const std::string&, uint64_t, uint64_t, bool, std::optional<uint32_t>,
                       uint64_t) override {
    return {};
  }
  Status attach_uprobe_multi(program::ProgramId, const UprobeMulti&) override { return {}; }
  uint64_t attached_count() const override { return 0; }
  void detach_all() override {}
  uint64_t now_ns() override { return 0; }

 private:
  std::optional<Refusal> refusal_;
  std::string log_;
};

}  // namespace espy::load

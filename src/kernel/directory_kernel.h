// The implementation of Kernel: it reads files below a directory, which is "/" for the running kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/btf.h"
#include "kernel/kernel.h"

namespace espy::kernel {

class DirectoryKernel : public Kernel {
 public:
  struct Machine {
    const Arch& arch;
    uint32_t page_size_bytes = 0;
    uint32_t cpu_count = 1;  // possible CPUs
  };

  // `root` has no trailing slash: "" for the running kernel.
  DirectoryKernel(std::string root, const Machine& machine, Tries tries);

  // Says that the files do not have this fact.
  void set_unknown(Fact fact) { unknown_.insert(fact); }
  // Reads the kernel's types from this file instead of /sys/kernel/btf/vmlinux.
  Status use_btf_file(const std::string& path);

  const Arch& arch() const override { return machine_.arch; }
  uint32_t page_size_bytes() const override { return machine_.page_size_bytes; }
  uint32_t cpu_count() const override { return machine_.cpu_count; }
  bool has(Feature feature) override;
  bool has_btf() override { return btf_.vmlinux() != nullptr; }
  Lockdown lockdown() override { return read_lockdown(root_); }
  bool knows(Fact fact) const override { return !unknown_.contains(fact); }

  types::TypeId find_struct(types::Types& types, std::string_view tag) override;
  types::TypeId find_enum(types::Types& types, std::string_view tag) override;
  types::TypeId find_typedef(types::Types& types, std::string_view name) override;
  std::optional<Enumerated> find_enumerator(types::Types& types, std::string_view name) override;
  void complete(types::Types& types, types::TypeId struct_type) override;
  Status add_types(std::string_view btf, bool before_kernel) override;
  std::vector<std::string> struct_names(std::string_view glob) override;
  std::optional<std::string> c_definition(std::string_view name) override;
  std::optional<std::string> c_layout(std::string_view name) override;
  std::optional<std::string> c_prototype(std::string_view name, std::string_view module) override;
  std::optional<CTypes> c_types(const FunctionPrototype& function) override;

  std::optional<FunctionPrototype> find_function(types::Types& types, std::string_view name,
                                                 std::string_view module) override;
  std::vector<FunctionPrototype> find_functions(types::Types* types, std::string_view glob,
                                                std::string_view module_glob) override;
  std::optional<std::string> why_not_passable(const FunctionPrototype& function) override;
  std::optional<FunctionPrototype> find_raw_tracepoint(types::Types& types, std::string_view name) override;
  std::vector<std::string> raw_tracepoints(std::string_view glob) override;
  std::string raw_tracepoint_module(std::string_view name) override;
  std::optional<uint32_t> kfunc_id(std::string_view name) override;
  bool is_kfunc_allowed(std::string_view name, uint32_t program_type) override;
  std::optional<TypeLocation> btf_location(const types::Types& types, types::TypeId struct_type) override;

  std::vector<std::string> tracepoints(std::string_view category_glob, std::string_view event_glob) override;
  Result<Tracepoint> tracepoint(types::Types& types, std::string_view category, std::string_view event) override;
  std::optional<uint32_t> syscall_number(std::string_view name) override;
  std::optional<std::string> syscall_name(uint32_t number) override;

  std::vector<std::string> functions(std::string_view glob) override;
  std::vector<std::string> code(std::string_view glob) override;
  Status use_traceable_functions(const std::string& path) override;
  bool has_given_functions() const override { return !traceable_functions_.empty(); }
  std::optional<uint64_t> symbol_address(std::string_view name) override;
  bool is_kprobe_forbidden(std::string_view function) override;

 private:
  std::optional<BtfPlace> find_definition(std::string_view name, BtfKinds untagged);
  std::optional<BtfPlace> find_function_record(std::string_view name, std::string_view module);
  const std::string& tracing();  // where tracefs is mounted; "" if it is not
  std::optional<BtfPlace> find_tracepoint_function(std::string_view name);
  const std::map<std::string, std::string, std::less<>>& all_raw_tracepoints();
  std::optional<std::string> why_not_passable(const BtfPlace& function);

  std::string root_;
  Machine machine_;
  Tries tries_;
  std::map<Feature, bool> features_;
  std::set<Fact> unknown_;
  std::map<std::string, std::optional<uint64_t>, std::less<>> addresses_;
  std::map<std::string, std::optional<uint32_t>, std::less<>> kfuncs_;
  std::optional<std::map<std::string, std::string, std::less<>>> raw_tracepoints_;  // with their modules
  std::optional<std::set<std::string, std::less<>>> kprobe_blacklist_;
  std::string tracing_;
  std::string traceable_functions_;  // replaces ftrace's list; "" if none
  BtfSet btf_;
};

}  // namespace espy::kernel

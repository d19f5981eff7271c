// A kernel that fits on a page: a few structs, an enum, two tracepoints, some functions.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/strings.h"
#include "kernel/kernel.h"

namespace espy::testing {

class FakeKernel final : public kernel::Kernel {
 public:
  std::vector<kernel::Feature> lacks;
  std::vector<std::string> traceable;  // functions
  const kernel::Arch* cpu = kernel::find_arch("x86_64");

  const kernel::Arch& arch() const override { return *cpu; }
  uint32_t cpu_count() const override { return 4; }
  bool has(kernel::Feature feature) override {
    for (const kernel::Feature lacked : lacks)
      if (lacked == feature) return false;
    return true;
  }
  bool has_btf() override { return true; }

  types::TypeId find_struct(types::Types& types, std::string_view tag) override {
    if (const auto own = types.find_struct(tag); own.valid()) return own;
    const uint32_t id = tag == "task_struct" ? 1 : tag == "file" ? 2 : tag == "inner" ? 3 : 0;
    return id ? types.declare_struct(std::string(tag), false, {0, id}, id == 3 ? 8 : 0) : types::TypeId{};
  }
  types::TypeId find_enum(types::Types& types, std::string_view tag) override {
    if (tag != "color") return types.find_enum(tag);
    return types.define_enum("color", {{"RED", 0}, {"GREEN", 5}}, 4, false, {0, 9});
  }
  types::TypeId find_typedef(types::Types& types, std::string_view name) override {
    return name == "gfp_t" ? types.int_type(4, false) : types::TypeId{};
  }
  std::optional<kernel::Enumerated> find_enumerator(types::Types& types, std::string_view name) override {
    if (name == "RED") return kernel::Enumerated{find_enum(types, "color"), 0};
    if (name == "GREEN") return kernel::Enumerated{find_enum(types, "color"), 5};
    return std::nullopt;
  }
  void complete(types::Types& types, types::TypeId id) override {
    if (types[id].complete) return;
    const auto kernel_space = types::AddressSpace::kKernel;
    const std::string name = types[id].name;
    if (name == "task_struct") {
      const types::TypeId parent = types.pointer(id, kernel_space);
      types.define_struct(id,
                          {{"pid", types.int_type(4, true), 0, 0},
                           {"flags", types.int_type(4, false), 32, 3},
                           {"parent", parent, 64, 0},
                           {"comm", types.array(types.char_type(), 16), 128, 0},
                           {"files", types.pointer(find_struct(types, "file"), kernel_space), 256, 0}},
                          40, 8);
    } else if (name == "file") {
      types.define_struct(id, {{"f_pos", types.int64(), 0, 0}, {"f_inner", find_struct(types, "inner"), 64, 0}}, 16, 8);
    } else {
      types.define_struct(id, {{"a", types.int_type(4, true), 0, 0}, {"b", types.int_type(4, true), 32, 0}}, 8, 4);
    }
  }
  std::vector<std::string> struct_names(std::string_view) override { return {}; }
  std::optional<std::string> c_definition(std::string_view) override { return std::nullopt; }

  std::optional<kernel::FunctionPrototype> find_function(types::Types&, std::string_view, std::string_view) override {
    return std::nullopt;
  }
  std::optional<kernel::FunctionPrototype> find_raw_tracepoint(types::Types&, std::string_view) override {
    return std::nullopt;
  }
  std::vector<std::string> raw_tracepoints(std::string_view) override { return {}; }
  std::optional<uint32_t> kfunc_id(std::string_view) override { return std::nullopt; }
  std::optional<kernel::TypeLocation> btf_location(const types::Types&, types::TypeId) override { return std::nullopt; }

  std::vector<std::string> tracepoints(std::string_view category, std::string_view event) override {
    std::vector<std::string> out;
    for (const std::string_view known : {"sys:enter_open", "sys:enter_read"}) {
      const size_t colon = known.find(':');
      if (glob_match(category, known.substr(0, colon)) && glob_match(event, known.substr(colon + 1)))
        out.emplace_back(known);
    }
    return out;
  }
  Result<kernel::Tracepoint> tracepoint(types::Types& types, std::string_view category,
                                        std::string_view event) override {
    kernel::Tracepoint out;
    out.category = category;
    out.event = event;
    const auto user = types::AddressSpace::kUser;
    if (event == "enter_open")
      out.fields = {
          {.name = "filename", .type = types.pointer(types.char_type(), user), .offset_bytes = 8, .size_bytes = 8},
          {.name = "task",
           .type = types.pointer(find_struct(types, "task_struct"), user),
           .offset_bytes = 16,
           .size_bytes = 8}};
    else
      out.fields = {{.name = "fd", .type = types.int_type(4, false), .offset_bytes = 8, .size_bytes = 4},
                    {.name = "count", .type = types.uint64(), .offset_bytes = 16, .size_bytes = 8}};
    return out;
  }
  std::optional<uint32_t> syscall_number(std::string_view) override { return std::nullopt; }
  std::optional<std::string> syscall_name(uint32_t) override { return std::nullopt; }
  std::vector<std::string> functions(std::string_view glob) override {
    return std::ranges::count(traceable, glob) > 0 ? std::vector<std::string>{std::string(glob)}
                                                   : std::vector<std::string>{};
  }
  std::optional<uint64_t> symbol_address(std::string_view) override { return std::nullopt; }
};

}  // namespace espy::testing

// kernel: everything that is read from the kernel, such as BTF, tracefs, symbols and features.
//
// Kernel: read-only queries about a kernel. Operations that change it are in load/machine.h.
//
// In: names and patterns. Out: types (into `types::Types`), tracepoint formats, functions, symbols, features. Answers
// are computed on demand and cached, so that start-up reads only what the script names. The implementation reads a
// directory: "/" for the running kernel, tests/kernels/NAME for a recorded one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernel/arch/arch.h"
#include "kernel/features.h"
#include "types/type.h"

namespace espy::recording {
struct Description;
}

namespace espy::kernel {

// One field of a tracepoint's record as tracefs describes it (events/CATEGORY/EVENT/format).
struct TracepointField {
  std::string name;
  std::string c_type;  // as printed by the kernel: "const char *", "__data_loc char[]"
  types::TypeId type;  // pointers in syscall arguments are user pointers; `char x[16]` is a string
  uint32_t offset_bytes = 0;
  uint32_t size_bytes = 0;
  bool is_signed = false;
  // A u32 at `offset_bytes`: the low half is the offset from the record's start, the high half the length.
  bool is_data_loc = false;
  bool is_relative_loc = false;  // __rel_loc: the offset is from the end of the u32
};

struct Tracepoint {
  std::string category;
  std::string event;
  uint64_t id = 0;                      // for perf_event_open
  std::vector<TracepointField> fields;  // without the common_ ones
};

// A kernel function or a raw tracepoint's arguments, from BTF.
struct FunctionPrototype {
  std::string name;
  std::string module;   // "vmlinux" or the module's name
  uint32_t btf_id = 0;  // of the FUNC, or of the typedef btf_trace_NAME for raw tracepoints
  uint32_t module_index = 0;
  std::vector<types::Member> parameters;
  types::TypeId result;
};

// The types of a function as C writes them, with the names of typedefs: "loff_t *", "int (*)(struct file *)".
struct CTypes {
  std::vector<std::string> parameters;
  std::string result;
};

struct TypeLocation {  // a type's id in a BTF object, as kfuncs such as bpf_rdonly_cast take it
  uint32_t module_index = 0;
  uint32_t btf_id = 0;
};

struct Enumerated {
  types::TypeId type;
  int64_t value = 0;
};

// Facts that the snapshot of a kernel lacks if it was taken without the rights to read them.
enum class Fact : uint8_t { kTracepoints, kTraceableFunctions, kForbiddenFunctions, kCount };
std::string_view name_of(Fact fact);  // "tracepoints"
std::optional<Fact> find_fact(std::string_view name);

class Kernel {
 public:
  virtual ~Kernel() = default;

  virtual const Arch& arch() const = 0;
  virtual uint32_t page_size_bytes() const { return arch().page_size_bytes; }
  virtual uint32_t cpu_count() const = 0;  // possible CPUs: the size of per-CPU values
  virtual bool has(Feature feature) = 0;   // tried once
  virtual bool has_btf() = 0;
  virtual Lockdown lockdown() { return Lockdown::kUnknown; }
  virtual bool knows(Fact /*fact*/) const { return true; }

  // Types are searched in the script's definitions, then in vmlinux, then in loaded modules. Return an invalid id if
  // there is none. A struct may be incomplete; `complete` reads its members.
  virtual types::TypeId find_struct(types::Types& types, std::string_view tag) = 0;  // struct or union
  virtual types::TypeId find_enum(types::Types& types, std::string_view tag) = 0;
  virtual types::TypeId find_typedef(types::Types& types, std::string_view name) = 0;
  virtual std::optional<Enumerated> find_enumerator(types::Types& types, std::string_view name) = 0;
  virtual void complete(types::Types& types, types::TypeId struct_type) = 0;
  // Adds the types of a BTF section, which a C compiler made of headers. With `before_kernel` they take precedence over
  // the kernel's types of the same name.
  virtual Status add_types(std::string_view /*btf*/, bool /*before_kernel*/) { return {}; }
  virtual std::vector<std::string> struct_names(std::string_view glob) = 0;  // "struct foo", "union bar", "enum baz"
  // The C text of "struct foo", "union foo", "enum foo", or of any of them for "foo", without the last newline; nullopt
  // if there is none.
  virtual std::optional<std::string> c_definition(std::string_view name) = 0;
  // The same, also of a typedef, with the offset and size in bytes before each member of a struct.
  virtual std::optional<std::string> c_layout(std::string_view /*name*/) { return std::nullopt; }
  // "int do_it(struct thing *thing, long how);" for a function with BTF; `module` is vmlinux or the name of a module.
  virtual std::optional<std::string> c_prototype(std::string_view /*name*/, std::string_view /*module*/) {
    return std::nullopt;
  }
  // nullopt where types are not known in this form.
  virtual std::optional<CTypes> c_types(const FunctionPrototype& /*function*/) { return std::nullopt; }

  virtual std::optional<FunctionPrototype> find_function(types::Types& types, std::string_view name,
                                                         std::string_view module = {}) = 0;
  // Functions that fentry and fexit can attach to: those with BTF that can be probed and whose arguments a trampoline
  // can pass, sorted by module and name. Parameters and result are empty if `types` is null.
  virtual std::vector<FunctionPrototype> find_functions(types::Types* /*types*/, std::string_view /*glob*/,
                                                        std::string_view /*module_glob*/) {
    return {};
  }
  // The obstacle for a trampoline to pass the arguments or result of the function, as a predicate: "has variable
  // arguments". Returns nullopt if there is none.
  virtual std::optional<std::string> why_not_passable(const FunctionPrototype& /*function*/) { return std::nullopt; }
  // Parameters of btf_trace_NAME, without its leading void *.
  virtual std::optional<FunctionPrototype> find_raw_tracepoint(types::Types& types, std::string_view name) = 0;
  virtual std::vector<std::string> raw_tracepoints(std::string_view glob) = 0;  // "sched_switch"
  // "vmlinux" or the module that has the raw tracepoint; "" if that is not known, as without BTF.
  virtual std::string raw_tracepoint_module(std::string_view /*name*/) { return ""; }
  // The id of kfunc NAME in vmlinux BTF, for BPF_PSEUDO_KFUNC_CALL; nullopt if the kernel has none.
  virtual std::optional<uint32_t> kfunc_id(std::string_view name) = 0;
  // Whether programs of a type (enum bpf_prog_type) may call it; a recorded kernel allows all of its kfuncs.
  virtual bool is_kfunc_allowed(std::string_view name, uint32_t /*program_type*/) { return kfunc_id(name).has_value(); }
  // The ids of a vmlinux struct, for typed casts; nullopt for a type of the script.
  virtual std::optional<TypeLocation> btf_location(const types::Types& types, types::TypeId struct_type) = 0;

  // Tracepoints, from tracefs.
  virtual std::vector<std::string> tracepoints(std::string_view category_glob,
                                               std::string_view event_glob) = 0;  // "cat:ev"
  virtual Result<Tracepoint> tracepoint(types::Types& types, std::string_view category, std::string_view event) = 0;
  // The number of a system call by its name without prefix ("openat"); nullopt if unknown.
  virtual std::optional<uint32_t> syscall_number(std::string_view name) = 0;
  virtual std::optional<std::string> syscall_name(uint32_t number) = 0;

  // Functions that can be probed (available_filter_functions, else kallsyms), as "name" or "name [module]".
  virtual std::vector<std::string> functions(std::string_view glob) = 0;
  // Functions that the kernel has, whether or not they can be probed, in the same form.
  virtual std::vector<std::string> code(std::string_view glob) { return functions(glob); }
  // True if the kernel does not let kprobes on it, which other means of attaching do not ask.
  virtual bool is_kprobe_forbidden(std::string_view /*function*/) { return false; }
  // Makes `functions` read this file instead, one name per line.
  virtual Status use_traceable_functions(const std::string& /*path*/) { return {}; }
  virtual bool has_given_functions() const { return false; }  // whether `functions` reads such a file
  virtual std::optional<uint64_t> symbol_address(std::string_view name) = 0;

  // The recording that a kernel is known from, with its probes; null for others.
  virtual const recording::Description* recording() const { return nullptr; }
  // A type of its description; invalid if there is none.
  virtual types::TypeId recorded_type(types::Types& /*types*/, uint32_t /*index*/) { return {}; }
};

// Queries that are answered by trying.
struct Tries {
  std::function<bool(Feature)> feature;
  std::function<bool(uint32_t kfunc, uint32_t program_type)> kfunc = {};  // empty: all kfuncs can be called
};

// The kernel under `root` ("/" for this machine). Caches the results of `tries`. Fails only if `root` does not exist;
// without BTF or tracefs, queries that need them find nothing.
Result<std::unique_ptr<Kernel>> open_kernel(std::string root, Tries tries);

// The kernel recorded in `directory`, in the format of tests/kernels/README.md; has() answers from its `features` file.
// For features that are unknown there it asks `assume`; if that is empty, they are taken to be there.
Result<std::unique_ptr<Kernel>> open_recorded_kernel(const std::string& directory,
                                                     const std::function<bool(Feature)>& assume = {});

}  // namespace espy::kernel

// From BTF records to the language's types.
//
// In: ids of a BtfSet. Out: TypeIds. A struct is declared with its size; `complete_struct` reads its members on demand,
// so that `task_struct` does not pull in half of the kernel.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "kernel/btf.h"
#include "types/parts.h"
#include "types/type.h"

namespace espy::kernel {

// A record and its module. Module 0 is vmlinux; records of a module's base belong to vmlinux.
struct BtfPlace {
  uint32_t module = 0;
  BtfRecord record;
};

// The BTF of vmlinux and of the modules, each opened at its first use, and that of headers which a C compiler has read,
// under module numbers of their own.
class BtfSet {
 public:
  static constexpr uint32_t kFirstHeader = 1u << 16;

  explicit BtfSet(std::string directory) : directory_(std::move(directory)) {}

  const Btf* vmlinux();
  const std::vector<std::string>& modules();                    // names by index - 1
  const Btf* object(uint32_t module);                           // null if it cannot be read
  std::optional<uint32_t> module_index(std::string_view name);  // "vmlinux" is 0
  std::string_view module_name(uint32_t module);
  std::optional<BtfPlace> record(uint32_t module, uint32_t id);
  void use_vmlinux(std::unique_ptr<Btf> btf);  // instead of the directory's file
  void add_header(std::unique_ptr<Btf> btf, bool before_kernel);

  // Searches headers that precede the kernel, then vmlinux, the modules, and other headers. Answers are cached: scripts
  // repeat names.
  std::optional<BtfPlace> find(std::string_view name, BtfKinds set);
  std::optional<std::pair<BtfPlace, uint32_t>> find_enumerator(std::string_view name);  // the enum, and the index in it

 private:
  struct Header {
    std::unique_ptr<Btf> btf;
    bool before_kernel;
  };

  const Btf* load(uint32_t module);
  std::vector<uint32_t> search_order();  // of modules and headers
  std::optional<BtfPlace> search(std::string_view name, BtfKinds set);

  std::string directory_;
  std::optional<std::vector<std::string>> modules_;
  std::vector<std::unique_ptr<Btf>> objects_;
  std::vector<bool> tried_;
  std::vector<Header> headers_;
  std::map<std::pair<std::string, BtfKinds>, std::optional<BtfPlace>> found_;
};

class BtfConverter {
 public:
  BtfConverter(BtfSet& set, types::Types& types) : set_(set), types_(types) {}

  // The type of record `id`; void if the BTF is malformed.
  types::TypeId convert(uint32_t module, uint32_t id);
  types::TypeId convert(const BtfPlace& place) { return convert(place.module, place.record.id); }
  // Reads the members of a struct that came from BTF, and those of all structs embedded in it.
  void complete_struct(types::TypeId struct_type);
  // Defines `struct_type`, of any origin, with the members of `place`.
  void define_as(types::TypeId struct_type, const BtfPlace& place);
  // Parameters and result of a kFunc or kFuncProto; each parameter's offset is in 8-byte argument words.
  struct Prototype {
    std::vector<types::Member> parameters;
    types::TypeId result;
  };
  Prototype prototype(const BtfPlace& function);

 private:
  types::TypeId convert_record(const BtfPlace& place);
  types::TypeId convert_int(const BtfPlace& place);
  types::TypeId convert_float(uint32_t size_bytes);
  types::TypeId convert_pointer(const BtfPlace& place);
  types::TypeId convert_array(const BtfPlace& place);
  types::TypeId convert_struct(const BtfPlace& place);
  types::TypeId convert_enum(const BtfPlace& place);
  types::TypeId read_enum(const BtfPlace& place);
  types::TypeId convert_function(const BtfPlace& place);
  types::Member convert_member(const BtfPlace& owner, const BtfMember& member);
  void complete_parts(types::TypeId type);
  uint32_t struct_align(const std::vector<types::Member>& members, uint32_t size_bytes) const;

  BtfSet& set_;
  types::Types& types_;
  int depth_ = 0;
  int function_depth_ = 0;
  std::set<types::TypeId> in_progress_;
  types::Parts parts_;
  std::map<std::pair<uint32_t, uint32_t>, types::TypeId> enums_;            // by module and id
  std::map<std::tuple<uint32_t, uint32_t, int>, types::TypeId> functions_;  // also by function_depth_
};

}  // namespace espy::kernel

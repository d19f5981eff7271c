#include "kernel/described_kernel.h"

#include <algorithm>

#include "base/check.h"
#include "kernel/described_types.h"
#include "kernel/directory_kernel.h"

namespace espy::kernel {

namespace {

using types::Kind;
using types::TypeId;

constexpr const char* kNoDirectory = "/dev/null";  // no path below it leads to a file

class DescribedKernel final : public DirectoryKernel {
 public:
  DescribedKernel(const recording::Description& description, std::function<bool(Feature)> has)
      : DirectoryKernel(kNoDirectory,
                        Machine{*find_arch(description.arch), description.page_size_bytes, description.cpu_count},
                        Tries{std::move(has)}),
        description_(description) {}

  const recording::Description* recording() const override { return &description_; }

  TypeId recorded_type(types::Types& types, uint32_t index) override {
    const std::vector<TypeId>& all = ids(types);
    return index < all.size() ? all[index] : TypeId{};
  }

  TypeId find_struct(types::Types& types, std::string_view tag) override {
    return find(types, tag, Kind::kStruct, [&] { return DirectoryKernel::find_struct(types, tag); });
  }
  TypeId find_enum(types::Types& types, std::string_view tag) override {
    return find(types, tag, Kind::kEnum, [&] { return DirectoryKernel::find_enum(types, tag); });
  }
  std::optional<Enumerated> find_enumerator(types::Types& types, std::string_view name) override {
    for (const TypeId id : ids(types))
      for (const types::Enumerator& each : types[id].enumerators)
        if (each.name == name) return Enumerated{id, each.value};
    return DirectoryKernel::find_enumerator(types, name);
  }

 private:
  // Types of the script come first. Of several with one name, one that has members.
  TypeId find(types::Types& types, std::string_view tag, Kind kind, const std::function<TypeId()>& in_script) {
    if (const TypeId found = in_script(); found.valid()) return found;
    TypeId out;
    for (const TypeId id : ids(types)) {
      const types::Type& type = types[id];
      if (type.kind == kind && type.name == tag && (!out.valid() || type.complete)) out = id;
    }
    return out;
  }

  const std::vector<TypeId>& ids(types::Types& types) {
    if (types_ != &types) ids_ = define_types(description_.types, types);
    types_ = &types;
    return ids_;
  }

  const recording::Description& description_;
  types::Types* types_ = nullptr;  // that `ids_` are of
  std::vector<TypeId> ids_;
};

}  // namespace

std::unique_ptr<Kernel> make_described_kernel(const recording::Description& description,
                                              std::function<bool(Feature)> has) {
  CHECK(find_arch(description.arch) != nullptr);
  return std::make_unique<DescribedKernel>(description, std::move(has));
}

}  // namespace espy::kernel

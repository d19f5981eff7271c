// A kernel and types that are known from a recording alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/kernel.h"
#include "recording/recording.h"
#include "types/type.h"

namespace espy::kernel {

// ---- The types of a recording: of a run's types, and back.

// Describes types and their parts.
class TypeDescriber {
 public:
  TypeDescriber(types::Types& types, Kernel& kernel) : types_(types), kernel_(kernel) {}

  // Returns the index of the type. Structs are described with their members if at most `depth` pointers lead to them.
  uint32_t add(types::TypeId id, int32_t depth);
  // Describes these members of a struct, unless it is described with all of them.
  void add_members(types::TypeId struct_type, std::span<const std::string_view> names);
  std::vector<recording::Type> take() { return std::move(out_); }

 private:
  recording::Type describe(types::TypeId id, int32_t depth);

  types::Types& types_;
  Kernel& kernel_;
  std::vector<recording::Type> out_;
  struct Known {
    uint32_t index = 0;
    int32_t depth = 0;
  };
  std::map<types::TypeId, Known> known_;
};

// Defines the types of a description, which may be of any content. Returns their ids by their indexes.
std::vector<types::TypeId> define_types(std::span<const recording::Type> described, types::Types& types);

// ---- A kernel that is known from a recording alone.

// It has the types of the description, and neither functions nor tracepoints of its own. Its probes come from
// Kernel::recording(). `description` must outlive it; its `arch` must be known.
std::unique_ptr<Kernel> make_described_kernel(const recording::Description& description,
                                              std::function<bool(Feature)> has);

}  // namespace espy::kernel

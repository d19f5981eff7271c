#include "probes/program_types.h"

#include "symbols/debug_info.h"
#include "symbols/symbols.h"

namespace espy::probes {

namespace {

symbols::DebugInfo::TypeCategory searched(spec::ProgramTypeRequest::Category category) {
  using Category = spec::ProgramTypeRequest::Category;
  using symbols::DebugInfo;
  switch (category) {
    case Category::kStruct: return DebugInfo::TypeCategory::kStruct;
    case Category::kEnum: return DebugInfo::TypeCategory::kEnum;
    case Category::kAny: break;
    case Category::kEnumerator: return DebugInfo::TypeCategory::kEnumerator;
  }
  return DebugInfo::TypeCategory::kAny;
}

}  // namespace

spec::ProgramType find_program_type(spec::ProgramTypeRequest& request) {
  if (request.symbols == nullptr) return {};
  const auto file = request.symbols->elf_file(request.probe.target);
  if (!file) return {.problem = file.error().message};
  if (!(*file)->is_64bit()) return {.problem = "the pointers of 32-bit programs have 4 bytes, those of scripts 8"};
  const auto debug = (*file)->debug_info();
  if (!debug) return {.problem = debug.error().message};
  const uint64_t address = (*file)->address_of_offset(request.probe.address).value_or(0);
  auto found = (*debug)->find_type(request.types, searched(request.category), request.name, address);
  return {found.type.value_or(types::TypeId{}), found.value, std::move(found.candidates), {}};
}

}  // namespace espy::probes

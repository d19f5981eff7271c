// A program with debug information: everything that probes and stacks ask about a few of its addresses.
#include "../reader.h"
#include "symbols/debug_info.h"
#include "symbols/elf_image.h"

namespace espy::fuzz {

namespace {

using namespace symbols;

constexpr size_t kMaxAddresses = 6;

void use_variable(types::Types& types, const DebugVariable& variable) {
  use(variable.name);
  use(variable.c_type);
  use(variable.why);
  use(variable.readable.text);
  use(to_string(types, variable.type));
  if (!types[variable.type].complete) types.complete_by_origin(variable.type);
}

void use_address(DebugInfo& info, types::Types& types, uint64_t address) {
  use(info.missing_part(address));
  for (const SourceFrame& frame : info.frames_at(address)) use(frame.function + frame.file);
  for (const std::string_view inlined : {"", "inner"}) {
    for (const DebugVariable& each : info.arguments(types, address, inlined)) use_variable(types, each);
    for (const DebugVariable& each : info.locals(types, address, inlined)) use_variable(types, each);
  }
  if (const auto result = info.result(types, address)) use_variable(types, *result);
  for (const Statement& statement : info.statements_of(address)) use(statement.function + statement.file);
}

void use_names(DebugInfo& info, types::Types& types, uint64_t address) {
  using Category = DebugInfo::TypeCategory;
  for (const Category category : {Category::kStruct, Category::kEnum, Category::kAny, Category::kEnumerator})
    for (const std::string_view name : {"Basket", "shop::Basket", "RED"})
      if (const auto found = info.find_type(types, category, name, address); found.type)
        use(to_string(types, *found.type));
  info.member_offset("Basket", "size");
  for (const Statement& statement : info.inlined_copies("inner")) use(statement.function);
}

}  // namespace

void run_dwarf(std::string_view bytes) {
  const MemoryFile file(bytes);
  const auto image = ElfImage::open(file.path());
  if (!image) return;
  const auto opened = DebugInfo::open(*image, {});
  if (!opened) return;
  DebugInfo& info = **opened;
  types::Types types;
  std::vector<uint64_t> addresses;
  for (const std::string& each : info.files()) use(each);
  for (const Statement& statement : info.statements("x.c", 0, 0)) {
    use(statement.function + statement.inlined_into + statement.file);
    if (addresses.size() < kMaxAddresses / 2) addresses.push_back(statement.address);
  }
  for (const Segment& segment : image->segments())
    if (segment.executable && addresses.size() < kMaxAddresses) addresses.push_back(segment.address + 1);
  for (const uint64_t address : addresses) use_address(info, types, address);
  use_names(info, types, addresses.empty() ? 0 : addresses.front());
}

}  // namespace espy::fuzz

// A program with debug information: everything that probes and stacks ask about a few of its addresses.
#include "../reader.h"
#include "symbols/debug_info.h"
#include "symbols/elf_image.h"

namespace espy::fuzz {

namespace {

using namespace symbols;

constexpr int kOwnDescriptor = 100;  // make-seeds has a file that names it as the one with the rest
constexpr size_t kMaxFiles = 3;
constexpr size_t kMaxAddresses = 8;
constexpr int kMaxTypes = 20;  // of one variable

// Completes a type, and those that its members and pointers refer to.
void complete(types::Types& types, types::TypeId first) {
  std::vector<types::TypeId> left = {first};
  for (int n = 0; n < kMaxTypes && !left.empty(); ++n) {
    const types::TypeId id = left.back();
    left.pop_back();
    if (!types[id].complete) types.complete_by_origin(id);
    const types::Type type = types[id];
    if (type.element.valid()) left.push_back(type.element);
    for (const types::Member& member : type.members) left.push_back(member.type);
    use(to_string(types, id));
  }
}

void use_variable(types::Types& types, const DebugVariable& variable) {
  use(variable.name);
  use(variable.c_type);
  use(variable.why);
  use(variable.readable.text);
  complete(types, variable.type);
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
    for (const std::string_view name : {"Basket", "shop::Basket", "RED", "Shelf::Row", "x::Shape"})
      if (const auto found = info.find_type(types, category, name, address); found.type) complete(types, *found.type);
  info.member_offset("Basket", "size");
  for (const Statement& statement : info.inlined_copies("inner")) use(statement.function);
}

}  // namespace

void run_dwarf(std::string_view bytes) {
  const MemoryFile file(bytes, kOwnDescriptor);
  const auto image = ElfImage::open(file.path());
  if (!image) return;
  const auto opened = DebugInfo::open(*image, {});
  if (!opened) return;
  DebugInfo& info = **opened;
  types::Types types;
  std::vector<uint64_t> addresses;
  std::vector<std::string> files = info.files();
  if (files.size() > kMaxFiles) files.resize(kMaxFiles);
  for (const std::string& each : files) {
    use(each);
    info.lines(each);
    for (const Statement& statement : info.statements(each, 0, 0)) {
      use(statement.function + statement.inlined_into + statement.file);
      if (addresses.size() < kMaxAddresses / 2) addresses.push_back(statement.address);
    }
  }
  const auto symbols = image->symbol_table(SHT_SYMTAB);
  for (size_t i = 0; symbols && i < symbols->size() && addresses.size() < kMaxAddresses; ++i)
    if (const auto symbol = symbols->at(i); symbol && symbol->size > 0) addresses.push_back(symbol->address);
  for (const Segment& segment : image->segments())
    if (segment.executable && addresses.size() < kMaxAddresses) addresses.push_back(segment.address + 1);
  for (const uint64_t address : addresses) use_address(info, types, address);
  use_names(info, types, addresses.empty() ? 0 : addresses.front());
}

}  // namespace espy::fuzz

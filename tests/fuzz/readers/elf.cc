// Symbols, segments and sections of a program.
#include "../reader.h"
#include "symbols/elf_file.h"
#include "symbols/elf_image.h"
#include "symbols/library.h"

namespace espy::fuzz {

namespace {

using namespace symbols;

void use_symbol(const std::optional<ElfSymbol>& symbol) {
  if (symbol) use(symbol->name);
}

void use_file(const ElfFile& file) {
  use(file.build_id());
  use(file.debug_file_path());
  file.is_stripped();
  for (const ElfSymbol& each : file.functions()) use(each.name);
  for (const ElfSymbol& each : file.functions_by_demangled_name("shop::Basket::add")) use(each.name);
  for (const ElfSymbol& each : file.functions_by_demangled_name("*::add*")) use(each.name);
  use_symbol(file.find_function("main"));
  use_symbol(file.find_object("table"));
  for (const uint64_t address : {uint64_t{0}, uint64_t{0x1040}, uint64_t{0x401010}, UINT64_MAX}) {
    use_symbol(file.function_at(address));
    use_symbol(file.function_at_offset(address));
    use(file.bytes_at(address, 64));
    if (const auto frame = file.go_frame_at(address)) use(frame->file);
  }
  if (file.go_binary()) use(file.go_binary()->version);
}

}  // namespace

void run_elf(std::string_view bytes) {
  if (const auto file = ElfFile::from_image(std::string(bytes), "input")) use_file(*file);
  const auto image = ElfImage::from_bytes(std::string(bytes), "input");
  if (!image) return;
  const DynamicNeeds needs = image->dynamic_needs();
  use(needs.interpreter + needs.run_path);
  for (const std::string& each : needs.libraries) use(each);
  if (const auto link = image->debug_link()) use(link->first);
  use(image->section_bytes(".text"));
}

}  // namespace espy::fuzz

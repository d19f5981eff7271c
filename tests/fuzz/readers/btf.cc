// BTF: lookups by id and by name, conversion to types, C text. The bytes are a kernel's, and a module's on top of it.
#include "kernel/btf.h"

#include <algorithm>

#include "../reader.h"

namespace espy::fuzz {

namespace {

using namespace kernel;

constexpr uint32_t kMaxIds = 24;  // of each kind of query

void use_all(BtfSet& set, uint32_t module) {
  const Btf& btf = *set.object(module);
  types::Types types;
  BtfConverter converter(set, types);
  const uint32_t end = std::min(btf.end_id(), btf.first_id() + kMaxIds);
  for (uint32_t id = btf.first_id(); id < end; ++id) {
    const types::TypeId type = converter.convert(module, id);
    if (types[type].kind == types::Kind::kStruct) converter.complete_struct(type);
    use(to_string(types, type));
  }
}

void print_all(const Btf& btf) {
  uint32_t printed = 0;
  btf.for_each([&](const BtfRecord& record) {
    if (record.is(kinds(BtfKind::kStruct, BtfKind::kUnion, BtfKind::kEnum, BtfKind::kEnum64)))
      use(print_definition(btf, record));
    if (!record.is(kinds(BtfKind::kFunc))) use(print_layout(btf, record));
    if (record.is(kinds(BtfKind::kFunc))) use(print_prototype(btf, record));
    return ++printed < kMaxIds / 4;
  });
}

}  // namespace

void run_btf(std::string_view bytes) {
  BtfSet set("/nonexistent");
  auto whole = Btf::parse(std::string(bytes));
  if (!whole) return;
  const Btf& base = **whole;
  set.use_vmlinux(std::move(*whole));
  use_all(set, 0);
  print_all(base);
  if (const auto found = base.find("task", kinds(BtfKind::kStruct))) use(base.name(*found));
  if (const auto found = base.find_enumerator("ONE")) use(base.name(found->record));
  if (auto module = Btf::parse(std::string(bytes), &base)) {
    set.add_header(std::move(*module), true);
    use_all(set, BtfSet::kFirstHeader);
  }
}

}  // namespace espy::fuzz

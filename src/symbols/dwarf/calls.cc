#include "symbols/dwarf/calls.h"

#include <algorithm>
#include <initializer_list>

namespace espy::symbols::dwarf {

namespace {

constexpr int kMaxCallDepth = 64;  // of references and blocks: malformed debug information can have cycles

// Follows references of an instance to its abstract origin or declaration.
Dwarf_Die origin_of(Dwarf_Die die) {
  for (int hops = 0; hops < kMaxCallDepth; ++hops) {
    std::optional<Dwarf_Die> from;
    for (const unsigned name : {DW_AT_abstract_origin, DW_AT_specification})
      if (!from && own_attribute(die, name)) from = reference(die, name);
    if (!from) break;
    die = *from;
  }
  return die;
}

bool has_any(const Dwarf_Die& die, std::initializer_list<unsigned> flags) {
  return std::ranges::any_of(flags, [&](unsigned name) { return flag(die, name); });
}

std::optional<uint64_t> return_address_of(const Dwarf_Die& site) {
  for (const unsigned name : {DW_AT_call_return_pc, DW_AT_low_pc}) {
    std::optional<Dwarf_Attribute> found = own_attribute(site, name);
    Dwarf_Addr address = 0;
    if (found && dwarf_formaddr(&*found, &address) == 0) return address;
  }
  return std::nullopt;
}

// Returns the register that an argument is passed in; nullopt if it is on the stack.
std::optional<unsigned> register_of(const Dwarf_Die& parameter) {
  std::optional<Dwarf_Attribute> location = own_attribute(parameter, DW_AT_location);
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  if (!location || dwarf_getlocation(&*location, &ops, &count) != 0 || count != 1) return std::nullopt;
  if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) return ops[0].atom - DW_OP_reg0;
  return ops[0].atom == DW_OP_regx ? std::optional(static_cast<unsigned>(ops[0].number)) : std::nullopt;
}

}  // namespace

Calls::Key Calls::key_of(const Dwarf_Die& function) {
  Dwarf_Die first = origin_of(function);
  if (!flag(first, DW_AT_external)) return {"", first.addr};
  const std::string_view linked = linkage_name(first);
  return {linked.empty() ? name_of(first) : linked, nullptr};
}

void Calls::read_site(const Dwarf_Die& site, const FunctionCode& code, Function& caller) {
  std::optional<Dwarf_Die> callee;
  for (const unsigned name : {DW_AT_call_origin, DW_AT_abstract_origin})
    if (!callee && own_attribute(site, name)) callee = reference(site, name);
  if (has_any(site, {DW_AT_call_tail_call, DW_AT_GNU_tail_call})) {
    if (callee)
      caller.tail_calls.insert(key_of(*callee));
    else
      caller.has_unknown_tail_calls = true;
    return;
  }
  const std::optional<uint64_t> returns_to = return_address_of(site);
  if (callee && returns_to) functions_[key_of(*callee)].calls.push_back({*returns_to, site, code});
}

// Call sites can be children of blocks and of inlined instances.
void Calls::read_sites(const Subtree& scope, const FunctionCode& code, Function& caller, int depth) {
  caller.has_unknown_tail_calls |= depth > kMaxCallDepth;
  if (depth > kMaxCallDepth) return;
  for (const Subtree& child : child_subtrees(scope)) {
    switch (tag(child.die)) {
      case DW_TAG_call_site:
      case DW_TAG_GNU_call_site: read_site(child.die, code, caller); break;
      case DW_TAG_lexical_block:
      case DW_TAG_inlined_subroutine:
      case DW_TAG_try_block:
      case DW_TAG_catch_block: read_sites(child, code, caller, depth + 1); break;
      default: break;
    }
  }
}

void Calls::read_function(const FunctionCode& code) {
  Function& caller = functions_[key_of(code.die)];
  caller.has_code = true;
  caller.has_unknown_tail_calls |=
      !has_any(code.die, {DW_AT_call_all_calls, DW_AT_call_all_source_calls, DW_AT_call_all_tail_calls,
                          DW_AT_GNU_all_call_sites, DW_AT_GNU_all_source_call_sites, DW_AT_GNU_all_tail_call_sites});
  read_sites({code.die}, code, caller, 0);
}

void Calls::read_all() {
  if (has_read_) return;
  // Of what took too long earlier.
  functions_.clear();
  std::set<const void*> seen;  // a function may have code in several places
  for (Unit& unit : file_.units())
    for (const FunctionCode& code : file_.functions(unit))
      if (seen.insert(code.die.addr).second) read_function(code);
  has_read_ = true;
}

// Whether a call of the function can enter it again through tail calls only, with other arguments.
bool Calls::may_be_tail_called(const Key& function) {
  std::vector<Key> left{function};
  std::set<Key> seen;
  while (!left.empty()) {
    const auto found = functions_.find(left.back());
    left.pop_back();
    if (found == functions_.end() || !found->second.has_code || found->second.has_unknown_tail_calls) return true;
    for (const Key& next : found->second.tail_calls) {
      if (next == function) return true;
      if (seen.insert(next).second) left.push_back(next);
    }
  }
  return false;
}

const std::vector<Call>* Calls::calls_to(const Dwarf_Die& function) {
  const Key key = key_of(function);
  // A library's external function can be replaced by one of another file.
  const bool is_interposable = !key.first.empty() && !file_.is_executable();
  if (is_interposable) return nullptr;
  read_all();
  Function& found = functions_[key];
  if (!found.is_identified_by_return_address) found.is_identified_by_return_address = !may_be_tail_called(key);
  return *found.is_identified_by_return_address ? &found.calls : nullptr;
}

std::optional<Dwarf_Attribute> Calls::argument(const Call& call, unsigned register_number) {
  for (const Dwarf_Die& child : children(call.site)) {
    const int kind = tag(child);
    if (kind != DW_TAG_call_site_parameter && kind != DW_TAG_GNU_call_site_parameter) continue;
    if (register_of(child) != register_number) continue;
    for (const unsigned name : {DW_AT_call_value, DW_AT_GNU_call_site_value})
      if (auto value = own_attribute(child, name)) return value;
  }
  return std::nullopt;
}

}  // namespace espy::symbols::dwarf

#include "check/signature.h"

#include <fmt/format.h>

#include <array>

#include "base/strings.h"

namespace espy::check {

using types::Kind;
using types::TypeId;
using types::Types;

namespace {

Parameter parse_parameter(std::string_view text) {
  Parameter out;
  text = trim(text);
  if (const size_t equal = text.find('='); equal != std::string_view::npos) {
    out.is_optional = true;
    text = trim(text.substr(0, equal));
  }
  if (text.starts_with("literal ")) {
    out.is_literal = true;
    text = trim(text.substr(8));
  }
  // The name is the last word; `char *p` has its star before it.
  const size_t start = text.find_last_of(" *]");
  if (start == std::string_view::npos || start + 1 == text.size()) {
    out.type = text;
    return out;
  }
  out.type = trim(text.substr(0, start + 1));
  out.name = text.substr(start + 1);
  return out;
}

struct NamedType {
  std::string_view name;
  Kind kind;
};
constexpr std::array kSimple = {
    NamedType{"void", Kind::kVoid},
    NamedType{"bool", Kind::kBool},
    NamedType{"ksym", Kind::kKernelSymbol},
    NamedType{"ksym_t", Kind::kKernelSymbol},
    NamedType{"usym", Kind::kUserSymbol},
    NamedType{"usym_t", Kind::kUserSymbol},
    NamedType{"inet", Kind::kInet},
    NamedType{"macaddr", Kind::kMac},
    NamedType{"mac", Kind::kMac},
    NamedType{"macaddr_t", Kind::kMac},
    NamedType{"username", Kind::kUsername},
    NamedType{"username_t", Kind::kUsername},
    NamedType{"timestamp", Kind::kTimestamp},
    NamedType{"cgroup_path", Kind::kCgroupPath},
    NamedType{"cgroup_path_t", Kind::kCgroupPath},
    NamedType{"probe_name", Kind::kProbeName},
    NamedType{"function_name", Kind::kFunctionName},
    NamedType{"probe_type", Kind::kProbeType},
    NamedType{"count_t", Kind::kCount},
    NamedType{"timestamp_t", Kind::kTimestamp},
};

TypeId base_type(Types& types, kernel::Kernel& kernel, std::string_view name) {
  for (const auto& [prefix, is_signed] : {std::pair{"int", true}, std::pair{"uint", false}}) {
    const size_t length = std::string_view(prefix).size();
    if (!name.starts_with(prefix)) continue;
    if (const auto bits = parse_int(name.substr(length));
        bits && (*bits == 8 || *bits == 16 || *bits == 32 || *bits == 64))
      return types.int_type(static_cast<uint32_t>(*bits / 8), is_signed);
  }
  for (const NamedType& row : kSimple)
    if (row.name == name) return types.simple(row.kind);
  if (name == "char") return types.char_type();
  if (name.starts_with("struct ")) return kernel.find_struct(types, trim(name.substr(7)));
  return {};
}

}  // namespace

size_t Signature::required() const {
  size_t out = 0;
  for (const Parameter& parameter : parameters) out += !parameter.is_optional;
  return out;
}

Signature parse_signature(std::string_view sig) {
  Signature out;
  const size_t open = sig.find('(');
  const std::string_view head = trim(sig.substr(0, open));
  const size_t space = head.find_last_of(" *");
  out.result = space == std::string_view::npos ? std::string_view("void") : trim(head.substr(0, space + 1));
  if (open == std::string_view::npos) return out;
  const size_t close = sig.rfind(')');
  std::string_view list = trim(sig.substr(open + 1, close - open - 1));
  while (!list.empty()) {
    // A default may be a string with a comma in it.
    size_t end = 0;
    bool quoted = false;
    while (end < list.size() && (quoted || list[end] != ',')) quoted ^= list[end++] == '"';
    const std::string_view part = trim(list.substr(0, end));
    if (part == "...")
      out.takes_more = true;
    else
      out.parameters.push_back(parse_parameter(part));
    list = end < list.size() ? trim(list.substr(end + 1)) : std::string_view();
  }
  return out;
}

std::optional<std::string> arity_problem(std::string_view name, const Signature& signature, size_t given) {
  const size_t least = signature.required();
  const size_t most = signature.parameters.size();
  if (given >= least && (given <= most || signature.takes_more)) return std::nullopt;
  const auto plural = [](size_t n) { return n == 1 ? "" : "s"; };
  if (signature.takes_more)
    return fmt::format("`{}` takes at least {} argument{}, {} given", name, least, plural(least), given);
  if (most == 0) return fmt::format("`{}` takes no arguments, {} given", name, given);
  if (least == most) return fmt::format("`{}` takes {} argument{}, {} given", name, least, plural(least), given);
  return fmt::format("`{}` takes {} {} {} arguments, {} given", name, least, most == least + 1 ? "or" : "to", most,
                     given);
}

TypeId signature_type(Types& types, kernel::Kernel& kernel, std::string_view text) {
  text = trim(text);
  if (text.starts_with("const ")) text = trim(text.substr(6));
  if (text.ends_with('*')) {
    const TypeId element = signature_type(types, kernel, text.substr(0, text.size() - 1));
    return types.pointer(element ? element : types.void_type(), types::AddressSpace::kKernel);
  }
  if (text.ends_with(']')) {
    const size_t open = text.find('[');
    const auto count = parse_int(text.substr(open + 1, text.size() - open - 2));
    if (!count) return {};
    const std::string_view base = trim(text.substr(0, open));
    if (base == "string") return types.string(static_cast<uint32_t>(*count));
    if (base == "buffer") return types.buffer(static_cast<uint32_t>(*count));
    const TypeId element = base_type(types, kernel, base);
    return element ? types.array(element, static_cast<uint32_t>(*count)) : TypeId{};
  }
  return base_type(types, kernel, text);
}

std::vector<std::string> signature_type_names() {
  std::vector<std::string> out = {"int8",   "int16",  "int32",  "int64",  "uint8",
                                  "uint16", "uint32", "uint64", "string", "buffer"};
  for (const NamedType& type : kSimple) out.emplace_back(type.name);
  return out;
}

}  // namespace espy::check

#include "kernel/lockdown.h"

#include <fmt/format.h>

#include "base/fd.h"

namespace espy::kernel {

// "none integrity [confidentiality]": the state is the word in brackets.
Lockdown read_lockdown(const std::string& root) {
  const auto text = read_file(root + std::string(kLockdownFile));
  if (!text) return Lockdown::kUnknown;
  for (const Lockdown state : {Lockdown::kNone, Lockdown::kIntegrity, Lockdown::kConfidentiality})
    if (text->find(fmt::format("[{}]", name_of(state))) != std::string::npos) return state;
  return Lockdown::kUnknown;
}

std::string_view name_of(Lockdown lockdown) {
  switch (lockdown) {
    case Lockdown::kUnknown: return "unknown";
    case Lockdown::kNone: return "none";
    case Lockdown::kIntegrity: return "integrity";
    case Lockdown::kConfidentiality: return "confidentiality";
  }
  return "unknown";
}

std::string forbidden_by(Lockdown lockdown, Lockdown least, std::string_view what) {
  if (lockdown < least) return "";
  return fmt::format("the kernel's lockdown ({}) forbids {}", name_of(lockdown), what);
}

}  // namespace espy::kernel

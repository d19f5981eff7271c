// What was at an address when it was captured, of all that a process has or had there. Internal to symbols/.
#pragma once

#include <cstdint>

#include "program/unwind.h"
#include "symbols/process.h"

namespace espy::symbols {

// A mapping, and the process by which its file is opened.
struct Code {
  Process* process = nullptr;
  CodeMapping* mapping = nullptr;
  explicit operator bool() const { return mapping != nullptr; }
};

class CodeChoice {
 public:
  // The address may have a program::CodeTag.
  explicit CodeChoice(uint64_t address) : tag_(program::code_tag(address)) {}

  void add(Process& owner, CodeMapping& mapping) {
    all_.add({&owner, &mapping});
    has_certain_tags_ = has_certain_tags_ || mapping.has_certain_tag();
    if (tag_ != program::kUnknownCode && mapping.tag() == tag_) of_tag_.add({&owner, &mapping});
  }

  bool is_empty() const { return !all_.first; }
  // None if it is not known.
  Code code() const {
    if (of_tag_.first) return of_tag_.agree ? of_tag_.first : Code();
    return may_be_any() && all_.agree ? all_.first : Code();
  }
  bool is_certain() const { return of_tag_.first && of_tag_.agree; }
  // It is none, or not one, of those that are known.
  bool is_uncertain() const { return !is_empty() && !code(); }

 private:
  struct Candidates {
    Code first;
    bool agree = true;

    void add(const Code& code) {
      if (!first) first = code;
      agree = agree && is_same_code(*first.mapping, *code.mapping);
    }
  };
  bool may_be_any() const { return tag_ == program::kUnknownCode || !has_certain_tags_; }

  uint8_t tag_;
  Candidates all_, of_tag_;
  bool has_certain_tags_ = false;
};

}  // namespace espy::symbols

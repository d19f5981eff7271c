// The files that a script consists of besides its own text, as values: what its imports lead to, and what the C
// compiler made of its headers. A check records them, or takes them from here instead of from the machine, so that a
// tool (src/tool) needs neither the files nor a compiler.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "syntax/ast.h"

namespace espy::check {

struct ImportedFile {
  std::string name;  // for messages
  std::string text;
};

// Types that the headers define: BTF, which takes precedence over the kernel's if `before_kernel`.
struct HeaderTypes {
  std::string btf;
  bool before_kernel = false;
};

// The parts of the headers that one file includes, or of one imported header.
struct CompiledHeaders {
  std::vector<syntax::CDefine> macros;  // their spans have no meaning
  std::vector<HeaderTypes> types;
};

struct ScriptFiles {
  // By the path of the import, relative to the importing file's directory, as lexically_normal() gives it. A file that
  // several paths lead to is in the list of the first.
  std::map<std::string, std::vector<ImportedFile>> imports;
  std::map<std::string, CompiledHeaders> headers;  // by the name of the file
};

}  // namespace espy::check

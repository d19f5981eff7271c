// Scripts through the checker and the compiler, for a kernel that is recorded in the tests. No text may crash, hang or
// leak.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "../compile_script.h"
#include "../reader.h"

namespace espy::fuzz {

namespace {

kernel::Kernel& recorded_kernel() {
  static const std::unique_ptr<kernel::Kernel> kernel = [] {
    auto opened = kernel::open_recorded_kernel("tests/kernels/6.18-x86_64");
    if (opened) return std::move(*opened);
    std::fprintf(stderr, "%s (run it in the top directory)\n", opened.error().message.c_str());
    std::exit(EXIT_FAILURE);
  }();
  return *kernel;
}

}  // namespace

void run_check(std::string_view bytes) {
  static ScriptCompiler compiler(recorded_kernel());
  Compilation compilation;
  compiler.compile(std::string(bytes), compilation);
}

}  // namespace espy::fuzz

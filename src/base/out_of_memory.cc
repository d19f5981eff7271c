#include "base/out_of_memory.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <string_view>

namespace espy {

namespace {

// Whether the exception that ends the program is std::bad_alloc. There is none if there was no memory for it either.
bool is_out_of_memory() {
  const std::exception_ptr current = std::current_exception();
  if (current == nullptr) return true;
  try {
    std::rethrow_exception(current);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

[[noreturn]] void on_terminate() {
  if (!is_out_of_memory()) std::abort();
  report_out_of_memory();
  ::_exit(EXIT_FAILURE);
}

}  // namespace

void report_out_of_memory() {
  constexpr std::string_view kText =
      "espy: out of memory\n"
      "  hint: `ulimit -v` shows the limit of the address space, memory.max of the cgroup (MemoryMax in systemd) that "
      "of "
      "the memory; smaller max_map_keys, perf_rb_pages and unwind_table_rows take less\n";
  [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, kText.data(), kText.size());
}

void report_uncaught_out_of_memory() { std::set_terminate(on_terminate); }

}  // namespace espy

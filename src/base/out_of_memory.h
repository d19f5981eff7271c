// Memory that runs out: std::bad_alloc, the only exception that espy catches. It is caught where a part of the work
// ends and the rest can go on without it: a record, a map, a stage of a run, the whole program.
#pragma once

#include <cerrno>
#include <new>
#include <utility>

#include "base/result.h"

namespace espy {

// The error of work that had to be given up. Its text is short enough to need no memory itself.
inline tl::unexpected<Error> fail_out_of_memory() { return fail("out of memory", ENOMEM); }

// Returns what `part` returns, a Status or a Result; fails with ENOMEM if memory runs out in it.
template <class Part>
auto catch_out_of_memory(Part&& part) -> decltype(part()) {
  try {
    return std::forward<Part>(part)();
  } catch (const std::bad_alloc&) {
    return fail_out_of_memory();
  }
}

// Writes the error and its hint to stderr. Does not allocate.
void report_out_of_memory();

// Makes the program end with that report where nothing catches std::bad_alloc, such as in a destructor.
void report_uncaught_out_of_memory();

}  // namespace espy

// Finds the maps whose elements can be kept with the threads that write them, in task storage.
//
// A map qualifies if each use of it is by `tid` (or by a key that `tid` determines: `pid, tid`), and if what it holds
// for other threads is never shown: it is not printed, counted or iterated, and `end` clears it before maps are
// printed. Then a script cannot tell it from a hash, except that an element ends with its thread, where a hash would
// show it to the next thread of that number, and that it follows a thread whose exec(2) changes its number.
#pragma once

#include "check/checked.h"
#include "kernel/kernel.h"
#include "spec/registry.h"

namespace espy::check {

// Sets `is_of_thread` and `storage_note` of the maps that all uses address by `tid`.
void find_thread_maps(Checked& checked, const spec::Registry& registry, const types::Types& types,
                      kernel::Kernel& kernel);

}  // namespace espy::check

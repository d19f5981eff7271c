// Rows of unwind tables for Go, whose compiler writes no .eh_frame. Internal to symbols/unwind.
#pragma once

#include <cstdint>
#include <vector>

#include "symbols/unwind.h"

namespace espy::symbols {

class ElfImage;

// Appends the rows of the functions in Go's function table, and the file offsets at which their code ends. Adds none if
// the file is not Go's, or by Go before 1.18: the table does not say there where stacks end.
void append_go_rows(const ElfImage& image, const kernel::Arch& arch, std::vector<UnwindRow>& rows,
                    std::vector<uint32_t>& ends);

}  // namespace espy::symbols

// BTF written as C: for listing what a struct, union or enum is made of.
#pragma once

#include <string>

#include "kernel/btf.h"

namespace espy::kernel {

// "struct qstr {\n\tunion {\n\t\t...\n\t};\n\tconst unsigned char *name;\n};"
std::string print_definition(const Btf& btf, const BtfRecord& record);

}  // namespace espy::kernel

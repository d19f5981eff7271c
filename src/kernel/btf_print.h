// BTF written as C: for listing what a struct, union or enum is made of.
#pragma once

#include <string>

#include "kernel/btf.h"

namespace espy::kernel {

// "struct qstr {\n\tunion {\n\t\t...\n\t};\n\tconst unsigned char *name;\n};"
std::string print_definition(const Btf& btf, const BtfRecord& record);

// The same, or that of a typedef. Before each member of a struct or union stand its offset from the outermost one's
// start, of a bit field with the bit behind a colon, and its size, all in bytes; at the end the whole size.
std::string print_layout(const Btf& btf, const BtfRecord& record);

// "ssize_t vfs_read(struct file *file, char *buf, size_t count, loff_t *pos);" of a function.
std::string print_prototype(const Btf& btf, const BtfRecord& function);

}  // namespace espy::kernel

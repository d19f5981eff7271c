// BTF as C text, for listing the definitions of structs, unions and enums.
#pragma once

#include <cstdint>
#include <string>

#include "kernel/btf.h"

namespace espy::kernel {

// "struct qstr {\n\tunion {\n\t\t...\n\t};\n\tconst unsigned char *name;\n};"
std::string print_definition(const Btf& btf, const BtfRecord& record);

// The same, also for a typedef. Before each member of a struct or union is its offset in the outermost one, for a bit
// field with the bit after a colon, and its size in bytes. The last line has the total size.
std::string print_layout(const Btf& btf, const BtfRecord& record);

// "ssize_t vfs_read(struct file *file, char *buf, size_t count, loff_t *pos);" of a function.
std::string print_prototype(const Btf& btf, const BtfRecord& function);

// "loff_t *", "enum restart (*)(struct alarm *, ktime_t)"; "void" of 0.
std::string print_type(const Btf& btf, uint32_t id);

}  // namespace espy::kernel

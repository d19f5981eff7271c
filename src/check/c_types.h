// The script's own C definitions, laid out as a C compiler for the same machine would.
#pragma once

#include "kernel/kernel.h"
#include "source/diagnostic.h"
#include "syntax/ast.h"
#include "types/type.h"

namespace espy::check {

// Puts structs, unions, enums and typedefs into `types`.
void define_c_types(const syntax::Ast& ast, types::Types& types, kernel::Kernel& kernel,
                    source::Diagnostics& diagnostics);

// "int", "unsigned long", "u32", "char"; invalid for other names.
types::TypeId c_integer(types::Types& types, std::string_view name);

}  // namespace espy::check

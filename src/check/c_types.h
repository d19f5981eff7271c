// The script's C definitions, laid out as a C compiler for the same machine does.
#pragma once

#include <string_view>

#include "kernel/kernel.h"
#include "source/diagnostic.h"
#include "syntax/ast.h"
#include "types/type.h"

namespace espy::check {

// Adds the structs, unions, enums and typedefs of `ast` to `types`. Errors go to `diagnostics`.
void define_c_types(const syntax::Ast& ast, types::Types& types, kernel::Kernel& kernel,
                    source::Diagnostics& diagnostics);

// The type of "int", "unsigned long", "u32", "char"; invalid for other names.
types::TypeId c_integer(types::Types& types, std::string_view name);

}  // namespace espy::check

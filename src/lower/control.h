// Structured control flow over a Builder, and a loop over bytes.
#pragma once

#include <cstdint>
#include <functional>

#include "ir/builder.h"

namespace espy::lower {

// Returns the value that `if_true` returns where the condition holds, else that of `if_false`.
ir::ValueId select(ir::Builder& ir, ir::Condition condition, ir::ValueId a, ir::ValueId b,
                   const std::function<ir::ValueId()>& if_true, const std::function<ir::ValueId()>& if_false);

// Runs `then` where the condition holds, else `otherwise`. Both may be null.
void when(ir::Builder& ir, ir::Condition condition, ir::ValueId a, ir::ValueId b, const std::function<void()>& then,
          const std::function<void()>& otherwise = nullptr);

// Returns 0 from the program if the condition holds; continues in a new block otherwise.
void end_program_if(ir::Builder& ir, ir::Condition condition, ir::ValueId a, ir::ValueId b);
inline void end_program_if(ir::Builder& ir, ir::Condition condition, ir::ValueId a, int64_t b) {
  end_program_if(ir, condition, a, ir.constant(b));
}
// Makes `leave` return 0 from the program and continues in `stay`.
void end_program_in(ir::Builder& ir, ir::BlockId leave, ir::BlockId stay);

// Returns the byte at `a` minus that at `b` where they first differ, else 0. Requires size_bytes >= 1.
ir::ValueId first_difference(ir::Builder& ir, ir::ValueId a, ir::ValueId b, uint32_t size_bytes);

}  // namespace espy::lower

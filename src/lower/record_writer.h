// Reserves and completes records in this CPU's ring by the protocol of program/ring.h.
#pragma once

#include <cstdint>

#include "lower/emitter.h"
#include "lower/memory.h"

namespace espy::lower {

class RecordWriter : Emitter {
 public:
  RecordWriter(ModuleContext& module, Functions& functions, Memory& memory)
      : Emitter(module, functions), memory_(memory) {}

  struct Record {
    program::EventId event;
    uint32_t size_bytes = 0;  // reserved
    BlockId done;             // continues after the record
    ValueId base;             // of the ring
    ValueId head;             // where the record begins, in bytes ever reserved
    ValueId address;
    ValueId fixed_bytes;
  };
  // Assigns the fields' offsets, adds the schema to the program and reserves a record with `tail_bytes` after its fixed
  // part. If the ring is full, counts a loss and goes to `done`.
  Record begin(program::EventSchema schema, uint32_t tail_bytes);
  // The same in the thread's own memory. If the record does not fit, runs `buffer.if_full`.
  Record begin_in(const SpanBuffer& buffer, program::EventSchema schema, uint32_t tail_bytes);
  // Completes the record. `end`: the offset in it after the last byte of the tail that is used.
  void finish(const Record& record, ValueId end, bool has_tail);

 private:
  uint32_t lay_out(program::EventSchema& schema);
  Record lay_out_record(program::EventSchema schema, uint32_t tail_bytes);
  ValueId take_sequence();
  ValueId exchange_head(ValueId base, ValueId old, ValueId next);
  ValueId ring_base(BlockId otherwise);
  ValueId reserve(ValueId base, uint32_t size_bytes, BlockId otherwise);
  ValueId reserve_in(const SpanBuffer& buffer, uint32_t size_bytes, BlockId otherwise);
  ValueId data_at(const SpanBuffer& buffer, ValueId position);
  ValueId begin_in_ring(const SpanBuffer& buffer, ValueId head, uint32_t size_bytes);
  ValueId used_by_tree(const SpanBuffer& buffer, ValueId begin, ValueId next);

  Memory& memory_;
};

}  // namespace espy::lower

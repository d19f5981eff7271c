// A live run for its viewers (--listen, --watch).
#pragma once

#include "base/result.h"
#include "output/loss_report.h"
#include "output/sink.h"
#include "program/program.h"

namespace espy::runtime {

// What the probes cost.
struct RunCost {
  output::CostReport whole;   // since the beginning
  output::CostReport lately;  // between the last two times that it was read anew, at least a second apart
};

// The state of a run, given by the session.
class LiveRun {
 public:
  virtual ~LiveRun() = default;
  virtual Result<output::MapView> read_map(program::ScriptMapId map) = 0;  // see MapReader::read
  virtual output::LossReport losses() = 0;                                 // so far
  // Also has the kernel time the programs for some milliseconds, which the next call returns.
  virtual const RunCost& cost() = 0;
};

class RunServer {
 public:
  virtual ~RunServer() = default;
  // Readable when `serve` has something to do.
  virtual int fd() const = 0;
  virtual void serve(LiveRun& run) = 0;
  virtual bool shows_cost() const { return false; }  // what LiveRun says of it has to be measured then
  virtual void stop() {}                             // the run ends: later output is its last output
  // The run is over, and the maps have their last values: sends them to the viewers, without waiting.
  virtual void end(LiveRun& run) = 0;
};

}  // namespace espy::runtime

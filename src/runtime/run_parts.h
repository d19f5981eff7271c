// What the parts of a session share. All of it must outlive the session.
#pragma once

namespace espy::load {
class Machine;
}
namespace espy::output {
class Sink;
class Writer;
}  // namespace espy::output
namespace espy::program {
struct Program;
}
namespace espy::source {
class Sources;
}
namespace espy::spec {
struct Config;
class Registry;
}  // namespace espy::spec
namespace espy::symbols {
class Symbolizer;
}
namespace espy::types {
class Types;
}

namespace espy::runtime {

struct RunParts {
  load::Machine& machine;
  const program::Program& program;  // loaded into the machine
  const types::Types& types;
  const source::Sources& sources;
  const spec::Registry& registry;
  const spec::Config& config;
  symbols::Symbolizer& symbols;
  output::Sink& sink;
  output::Writer& out;  // to which the sink writes
};

}  // namespace espy::runtime

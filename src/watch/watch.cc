#include "watch/watch.h"

#include "watch/printer.h"
#include "watch/screen.h"

namespace espy::watch {

Result<std::unique_ptr<Watch>> make_watch(WatchOptions options, const program::Program& program, output::Sink& sink) {
  return has_screen() ? Screen::create(std::move(options), program, sink)
                      : Printer::create(options.interval_ns, program, sink);
}

}  // namespace espy::watch

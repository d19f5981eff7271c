// Screen: --watch on a terminal. Reads the maps at each interval, and shows them with what its user has chosen by keys.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "output/log_sink.h"
#include "output/recent_lines.h"
#include "watch/held_sink.h"
#include "watch/keys.h"
#include "watch/page.h"
#include "watch/tables.h"
#include "watch/terminal.h"
#include "watch/watch.h"

namespace espy::watch {

class Screen final : public Watch {
 public:
  static Result<std::unique_ptr<Watch>> create(WatchOptions options, const program::Program& program,
                                               output::Sink& sink);
  ~Screen() override { stop(); }

  output::Sink& sink() override { return log_; }
  int fd() const override { return epoll_.get(); }
  void serve(runtime::LiveRun& run) override;
  void stop() override;
  void end(runtime::LiveRun&) override {}

 private:
  Screen(WatchOptions options, const program::Program& program, output::Sink& sink);
  Status start();
  Status add(int fd);
  Status begin();
  Status answer(runtime::LiveRun& run);
  void take_signals();
  void suspend();
  void take_keys();
  void take_key(const Key& key);
  void take_filter_key(const Key& key);
  void take_snapshot(runtime::LiveRun& run);
  std::string status_text() const;
  Status draw();

  WatchOptions options_;
  const program::Program& program_;
  output::RecentLines lines_;
  HeldSink held_;
  output::LogSink log_;
  Tables tables_;
  PageContent content_;
  View view_;
  Terminal terminal_;
  OwnedFd epoll_, timer_, signals_;
  sigset_t mask_before_ = {};
  bool has_begun_ = false, has_stopped_ = false;
  bool has_keys_ = true;  // false: stdin is at its end
  uint64_t started_ns_ = 0;
  uint64_t next_read_ns_ = 0;  // when the maps may be read again
};

}  // namespace espy::watch

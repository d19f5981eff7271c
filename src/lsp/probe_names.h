// The names of probes, which are listed once for each provider, and for each file of user probes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lsp/analysis.h"

namespace espy::lsp {

class ProbeNames {
 public:
  explicit ProbeNames(const Services& services) : services_(services) {}

  // Returns the names that begin with `prefix`, at most `most` of them, sorted: "kprobe:vfs_read". `prefix` has the
  // provider and its colon; of a probe in a file, the file and the next colon as well.
  std::vector<std::string> with_prefix(const std::string& prefix, size_t most);
  // Lists those of the next provider that were not listed yet, so that a completion need not. False if there is none.
  bool list_ahead();
  // Forgets all, as another kernel is in use.
  void clear() { lists_.clear(); }

 private:
  const std::vector<std::string>& list(const std::string& head);

  const Services& services_;
  std::map<std::string, std::vector<std::string>, std::less<>> lists_;
};

}  // namespace espy::lsp

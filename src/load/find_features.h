// Remembers, until the next boot, which features the kernel was found to have.
//
// The problem: a feature is found by loading a program or by creating a map, 0.1 to 1 ms each, and a short script asks
// for up to ten.
//
// The approach: a file in a directory of root, usually /run/espy/features, has the found features and a key. The key is
// the boot, the kernel, the executable, and the rights of the process. Each tool has its own file, which does not
// replace the file of espy. Another key, another format, another owner or mode of the file or the directory, and the
// content is ignored, and replaced. Only present features are kept. A missing feature may have failed for lack of
// memory, and is tried again.
//
// Limits: not used by other users than root, nor with a system call filter (seccomp), because their rights are too many
// to be compared. Not used if the state of the JIT compiler cannot be read, on which some features depend. Features
// that depend on a setting which cannot be compared are always tried.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/files.h"
#include "kernel/features.h"

namespace espy::load {

constexpr const char* kFeatureCacheDirectory = "/run/espy";

// Returns what the results depend on, in one line: they hold as long as it is the same. nullopt if nothing may be kept.
std::optional<std::string> feature_cache_key();

class FeatureCache {
 public:
  // Makes the directory, whose parent must exist, and reads the file `name` in it. Without a key, or if the directory
  // is not the caller's alone, the cache stays empty and keeps nothing.
  FeatureCache(const std::string& directory, std::string name, std::optional<std::string> key);
  FeatureCache(const FeatureCache&) = delete;
  FeatureCache& operator=(const FeatureCache&) = delete;
  // Writes the file if features were added.
  ~FeatureCache();

  // Whether the kernel has the feature: from the file, or else by `attempt`, which says so.
  template <typename Attempt>
  bool find(kernel::Feature feature, Attempt attempt) {
    if (known_.contains(feature)) return true;
    if (!attempt()) return false;
    add(feature);
    return true;
  }

 private:
  void open_directory(const std::string& path);
  void read();
  void add(kernel::Feature feature);
  void write() const;

  std::string name_;
  std::optional<std::string> key_;
  OwnedFd directory_;
  std::set<kernel::Feature> known_;
  bool is_changed_ = false;
};

}  // namespace espy::load

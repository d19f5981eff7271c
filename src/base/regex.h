// A POSIX extended regular expression.
#pragma once

#include <regex.h>

#include <memory>
#include <string>
#include <utility>

#include "base/result.h"

namespace espy {

class Regex {
 public:
  static Result<Regex> compile(const std::string& pattern);
  bool matches_somewhere(const std::string& text) const {
    return ::regexec(&*compiled_, text.c_str(), 0, nullptr, 0) == 0;
  }

 private:
  struct Free {
    void operator()(regex_t* regex) const {
      ::regfree(regex);
      delete regex;
    }
  };
  explicit Regex(std::unique_ptr<regex_t, Free> compiled) : compiled_(std::move(compiled)) {}
  std::unique_ptr<regex_t, Free> compiled_;
};

}  // namespace espy

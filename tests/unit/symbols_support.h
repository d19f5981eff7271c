// A directory that goes with its test, and programs built into it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace espy::symbols::testing {

inline bool run(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

inline std::string output_of(const std::string& command) {
  std::string out;
  std::FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
  std::array<char, 65536> chunk;
  for (size_t got = 1; pipe != nullptr && got > 0;) {
    got = std::fread(chunk.data(), 1, chunk.size(), pipe);
    out.append(chunk.data(), got);
  }
  if (pipe != nullptr) ::pclose(pipe);
  return out;
}

inline bool has_tool(const std::string& name) { return run("command -v " + name); }

// What this process has read by read(2) and its like; 0 if the kernel does not count it.
inline uint64_t read_bytes() {
  std::ifstream file("/proc/self/io");
  std::string word;
  uint64_t out = 0;
  file >> word >> out;
  return word == "rchar:" ? out : 0;
}

class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "espy-symbols-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path(std::string_view file) const { return path_ + "/" + std::string(file); }
  std::string write(std::string_view file, std::string_view text) const {
    std::ofstream(path(file)) << text;
    return path(file);
  }
  // Compiles `source` (C or C++, by the compiler's name) to an executable; gives its path.
  std::string build(std::string_view name, std::string_view source, const std::string& flags,
                    const std::string& compiler = "cc") const {
    const std::string file = write(std::string(name) + (compiler.ends_with("++") ? ".cc" : ".c"), source);
    EXPECT_TRUE(run(compiler + " " + flags + " -o " + path(name) + " " + file)) << compiler << " " << flags;
    return path(name);
  }

 private:
  std::string path_;
};

// A running program, connected by pipes. `finish` lets it read the end of its input and waits for it.
class Child {
 public:
  explicit Child(const std::vector<std::string>& command) {
    int to_child[2], from_child[2];
    if (::pipe2(to_child, O_CLOEXEC) != 0 || ::pipe2(from_child, O_CLOEXEC) != 0) return;
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(to_child[0], 0);
      ::dup2(from_child[1], 1);
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    ::close(to_child[0]);
    ::close(from_child[1]);
    input_ = to_child[1];
    output_ = ::fdopen(from_child[0], "r");
  }
  ~Child() { finish(); }

  uint32_t pid() const { return static_cast<uint32_t>(pid_); }
  std::string read_line() {
    std::array<char, 4096> line;
    if (output_ == nullptr || std::fgets(line.data(), line.size(), output_) == nullptr) return "";
    std::string out = line.data();
    while (out.ends_with('\n')) out.pop_back();
    return out;
  }
  uint64_t read_address() { return std::strtoull(read_line().c_str(), nullptr, 16); }
  void write_line(std::string_view line) {
    EXPECT_EQ(::write(input_, (std::string(line) + "\n").c_str(), line.size() + 1),
              static_cast<ssize_t>(line.size() + 1));
  }
  void finish() {
    if (pid_ <= 0) return;
    ::close(input_);
    std::fclose(output_);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  std::FILE* output_ = nullptr;
};

}  // namespace espy::symbols::testing

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/untrusted_file.h"

namespace espy {
namespace {

using ::testing::HasSubstr;

class UntrustedFileTest : public ::testing::Test {
 protected:
  UntrustedFileTest() {
    std::string name = (std::filesystem::temp_directory_path() / "espy-untrusted-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) directory_ = name;
  }
  ~UntrustedFileTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name)) << text;
    return path(name);
  }

  std::string directory_;
};

TEST_F(UntrustedFileTest, ReadsARegularFile) {
  const std::string text(200'000, 'x');
  EXPECT_EQ(read_untrusted(write("a", text), kMaxTextBytes).value_or(""), text);
  const auto file = open_untrusted(path("a"), kMaxTextBytes);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->size_bytes, text.size());
  EXPECT_EQ(file->read_at(199'999, 10).value_or(""), "x");
  EXPECT_EQ(file->read_at(300'000, 10).value_or("?"), "");
}

TEST_F(UntrustedFileTest, RefusesWhatIsNoRegularFile) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);  // with a plain open, the test does not end
  std::filesystem::create_symlink("/dev/zero", path("zero"));
  for (const std::string& each : {path("fifo"), path("zero"), directory_, std::string("/dev/null")}) {
    const auto file = open_untrusted(each, UINT64_MAX);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().message, each + " is not a file");
    EXPECT_EQ(file.error().code, kRefusedFile);
  }
  EXPECT_EQ(open_untrusted(path("none"), UINT64_MAX).error().code, ENOENT);
}

TEST_F(UntrustedFileTest, DoesNotOpenWhatItRefuses) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  const OwnedFd watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_TRUE(watch.valid());
  ASSERT_GE(::inotify_add_watch(watch.get(), path("fifo").c_str(), IN_OPEN), 0);
  EXPECT_FALSE(open_untrusted(path("fifo"), UINT64_MAX));
  char event[sizeof(inotify_event) + 256];
  EXPECT_EQ(::read(watch.get(), event, sizeof(event)), -1) << "it was opened";
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(UntrustedFileTest, RefusesWhatIsTooLarge) {
  write("a", "12345");
  EXPECT_TRUE(read_untrusted(path("a"), 5));
  EXPECT_THAT(read_untrusted(path("a"), 4).error().message, HasSubstr("is too large"));
  // Sparse: a terabyte in no space.
  ASSERT_EQ(::truncate(path("a").c_str(), off_t{1} << 40), 0);
  EXPECT_THAT(read_untrusted(path("a"), kMaxTextBytes).error().message, HasSubstr("at most 64 MiB are read"));
}

TEST_F(UntrustedFileTest, AFileThatShrinksGivesFewerBytes) {
  const auto file = open_untrusted(write("a", std::string(10'000, 'x')), kMaxTextBytes);
  ASSERT_TRUE(file);
  ASSERT_EQ(::truncate(path("a").c_str(), 5'000), 0);
  EXPECT_EQ(file->read_at(0, 10'000).value_or("").size(), 5'000u);
}

TEST_F(UntrustedFileTest, AStreamIsReadUpToTheLimit) {
  EXPECT_EQ(read_stream(write("a", "text"), 4).value_or(""), "text");
  EXPECT_FALSE(read_stream(path("a"), 3));
  EXPECT_THAT(read_stream("/dev/zero", 1 << 20).error().message, HasSubstr("is too large"));
}

TEST_F(UntrustedFileTest, TheOwnerIsAUserOrRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  write("a", "text");
  EXPECT_TRUE(open_untrusted(path("a"), kMaxTextBytes, 1000));
  ASSERT_EQ(::chown(path("a").c_str(), 1000, 1000), 0);
  EXPECT_TRUE(open_untrusted(path("a"), kMaxTextBytes, 1000));
  EXPECT_THAT(open_untrusted(path("a"), kMaxTextBytes, 1001).error().message,
              HasSubstr("belongs to user 1000, not to user 1001 or root"));
  EXPECT_FALSE(open_untrusted(path("a"), kMaxTextBytes, 0));
}

// A user can give such a file another name by a symbolic link, by a mount in a namespace of their own, and, where
// fs.protected_hardlinks is 0, by a hard link.
TEST_F(UntrustedFileTest, WhatOnlyRootMayReadIsNotShownToAUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  constexpr uid_t kUser = 1000;
  const auto reason = [&](const char* name, uid_t owner) {
    const auto file = open_untrusted(path(name), kMaxTextBytes, owner);
    return file ? "" : file.error().message;
  };
  write("secret", "text");
  ASSERT_EQ(::chmod(path("secret").c_str(), 0600), 0);
  EXPECT_THAT(reason("secret", kUser), HasSubstr("may be hidden from user 1000"));
  EXPECT_EQ(reason("secret", 0), "");
  std::filesystem::create_symlink("secret", path("link"));
  std::filesystem::create_directory_symlink(".", path("directory"));
  for (const uid_t user : {kUser, uid_t{0}}) EXPECT_THAT(reason("link", user), HasSubstr("link is not a file"));
  EXPECT_EQ(reason("directory/secret", 0), "");
  std::filesystem::create_hard_link(path("secret"), path("hard"));
  for (const uid_t user : {kUser, uid_t{0}}) EXPECT_THAT(reason("hard", user), HasSubstr("has other hard links"));
  std::filesystem::remove(path("hard"));
  ASSERT_EQ(::chmod(path("secret").c_str(), 0644), 0);
  EXPECT_EQ(reason("secret", kUser), "");
  // In a process of its own, whose mounts go with it.
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_mounted = ::unshare(CLONE_NEWNS) == 0 &&
                            ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                            ::mount(write("map", "").c_str(), path("map").c_str(), nullptr, MS_BIND, nullptr) == 0;
    ::_exit(!is_mounted ? 2 : reason("map", 0).ends_with("map is a mount") ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_NE(WEXITSTATUS(status), 1);
}

// A process in a chroot, which waits until the pipe is closed.
class Chrooted {
 public:
  explicit Chrooted(const std::string& root) {
    int waits[2], ready[2];
    if (::pipe(waits) != 0 || ::pipe(ready) != 0) return;
    pid_ = ::fork();
    char byte = 0;
    if (pid_ == 0) {
      ::close(waits[1]);
      const bool is_done = ::chroot(root.c_str()) == 0 && ::chdir("/") == 0;
      [[maybe_unused]] const auto put = ::write(ready[1], is_done ? "y" : "n", 1);
      ::_exit(static_cast<int>(::read(waits[0], &byte, 1)));
    }
    ::close(waits[0]);
    end_ = waits[1];
    is_ready_ = ::read(ready[0], &byte, 1) == 1 && byte == 'y';
    ::close(ready[0]), ::close(ready[1]);
  }
  ~Chrooted() {
    ::close(end_);
    ::waitpid(pid_, nullptr, 0);
  }
  bool is_ready() const { return is_ready_; }
  std::string path(const std::string& inside) const { return "/proc/" + std::to_string(pid_) + "/root" + inside; }

 private:
  pid_t pid_ = -1;
  int end_ = -1;
  bool is_ready_ = false;
};

TEST_F(UntrustedFileTest, LinksInTheRootOfAProcessStayThere) {
  write("secret", "of the host");
  write("root/secret", "of the process");
  write("root" + path("secret"), "below the same path");
  std::filesystem::create_symlink(path("secret"), path("root/absolute"));
  std::filesystem::create_symlink("../../../../../../../.." + path("secret"), path("root/relative"));
  std::filesystem::create_symlink("/secret", path("root/near"));
  const Chrooted process(path("root"));
  if (!process.is_ready()) GTEST_SKIP() << "needs chroot";
  EXPECT_EQ(read_untrusted(process.path("/absolute"), kMaxTextBytes).value_or(""), "below the same path");
  EXPECT_EQ(read_untrusted(process.path("/relative"), kMaxTextBytes).value_or(""), "below the same path");
  EXPECT_EQ(read_untrusted(process.path("/near"), kMaxTextBytes).value_or(""), "of the process");
  EXPECT_TRUE(is_in_process_root(process.path("/near")));
  EXPECT_FALSE(is_in_process_root("/proc/self/root/near"));
}

TEST_F(UntrustedFileTest, ADescriptorIsAPath) {
  const auto file = open_untrusted(write("a", "text"), kMaxTextBytes);
  ASSERT_TRUE(file);
  std::filesystem::remove(path("a"));
  EXPECT_EQ(read_untrusted(descriptor_path(file->fd), kMaxTextBytes).value_or(""), "text");
}

}  // namespace
}  // namespace espy

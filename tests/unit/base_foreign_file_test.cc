#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "base/untrusted_file.h"

namespace espy {
namespace {

std::string in_our_proc(const std::string& name) { return "/proc/" + std::to_string(::getpid()) + "/" + name; }

class WrittenFile {
 public:
  explicit WrittenFile(const std::string& content) : file_(::mkstemp(path_)) {
    EXPECT_EQ(::write(file_.get(), content.data(), content.size()), static_cast<ssize_t>(content.size()));
  }
  ~WrittenFile() { ::unlink(path_); }
  std::string path() const { return path_; }

 private:
  char path_[32] = "/tmp/espy-foreign-XXXXXX";
  OwnedFd file_;
};

TEST(ForeignFile, OurMountsAreNotForeign) {
  EXPECT_FALSE(is_behind_foreign_mount("/etc/passwd"));
  EXPECT_FALSE(is_behind_foreign_mount(in_our_proc("exe")));
  EXPECT_FALSE(is_behind_foreign_mount(in_our_proc("root/etc/passwd")));
  EXPECT_FALSE(is_behind_foreign_mount(in_our_proc("maps")));
  EXPECT_FALSE(is_behind_foreign_mount("/proc/self/fd/0"));
  EXPECT_FALSE(is_behind_foreign_mount("/proc/4294967295/root/etc/passwd"));
}

TEST(ForeignFile, AChildCopies) {
  const std::string content = std::string(3 << 20, 'a') + "end";
  const WrittenFile file(content);
  const auto open = [&] { return open_untrusted(file.path(), UINT64_MAX); };
  const auto direct = open();
  ASSERT_TRUE(direct);
  for (int i = 0; i < 2; ++i) {  // the second time it is known
    const auto copied = open_in_child(file.path(), open);
    ASSERT_TRUE(copied) << copied.error().message;
    EXPECT_EQ(copied->identity(), direct->identity());
    EXPECT_EQ(copied->read_at(0, content.size() + 1).value_or(""), content);
  }
  EXPECT_EQ(state_in_child(file.path(), open), direct->state());
}

TEST(ForeignFile, AnErrorIsThatOfTheChild) {
  const auto found = open_in_child("/nowhere", [] { return open_untrusted("/nowhere", UINT64_MAX); });
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ENOENT);
  EXPECT_EQ(found.error().message, open_untrusted("/nowhere", UINT64_MAX).error().message);
  EXPECT_FALSE(state_in_child("/nowhere", [] { return open_untrusted("/nowhere", UINT64_MAX); }));
}

TEST(ForeignFile, AChildThatTakesLongIsLeftAlone) {
  const auto wait = [&]() -> Result<UntrustedFile> {
    ::alarm(10);  // ends the child
    ::pause();
    return fail("");
  };
  const auto found = open_in_child("late", wait);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, kRefusedFile);
  EXPECT_THAT(found.error().message, ::testing::HasSubstr("takes too long"));
}

}  // namespace
}  // namespace espy

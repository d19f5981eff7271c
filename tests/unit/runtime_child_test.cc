#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>

#include "base/end_request.h"
#include "runtime/child.h"

namespace espy::runtime {
namespace {

using ::testing::ElementsAre;

TEST(Child, WordsAreThoseOfAShell) {
  const auto words = [](const std::string& command) { return split_command(command).value(); };
  EXPECT_THAT(words("a  b\tc\nd"), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(words(R"(grep 'two words' "a b"c '' "" \'x\ y\")"),
              ElementsAre("grep", "two words", "a bc", "", "", "'x y\""));
  EXPECT_THAT(words(R"("a\nb" "100\%" "C:\d\\" "\"\$\`" 'a\nb' '\')"),
              ElementsAre("a\\nb", "100\\%", "C:\\d\\", "\"$`", "a\\nb", "\\"));
  EXPECT_THAT(words("a\\\nb c\\"), ElementsAre("ab", "c\\"));
  for (const char* unended : {"a \"b", "a 'b", R"("a\")"}) EXPECT_FALSE(split_command(unended)) << unended;
}

TEST(Child, OneThatIsStoppedBeforeItBeginsDoesNotHoldTheEnd) {
  auto child = Child::start("sleep 60");
  ASSERT_TRUE(child);
  const auto pid = static_cast<pid_t>(child->pid());
  ::kill(pid, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, WUNTRACED), pid);
  request_end();
  const Status begun = child->let_go();
  EXPECT_TRUE(!begun && begun.error().code == ECANCELED);
  EXPECT_TRUE(child->end());
  EXPECT_EQ(::kill(pid, 0), -1);
  reset_end_request();
}

}  // namespace
}  // namespace espy::runtime

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>

#include "base/end_request.h"
#include "runtime/child.h"

namespace espy::runtime {
namespace {

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

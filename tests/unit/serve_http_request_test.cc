// What an answer reads of a request, and the addresses of a server.
#include <gtest/gtest.h>

#include <string>

#include "serve/http_server.h"

namespace espy::serve {
namespace {

TEST(HttpRequest, FindsParameters) {
  EXPECT_EQ(query_parameter("token=abc&x", "token"), "abc");
  EXPECT_EQ(query_parameter("y=1&token=", "token"), "");
  EXPECT_EQ(query_parameter("xtoken=abc", "token"), "");
  EXPECT_EQ(query_parameter("", "token"), "");
}

TEST(HttpRequest, ComparesTokens) {
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  EXPECT_FALSE(equal_in_constant_time("abc", "abd"));
  EXPECT_FALSE(equal_in_constant_time("abc", "ab"));
}

// ---- Addresses

TEST(Address, IsTheLoopbackUnlessTheTextSaysOtherwise) {
  for (const auto& [text, url] : {std::pair("9435", "http://127.0.0.1:9435/"),
                                  {":9435", "http://127.0.0.1:9435/"},
                                  {"localhost:1", "http://127.0.0.1:1/"},
                                  {"127.0.0.2:1", "http://127.0.0.2:1/"},
                                  {"[::1]:1", "http://[::1]:1/"},
                                  {"[::ffff:127.0.0.1]:1", "http://[::ffff:127.0.0.1]:1/"}}) {
    const auto address = parse_address(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->url(), url);
    EXPECT_TRUE(address->is_loopback) << text;
  }
  for (const char* text : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:10.0.0.1]:1"})
    EXPECT_FALSE(parse_address(text)->is_loopback) << text;
  for (const char* text :
       {"", ":", "x", "1.2.3.4", "1.2.3.4:", "1.2.3.4:65536", "::1:1", "[1.2.3.4]:1", "[]:1", "a.b:1", "-1"})
    EXPECT_FALSE(parse_address(text)) << text;
}

TEST(Address, KnowsTheNamesOfTheLoopback) {
  for (const char* host :
       {"localhost", "LocalHost:80", "127.0.0.1", "127.0.0.1:9435", "[::1]", "[::1]:1", "127.1.2.3:5"})
    EXPECT_TRUE(is_loopback_name(host)) << host;
  for (const char* host : {"", ":80", "[", "[]", "[::1", "example.com", "localhost.example.com",
                           "127.0.0.1.example.com", "10.0.0.1", "[::]", "127.0.0.1:80:80"})
    EXPECT_FALSE(is_loopback_name(host)) << host;
}

}  // namespace
}  // namespace espy::serve

// Requests: what is accepted, and what is refused with which status.
#include <gtest/gtest.h>

#include <string>

#include "serve/address.h"
#include "serve/http_request.h"

namespace espy::serve {
namespace {

const std::string kHost = "Host: localhost\r\n";

RequestState state_of(const std::string& bytes) { return parse_request(bytes).state; }

TEST(HttpRequest, ReadsTheFieldsThatMatter) {
  const std::string text =
      "GET /metrics?token=abc&x HTTP/1.1\r\nhOST:  [::1]:9435 \r\nAccept: a/b\r\nAuthorization: Bearer x\r\n\r\n";
  const std::string bytes = text + "GET ";
  const ParsedRequest parsed = parse_request(bytes);
  ASSERT_EQ(parsed.state, RequestState::kComplete);
  EXPECT_EQ(parsed.size_bytes, text.size());
  EXPECT_EQ(parsed.request.method, "GET");
  EXPECT_EQ(parsed.request.path, "/metrics");
  EXPECT_EQ(query_parameter(parsed.request.query, "token"), "abc");
  EXPECT_EQ(query_parameter(parsed.request.query, "x"), "");
  EXPECT_EQ(parsed.request.host, "[::1]:9435");
  EXPECT_EQ(parsed.request.accept, "a/b");
  EXPECT_EQ(parsed.request.authorization, "Bearer x");
  EXPECT_TRUE(parsed.request.keeps_alive);
}

TEST(HttpRequest, IsIncompleteUpToItsLastByte) {
  const std::string text = "GET / HTTP/1.1\r\n" + kHost + "\r\n";
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_EQ(state_of(text.substr(0, size)), RequestState::kIncomplete) << size;
  EXPECT_EQ(state_of(text), RequestState::kComplete);
}

TEST(HttpRequest, ClosesTheConnectionWhereItIsAsked) {
  EXPECT_FALSE(parse_request("GET / HTTP/1.0\r\n" + kHost + "\r\n").request.keeps_alive);
  EXPECT_FALSE(parse_request("GET / HTTP/1.1\r\n" + kHost + "Connection: Close\r\n\r\n").request.keeps_alive);
}

TEST(HttpRequest, RefusesWhatHasNoForm) {
  for (const std::string line : {"GET /", "GET / HTTP/2", "GET  / HTTP/1.1", "GET x HTTP/1.1", "GET /\x01 HTTP/1.1",
                                 "G T / HTTP/1.1", " GET / HTTP/1.1", "GET http://x/ HTTP/1.1", ""})
    EXPECT_EQ(state_of(line + "\r\n" + kHost + "\r\n"), RequestState::kMalformed) << line;
  for (const std::string header : {"x", ": x", "A B: c", " A: b", "A: \x01", "Host: other"})
    EXPECT_EQ(state_of("GET / HTTP/1.1\r\n" + kHost + header + "\r\n\r\n"), RequestState::kMalformed) << header;
  EXPECT_EQ(state_of("GET / HTTP/1.1\r\n\r\n"), RequestState::kMalformed);  // no Host
}

TEST(HttpRequest, RefusesBodiesAndLargeHeads) {
  EXPECT_EQ(state_of("GET / HTTP/1.1\r\n" + kHost + "Content-Length: 1\r\n\r\nx"), RequestState::kHasBody);
  EXPECT_EQ(state_of("GET / HTTP/1.1\r\n" + kHost + "Transfer-Encoding: chunked\r\n\r\n"), RequestState::kHasBody);
  EXPECT_EQ(state_of("GET / HTTP/1.1\r\n" + kHost + "Content-Length: 0\r\n\r\n"), RequestState::kComplete);
  EXPECT_EQ(state_of(std::string(kMaxRequestBytes - 1, 'a')), RequestState::kIncomplete);
  EXPECT_EQ(state_of(std::string(kMaxRequestBytes, 'a')), RequestState::kTooLarge);
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

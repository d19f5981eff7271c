// The page of a run: one HTML text with its style and script, and nothing from elsewhere.
#pragma once

#include <string>
#include <string_view>

namespace espy::serve {

// `nonce`: what the policy of the response (Content-Security-Policy) names; the style and the script carry it.
std::string make_page(std::string_view nonce);

}  // namespace espy::serve

#include "serve/page.h"

#include <fmt/format.h>

#include "serve/page_flame.h"
#include "serve/page_script.h"
#include "serve/page_style.h"
#include "serve/page_views.h"

namespace espy::serve {

namespace {

constexpr std::string_view kBody = R"(<header>
<h1>espy</h1><span class="state">connecting</span><span class="elapsed rate"></span><span class="space"></span>
<button type="button" class="pause" aria-pressed="false" title="p">Pause</button>
<button type="button" class="save" title="save all that is shown as JSON">Save</button>
<button type="button" class="theme" title="dark or light: t">Theme</button>
</header>
<div class="page"><main aria-label="maps"></main>
<aside aria-label="losses and cost"><h2>lost</h2><dl class="losses"></dl><h2>cost</h2><dl class="cost"></dl><h2>dearest probes</h2><dl class="programs"></dl></aside></div>
<noscript><p>This page needs a script. The numbers are also at <a href="metrics">/metrics</a>.</p></noscript>
)";

constexpr std::string_view kIcon =
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cg fill='%23e0813f'%3E"
    "%3Crect x='1' y='9' width='14' height='5'/%3E%3Crect x='4' y='3' width='6' height='5'/%3E%3C/g%3E%3C/svg%3E";

}  // namespace

std::string make_page(std::string_view nonce) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>espy</title>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" href=\"{0}\">\n"
      "<style nonce=\"{1}\">{2}</style>\n</head>\n<body>\n{3}<script nonce=\"{1}\">'use "
      "strict';{4}{5}{6}start();</script>\n"
      "</body>\n</html>\n",
      kIcon, nonce, kPageStyle, kBody, kPageScript, kPageViews, kPageFlame);
}

}  // namespace espy::serve

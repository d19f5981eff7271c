#!/usr/bin/env python3
"""The website of scripts/make-site: each link leads to a page and a heading that are there, nothing is loaded from other hosts,
and the search knows the pages. Status 77 without MkDocs and its theme Material."""

import html.parser
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids.add(attrs.get("id"))
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        elif tag in ("img", "script", "iframe") and attrs.get("src"):
            self.loaded.append(attrs["src"])
        elif tag == "link" and attrs.get("rel") in ("stylesheet", "icon", "preconnect"):
            self.loaded.append(attrs["href"])


def problems_of(site):
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}
    if len(pages) < 50:
        yield f"{len(pages)} pages only"
    for path, page in pages.items():
        place = path.relative_to(site)
        for link in page.links + page.loaded:
            file, _, fragment = urllib.parse.unquote(link).partition("#")
            if "//" in file:
                if link in page.loaded:
                    yield f"{place} loads {link}"
                continue
            target = (path.parent / file).resolve() if file else path
            if not target.is_file():
                yield f"{place}: {link}: there is no such file"
            elif fragment and target in pages and fragment not in pages[target].ids:
                yield f"{place}: {link}: there is no such heading"
    words = json.loads((site / "search/search_index.json").read_text())["docs"]
    if not any(entry["location"] == "docs/reference/running.html#losses" for entry in words):
        yield "the search does not know the section about losses"


def main():
    if shutil.which("mkdocs") is None:
        print("mkdocs is missing: scripts/install-deps site")
        return 77
    with tempfile.TemporaryDirectory(prefix="espy-site-") as directory:
        site = pathlib.Path(directory).resolve() / "site"
        done = subprocess.run([ROOT / "scripts/make-site", site], capture_output=True, text=True, check=False)
        if "Unrecognised theme name" in done.stderr:
            print("mkdocs-material is missing: scripts/install-deps site")
            return 77
        if done.returncode != 0:
            print(done.stderr)
            return 1
        problems = list(problems_of(site))
    print(*problems, sep="\n", end="\n" if problems else "")
    return 1 if problems else 0


sys.exit(main())

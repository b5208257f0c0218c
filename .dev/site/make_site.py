#!/usr/bin/python3
# SPDX-License-Identifier: MIT
#
# usage: make_site.py SOURCE-ROOT SITE TAG-FILE
#
# Makes the pages of the site from the Markdown of the repository, beside the API that Doxygen has made: a page stands where its
# text stands, README.md is index.html. A file that a page links to becomes a page with its text, a folder one with its files.
# A name of the API between backquotes becomes a link. Pictures are drawn by pictures.py. Nothing is left out in silence: a link
# that leads nowhere, a heading that is not there and a page that is not listed are errors.
import html
import os
import pathlib
import re
import sys
import textwrap
import urllib.parse
import xml.etree.ElementTree

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from pictures import Refused, picture_of  # noqa: E402

PICTURES = ("states", "dot", "chain")
# The pages that the head of every page leads to.
HEAD = (("Tutorial", "proto/guide/tutorial"), ("Which lock", "proto/guide/which_lock"), ("Guide", "proto/guide/index"),
        ("Papers", "proto/index"), ("API", "api/index"))
# The guide, in the order in which it is read.
GUIDE = ("tutorial", "which_lock", "pictures", "locks", "asio_loop", "c", "command", "install", "cost", "platforms",
         "from_redis_plus_plus", "from_redisson", "from_redsync", "from_flock")
PAPERS = ("lock", "redlock", "handoff", "interop", "topology", "asio", "resp2", "security", "verification")
OTHERS = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "examples/firmware/README.md")

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="stylesheet" href="{up}api/site.css">
</head>
<body>
<header class="top"><a class="name" href="{up}index.html">holdfast</a>
<nav>{head}</nav></header>
<main>
{toc}{body}
</main>
<footer>{foot}</footer>
</body>
</html>
"""


def slug_of(text):
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"`|\[|\]\([^)]*\)", "", text).lower()).replace(" ", "-")


class Api:
    """Where Doxygen has put which name."""

    def __init__(self, tag_file):
        self.pages = {}
        self.headers = {}
        for compound in xml.etree.ElementTree.parse(tag_file).getroot():
            name, page = compound.findtext("name"), compound.findtext("filename")
            kind = compound.get("kind")
            if kind == "file":
                self.headers[compound.findtext("path").split("include/")[-1] + name] = page
            for member in compound.findall("member"):
                if kind == "namespace" or page == "holdfast_8h.html":
                    anchor = f"{member.findtext('anchorfile')}#{member.findtext('anchor')}"
                    self.pages.setdefault(member.findtext("name"), anchor)
        for compound in xml.etree.ElementTree.parse(tag_file).getroot():
            if compound.get("kind") in ("class", "struct"):
                self.pages[compound.findtext("name").split("::")[-1]] = compound.findtext("filename")

    def page_of(self, words):
        """The page of `Mutex`, of `Mutex lock(...)` none."""
        match = re.fullmatch(r"(?:holdfast::)?(\w+)(?:<\w*>)?(?:\(\))?", words)
        return self.pages.get(match.group(1)) if match else None


class Site:
    def __init__(self, root, out, tag_file):
        self.root = pathlib.Path(root).resolve()
        self.out = pathlib.Path(out)
        self.api = Api(tag_file)
        self.markdown = MarkdownIt("commonmark").enable("table")
        self.files = {}  # What pages lead to, as files or folders of the repository; and from where.
        self.anchors = {}
        self.wanted = []
        self.linked = set()

    # ---- Links ----

    def page_of(self, file):
        """The page of a file of the repository, as a path below the site."""
        if file == "README.md":
            return "index.html"
        if file.endswith(".md"):
            return re.sub(r"README\.md$", "index.md", file)[:-3] + ".html"
        if (self.root / file).is_dir():
            return f"{file}/index.html".replace("./", "")
        if file.startswith("include/") and file[8:] in self.api.headers:
            return "api/" + self.api.headers[file[8:]]
        return file.lstrip(".") + ".html"

    def target(self, source, href):
        """Where a link of a Markdown file leads, relative to its page."""
        if re.match(r"[a-z]+:", href):
            return href
        path, _, anchor = href.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(source), urllib.parse.unquote(path))) if path else source
        if not (self.root / file).exists() and not file.startswith("api/"):
            raise Refused(f"{source}: a link leads to {href}, which is not there")
        if file.endswith(".md"):
            self.linked.add(file)
            if anchor:
                self.wanted.append((source, file, anchor))
        elif not self.page_of(file).startswith("api/"):
            self.files.setdefault(file, source)
        return self.relative(source, self.page_of(file)) + (f"#{anchor}" if anchor else "")

    def relative(self, source, page):
        return os.path.relpath(page, os.path.dirname(self.page_of(source)) or ".")

    # ---- Pages ----

    def write(self, source, title, body, toc=""):
        page = self.page_of(source)
        up = "../" * page.count("/")
        head = "".join(f'<a href="{self.relative(source, name + ".html")}">{text}</a>' for text, name in HEAD)
        foot = "".join(f'<a href="{self.relative(source, self.page_of(file))}">{text}</a>' for text, file in
                       (("Changes", "CHANGELOG.md"), ("Contributing", "CONTRIBUTING.md"), ("Licence", "LICENSE")))
        self.files.setdefault("LICENSE", source)
        path = self.out / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PAGE.format(title=html.escape(title), up=up, head=head, toc=toc, body=body, foot=foot),
                        encoding="utf-8")

    def code(self, language, text):
        try:
            lexer = get_lexer_by_name({"c++": "cpp", "": "text"}.get(language, language), stripall=False)
        except ClassNotFound:
            lexer = get_lexer_by_name("text")
        return highlight(textwrap.dedent(text), lexer, HtmlFormatter(cssclass="code"))

    def render(self, source):
        text = (self.root / source).read_text(encoding="utf-8")
        tokens = self.markdown.parse(text)
        title, toc, anchors = source, [], set()
        for at, token in enumerate(tokens):
            if token.type == "heading_open":
                words = tokens[at + 1].content
                slug = slug_of(words)
                anchors.add(slug)
                token.attrSet("id", slug)
                if token.tag == "h1":
                    title = re.sub(r"`", "", words)
                elif token.tag == "h2":
                    toc.append(f'<a href="#{slug}">{html.escape(re.sub(r"[`]", "", words))}</a>')
            for child in token.children or []:
                if child.type == "link_open":
                    child.attrSet("href", self.target(source, child.attrGet("href")))
        self.anchors[source] = anchors
        self.link_names(source, tokens)
        pieces = []
        for token in tokens:
            if token.type == "fence" and token.info.strip() in PICTURES:
                picture = picture_of(token.info.strip(), token.content, self.root)
                hint = "<figcaption>The picture is wider than the page: it moves.</figcaption>" if "large" in picture[:60] else ""
                pieces.append((token, f'<figure class="picture">{picture}{hint}</figure>\n'))
            elif token.type == "fence":
                pieces.append((token, self.code(token.info.strip(), token.content)))
        for token, made in pieces:
            token.type, token.content = "html_block", made
        # Two blocks of code that follow each other are shown side by side: theirs and ours.
        for one, other in zip(tokens, tokens[1:]):
            if one.info != "cpp" and one.content.startswith('<div class="code">') and other.content.startswith('<div class="code">'):
                one.content, other.content = '<div class="beside">' + one.content, other.content + "</div>\n"
        body = self.markdown.renderer.render(tokens, self.markdown.options, {})
        body = re.sub(r"<table>.*?</table>", lambda match: self.table(match.group()), body, flags=re.DOTALL)
        contents = f'<nav class="contents"><b>On this page</b>{"".join(toc)}</nav>\n' if len(toc) > 2 else ""
        self.write(source, f"{title}: holdfast" if title != "holdfast" else title, body, contents)
        return title

    @staticmethod
    def table(text):
        """A table that can be moved; of three columns and more a narrow page shows each row as a card, with the columns' names."""
        names = [re.sub(r"<.*?>", "", name) for name in re.findall(r"<th[^>]*>(.*?)</th>", text, re.DOTALL)]
        if len(names) < 3:
            return f'<div class="wide">{text}</div>'

        def labelled(row):
            cells = iter(names)
            return re.sub(r"<td([^>]*)>", lambda cell: f'<td{cell.group(1)} data-name="{next(cells)}">', row.group())

        return f'<div class="wide cards">{re.sub(r"<tr>.*?</tr>", labelled, text, flags=re.DOTALL)}</div>'

    def link_names(self, source, tokens):
        """`Mutex` leads to its page of the API, outside of headings and of links."""
        heading = False
        for token in tokens:
            if token.type in ("heading_open", "heading_close"):
                heading = token.type == "heading_open"
            depth = 0
            for child in token.children or []:
                depth += {"link_open": 1, "link_close": -1}.get(child.type, 0)
                page = self.api.page_of(child.content) if child.type == "code_inline" and not depth and not heading else None
                if page:
                    child.type = "html_inline"
                    href = self.relative(source, "api/" + page)
                    child.content = f'<a href="{href}"><code>{html.escape(child.content)}</code></a>'

    def list_page(self, source, title, words, entries):
        rows = "".join(f'<li><a href="{self.relative(source, page)}">{html.escape(name)}</a>{about}</li>\n'
                       for name, page, about in entries)
        self.write(source, f"{title}: holdfast", f"<h1>{title}</h1>\n<p>{words}</p>\n<ul class=\"list\">\n{rows}</ul>\n")

    def file_page(self, file):
        path = self.root / file
        if path.is_dir():
            entries = sorted(each for each in path.rglob("*") if each.is_file())
            for each in entries:
                name = str(each.relative_to(self.root))
                if not name.endswith(".md"):
                    self.files.setdefault(name, file)
            self.list_page(file + "/README.md", html.escape(file), "The files of this folder.",
                           [(str(each.relative_to(path)), self.page_of(str(each.relative_to(self.root))), "") for each in entries])
            return
        text = path.read_text(encoding="utf-8")
        try:
            body = highlight(text, get_lexer_for_filename(file), HtmlFormatter(cssclass="code"))
        except ClassNotFound:
            body = self.code("text", text)
        self.write(file, f"{file}: holdfast", f"<h1>{html.escape(file)}</h1>\n{body}")

    def api_page(self):
        """The headers, and the sentence at the head of each."""
        groups = {"": "For programs", "asio": "On an Asio loop", "core": "For drivers: what is free of I/O",
                  "proto": "What crosses the wire", "detail": "What the others are made of"}
        parts = {name: [] for name in groups}
        for header in sorted(self.api.headers):
            text = (self.root / "include" / header).read_text(encoding="utf-8")
            found = re.match(r"(?://|/\*) SPDX[^\n]*\n(?://|\s\*)\n((?:(?://|\s\*) [^\n]*\n)+)", text)
            if not found:
                raise Refused(f"include/{header} does not say what it is")
            words = re.sub(r"^(//| \*) ?", "", found.group(1), flags=re.MULTILINE).replace("\n", " ")
            sentence = re.match(r".*?[.:](?= |$)", words).group().rstrip(":")
            folder = header.split("/")[1] if header.count("/") > 1 else ""
            parts[folder].append((header, self.api.headers[header], sentence))
        body = ["<h1>The API</h1>\n<p>From the comments of the headers, which are the contract.</p>\n"]
        for folder, title in groups.items():
            body.append(f"<h2>{title}</h2>\n<dl class=\"headers\">\n")
            body += [f'<dt><a href="{page}"><code>{header}</code></a></dt><dd>{html.escape(sentence.replace("`", ""))}</dd>\n'
                     for header, page, sentence in parts[folder]]
            body.append("</dl>\n")
        self.write("api/README.md", "The API: holdfast", "".join(body))

    def make(self):
        titles = {}
        guide = [f"proto/guide/{name}.md" for name in GUIDE]
        papers = [f"proto/{name}.md" for name in PAPERS]
        for folder, listed in (("proto/guide", guide), ("proto", papers)):
            there = {f"{folder}/{path.name}" for path in (self.root / folder).glob("*.md")}
            if there != set(listed):
                raise Refused(f"make_site.py does not list these pages as they are: {' '.join(sorted(there ^ set(listed)))}")
        for source in [*OTHERS, *guide, *papers]:
            titles[source] = self.render(source)
        self.list_page("proto/guide/README.md", "The guide", "In the order in which it is read.",
                       [(titles[file], self.page_of(file), "") for file in guide])
        self.list_page("proto/README.md", "The papers", "What holdfast is on the wire and in the client, and why it is so.",
                       [(titles[file], self.page_of(file), "") for file in papers])
        self.api_page()
        written = set()
        while self.files.keys() - written:
            for file in sorted(self.files.keys() - written):
                written.add(file)
                self.file_page(file)
        for source, file, anchor in self.wanted:
            if anchor not in self.anchors.get(file, ()):
                raise Refused(f"{source}: {file} has no heading #{anchor}")


def main():
    try:
        Site(*sys.argv[1:4]).make()
    except Refused as refused:
        sys.exit(f"make_site.py: {refused}")


main()

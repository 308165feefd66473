"""Builds the documentation as a website: pages written beside the code, and reference pages generated from it.

    python deploy/site/website.py build/site

The site works from files, without a server: search reads an index that is a script. A link that leads nowhere ends the
build with its page and target.
"""

import argparse
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from html import escape, unescape
from pathlib import Path
from typing import NamedTuple

import jinja2
from markdown_it import MarkdownIt
from markdown_it.token import Token

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))  # a folder of programs, no package

import reference  # noqa: E402
from manual import manual  # noqa: E402
from navigation import ENTRIES, GROUPS, Entry  # noqa: E402

_PICTURES = (".png", ".svg")
_MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")


class Heading(NamedTuple):
    level: int
    anchor: str
    title: str


class SitePage(NamedTuple):
    """One page of the site. sections: of the search index, (heading, text). problems: links that lead nowhere."""

    entry: Entry
    body: str
    headings: Sequence[Heading]
    sections: Sequence[tuple[Heading, str]]
    pictures: Sequence[Path]
    links: Sequence[str]
    problems: Sequence[str]


def anchor_of(title: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"`", "", title).strip().lower()).replace(" ", "-")


def page_of(entry: Entry) -> SitePage:
    """Renders one page."""
    text = (ROOT / entry.source).read_text() if entry.source else reference.PAGES[entry.file]()
    tokens = _MARKDOWN.parse(text)
    headings: list[Heading] = []
    sections: list[tuple[Heading, list[str]]] = []
    pictures: list[Path] = []
    links: list[str] = []
    problems: list[str] = []
    for before, token, following in zip(
        [Token("", "", 0), *tokens], tokens, [*tokens[1:], Token("", "", 0)], strict=False
    ):
        if token.type == "heading_open":
            title = "".join(child.content for child in following.children or ())
            anchor = _free(anchor_of(title), {each.anchor for each in headings})
            headings.append(Heading(int(token.tag[1]), anchor, title))
            token.attrSet("id", anchor)
            sections.append((headings[-1], []))
        elif token.content and sections and before.type != "heading_open":
            sections[-1][1].append(re.sub(r"\]\([^)]*\)|[`*\[\]]", "", token.content))
        if token.type == "table_open":
            labels: list[str] = []
        elif token.type == "th_open":
            labels.append(following.content.replace("`", ""))
        elif token.type == "tr_open":
            column = 0
        elif token.type == "td_open":  # on narrow screens a row is a list of these
            token.attrSet("data-label", labels[column])
            column += 1
        for child in token.children or ():
            _aim(child, entry, pictures, links, problems)
    body = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    body = re.sub(r"<table>(.*?)</table>", r'<div class="table" tabindex="0"><table>\1</table></div>', body, flags=re.S)
    searched = [(heading, " ".join(parts)) for heading, parts in sections]
    return SitePage(entry, body, headings, searched, pictures, links, problems)


def _free(anchor: str, taken: set[str]) -> str:
    """GitHub's: the second heading of one title ends with -1."""
    found, number = anchor, 0
    while found in taken:
        number += 1
        found = f"{anchor}-{number}"
    return found


def _aim(token: Token, entry: Entry, pictures: list[Path], links: list[str], problems: list[str]) -> None:
    """Points a link or a picture of the repository to its place in the site."""
    name = {"link_open": "href", "image": "src"}.get(token.type)
    if name is None:
        return
    target = str(token.attrGet(name))
    if re.match(r"[a-z]+:", target):
        return
    path, mark, anchor = target.partition("#")
    if not path:
        links.append(f"{entry.file}#{anchor}")
        return
    file = Path(os.path.normpath(ROOT / Path(entry.source).parent / path))
    if not file.exists() or not file.is_relative_to(ROOT):
        problems.append(f"{entry.source}: {target}")
    elif file.suffix in _PICTURES:
        pictures.append(file)
        token.attrSet(name, f"pictures/{file.name}")
    elif page := _SITE_FILES.get(file.relative_to(ROOT).as_posix()):
        links.append(page + mark + anchor)
        token.attrSet(name, page + mark + anchor)
    elif file.suffix == ".md":
        problems.append(f"{entry.source}: {target} is no page of the site")
    else:  # a file of the repository, which the site does not contain
        token.attrs.pop(name)


_SITE_FILES = {entry.source: entry.file for entry in ENTRIES if entry.source}


def build(folder: Path) -> list[str]:
    """Writes the site into a folder, which is recreated. Returns the links that lead nowhere."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "pictures").mkdir(parents=True)
    pages = [page_of(entry) for entry in ENTRIES]
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(
        (HERE / "page.html.j2").read_text()
    )
    for page in pages:
        for picture in page.pictures:
            shutil.copy(picture, folder / "pictures" / picture.name)
        group = next(name for name, entries in GROUPS if page.entry in entries)
        (folder / page.entry.file).write_text(template.render(page=page, groups=GROUPS, group=group))
    for name in ("site.css", "site.js"):
        shutil.copy(HERE / name, folder / name)
    (folder / "neardup.1").write_text(manual())
    (folder / "search-index.js").write_text(f"window.searchIndex = {json.dumps(list(_searched(pages)))};\n")
    return [*(problem for page in pages for problem in page.problems), *_missing_anchors(pages)]


def _searched(pages: Sequence[SitePage]) -> Iterator[tuple[str, str, str, str]]:
    """Rows of the search index: page, heading, address, text."""
    for page in pages:
        for heading, text in page.sections:
            address = page.entry.file + (f"#{heading.anchor}" if heading.level > 1 else "")
            title = heading.title if heading.level > 1 else ""
            yield page.entry.title, re.sub(r"`", "", title), address, unescape(re.sub(r"\s+", " ", text))


def _missing_anchors(pages: Sequence[SitePage]) -> Iterator[str]:
    anchors = {page.entry.file: {heading.anchor for heading in page.headings} for page in pages}
    for page in pages:
        for link in page.links:
            file, _, anchor = link.partition("#")
            if anchor and anchor not in anchors[file]:
                yield f"{page.entry.source}: no heading #{escape(anchor)} in {file}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    if wrong := build(folder):
        raise SystemExit("links that lead nowhere:\n" + "\n".join(wrong))
    print(folder / "index.html")


if __name__ == "__main__":
    main()

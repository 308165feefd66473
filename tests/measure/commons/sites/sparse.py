"""Pages that say little of their own: shells and redirects, lists of links, logs."""

import json

from tests.measure.commons.sites.frame import Frame, SitePage, slug


def shells(frame: Frame) -> None:
    """Application shells, redirects by meta refresh, and walls: other scripts or targets are other pages."""
    random = frame.random
    noscript = frame.pick(
        "You need to enable JavaScript to run this app.", f"{frame.text(22, 40)} Please turn JavaScript on."
    )
    number = 0
    while not frame.full:
        number += 1
        kind = random.choice(("app", "app", "refresh", "wall"))
        name = slug(frame.topic(2, 4))
        item = f"{kind} {number}"
        if kind == "app":
            state = json.dumps({"id": number, "title": frame.topic(), "text": frame.text(20, 60)})
            body = (
                f"<!doctype html><html><head><title>{frame.name}</title></head><body><noscript>{noscript}</noscript>"
                f'<div id="root"></div><script>window.__STATE__={state}</script>'
                '<script src="/app.4f2a.js"></script></body></html>'
            )
            again = frame.url(f"/app/{name}-{number}?utm_source=mail")
        elif kind == "refresh":
            target = frame.url(f"/new/{name}")
            body = f'<html><head><title>Moved</title><meta http-equiv="refresh" content="0;url={target}"></head><body>'
            body += f"{frame.pick('', noscript)}</body></html>"
            again = frame.url(f"/old/{name}.html")
        else:
            body, item = (
                frame.html(
                    "Sign in",
                    f"<h1>Sign in</h1><form>Email Password <button>Sign in</button></form><p>{noscript}</p>",
                    stamp=False,
                ).decode(),
                "wall",
            )
            again = ""
        for url in (frame.url(f"/{kind}/{name}-{number}"), again):
            if url and (url != again or frame.now_and_then(2)):
                frame.add_raw(SitePage(url, body.encode(), "", item, own_bytes=True))


def applications(frame: Frame) -> None:
    """Applications whose frame has words: menus around an empty element, long notices, pages that send on. Short pages
    with words of their own, scripts and pixels stand among them, and come again with another number of the request."""
    random = frame.random
    menu = f"<header><nav>{frame.links([frame.label(2) for _ in range(random.randint(12, 22))])}</nav></header>"
    foot = f"<footer>{frame.text(4, 12)}</footer>"
    asks = f"{frame.text(10, 30)} {frame.pick('Please enable JavaScript to continue.', 'JavaScript is switched off.')}"
    root = frame.pick('<div id="app" data-v="1"></div>', '<main class="page"><app-root></app-root></main>')
    number = 0
    while not frame.full:
        number += 1
        kind = random.choice(("menu", "notice", "asking", "forward", "words"))
        path, request = (
            f"/{kind}/{slug(frame.topic(2, 4))}-{number}",
            f"<script>var request='{frame.session()}'</script>",
        )
        code = f'<script>load({number})</script><script type="text/javascript" src="/main.js"></script>'
        refresh = frame.pick('<meta http-equiv="refresh" content="0; URL=', '<meta http-equiv=Refresh content="3;url=')
        body = {
            "menu": f"{menu}{root}{code}{foot}",
            "notice": f"<noscript><div><h1>{frame.name}</h1><p>{asks}</p></div></noscript><div></div>{code}",
            "asking": f"<div class=box><h1>{frame.name}</h1><p>{asks}</p></div>{code}",
            "forward": f'{refresh}{frame.url("/to" + path)}"><p>{frame.name}: the page has moved. {asks[:80]}</p>',
            "words": f"<h1>{frame.topic()}</h1><p>{frame.text(25, 60)}</p><noscript><img src=/p.gif></noscript>{code}",
        }[kind]
        own = kind not in ("words", "forward")
        for url in [path] + ([f"{path}?from=mail"] if frame.now_and_then(2) else []):
            more = request if kind == "words" else ""
            html = f"<!doctype html><html><head><title>{frame.name}</title></head><body>{body}{more}</body></html>"
            frame.add_raw(SitePage(frame.url(url), html.encode(), "", f"{kind} {number}", own_bytes=own))
            request = f"<script>var request='{frame.session()}'</script>"


def lists_of_links(frame: Frame) -> None:
    """Pages whose main part is links: tags, directories, indexes by letter; under one title or telling ones."""
    random = frame.random
    pool = [frame.topic(2, 6) for _ in range(400)]
    number = 0
    while not frame.full:
        number += 1
        chosen = random.sample(pool, random.randint(8, 40))
        name = frame.label(2)
        links = "".join(f'<li><a href="/{slug(one)}">{one}</a></li>' for one in chosen)
        main = f"<h1>{frame.pick('Index', name)}</h1><ul>{links}</ul>"
        path = frame.pick(f"/index/{number}.html", f"/tag/{slug(name)}-{number}/")
        title = frame.pick(f"Index - {frame.name}", f"{name} | {frame.name}")
        frame.add(path, title, main, f"links {number}", f"links {number}")
        if frame.now_and_then(2):
            again = frame.pick(f"/index/{number}.html?print=1", f"/tag/{slug(name)}-{number}/?view=all")
            frame.add(again, title, main, f"links {number}", f"links {number}")
        if frame.now_and_then():
            links = "".join(f'<li><a href="/{slug(one)}">{one}</a></li>' for one in sorted(chosen))
            main = f"<h1>{frame.pick('Index', name)}</h1><ul>{links}</ul>"
            again = frame.pick(f"/index/{number}.html?sort=name", f"/tag/{slug(name)}-{number}/?sort=az")
            frame.add(again, title, main, f"links {number} sorted", f"links {number}", loose=True)


def logs(frame: Frame) -> None:
    """Logs of machines without titles: most lines are of every log, the rest names what was built or tested."""
    random = frame.random
    steps = [f"{frame.label(1).lower()}: {frame.topic(2, 6).lower()}" for _ in range(60)]
    number = 0
    while not frame.full:
        number += 1
        package = slug(frame.topic(1, 2))
        own = [
            f"{package}/{slug(frame.topic(1, 2))}.c: {frame.topic(2, 5).lower()}" for _ in range(random.randint(2, 14))
        ]
        lines = [*random.sample(steps, 45), *own]
        random.shuffle(lines)
        text = "\n".join(
            f"[{frame.clock(True)}] {line}" for line in ["start of the run", *lines, f"ran {random.randint(1, 900)} s"]
        )
        path = frame.pick(f"/logs/{package}_{number}.log", f"/ci/run/{number}/{package}.txt")
        urls = [frame.url(path)] + ([frame.url(f"/latest{path}")] if frame.now_and_then() else [])
        for url in urls:
            frame.add_raw(
                SitePage(
                    url, text.encode(), f"<pre>{text}</pre>", f"log {number}", content_type="text/plain; charset=utf-8"
                )
            )

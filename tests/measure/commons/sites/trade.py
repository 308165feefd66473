"""Shops, and sites that serve one page at many addresses: orders of parameters, clocks in slugs, views."""

from urllib.parse import quote

from tests.measure.commons.sites.frame import Frame, ago, slug, table

_COLOURS = ("black", "white", "navy", "olive", "crimson", "sand")


def shop(frame: Frame) -> None:
    """Products whose variants have addresses: some with a canonical, some under titles of their own; lists of them."""
    random = frame.random
    terms, offers = frame.paragraphs(60, 180), [f"{frame.language.name(random)} {frame.label(2)}" for _ in range(60)]
    lists: list[tuple[str, str]] = []
    number = 500
    while not frame.full:
        number += random.randint(1, 40)
        name = f"{frame.language.name(random)} {frame.topic(1, 3)}"
        about, price = frame.text(15, 90), f"{random.randint(3, 400)}.{random.choice((0, 50, 95, 99)):02}"
        lists.append((name, price))
        others = frame.links(random.sample(offers, 5), "/p/")
        path = frame.pick(f"/p/{slug(name)}-{number}", f"/item.php?id={number}")
        canonical = f'<link rel="canonical" href="{frame.url(path)}">'
        titled = frame.style == 0 or random.random() < 0.5
        for at, colour in enumerate(("", *random.sample(_COLOURS, random.choice((0, 0, 2, 4))))):
            shown = f"{name} {colour}".strip()
            main = (
                f"<h1>{name}</h1><p>EUR {price} incl. VAT</p><p>Colour: {colour or 'all'}. Art. no. {number}-{at}. "
                f"{random.randint(1, 90)} in stock.</p><p>{about}</p><button>Add to cart</button>"
            )
            where = path if not colour else frame.pick(f"{path}?color={colour}", f"{path}&v={at}")
            named = canonical if number % 2 else ""
            item = str(number) if not colour or named else f"{number} {colour}"
            around = f"<h3>Delivery</h3>{terms}<h3>You may also like</h3>{others}"
            title = f"{shown} | {frame.name}" if titled else f"{frame.name} online shop"
            frame.add(where, title, main, item, str(number), loose=True, head=named, around=around)
        if len(lists) % 15 == 0:
            _listed(frame, lists[-15:])


def _listed(frame: Frame, products: list[tuple[str, str]]) -> None:
    """A list in three orders."""
    name = frame.label(2)
    path = frame.pick(f"/c/{slug(name)}", f"/list.php?cat={slug(name)}")
    for order in ("", "price", "name"):
        shown = sorted(products, key=lambda one: one[order == "price"]) if order else products
        main = f"<h1>{name}</h1>{table([(one, f'EUR {price}', 'Add to cart') for one, price in shown])}"
        where = path + (f"{'&' if '?' in path else '?'}orderby={order}" if order else "")
        frame.add(where, f"{name} | {frame.name}", main, f"list {name} {order}", f"list {name}", loose=True)


def searches(frame: Frame) -> None:
    """What was found for words: nothing (all such pages are one) or a list."""
    random = frame.random
    hints = frame.text(20, 50)
    while not frame.full:
        words = frame.topic(1, 3).lower()
        path = frame.pick(f"/search?q={quote(words)}", f"/find/{quote(words)}")
        title = frame.pick(f"Search results for {words}", f"{words} - search - {frame.name}")
        if random.random() < 0.4:
            main = f"<h1>Search</h1><p>No results for {words}.</p><p>{hints}</p>"
            frame.add(path, title, main, "no results")
            continue
        found = "".join(
            f"<li><a>{frame.topic()}</a><p>{frame.text(8, 25)}</p></li>" for _ in range(random.randint(2, 10))
        )
        frame.add(path, title, f"<h1>Search</h1><p>Results for {words}.</p><ol>{found}</ol>", f"found {words}")


def addresses(frame: Frame) -> None:
    """Lists at addresses that differ in order and defaults of parameters, percent-encodings, slashes and file names."""
    random = frame.random
    while not frame.full:
        name = f"{frame.language.name(random)} {random.choice(('(a)', '(b)', 'é', 'und', '&'))} {frame.label(1)}"
        brand = slug(frame.label(1))
        rows = [(frame.topic(2, 5), random.randint(1, 900)) for _ in range(random.randint(6, 18))]
        for page in range(random.choice((1, 1, 2, 3))):
            shown = rows if not page else [(frame.topic(2, 5), random.randint(1, 900)) for _ in range(12)]
            item = f"{name} {brand} {page}"
            ages = [frame.age() for _ in shown]
            for where in _same(frame, name, brand, page):
                later = int(10 ** random.uniform(0, 3.4))
                rows_now = [(*row, ago(age + later)) for row, age in zip(shown, ages, strict=True)]
                main = f"<h1>{name}</h1>{table(rows_now)}"
                frame.add(where, frame.pick(f"{name} - {frame.name}", f"{frame.name} catalogue"), main, item)


def _same(frame: Frame, name: str, brand: str, page: int) -> list[str]:
    """Two or three addresses of one page, if it has several."""
    random = frame.random
    plain, coded = quote(name, safe="()&é"), quote(name, safe="")
    number = f"&page={page + 1}" if page else ""
    if frame.style == 0:
        forms = [f"/list?cat={coded}&brand={brand}{number}", f"/list?brand={brand}&cat={coded}{number}"]
        forms.append(forms[0] + ("" if page else "&page=1"))
        forms.append(forms[0].replace("%28", "(").replace("%29", ")"))
    else:
        tail = f"?page={page + 1}" if page else ""
        forms = [
            f"/{plain}/{brand}/{tail}",
            f"/{coded}/{brand}/{tail}",
            f"/{coded}/{brand}{tail}",
            f"/{coded}/{brand}/index.html{tail}",
        ]
    forms = list(dict.fromkeys(forms))
    return forms[:1] + random.sample(forms[1:], min(len(forms) - 1, random.choice((0, 1, 2))))


def slugs(frame: Frame) -> None:
    """Articles whose addresses hold clocks, sessions or words that change with each fetch, with a clock in the text."""
    random = frame.random
    while not frame.full:
        title, text = frame.topic(4, 8), frame.paragraphs(60, 300)
        number = random.randint(1, 10**6)
        for _ in range(random.choice((1, 1, 2, 4))):
            clock = f"2024-{random.randint(1, 12):02}-{random.randint(1, 28):02}-{frame.clock(True).replace(':', '-')}"
            path = random.choice(
                (
                    frame.pick(f"/news/{clock}/{slug(title)}", f"/a/{slug(title)}-{clock}"),
                    frame.pick(
                        f"/news/{slug(title)};jsessionid={frame.session()}", f"/a/{frame.session()}/{slug(title)}"
                    ),
                    frame.pick(f"/news/{slug(frame.topic(3, 5))}-{number}", f"/a/{number}/{slug(frame.topic(3, 5))}"),
                )
            )
            stamp = f"<p>{frame.clock(True)} {frame.date()}</p>"
            main = f"<h1>{title}</h1>{text}"
            frame.add(path, f"{title} - {frame.name}", main, f"{number} {title}", around=stamp)


def canonicals(frame: Frame) -> None:
    """Articles with views that name one canonical: for mobiles, AMP, printers, comments, versions.

    Some pages name the front page of their section, as faulty templates do: they are other pages.
    """
    random = frame.random
    number = 0
    while not frame.full:
        number += 1
        title, text = frame.topic(4, 8), frame.paragraphs(60, 260)
        main, item = f"<h1>{title}</h1><p>By {frame.language.name(random)}</p>{text}", f"article {number}"
        path = frame.pick(f"/2024/{number % 12 + 1:02}/{slug(title)}", f"/story/{number}")
        if random.random() < 0.25:
            faulty = f'<link rel="canonical" href="{frame.url("/section/" + str(number % 5))}">'
            frame.add(path, frame.pick(f"{title} - {frame.name}", f"{frame.name} stories"), main, item, head=faulty)
            continue
        head = f'<link rel="canonical" href="{frame.url(path)}">'
        whole = f"{title} - {frame.name}"
        frame.add(path, whole, main, item, head=head)
        for view in random.sample(("mobile", "amp", "print", "comments", "version"), random.choice((0, 1, 2))):
            if view == "comments":
                said = "".join(
                    f"<li>{frame.language.name(random)}: {frame.text(5, 40)}</li>" for _ in range(random.randint(2, 9))
                )
                frame.add(f"{path}/comments", f"Comments on {title}", main, item, head=head, around=f"<ul>{said}</ul>")
            elif view == "version":
                frame.add(f"{path}?version={random.randint(1, 9)}", whole, main, item, head=head)
            else:
                where = {
                    "mobile": f"https://m.{frame.host.removeprefix('www.')}{path}",
                    "amp": f"{path}/amp",
                    "print": f"{path}?print=1",
                }
                frame.add_bare(where[view], title, main, item, head=head)

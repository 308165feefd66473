"""Data pages of eight kinds of figures, each kind under one constant title; no two of them are one page.

One page in ten comes again at another address of its own, with the clock of the fetch below it.
"""

from collections.abc import Callable

from tests.measure.commons.sites.frame import MONTHS, Frame, table


def _made(title: tuple[str, str], path: tuple[str, str], main: Callable[[Frame, int], str]) -> Callable[[Frame], None]:
    """A generator. path: with `{}` for the number of the page. main: makes the main part of one page."""

    def generate(frame: Frame) -> None:
        number = frame.random.randint(1, 900)
        fixed = frame.text(30, 120)
        while not frame.full:
            number += 1
            text, address = main(frame, number), frame.pick(*path).format(number)
            around = f"<p>{fixed}</p>"
            frame.add(address, frame.pick(*title), text, str(number), around=around)
            if frame.now_and_then():
                more = f"{'&' if '?' in address else '?'}sid={frame.session()}"
                frame.add(
                    address + more, frame.pick(*title), text, str(number), around=f"{around}<p>{frame.clock(True)}</p>"
                )

    return generate


def _draw(frame: Frame, number: int) -> str:
    random = frame.random
    balls = sorted(random.sample(range(1, 50), 6))
    return (
        f"<h1>{frame.pick('Draw result', f'Draw {number}')}</h1><p>{'-'.join(map(str, balls))}</p><p>Bonus "
        f"{random.randint(1, 49)}</p><p>Jackpot {random.randint(1, 90)},{random.randint(100, 999)},000</p>"
    )


def _flight(frame: Frame, number: int) -> str:
    random = frame.random
    status = random.choice(("Landed", "Delayed", "On time", "Boarding"))
    return (
        f"<h1>Flight status</h1><p>{frame.pick('AX', 'QN')}{random.randint(100, 9999)}</p><p>Scheduled {frame.clock()} "
        f"Estimated {frame.clock()}</p><p>Gate {random.choice('ABCD')}{random.randint(1, 60)} Terminal "
        f"{random.randint(1, 4)}</p><p>{status}</p>"
    )


def _departures(frame: Frame, number: int) -> str:
    rows = [
        (f"Line {frame.random.randint(1, 40)}", *(frame.clock() for _ in range(6)))
        for _ in range(frame.random.randint(3, 7))
    ]
    return f"<h1>Departures</h1><p>Stop {number}</p>{table(rows)}"


def _events(frame: Frame, number: int) -> str:
    days = sorted(frame.random.sample(range(1, 29), 6))
    lines = "".join(f"<li>{day} {frame.random.choice(MONTHS)} {frame.random.randint(2020, 2025)}</li>" for day in days)
    return f"<h1>Collection dates</h1><p>District {number}</p><ul>{lines}</ul>"


def _counters(frame: Frame, number: int) -> str:
    random = frame.random
    names = ("Views", "Downloads", "Stars", "Open", "Closed", "Members")
    return "<h1>Statistics</h1>" + "".join(
        f"<p>{name}: {random.randint(0, 10 ** random.randint(1, 6))}</p>" for name in names
    )


def _prices(frame: Frame, number: int) -> str:
    random = frame.random
    value = random.uniform(2, 600)
    rows = [(name, f"{value * random.uniform(0.9, 1.1):.2f}") for name in ("Open", "High", "Low", "Last", "Bid", "Ask")]
    return (
        f"<h1>Quote</h1><p>ISIN XS{random.randint(10**9, 10**10)}</p>{table(rows)}<p>{random.uniform(-9, 9):+.2f}%</p>"
    )


def _measurements(frame: Frame, number: int) -> str:
    random = frame.random
    rows = [
        (f"{hour:02}:00", f"{random.uniform(-9, 35):.1f}", random.randint(960, 1040), random.randint(20, 100))
        for hour in range(0, 24, 3)
    ]
    return f"<h1>Station data</h1>{table(rows, ('Time', 'Temperature', 'Pressure', 'Humidity'))}"


def _league(frame: Frame, number: int) -> str:
    random = frame.random
    teams = [f"{one} {two}" for one in ("North", "South", "East", "West", "Old", "New") for two in ("Town", "Rovers")]
    random.shuffle(teams)
    rows = [
        (at + 1, team, 30, random.randint(0, 20), random.randint(0, 60), 80 - 5 * at)
        for at, team in enumerate(teams[:10])
    ]
    return f"<h1>Table</h1>{table(rows, ('Pos', 'Team', 'P', 'W', 'Goals', 'Pts'))}"


#: Name -> generator.
FIGURES = {
    "draws": _made(("Lottery results", "Results archive"), ("/draw/{}", "/results?id={}"), _draw),
    "flights": _made(("Flight status", "Live flight information"), ("/status/{}", "/flight.php?f={}"), _flight),
    "departures": _made(("Departures", "Timetable"), ("/stop/{}.html", "/stops?stop={}"), _departures),
    "dates": _made(("Collection dates", "Your dates"), ("/district/{}/", "/dates?d={}"), _events),
    "counters": _made(("Statistics", "Project statistics"), ("/stats/{}", "/p/{}/stats"), _counters),
    "prices": _made(("Quote", "Market data"), ("/quote/{}", "/market?isin={}"), _prices),
    "measurements": _made(("Station data", "Weather station"), ("/station/{}", "/data.cgi?station={}"), _measurements),
    "leagues": _made(("League table", "Standings"), ("/league/{}/table", "/standings.php?l={}"), _league),
}

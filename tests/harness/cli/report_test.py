"""report of the program as it is built: pages of one campaign, of a comparison and of a trend, read as HTML."""

import hashlib
import json
import os
import re
import shutil
import unittest
from html.parser import HTMLParser

from program import ROOT, main
from results_test import ResultsTest

VOID = {"meta", "link", "br", "line", "path", "rect", "circle"}


class Page(HTMLParser):
    """Checks that tags close in order, and collects what the tests look at."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.tags, self.open, self.attributes, self.words = [], [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        self.attributes += attrs.items()
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if tag == "a":
            self.links.append(attrs["href"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (self.open, tag)
        self.open.pop()

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join("".join(self.words).split())


class Report(ResultsTest):
    def setUp(self):
        super().setUp()
        self.html = os.path.join(self.folder.name, "page.html")

    def report(self, *files, code=0, **env):
        done = self.warmleg("report", *files, "-o", self.html, **env)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.said = done.stderr
        if code:
            return None
        self.assertEqual(done.stdout, self.html + "\n")
        with open(self.html, encoding="utf-8") as f:
            self.source = f.read()
        page = Page(self.source)
        self.check_offline(page)
        self.check_accessible(page)
        return page

    def check_offline(self, page):
        self.assertIn("default-src 'none'", self.source)
        for tag in ("script", "img", "iframe", "object", "embed", "form", "base"):
            self.assertNotIn(tag, page.tags)
        for name, value in page.attributes:
            self.assertFalse(name.startswith("on"), name)
            if name in ("src", "href"):
                self.assertRegex(value, r"^(#|data:,)")
        style = self.source[self.source.index("<style>"):self.source.index("</style>")]
        self.assertNotRegex(style, r"url\(|@import")

    def check_accessible(self, page):
        self.assertEqual(len(page.ids), len(set(page.ids)), "ids are unique")
        for link in page.links:
            self.assertIn(link[1:], page.ids)
        for part in ("prefers-color-scheme: dark", "@media print", 'lang="en"'):
            self.assertIn(part, self.source)
        plots = re.findall(r'<svg viewBox="[^"]+" role="img" aria-label="([^"]+)">', self.source)
        self.assertTrue(all(len(label) > 20 for label in plots))
        # every plot has a table beside it
        for figure in self.source.split('<div class="figure">')[1:]:
            self.assertIn("<table>", figure)

    def read_json(self, path):
        with open(path, encoding="utf-8") as f:
            return json.load(f)

    def edit_json(self, path, change):
        result = self.read_json(path)
        change(result)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(result, f)
        return result


class Campaign(Report):
    def test_the_parts_of_a_campaign(self):
        folder = self.situation("slow-process")
        page = self.report(f"{folder}/candidate.json")
        for section in ("left-out", "legs", "board", "acceptance", "round", "processes", "providers", "origin"):
            self.assertIn(section, page.ids)
        self.assertEqual(self.source.count('role="img"'), 3)  # legs, acceptance, round; no series
        for part in ("verified", "slow_process", "warmup", "vt-native", "What to do", "8060S gfx1151", "committed tokens a round"):
            self.assertIn(part.lower(), page.text.lower())
        self.assertIn("The result names no samples file", page.text)

    def test_a_leg_left_out_is_grey_and_has_its_reason(self):
        folder = self.situation("identical")

        def stuck(result):
            leg = next(leg for leg in result["legs"] if leg["state"] == "warm" and leg["arm"] == "plain")
            leg["valid"], leg["counted"] = False, False
            leg["rates"] = dict.fromkeys(leg["rates"])
            leg["reasons"].append({"code": "clock_low_under_load",
                                   "text": "the clock stays low under load: median SCLK 600 MHz, top level 2900 MHz",
                                   "remedy": "x", "value": 600, "limit": 1450, "process": None, "leg": None})
            self.place = f"process {leg['process'] + 1}, pair {leg['pair']}, plain"

        self.edit_json(f"{folder}/base.json", stuck)
        page = self.report(f"{folder}/base.json")
        rows = re.findall(r'<tr class="out">.*?</tr>', self.source)
        self.assertTrue(any(self.place in row and "clock_low_under_load" in row for row in rows), rows)
        left_out = self.source[self.source.index('id="left-out"'):self.source.index('id="legs"')]
        self.assertIn("median SCLK 600 MHz, top level 2900 MHz", left_out)
        self.assertIn(self.place, left_out)
        self.assertIn("limit 1450", left_out)
        self.assertIn("left out: clock_low_under_load", page.text)  # the tip of its mark

    def test_nothing_from_a_file_is_markup(self):
        folder = self.situation("identical")
        evil = '</title><script>alert(1)</script><img src=x onerror="alert(2)">\'"&\u0007'

        def spoil(value):
            if isinstance(value, dict):
                return {k: v if k in KEPT else spoil(v) for k, v in value.items()}
            if isinstance(value, list):
                return [spoil(v) for v in value]
            return evil if isinstance(value, str) else value

        KEPT = {"schema", "verdict", "code", "state", "arm", "created", "sha256", "better", "unit"}
        for file in ("base.json", "candidate.json"):
            with open(f"{folder}/{file}", encoding="utf-8") as f:
                result = json.load(f)
            result = spoil(result)
            result["scenario"]["name"] = evil
            with open(f"{folder}/{file}", "w", encoding="utf-8") as f:
                json.dump(result, f)
        shutil.copy(f"{folder}/base.json", f"{folder}/third.json")
        self.edit_json(f"{folder}/third.json", lambda r: r.update(created="2027-01-01T00:00:00Z"))
        for files in (["base.json"], ["base.json", "candidate.json"], ["base.json", "candidate.json", "third.json"]):
            page = self.report(*[f"{folder}/{f}" for f in files])
            self.assertIn("alert(1)", page.text)

    def test_a_name_that_is_no_text(self):
        folder = self.situation("identical")
        self.edit_json(f"{folder}/base.json", lambda r: r["scenario"].update(name=7))
        self.report(f"{folder}/base.json")
        self.assertIn("### unnamed:", self.warmleg("card", f"{folder}/base.json").stdout)

    def test_no_leg_and_no_number(self):
        folder = self.described([{"file": "base.json", "all_legs_crash": True}])
        page = self.report(f"{folder}/base.json")
        self.assertIn("There is no number", page.text)
        self.assertIn("no_valid_pair", page.text)
        self.edit_json(f"{folder}/base.json", lambda r: r.update(legs=[], processes=[]))
        self.report(f"{folder}/base.json")

    def samples(self, folder, change=lambda lines: lines):
        """A series beside base.json, with the legs' times on its clock."""
        start = 5_000_000_000
        lines = [{"schema": "warmleg.samples/1", "pci": "0000:c5:00.0", "name": "board", "interval_ms": 100, "sources": {}}]
        with open(f"{folder}/base.json", encoding="utf-8") as f:
            legs = json.load(f)["legs"]
        for i in range(20 * len(legs)):
            lines.append({"t_ns": start + i * 100_000_000, "sclk_mhz": 2900 if i % 9 else None, "mclk_mhz": 1000,
                          "power_w": 100 + i % 7, "temp_c": None, "missing": {}})
        data = "".join(json.dumps(line) + "\n" for line in change(lines)).encode()
        with open(f"{folder}/base.samples.jsonl", "wb") as f:
            f.write(data)

        def name(result):
            result["telemetry"].update(samples_file="base.samples.jsonl", samples_sha256=hashlib.sha256(data).hexdigest(),
                                       interval_ms=100)
            for i, leg in enumerate(result["legs"]):
                leg["clocks"]["begin_ns"] = start + i * 2_000_000_000
                leg["clocks"]["end_ns"] = start + i * 2_000_000_000 + 1_800_000_000
        self.edit_json(f"{folder}/base.json", name)

    def test_the_board_over_time(self):
        folder = self.situation("identical")
        self.samples(folder)
        page = self.report(f"{folder}/base.json")
        self.assertIn("The board while legs ran", self.source)
        for part in ("SCLK MHz", "MCLK MHz", "Power W", "Temperature", "not seen", "process 4"):
            self.assertIn(part, page.text)
        board = self.source[self.source.index('id="board"'):self.source.index('id="acceptance"')]
        self.assertEqual(board.count('class="tint-plain"') + board.count('class="tint-draft"') + board.count('class="tint-out"'),
                         len(self.read_json(f"{folder}/base.json")["legs"]))
        self.assertIn('class="line"', board)

    def test_a_series_that_was_not_judged_is_not_drawn(self):
        folder = self.situation("identical")
        self.samples(folder)
        with open(f"{folder}/base.samples.jsonl", "a", encoding="ascii") as f:
            f.write('{"t_ns": 1}\n')
        page = self.report(f"{folder}/base.json")
        self.assertIn("differs from the hash in the result", page.text)
        self.assertIn("differs from the hash", self.said)
        self.samples(folder, lambda lines: lines[:1] + [{"no": 1}])
        self.assertIn("has no t_ns", self.report(f"{folder}/base.json").text)

    def test_any_locale_gives_the_same_page(self):
        folder = self.situation("slow-process")
        self.report(f"{folder}/candidate.json")
        plain = self.source
        self.report(f"{folder}/candidate.json", LC_ALL="de_DE.UTF-8")
        self.assertEqual(self.source, plain)


class Comparison(Report):
    def test_a_slowdown(self):
        folder = self.situation("slowdown")
        page = self.report(f"{folder}/base.json", f"{folder}/candidate.json")
        for section in ("gate", "differs", "process-rates", "clocks", "exploratory", "base", "candidate", "base-legs", "candidate-left-out"):
            self.assertIn(section, page.ids)
        for part in ("A gate endpoint became slower", "dflash2 decode", "the likely cause", "exit code 1", "fedcba987654"):
            self.assertIn(part, page.text)
        self.assertRegex(self.source, r'class="badge bad">slower<')

    def test_a_refused_one_says_why(self):
        folder = self.situation("clock-shifted")
        page = self.report(f"{folder}/base.json", f"{folder}/candidate.json")
        self.assertIn("clock_shifted", page.text)
        self.assertIn("may not be compared", page.text)
        self.assertNotIn("gate", page.ids)
        done = self.warmleg("report", f"{folder}/base.json", f"{folder}/candidate.json", "--allow-clock-shift", "-o", self.html)
        self.assertEqual(done.returncode, 0)
        with open(self.html, encoding="utf-8") as f:
            self.assertIn('id="gate"', f.read())


class Trend(Report):
    def test_releases(self):
        folder = self.situation("releases")
        page = self.report(folder)
        self.assertIn("trend-1", page.ids)
        for part in ("prefill is first slower in 7.10", "plain decode is first slower in 7.12", "rocm, kernel", "first slower: 7.10"):
            self.assertIn(part, page.text)
        releases = re.findall(r'<th scope="row">(7\.\d+)</th>', self.source)
        self.assertEqual(releases, ["7.2", "7.8", "7.9", "7.10", "7.11", "7.12"])

    def test_workloads_do_not_mix(self):
        folder = self.described([{"file": "a.json", "count": 2}, {"file": "b.json", "name": "other", "count": 2, "seed": 9},
                                 {"file": "c.json", "complete": False, "seed": 20}])
        page = self.report(folder)
        self.assertIn("trend-2", page.ids)
        self.assertNotIn("trend-3", page.ids)
        self.assertIn("incomplete: not in the trend", page.text)
        self.assertEqual(self.warmleg("report", folder, "--by", "moon", "-o", self.html).returncode, 2)


class Files(Report):
    def test_what_is_no_report_is_not_replaced(self):
        folder = self.situation("identical")
        self.html = f"{folder}/candidate.json"
        with open(self.html, "rb") as f:
            before = f.read()
        self.report(f"{folder}/base.json", code=2)
        self.assertIn("--force", self.said)
        with open(self.html, "rb") as f:
            self.assertEqual(f.read(), before)
        self.html = os.path.join(self.folder.name, "page.html")
        self.report(f"{folder}/base.json")
        self.report(f"{folder}/base.json")  # an older report is
        self.html = folder
        self.report(f"{folder}/base.json", code=3)
        self.html = os.path.join(self.folder.name, "no", "page.html")
        self.report(f"{folder}/base.json", code=3)

    def test_bad_input(self):
        folder = self.situation("identical")
        self.report("/nowhere.json", code=2)
        with open(f"{folder}/base.json", "r+b") as f:
            f.truncate(1000)
        self.report(f"{folder}/base.json", code=2)
        self.assertFalse(os.path.exists(self.html))

    def test_the_example_of_the_help(self):
        example = self.warmleg("report", "--help").stdout.split("Example:\n  warmleg report ")[1].split("\n")[0].split()
        done = self.warmleg("report", *[w for w in example if w not in ("-o", "report.html")], "-o", self.html)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.exists(os.path.join(ROOT, example[0])))


if __name__ == "__main__":
    main()

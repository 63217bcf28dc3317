"""compare, card and history of the program as it is built, on files that warmleg-situations made."""

import json
import os
import re
import resource
import shutil
import sqlite3
import subprocess
import unittest

from program import ROOT, WARMLEG, ProgramTest, main, may_mount

SITUATIONS = os.environ.get("WARMLEG_SITUATIONS", os.path.join(os.path.dirname(WARMLEG), "tests", "warmleg-situations"))


class ResultsTest(ProgramTest):
    def situation(self, name, folder="files"):
        """Writes the files of tests/data/situations/NAME.json; gives the folder."""
        out = os.path.join(self.folder.name, folder)
        description = os.path.join(ROOT, "tests", "data", "situations", name + ".json")
        subprocess.run([SITUATIONS, description, out], check=True, capture_output=True)
        return out

    def described(self, files, folder="files"):
        out = os.path.join(self.folder.name, folder)
        description = os.path.join(self.folder.name, "description.json")
        with open(description, "w", encoding="utf-8") as f:
            json.dump({"files": files}, f)
        subprocess.run([SITUATIONS, description, out], check=True, capture_output=True)
        return out

    def compare(self, folder, *args, **env):
        return self.warmleg("compare", f"{folder}/base.json", "--with", f"{folder}/candidate.json", *args, **env)

    def edit(self, path, change):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        with open(path, "w", encoding="utf-8") as f:
            f.write(change(text))


class Compare(ResultsTest):
    def test_exit_codes(self):
        for name, code, verdict in (("slowdown", 1, "slower"), ("identical", 0, "same"), ("clock-shifted", 2, "refused"),
                                    ("too-few", 4, "inconclusive"), ("slow-process", 0, "same")):
            with self.subTest(name=name):
                done = self.compare(self.situation(name, name), "--json")
                self.assertEqual(done.returncode, code, done.stdout[-2000:] + done.stderr)
                parsed = json.loads(done.stdout)
                self.assertEqual((parsed["verdict"], parsed["exit_code"]), (verdict, code))
        shifted = os.path.join(self.folder.name, "clock-shifted")
        self.assertIn("clock_shifted", self.compare(shifted).stderr)
        self.assertEqual(self.compare(shifted, "--allow-clock-shift").returncode, 1)

    def test_a_file_with_itself_is_the_same(self):
        folder = self.situation("slowdown")
        done = self.warmleg("compare", f"{folder}/base.json", "--with", f"{folder}/base.json")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_file_named_twice_counts_once(self):
        folder = self.situation("too-few")
        shutil.copy(f"{folder}/base.json", f"{folder}/copy.json")
        done = self.warmleg("compare", f"{folder}/base.json", f"{folder}/copy.json", "--with", f"{folder}/candidate.json")
        self.assertEqual(done.returncode, 4, done.stdout)
        self.assertIn("counted once", done.stderr)

    def test_changed_workloads_are_refused_by_field(self):
        for field, value in (("prompt_ids_hash", "0"), ("target_hash", "0"), ("block_size", 4), ("precision", "bf16")):
            with self.subTest(field=field):
                folder = self.described([{"file": "base.json"}, {"file": "candidate.json", "workload": {field: value}}])
                done = self.compare(folder)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertRegex(done.stderr, f"workload_differs: .*{field}: ")
        self.assertIn("block_size", self.compare(folder, "--across", "nonsense").stderr)
        self.assertNotEqual(self.compare(folder, "--across", "precision,block_size").returncode, 2)

    def test_missing_and_incomplete(self):
        folder = self.described([{"file": "base.json", "processes": 8}, {"file": "b2.json", "name": "other"},
                                 {"file": "candidate.json", "processes": 8, "seed": 3, "complete": False}])
        command = ("compare", f"{folder}/base.json", f"{folder}/b2.json", "--with", f"{folder}/candidate.json")
        done = self.warmleg(*command)
        self.assertEqual(done.returncode, 2)
        self.assertIn("missing_workload", done.stderr)
        self.assertIn("incomplete", done.stderr)
        self.assertEqual(self.warmleg(*command, "--allow-missing", "other").returncode, 2)
        self.assertEqual(self.warmleg(*command, "--allow-missing", "other", "--allow-incomplete").returncode, 0)

    def test_bad_files_are_refused_and_left_alone(self):
        cases = {
            "NaN": (lambda t: re.sub(r'"decode_s": [0-9.]+', '"decode_s": NaN', t, count=1), "line"),
            "overflow": (lambda t: re.sub(r'"decode_s": [0-9.]+', '"decode_s": 1e999', t, count=1), "1e999"),
            "twice": (lambda t: t.replace('"complete": true', '"complete": true, "complete": false', 1), "twice"),
            "newer": (lambda t: t.replace("warmleg.result/1", "warmleg.result/2", 1), "newer"),
            "torn": (lambda t: t[:len(t) // 2], "line"),
        }
        for name, (change, said) in cases.items():
            with self.subTest(name=name):
                folder = self.situation("identical")
                self.edit(f"{folder}/candidate.json", change)
                with open(f"{folder}/candidate.json", "rb") as f:
                    before = f.read()
                for command in (("compare", f"{folder}/base.json", "--with", f"{folder}/candidate.json"),
                                ("card", f"{folder}/candidate.json")):
                    done = self.warmleg(*command)
                    self.assertEqual(done.returncode, 2)
                    self.assertEqual(done.stdout, "")
                    self.assertIn(said, done.stderr)
                with open(f"{folder}/candidate.json", "rb") as f:
                    self.assertEqual(f.read(), before)

    def test_any_locale_gives_the_same_bytes(self):
        folder = self.situation("slowdown")
        for args in ((), ("--json",), ("--markdown",), ("--export", "gbench")):
            plain = self.compare(folder, *args, LC_ALL="C").stdout
            self.assertEqual(self.compare(folder, *args, LC_ALL="de_DE.UTF-8").stdout, plain)
            self.assertEqual(self.compare(folder, *args, LC_ALL="de_DE").stdout, plain)

    def test_folders(self):
        folder = self.described([{"file": "base.json", "processes": 2, "count": 3}], "base")
        self.described([{"file": "c.json", "processes": 2, "count": 3, "seed": 9}], "candidate")
        with open(f"{folder}/notes.json", "w", encoding="utf-8") as f:
            f.write("{}")
        done = self.warmleg("compare", folder, "--with", os.path.join(self.folder.name, "candidate"), "--json")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("base: 3 files", done.stderr)
        self.assertIn("notes.json is no result file", done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["workloads"][0]["base"]), 3)
        self.edit(f"{folder}/base-1.json", lambda t: t[:1000])
        self.assertEqual(self.warmleg("compare", folder, "--with", folder).returncode, 2)
        self.assertEqual(self.warmleg("compare", self.folder.name, "--with", folder).returncode, 2)
        self.assertEqual(self.warmleg("compare", folder, "--with", "/nowhere").returncode, 2)

    def test_text_shows_what_a_reader_needs(self):
        done = self.compare(self.situation("slowdown"))
        for part in ("SLOWER  tiny-code", "dflash2 decode -5", "git: 0123456789ab -> fedcba987654", "One component changed",
                     "MAD", "IQR", "exploratory, no verdict", "speedup.decode", "SCLK"):
            self.assertIn(part, done.stdout)
        done = self.compare(os.path.join(self.folder.name, "files"), "--markdown")
        self.assertIn("| dflash2 decode (tok/s) |", done.stdout)

    def test_google_benchmark_form(self):
        done = self.compare(self.situation("slowdown"), "--export", "gbench")
        self.assertEqual(done.returncode, 1)
        parsed = json.loads(done.stdout)
        names = {b["name"] for b in parsed["benchmarks"]}
        self.assertIn("base/tiny-code/plain/decode", names)
        for b in parsed["benchmarks"]:
            self.assertAlmostEqual(b["real_time"], 1e9 / b["items_per_second"])
            self.assertEqual(b["time_unit"], "ns")
        self.assertEqual(self.compare(os.path.join(self.folder.name, "files"), "--export", "csv").returncode, 2)


class Card(ResultsTest):
    def test_a_card(self):
        folder = self.situation("slow-process")
        done = self.warmleg("card", f"{folder}/candidate.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLessEqual(len(done.stdout.splitlines()), 16)
        sha = subprocess.run(["sha256sum", f"{folder}/candidate.json"], capture_output=True, text=True).stdout.split()[0]
        for part in (sha, "**verified**", "slow_process", "| decode (tok/s) |", "8060S gfx1151", "ROCm 7.2",
                     "warmleg run tiny-code --set device=rocm:0 --set plan.processes=5 --set plan.pairs=4 "):
            self.assertIn(part, done.stdout)
        self.assertNotIn(folder, done.stdout)


class History(ResultsTest):
    def setUp(self):
        super().setUp()
        self.db = os.path.join(self.folder.name, "deep", "history.db")

    def history(self, command, *args, **env):
        return self.warmleg("history", command, *args, "--db", self.db, **env)

    def entries(self):
        done = self.history("list", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_add_is_idempotent_by_content(self):
        folder = self.situation("releases")
        self.assertIn("6 added, 0 known already", self.history("add", folder).stdout)
        shutil.copy(f"{folder}/rocm-7.9.json", f"{folder}/copy.json")
        self.assertIn("0 added, 7 known already", self.history("add", folder).stdout)
        self.assertEqual(len(self.entries()), 6)
        self.assertEqual(self.entries()[0]["rocm"], "7.2")

    def test_trend_orders_releases_by_number_and_names_the_first_bad(self):
        self.history("add", self.situation("releases"))
        done = self.history("trend", "--by", "rocm", "--json")
        self.assertEqual(done.returncode, 1, done.stderr)
        trend = json.loads(done.stdout)["trends"][0]
        self.assertEqual([r["release"] for r in trend["releases"]], ["7.2", "7.8", "7.9", "7.10", "7.11", "7.12"])
        self.assertEqual({b["phase"]: b["release"] for b in trend["first_bad"]},
                         {"prefill": "7.10", "plain decode": "7.12"})
        self.assertEqual(trend["first_bad"][0]["changed"], ["rocm"])
        self.assertEqual(trend["first_bad"][1]["changed"], ["rocm", "kernel"])
        self.assertIn("first bad, prefill: 7.10", self.history("trend").stdout)
        self.assertEqual(self.history("trend", "--by", "moon").returncode, 2)

    def test_struck_results_leave_the_trend_and_stay_listed(self):
        folder = self.situation("releases")
        self.history("add", folder)
        worst = next(e for e in self.entries() if e["rocm"] == "7.12")
        self.assertEqual(self.history("strike", worst["sha256"][:12], "--reason", "on battery").returncode, 0)
        self.assertEqual(self.history("strike", f"{folder}/rocm-7.10.json", "--reason", "x").returncode, 0)
        trend = json.loads(self.history("trend", "--json").stdout)["trends"][0]
        self.assertEqual({b["phase"]: b["release"] for b in trend["first_bad"]}, {"prefill": "7.11"})
        self.assertEqual(next(e for e in self.entries() if e["rocm"] == "7.12")["struck"], "on battery")
        for args in ((worst["sha256"], "--reason", "again"), ("ffffffffffff", "--reason", "none"), (worst["sha256"],),
                     (worst["sha256"], "--reason", "")):
            self.assertEqual(self.history("strike", *args).returncode, 2, args)

    def test_a_bad_file_is_named_and_the_others_are_taken(self):
        folder = self.situation("releases")
        self.edit(f"{folder}/rocm-7.9.json", lambda t: t[:-100])
        done = self.history("add", folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("5 added, 0 known already, 1 refused", done.stdout)
        self.assertIn("rocm-7.9.json", done.stderr)

    def test_two_writers(self):
        folders = [self.described([{"file": "r.json", "processes": 1, "pairs": 1, "count": 40, "seed": 1 + 30 * i}], f"w{i}")
                   for i in range(2)]
        both = [self.start("history", "add", folder, "--db", self.db) for folder in folders]
        for process in both:
            out, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, out + err)
        self.assertEqual(len(self.entries()), 70)  # seeds 31 to 40 are in both

    def test_what_is_no_history_is_refused_and_left_alone(self):
        folder = self.situation("slowdown")
        os.makedirs(os.path.dirname(self.db))
        other = sqlite3.connect(self.db)
        other.execute("CREATE TABLE theirs (x)")
        other.commit()
        other.close()
        self.refused(folder, "another program")
        with open(self.db, "wb") as f:
            f.write(b"this is a text file, longer than the header of a database" * 100)
        self.refused(folder, "corrupt")

    def refused(self, folder, said):
        with open(self.db, "rb") as f:
            before = f.read()
        for command in (("add", folder), ("list",), ("trend",), ("strike", "0" * 12, "--reason", "x")):
            done = self.history(*command)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)
        with open(self.db, "rb") as f:
            self.assertEqual(f.read(), before)

    def test_newer_older_and_damaged_histories(self):
        folder = self.situation("slowdown")
        self.history("add", folder)
        db = sqlite3.connect(self.db)
        db.execute("PRAGMA user_version = 99")
        db.commit()
        db.close()
        self.refused(folder, "newer warmleg")
        db = sqlite3.connect(self.db)
        db.execute("DROP TABLE strikes")
        db.execute("PRAGMA user_version = 1")
        db.commit()
        self.assertEqual(db.execute("PRAGMA journal_mode").fetchone()[0], "wal")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        self.assertEqual(self.history("strike", f"{folder}/base.json", "--reason", "x").returncode, 0, "migrated")
        self.assertEqual(len(self.entries()), 2)
        db = sqlite3.connect(self.db)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        with open(self.db, "r+b") as f:
            f.seek(4096)  # the second page
            f.write(b"\xff" * 4096)
        self.assertEqual(self.history("list").returncode, 2)

    def test_no_history_yet(self):
        self.assertEqual(self.history("list").returncode, 2)
        self.assertFalse(os.path.exists(self.db))
        self.assertEqual(self.warmleg("history", "add", self.situation("slowdown"), "--db", "/proc/x.db").returncode, 3)

    def test_a_full_disk_keeps_what_is_there(self):
        if not may_mount():
            self.skipTest("mount namespaces are not allowed here")
        few = self.described([{"file": "few.json", "count": 3}], "few")
        many = self.described([{"file": "many.json", "processes": 1, "pairs": 1, "count": 120, "seed": 50}], "many")
        small = os.path.join(self.folder.name, "small")
        db = f"{small}/h.db"
        os.mkdir(small)
        # Also the write-ahead log must fit; 400 KiB hold the three and not the hundred.
        script = (f'mount -t tmpfs -o size=400k none {small} && "$0" history add {few} --db {db} && '
                  f'"$0" history add {many} --db {db}; echo "code $?"; rm -f {small}/filler; '
                  f'mount -o remount,size=8m {small} && "$0" history list --json --db {db}; echo "listed $?"; '
                  f'"$0" history add {many} --db {db}; echo "again $?"')
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, WARMLEG], cwd=ROOT, env=self.environment(), text=True,
                              capture_output=True, timeout=240)
        self.assertIn("3 added", done.stdout, done.stderr)
        self.assertIn("code 3", done.stdout)
        self.assertRegex(done.stderr, "h.db.*(full|disk)")
        self.assertIn("listed 0", done.stdout)
        files = [json.loads(line)["file"] for line in done.stdout.splitlines() if line.startswith("{")]
        self.assertEqual(sum("few" in file for file in files), 3)
        self.assertLess(len(files), 123)
        self.assertIn("again 0", done.stdout)
        self.assertIn(f"{123 - len(files)} added, {len(files) - 3} known already", done.stdout)

    def test_memory_is_flat(self):
        # What a sanitizer keeps of freed memory is not ours to count.
        options = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:thread_local_quarantine_size_kb=64"

        def peak(folder):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            self.history("add", folder, ASAN_OPTIONS=options)
            return max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
        small = self.described([{"file": "r.json", "count": 4}], "small")
        few = peak(small)
        many = self.described([{"file": "r.json", "count": 60, "seed": 100}], "many")
        self.assertLess(peak(many) - few, 8 * 1024)  # KiB


if __name__ == "__main__":
    main()

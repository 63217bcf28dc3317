"""`warmleg watch` and `warmleg ab` as they are built: the fake AMD GPU, signals, exit codes, records, turns."""

import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from fake_gpu import FakeGpu, stop_without_namespaces  # noqa: E402
from program import ROOT, WARMLEG, ProgramTest, main  # noqa: E402

SITUATIONS = os.environ.get("WARMLEG_SITUATIONS", os.path.join(os.path.dirname(WARMLEG), "tests", "warmleg-situations"))


class Watch(ProgramTest):
    def setUp(self):
        super().setUp()
        self.record = os.path.join(self.folder.name, "watched.json")

    def watch(self, *words, profile="strix-halo-steady", timeout=120):
        self.gpu = FakeGpu(profile)
        self.addCleanup(self.gpu.close)
        return subprocess.run(self.gpu.command(WARMLEG, "watch", "--interval", "20", *words), cwd=ROOT, env=self.environment(),
                              text=True, capture_output=True, timeout=timeout)

    def check_watch(self, record):
        import jsonschema
        with open(os.path.join(ROOT, "results", "schema", "warmleg.watch-1.schema.json"), encoding="utf-8") as f:
            jsonschema.validate(record, json.load(f))

    def test_output_and_exit_code_are_those_of_the_program(self):
        done = self.watch("--", "sh", "-c", "echo its output; echo its error >&2; sleep 2.2; exit 7")
        self.assertEqual(done.returncode, 7)
        self.assertEqual(done.stdout, "its output\n")
        for part in ("its error", "    1 s  SCLK 2900 MHz", "    2 s  SCLK 2900 MHz", "exit 7", "SCLK p5/50/95 2900/2900/2900 MHz",
                     "no clock rule was broken"):
            self.assertIn(part, done.stderr)

    def test_a_stuck_clock_is_named(self):
        done = self.watch("--", "sleep", "1.3", profile="strix-halo-stuck-600")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"    1 s  SCLK 600 MHz .*! clock_low_under_load")
        self.assertIn("! clock_low_under_load: ", done.stderr)
        self.assertIn("in 1 of 1 seconds", done.stderr)

    def test_a_record_that_compare_shows_beside_the_verdict(self):
        done = self.watch("--json", "--out", self.record, "--rate", "decode_tok_s=([0-9.]+) tok/s", "--", "sh", "-c",
                          "echo 12 tok/s; sleep 1.2; echo 'eval: 34.25 tok/s'")
        self.assertEqual(done.returncode, 0, done.stderr)
        record = json.loads(done.stdout)
        self.check_watch(record)
        with open(self.record, encoding="utf-8") as f:
            self.assertEqual(json.load(f), record)
        self.assertIn("eval: 34.25 tok/s", done.stderr)  # stdout is the record's
        self.assertEqual(record["rates"], [{"name": "decode_tok_s", "value": 34.25, "verified": False, "text": "eval: 34.25 tok/s"}])
        self.assertEqual((record["verdict"], record["exit_code"], record["signal"]), ("unverified", 0, None))
        self.assertTrue(record["clocks"]["verified"])
        self.assertEqual(record["telemetry"]["device"]["pci"], "0000:c5:00.0")
        self.assertEqual(record["environment"]["gpu"]["gfx"], "gfx1151")
        self.assertEqual(len(record["seconds"]), 1)
        situations = os.path.join(self.folder.name, "files")
        subprocess.run([SITUATIONS, os.path.join(ROOT, "tests/data/situations/slowdown.json"), situations], check=True)
        files = ("compare", f"{situations}/base.json", "--with", f"{situations}/candidate.json", self.record)
        done = self.warmleg(*files)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)  # as without it
        beside = done.stdout[done.stdout.index("beside, unverified"):]
        for part in ("candidate", "watched.json", "decode_tok_s 34.2", "unverified", "SCLK p5/50/95 2900", "none broken"):
            self.assertIn(part, beside)
        parsed = json.loads(self.warmleg(*files, "--json").stdout)
        self.assertEqual(parsed["beside"][0]["rates"][0]["value"], 34.25)
        self.assertEqual(parsed["beside"][0]["verdict"], "unverified")
        self.assertIn("| candidate | `sh", self.warmleg(*files, "--markdown").stdout)
        alone = self.warmleg("compare", f"{situations}/base.json", "--with", self.record)
        self.assertEqual(alone.returncode, 2, "a record alone compares nothing")

    def test_wrong_usage_and_no_board(self):
        for words, said in ((("--", "/no/such/program"), "cannot be started"), (("--rate", "x", "--", "true"), "NAME=PATTERN"),
                            (("--rate", "x=[", "--", "true"), "missing terminating"), (("--rate", "x=1", "--", "true"), "no group"),
                            ((), "command"), (("--device", "0000:00:00.0", "--", "true"), "0000:00:00.0")):
            with self.subTest(words=words):
                done = self.watch(*words)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(said, done.stderr + done.stdout)
        marker = os.path.join(self.folder.name, "ran")
        done = self.warmleg("watch", "--", "touch", marker)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertFalse(os.path.exists(marker), "without a board nothing is started")
        with open(self.record, "w", encoding="ascii") as f:
            f.write("mine")
        self.assertEqual(self.watch("--out", self.record, "--", "touch", marker).returncode, 2)
        self.assertFalse(os.path.exists(marker))

    def test_signals_go_to_the_program_and_its_end_is_ours(self):
        self.gpu = FakeGpu("strix-halo-steady")
        self.addCleanup(self.gpu.close)
        script = "trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
        process = subprocess.Popen(self.gpu.command("sh", "-c", 'echo $$; exec "$0" watch -- sh -c "$1"', WARMLEG, script), cwd=ROOT,
                                   env=self.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (process.poll() is None and process.kill(), process.communicate()))
        pid = int(process.stdout.readline())
        self.assertEqual(process.stdout.readline(), "ready\n")
        os.kill(pid, signal.SIGTERM)
        out, errors = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (9, "caught\n"), errors)
        done = self.watch("--json", "--", "sh", "-c", "kill -KILL $$")
        self.assertEqual(done.returncode, 137)
        self.assertEqual(json.loads(done.stdout)["signal"], 9)

    def test_what_a_program_leaves_behind_does_not_hold_it(self):
        begin = time.monotonic()
        done = self.watch("--rate", "x=^([0-9]+) of", "--json", "--", "sh", "-c", "sleep 30 2>&- & printf \"4 of 9\\r\"; echo 5 of 9; exit 4")
        self.assertEqual(done.returncode, 4)
        self.assertLess(time.monotonic() - begin, 25)
        self.assertEqual(json.loads(done.stdout)["rates"][0]["value"], 5)


class Ab(ProgramTest):
    SMALL = ["tiny-code", "--set", "device=cpu", "--set", "plan.processes=2", "--set", "plan.pairs=1", "--set",
             "generation.max_new_tokens=4"]

    def setUp(self):
        super().setUp()
        self.results = os.path.join(self.folder.name, "ab")
        self.log = os.path.join(self.folder.name, "log")

    def build(self, name, text='exec "$WARMLEG" "$@"'):
        """A build folder whose program writes down that it was called."""
        folder = os.path.join(self.folder.name, name)
        os.makedirs(folder)
        with open(f"{folder}/warmleg", "w", encoding="ascii") as f:
            f.write(f'#!/bin/sh\necho "{name} $SIDE $ROCM_PATH" >> "{self.log}"\n{text}\n')
        os.chmod(f"{folder}/warmleg", 0o755)
        return folder

    def ab(self, base, candidate, *words):
        return self.warmleg("ab", base, candidate, *self.SMALL, "--out", self.results, *words, WARMLEG=WARMLEG)

    def calls(self):
        with open(self.log, encoding="utf-8") as f:
            return [line.split() for line in f]

    def test_two_builds_take_turns(self):
        done = self.ab(self.build("old"), self.build("new"), "--base-env", "SIDE=b", "--candidate-env", "SIDE=c")
        self.assertEqual(done.returncode, 4, done.stderr)  # two processes decide nothing
        self.assertEqual(self.calls(), [["old", "b"], ["new", "c"], ["new", "c"], ["old", "b"]])
        self.assertIn("too few processes", done.stdout)
        starts = []
        for side in ("base", "candidate"):
            result = self.load(f"{self.results}/{side}.json")
            self.assertTrue(result["complete"])
            self.assertEqual(len(result["processes"]), 2)
            starts += [(int(p["pid_start"].split("@")[1]), side) for p in result["processes"]]
        self.assertEqual([side for _, side in sorted(starts)], ["base", "candidate", "candidate", "base"])
        self.assertEqual(self.ab(WARMLEG, WARMLEG).returncode, 2, "results are not overwritten")

    def test_two_rocm_trees(self):
        trees = []
        for name in ("rocm-a", "rocm-b"):
            trees.append(os.path.join(self.folder.name, name))
            os.makedirs(f"{trees[-1]}/lib")
            with open(f"{trees[-1]}/lib/libamdhip64.so.of-no-soname", "w", encoding="ascii"):
                pass
        done = self.ab(*trees, "--json")
        self.assertEqual(done.returncode, 4, done.stderr)
        for side, tree in (("base", trees[0]), ("candidate", trees[1])):
            variables = self.load(f"{self.results}/{side}.json")["environment"]["variables"]
            self.assertEqual(variables["ROCM_PATH"], tree)
            self.assertTrue(variables["LD_LIBRARY_PATH"].startswith(f"{tree}/lib"))
        self.assertIn("did not take the libraries", done.stderr)
        self.assertEqual(json.loads(done.stdout)["exit_code"], 4)

    def test_it_ends_with_the_run_that_failed(self):
        done = self.ab(self.build("good"), self.build("bad", "exit 3"))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual([c[0] for c in self.calls()], ["good", "bad"])
        self.assertFalse(self.load(f"{self.results}/base.json")["complete"])
        self.assertIn("ended early", done.stderr)

    def test_what_is_no_build(self):
        for words in (("/nowhere", WARMLEG), (WARMLEG, self.folder.name), (WARMLEG, WARMLEG, "--base-env", "x")):
            done = self.ab(*words)
            self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(self.ab("/nowhere", WARMLEG).stderr, "base /nowhere: is no warmleg program, .* no ROCm tree")


if __name__ == "__main__":
    stop_without_namespaces()
    main()

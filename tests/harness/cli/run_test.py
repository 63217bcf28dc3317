"""`warmleg run` end to end on the cpu: the file, the exit codes, refusals before any measuring."""

import fcntl
import json
import os
import pty
import stat
import struct
import subprocess
import termios

from program import ROOT, SMALL, ProgramTest, main, may_mount


class Run(ProgramTest):
    def test_a_sampled_run(self):
        done = self.warmleg("run", "tiny-code", "--set", "device=cpu", "--set", "plan.processes=2", "--set",
                            "plan.pairs=2", "--set", "generation.max_new_tokens=24", "--set",
                            "generation.temperature=0.8", "--set", "generation.seed=5", "--out", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = self.load()
        self.assertEqual(result["verdict"], "unverified")
        workload = result["workload"]
        self.assertEqual([workload[k] for k in ("temperature", "top_k", "top_p", "seed")], [0.8, 0, 1, 5])
        hashes = {}
        for leg in result["legs"]:
            self.check_counters(leg)
            self.assertTrue(leg["valid"], leg["reasons"])
            self.assertGreater(leg["counters"]["output_tokens"], 0)
            hashes.setdefault((leg["prompt"], leg["arm"]), set()).add(leg["output_sha256"])
            ops = {p["op"] for p in leg["providers"]}
            self.assertIn("RandomSample", ops)
            self.assertEqual("RejectionSample" in ops, leg["arm"] == "dflash2")
        self.assertEqual({len(h) for h in hashes.values()}, {1}, "one seed, one output in every process")
        self.assertEqual(len(hashes), 4)
        self.assertEqual(result["reference"]["source"], "not_applicable")
        self.assertNotIn("reference_unavailable", [w["code"] for w in result["warnings"]])
        self.assertIn("ids not compared: sampled at temperature 0.8, seed 5", done.stdout)
        again = self.warmleg("card", self.out)
        self.assertIn("ids not compared (sampled, seed 5)", again.stdout)

    def test_a_small_run(self):
        done = self.warmleg("run", "tiny-code", "--set", "device=cpu", "--set", "plan.processes=2", "--set",
                            "plan.pairs=3", "--set", "generation.max_new_tokens=24", "--out", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = self.load()
        self.assertTrue(result["complete"])
        self.assertEqual(result["verdict"], "unverified")
        self.assertEqual([p["index"] for p in result["processes"]], [0, 1])
        self.assertEqual(len({p["pid_start"] for p in result["processes"]}), 2)
        legs = result["legs"]
        self.assertEqual(len(legs), 2 * 2 * (1 + 3))
        cold = [leg for leg in legs if leg["state"] == "cold"]
        self.assertEqual(len(cold), 4)
        for leg in cold:
            self.assertEqual([r["code"] for r in leg["reasons"]], ["warmup"])
        for leg in legs:
            self.check_counters(leg)
            self.assertTrue(leg["valid"], leg["reasons"])
            self.assertGreater(sum(p["calls"] for p in leg["providers"]), 0)
            self.assertEqual({p["provider"] for p in leg["providers"]}, {"vt-native"})
        for process in (0, 1):
            order = [leg["arm"] for leg in legs if leg["process"] == process]
            first = order[::2]
            self.assertEqual(first, [["plain", "dflash2"][(process + i) % 2] for i in range(4)])
        self.assertEqual(result["reference"]["source"], "process")
        self.assertEqual(result["reference"]["identical"], result["reference"]["prompts"])
        hashes = {}
        for leg in legs:
            hashes.setdefault(leg["prompt"], set()).add(leg["output_sha256"])
        self.assertEqual({len(h) for h in hashes.values()}, {1})
        for process in result["processes"]:
            self.assertGreater(process["load_s"], 0)
            self.assertGreater(process["peak_rss_bytes"], 10_000_000)
            self.assertEqual(len(process["sentinel_s"]["values"]), 1 + 1 + 3)
        self.assertGreater(result["roof"]["read_gb_s"], 0)
        self.assertGreater(result["speedup"]["break_even_committed_per_round"], 0)
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            self.assertEqual(result["environment"]["boot_id"], f.read().strip())
        self.check_table(done.stdout)
        again = self.warmleg("run", "tiny-code", "--set", "device=cpu", "--set", "plan.processes=1", "--set",
                             "plan.pairs=3", "--set", "generation.max_new_tokens=24", "--out", self.out, "--force")
        self.assertEqual(again.returncode, 0, again.stderr)
        cached = self.load()
        self.assertEqual(cached["reference"]["source"], "cache")
        self.assertEqual(cached["reference"]["ids_hash"], result["reference"]["ids_hash"])
        self.no_temporary_files()

    def check_counters(self, leg):
        c = leg["counters"]
        self.assertEqual(c["output_tokens"], c["prefill_made"] + c["committed"])
        self.assertEqual(c["bonus"], c["rounds"])
        self.assertEqual(c["accepted"] + c["bonus"], c["committed"] + c["stop_trimmed"] + c["budget_trimmed"])
        self.assertLessEqual(c["accepted"], c["drafted"])
        self.assertEqual(sum(c["accepted_at"]), c["accepted"])
        if leg["arm"] == "plain":
            self.assertEqual((c["drafted"], c["accepted"]), (0, 0))

    def check_table(self, text):
        lines = text.splitlines()
        self.assertTrue(lines[0].startswith("UNVERIFIED"), text)
        self.assertLessEqual(max(map(len, lines)), 100, text)
        self.assertNotIn("\x1b", text)
        for word in ("tok/s", "n = 2 processes", "committed/round", "break-even", "warm-up x2", "ids equal on 3 of 3"):
            self.assertIn(word, text)

    def test_locale_changes_no_byte_of_a_number(self):
        self.assertEqual(self.run_small(LC_ALL="de_DE.UTF-8").returncode, 0)
        self.assertEqual(self.load()["environment"]["variables"]["LC_ALL"], "de_DE.UTF-8")

    def test_no_warm_up_gives_no_warm_rate(self):
        done = self.run_small("--set", "plan.warmup_pairs=0")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = self.load()
        self.assertEqual({leg["state"] for leg in result["legs"]}, {"cold"})
        codes = [{r["code"] for r in leg["reasons"]} for leg in result["legs"]]
        self.assertTrue(all("no_warmup" in c for c in codes))
        # the first prompt was used before, to choose the repeats
        self.assertTrue(all("first_use_in_leg" in c for c in codes[2:]), codes)
        self.assertIsNone(result["summary"]["plain"]["decode_tok_s"]["value"])

    def test_repeats_are_equal_for_both_arms(self):
        done = self.run_small("--set", "plan.min_leg_s=0.3")
        self.assertEqual(done.returncode, 0, done.stderr)
        warm = [leg for leg in self.load()["legs"] if leg["state"] == "warm"]
        self.assertEqual(len({leg["repeats"] for leg in warm}), 1)
        for leg in warm:
            # A sanitizer makes one enough; its legs are a third shorter than the warm-up that said so at most.
            self.assertTrue(leg["repeats"] > 1 or leg["times"]["e2e_s"] > 0.2, leg["times"])
            self.assertEqual(leg["counters"]["output_tokens"], 12 * leg["repeats"])

    def test_block_size_1_is_plain_decoding(self):
        done = self.run_small("--set", "arms.1.block_size=1")
        self.assertEqual(done.returncode, 0, done.stderr)
        for leg in self.load()["legs"]:
            self.check_counters(leg)
            self.assertEqual(leg["counters"]["drafted"], 0)

    def test_budget_changes_the_pairs_and_not_the_workload(self):
        self.assertEqual(self.run_small("--set", "plan.pairs=8").returncode, 0)
        whole = self.load()
        done = self.run_small("--set", "plan.pairs=8", "--budget", "0.2s", "--force")
        self.assertEqual(done.returncode, 0, done.stderr)
        short = self.load()
        self.assertEqual(short["workload"], whole["workload"])
        self.assertLess(len(short["legs"]), len(whole["legs"]))
        self.assertIn("budget_exhausted", [w["code"] for w in short["warnings"]])

    def test_plan_writes_nothing(self):
        done = self.run_small("--plan")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 processes of 2 pairs", done.stdout)
        self.assertFalse(os.path.exists(self.out))


class Screen(ProgramTest):
    def on_terminal(self, columns, *args):
        """What a terminal of this width shows in the end, line by line."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        process = subprocess.Popen(self.command("run", "tiny-code", *SMALL, "--set", "plan.processes=2", "--out",
                                                self.out, *args),
                                   cwd=ROOT, env=self.environment(), stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        text = b""
        try:
            while piece := os.read(ours, 4096):
                text += piece
        except OSError:  # a terminal ends so
            pass
        os.close(ours)
        self.assertEqual(process.wait(), 0, text)
        return [line.split("\r\x1b[K")[-1] for line in text.decode().replace("\r\n", "\n").split("\n")]

    def test_a_terminal_of_80_columns(self):
        lines = self.on_terminal(80)
        start = next(i for i, line in enumerate(lines) if line.startswith("UNVERIFIED"))
        # a path is one word and may be longer
        table = [line for line in lines[start:] if self.out not in line]
        self.assertLessEqual(max(map(len, lines[:start] + table)), 80, table)
        self.assertNotIn("\x1b", "".join(table))
        self.assertTrue(any("all pairs put back" in line for line in table), table)


class Refused(ProgramTest):
    def refused(self, code, word, *args, **env):
        done = self.run_small(*args, **env)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(word, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertNotIn("loaded in", done.stderr)  # before anything is measured

    def test_an_existing_file_is_refused_before_any_measuring(self):
        with open(self.out, "w", encoding="utf-8") as f:
            f.write("mine")
        self.refused(2, "--force")
        with open(self.out, encoding="utf-8") as f:
            self.assertEqual(f.read(), "mine")

    def test_a_read_only_folder_is_3(self):
        if os.geteuid() != 0:
            os.chmod(self.folder.name, stat.S_IRUSR | stat.S_IXUSR)
            self.addCleanup(os.chmod, self.folder.name, stat.S_IRWXU)
        elif may_mount():  # mode bits do not stop root, a mount does
            folder = self.folder.name
            self.under = ["unshare", "-m", "sh", "-c",
                          f"mount --bind {folder} {folder} && mount -o remount,bind,ro {folder} && exec \"$@\"", "sh"]
        else:
            self.skipTest("root may write anywhere, and mount namespaces are not allowed here")
        self.refused(3, "cannot write")

    def test_a_folder_that_cannot_be_made_is_3(self):
        self.out = "/proc/none/result.json"
        self.refused(3, "/proc/none")

    def test_out_that_is_a_folder_is_3(self):
        os.mkdir(self.out)
        self.refused(3, "folder")

    def test_unknown_key(self):
        self.refused(2, "processes", "--set", "plan.procesess=3")

    def test_unknown_device(self):
        self.refused(3, "rocm:7", "--set", "device=rocm:7")
        self.refused(2, "gpu", "--set", "device=gpu")

    def test_temperature(self):
        self.refused(2, "temperature is 0.0001", "--set", "generation.temperature=0.0001")

    def test_a_missing_checkpoint(self):
        self.refused(2, "/nowhere", "--set", "target=/nowhere")

    def test_a_scenario_that_is_not_there_lists_the_shipped_ones(self):
        done = self.warmleg("run", "tinycode")
        self.assertEqual(done.returncode, 2)
        self.assertIn("tiny-code", done.stderr)

    def test_a_bad_budget(self):
        self.refused(2, "duration", "--budget", "15x")


if __name__ == "__main__":
    main()

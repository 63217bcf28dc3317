"""What a run does when a worker or the whole run dies: the file is whole, the code is right, nobody is left behind."""

import os
import random
import resource
import signal
import subprocess
import time

from program import ROOT, SMALL, ProgramTest, main, may_mount

RUN = ["run", "tiny-code", *SMALL]


class Faults(ProgramTest):
    def fault(self, text, *args):
        return self.run_small(*args, WARMLEG_TEST_FAULT=text)

    def codes(self, leg):
        return [r["code"] for r in leg["reasons"]]

    def test_a_dying_worker_costs_its_leg_and_a_fresh_one_goes_on(self):
        # legs 0 and 1 are the warm-up pair, 2 the first of the plan
        for kind, code in (("abort", "crashed"), ("exit", "crashed"), ("kill", "crashed"), ("oom", "oom"),
                           ("full", "oom"), ("illegal", "crashed"), ("garbage", "crashed")):
            with self.subTest(kind=kind):
                done = self.fault(f"{kind}:2", "--force")
                self.assertEqual(done.returncode, 0, done.stderr)
                result = self.load()
                self.assertTrue(result["complete"])
                dead = [leg for leg in result["legs"] if code in self.codes(leg)]
                self.assertEqual([leg["index"] for leg in dead], [2])
                self.assertFalse(dead[0]["valid"])
                self.assertIsNone(dead[0]["rates"]["decode_tok_s"])
                # both planned pairs and one in place of the lost one; a second warm-up pair
                warm = [leg for leg in result["legs"] if leg["valid"] and leg["state"] == "warm"]
                self.assertEqual(len(warm), 4)
                self.assertEqual(sum("warmup" in self.codes(leg) for leg in result["legs"]), 4)
                self.assertEqual(result["environment"]["variables"]["WARMLEG_TEST_FAULT"], f"{kind}:2")

    def test_a_worker_that_leaves_between_two_questions_is_replaced(self):
        done = self.fault("deaf:2")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = self.load()
        self.assertTrue(result["complete"])
        self.assertEqual([leg["index"] for leg in result["legs"] if "crashed" in self.codes(leg)], [3])

    def test_a_hang_is_ended_though_it_ignores_sigterm(self):
        start = time.monotonic()
        done = self.fault("hang:2", "--set", "plan.leg_timeout_s=3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(time.monotonic() - start, 90)
        dead = [leg for leg in self.load()["legs"] if "timeout" in self.codes(leg)]
        self.assertEqual(len(dead), 1)
        self.assertEqual(dead[0]["reasons"][0]["limit"], 3)
        self.assertGreaterEqual(dead[0]["reasons"][0]["value"], 3)

    def test_two_pairs_with_one_reason_stop_the_campaign(self):
        done = self.fault("leak:2,leak:4", "--set", "plan.pairs=4")
        result = self.load()
        self.assertFalse(result["complete"])
        self.assertIn("state_leak", [r["code"] for r in result["reasons"]])
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(max(leg["index"] for leg in result["legs"]), 5)

    def test_a_worker_that_never_loads_is_given_up(self):
        done = self.fault("abort:load")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(done.stderr.count("test fault"), 4)  # two for the reference, two to measure
        self.assertFalse(os.path.exists(self.out))

    def test_a_dead_reference_is_named(self):
        done = self.fault("abort:reference")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = self.load()
        self.assertIn("reference_unavailable", [w["code"] for w in result["warnings"]])
        self.assertIn("ids not compared", done.stdout)

    def test_a_divergence_is_found(self):
        done = self.fault("diverge:3")
        legs = self.load()["legs"]
        found = [leg for leg in legs if leg["divergence"]]
        self.assertEqual([leg["index"] for leg in found], [3])
        self.assertEqual(found[0]["divergence"]["index"], 11)
        self.assertNotIn("ids equal on 2 of 2", done.stdout)


class FullDisk(ProgramTest):
    """The result does not fit: exit 3, the file of before is still there, nothing else is."""

    def check(self, done, before):
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(self.out + ": cannot write", done.stderr)
        with open(self.out, "rb") as f:
            self.assertEqual(f.read(), before)
        self.no_temporary_files()

    def before(self):
        with open(self.out, "wb") as f:
            f.write(b"the result of before")
        return b"the result of before"

    def test_a_limit_on_file_size(self):
        before = self.before()
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
        done = subprocess.run(self.command(*RUN, "--out", self.out, "--force"), cwd=ROOT, env=self.environment(),
                              text=True, capture_output=True, timeout=240, preexec_fn=limit)
        self.check(done, before)

    def test_a_full_file_system(self):
        if not may_mount():
            self.skipTest("mount namespaces are not allowed here")
        before = self.before()
        after = os.path.join(self.folder.name, "cache")  # what is left in the small file system, for check()
        script = (f"mkdir -p {after} {self.folder.name}/small && "
                  f"mount -t tmpfs -o size=16k none {self.folder.name}/small && "
                  f"cp {self.out} {self.folder.name}/small/ && \"$@\"; code=$?; "
                  f"cp -a {self.folder.name}/small/. {after}/; umount {self.folder.name}/small; "
                  f"rmdir {self.folder.name}/small; exit $code")
        self.under = ["unshare", "-m", "sh", "-c", script, "sh"]
        small = os.path.join(self.folder.name, "small", "result.json")
        done = self.warmleg(*RUN, "--out", small, "--force")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(small + ": cannot write: write: No space left", done.stderr)
        left = [name for name in os.listdir(after) if name != "warmleg"]
        self.assertEqual(left, ["result.json"])
        with open(os.path.join(after, "result.json"), "rb") as f:
            self.assertEqual(f.read(), before)


class Signals(ProgramTest):
    def test_a_signal_leaves_a_whole_file_and_nobody_behind(self):
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=sig):
                process = self.start(*RUN, "--set", "plan.pairs=200", "--out", self.out, "--force")
                for line in process.stderr:
                    if "pair 2/200" in line:
                        break
                workers = self.workers_of(process.pid)
                self.assertEqual(len(workers), 1)
                process.send_signal(sig)
                process.communicate(timeout=60)
                self.assertEqual(process.returncode, 130)
                result = self.load()
                self.assertFalse(result["complete"])
                self.assertIn("interrupted", [r["code"] for r in result["reasons"]])
                self.assertGreaterEqual(len(result["legs"]), 4)
                self.wait_for(lambda: not self.workers_of(process.pid), 10)
                self.no_temporary_files()

    def test_resume_runs_what_is_left(self):
        process = self.start(*RUN, "--set", "plan.pairs=6", "--set", "plan.processes=2", "--out", self.out)
        for line in process.stderr:
            if "pair 3/6" in line:
                break
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        before = self.load()["legs"]
        settings = [*SMALL, "--set", "plan.pairs=6", "--set", "plan.processes=2"]
        wrong = self.warmleg("run", "tiny-code", *SMALL, "--resume", self.out)
        self.assertEqual(wrong.returncode, 2, wrong.stderr)
        self.assertIn("scenario.sha256", wrong.stderr)
        done = self.warmleg("run", "tiny-code", *settings, "--resume", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = self.load()
        self.assertTrue(result["complete"])
        key = lambda leg: (leg["process"], leg["index"], leg["output_sha256"], leg["times"]["e2e_s"])
        self.assertEqual([key(leg) for leg in result["legs"]][:len(before)], [key(leg) for leg in before])
        for index in (0, 1):
            warm = [leg for leg in result["legs"] if leg["process"] == index and leg["state"] == "warm"]
            self.assertGreaterEqual(sum(leg["counted"] for leg in warm), 10)
        done = self.warmleg("run", "tiny-code", *settings, "--resume", self.out)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("complete", done.stderr)

    def test_a_killed_parent_takes_its_worker_along(self):
        process = self.start(*RUN, "--set", "plan.pairs=200", "--out", self.out)
        for line in process.stderr:
            if "pair 1/200" in line:
                break
        self.assertEqual(len(self.workers_of(process.pid)), 1)
        process.kill()
        process.communicate(timeout=60)
        self.wait_for(lambda: not self.workers_of(process.pid), 10)

    def test_workers_killed_at_random_times(self):
        seed = int(os.environ.get("WARMLEG_TEST_SEED", "1"))
        runs = int(os.environ.get("WARMLEG_TEST_KILLS", "6"))
        chance = random.Random(seed)
        for run in range(runs):
            with self.subTest(seed=seed, run=run):
                process = self.start(*RUN, "--out", self.out, "--force")
                time.sleep(chance.uniform(0, 3))
                for worker in self.workers_of(process.pid):
                    try:
                        os.kill(worker, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                _, errors = process.communicate(timeout=240)
                self.assertEqual(process.returncode, 0, errors)
                self.assertTrue(self.load()["complete"])
                self.assertEqual(self.workers_of(process.pid), [])
        self.no_temporary_files()


if __name__ == "__main__":
    main()

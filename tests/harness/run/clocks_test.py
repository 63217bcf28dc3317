"""`warmleg run` watched by the fake AMD GPU, end to end: the real sampler and its library, rules, sidecar, restore."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from fake_gpu import FakeGpu, stop_without_namespaces  # noqa: E402
from program import ROOT, WARMLEG, ProgramTest, main  # noqa: E402

# At 20 ms a leg of a second gives 50 samples, and 20 are needed.
PAIRS = 3
RUN = ["run", "clock-test", "--telemetry-device", "auto", "--set", "device=cpu", "--set", "plan.processes=1",
       "--set", f"plan.pairs={PAIRS}", "--set", "plan.min_leg_s=1", "--set", "clocks.interval_ms=20"]


class Watched(ProgramTest):
    def start_on(self, profile, *more):
        self.gpu = FakeGpu(profile)
        self.addCleanup(self.gpu.close)
        command = self.gpu.command(WARMLEG, *RUN, "--out", self.out, *more)
        process = subprocess.Popen(command, cwd=ROOT, env=self.environment(), text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(lambda: (process.poll() is None and process.kill(), process.communicate()))
        return process

    def legs_until(self, process, pair, second):
        """Reads progress up to the first or second leg of a pair; the legs seen so far, by number."""
        seen = 0
        for line in process.stderr:
            if " tok/s" not in line:
                continue
            seen += 1
            if seen == 2 * pair + 1 + second:  # pair 0 is the warm-up
                return seen
        self.fail("the run ended before that")

    def finish(self, process, code=0):
        self.table, self.errors = process.communicate(timeout=240)
        self.assertEqual(process.returncode, code, self.errors)
        return self.load()

    def codes(self, leg):
        return [r["code"] for r in leg["reasons"]]

    def with_code(self, result, code):
        return [leg["index"] for leg in result["legs"] if code in self.codes(leg)]

    def warm(self, result):
        """The legs of full length; those of the warm-up are not repeated."""
        return [leg for leg in result["legs"] if leg["state"] == "warm"]

    def children(self, parent):
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                    name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
            except OSError:
                continue
            if int(rest.split()[1]) == parent and rest.split()[0] != "Z":
                found[int(pid)] = name
        return found

    def program_of(self, wrapper):
        return self.wait_for(lambda: [p for p, n in self.children(wrapper.pid).items() if n == "warmleg"])[0]

    def samplers_of(self, program):
        return [p for p, n in self.children(program).items() if n.startswith("warmleg-sampl")]

    def uses_the_library(self, result):
        return result["telemetry"]["sources"]["sclk_mhz"] == "rocm_smi"


class Verdicts(Watched):
    def test_steady_clocks_are_verified(self):
        result = self.finish(self.start_on("strix-halo-steady"))
        self.assertEqual(result["verdict"], "verified", result["reasons"])
        self.assertEqual(result["reasons"], [])
        for leg in self.warm(result):
            clocks = leg["clocks"]
            self.assertTrue(clocks["verified"], clocks)
            self.assertGreaterEqual(clocks["samples"], 20)
            self.assertEqual([clocks["sclk_mhz"][k] for k in ("p5", "p50", "p95", "mean", "first_third", "last_third")],
                             [2900] * 6)
            self.assertEqual(clocks["mclk_mhz"]["p50"], 1000)
            self.assertEqual(clocks["perf_level"], "high")
            self.assertEqual(clocks["other_clients"], 0)
            self.assertEqual(set(clocks["phases"]), {"prefill", "decode"})
            self.assertAlmostEqual(clocks["energy_j"], 118.016 * leg["times"]["e2e_s"], delta=0.1 * clocks["energy_j"])
        self.check_environment(result)
        self.check_sidecar(result)
        lines = self.table.splitlines()
        self.assertTrue(lines[0].startswith("VERIFIED, clock level (high)"), self.table)
        self.assertIn("SCLK p5/50/95   plain 2900/2900/2900   dflash2 2900/2900/2900   118/118 W   71->71 C", lines)
        self.assertLessEqual(max(map(len, lines)), 100, self.table)
        self.assertNotIn("\x1b", self.table)

    def check_environment(self, result):
        env = result["environment"]
        self.assertEqual(result["telemetry"]["device"]["pci"], "0000:c5:00.0")
        self.assertEqual(result["telemetry"]["interval_ms"], 20)
        self.assertEqual(env["gpu"]["pci"], "0000:c5:00.0")
        self.assertEqual(env["gpu"]["gfx"], "gfx1151")
        self.assertEqual(env["gpu"]["vbios"], "113-STRXLGEN-001")
        self.assertEqual((env["gpu"]["vram_bytes"], env["gpu"]["gtt_bytes"]), (536870912, 66571993088))
        self.assertEqual(env["other_clients"], 0)
        for field in ("platform_profile", "tuned_profile", "power_supply", "cpu_governor", "cached_bytes"):
            self.assertTrue(env[field] is not None or field in env["unreadable"], field)
        self.assertTrue(env["amdgpu_parameters"] or "amdgpu_parameters" in env["unreadable"])

    def check_sidecar(self, result):
        file = os.path.join(self.folder.name, result["telemetry"]["samples_file"])
        self.assertEqual(os.path.basename(file), "result.samples.jsonl")
        with open(file, "rb") as f:
            data = f.read()
        self.assertEqual(hashlib.sha256(data).hexdigest(), result["telemetry"]["samples_sha256"])
        head, *samples = [json.loads(line) for line in data.splitlines()]
        self.assertEqual(head["schema"], "warmleg.samples/1")
        times = [s["t_ns"] for s in samples]
        self.assertEqual(times, sorted(times))
        self.assertGreaterEqual(len(samples), sum(leg["clocks"]["samples"] for leg in result["legs"]))

    def test_a_stuck_clock_invalidates_the_legs(self):
        result = self.finish(self.start_on("strix-halo-stuck-600"), 1)
        self.assertEqual(result["verdict"], "invalid")
        self.assertEqual(self.with_code(result, "clock_low_under_load"), [leg["index"] for leg in result["legs"]])
        for leg in result["legs"]:
            self.assertFalse(leg["valid"])
            self.assertIsNone(leg["rates"]["decode_tok_s"])
            self.assertGreater(leg["times"]["decode_s"], 0)
        self.assertFalse(result["complete"])  # two pairs in a row with one reason are enough
        self.assertIn("clock_low_under_load", [r["code"] for r in result["reasons"]])
        self.assertIn("clock_low_under_load", self.table)
        self.assertIn("SCLK not shown: no leg counts", self.table)  # it was seen in all of them

    def test_the_same_clock_is_a_warning_where_rules_do_not_bind(self):
        self.gpu = FakeGpu("strix-halo-stuck-600")
        self.addCleanup(self.gpu.close)
        process = subprocess.run(self.gpu.command(WARMLEG, *RUN, "--out", self.out, "--set", "demo=true", "--set",
                                                  "plan.pairs=1"),
                                 cwd=ROOT, env=self.environment(), text=True, capture_output=True, timeout=240)
        self.assertEqual(process.returncode, 0, process.stderr)
        result = self.load()
        self.assertEqual(result["verdict"], "unverified")
        self.assertIn("clock_low_under_load", [w["code"] for w in result["warnings"]])

    def test_a_throttle_bit_costs_the_leg_in_which_it_rose(self):
        process = self.start_on("strix-halo-mid")
        leg = self.legs_until(process, 2, 0)  # the first leg of pair 2 is done, its second runs
        for _ in range(3):
            self.gpu.set("gpu0.throttle=0")
            time.sleep(0.1)
            self.gpu.set("gpu0.throttle=0x20")
            time.sleep(0.1)
        result = self.finish(process)
        hot = self.with_code(result, "thermal_throttle")
        self.assertIn(hot, ([leg], [leg, leg + 1]))  # a busy machine may carry the last rise over
        for other in result["legs"]:
            if other["index"] not in hot:
                self.assertTrue(other["valid"], other["reasons"])
        # the pair that was lost ran again
        self.assertGreaterEqual(sum(other["counted"] for other in result["legs"]), 2 * PAIRS - 2)
        self.assertIn("thermal_throttle", self.table)
        self.assertEqual(result["verdict"], "verified", result["reasons"])

    def test_a_changed_performance_level_costs_the_legs_after_it(self):
        process = self.start_on("strix-halo-steady")
        done = self.legs_until(process, 1, 1)
        self.gpu.set("gpu0.level=manual")
        result = self.finish(process)
        changed = self.with_code(result, "perf_level_changed")
        self.assertEqual(changed, list(range(changed[0], len(result["legs"]))))
        self.assertIn(changed[0], (done, done + 1))
        for leg in result["legs"][:changed[0]]:
            self.assertTrue(leg["valid"], leg["reasons"])
        for leg in result["legs"][changed[0]:]:
            self.assertFalse(leg["valid"])

    def test_the_library_may_abort_in_mid_run(self):
        # a leg must have its 20 samples though the restart takes some time of it
        process = self.start_on("strix-halo-steady", "--set", "plan.min_leg_s=2")
        self.legs_until(process, 1, 0)
        self.gpu.set("gpu0.raw:pp_dpm_mclk=garbage\\n")  # an assertion of Debian's library
        result = self.finish(process)
        warnings = [w["code"] for w in result["warnings"]]
        if "rocm_smi_aborted" not in warnings and not self.uses_the_library(result):
            self.skipTest("this build has no librocm_smi64")
        self.assertEqual(result["verdict"], "verified", result["reasons"])
        self.assertIn("rocm_smi_aborted", warnings)
        self.assertIn("rocm_smi_aborted", self.table)
        self.assertEqual(result["telemetry"]["sources"]["sclk_mhz"], "sysfs")
        self.assertIsNone(result["telemetry"]["lost"])
        for leg in self.warm(result):
            self.assertTrue(leg["clocks"]["verified"])
            self.assertEqual(leg["clocks"]["sclk_mhz"]["p50"], 2900)

    def test_a_sampler_killed_twice_is_lost(self):
        process = self.start_on("strix-halo-steady")
        program = self.program_of(process)
        self.legs_until(process, 1, 0)
        (first,) = self.wait_for(lambda: self.samplers_of(program))
        os.kill(first, signal.SIGKILL)
        (second,) = self.wait_for(lambda: [p for p in self.samplers_of(program) if p != first])
        os.kill(second, signal.SIGKILL)
        result = self.finish(process)
        self.assertEqual(result["verdict"], "unverified")
        self.assertIn("telemetry_lost", [r["code"] for r in result["reasons"]])
        self.assertIn("SIGKILL", result["telemetry"]["lost"])
        self.assertTrue(result["complete"])
        self.assertFalse(result["legs"][-1]["clocks"]["verified"])
        self.assertIn("telemetry_lost", self.table)
        self.assertTrue(self.table.startswith("UNVERIFIED"), self.table)


class Endings(Watched):
    def test_the_performance_level_is_put_back_however_it_ends(self):
        for sig in (None, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            with self.subTest(signal=sig):
                pairs = "1" if sig is None else "99"
                process = self.start_on("strix-halo-mid", "--force", "--set", "clocks.perf_level=high", "--set",
                                        f"plan.pairs={pairs}", "--set", "plan.min_leg_s=0.1")
                program = self.program_of(process)
                self.legs_until(process, 0, 1)
                self.assertEqual(self.gpu.level(), "high")
                ours = [program, *self.children(program)]
                if sig is not None:
                    os.kill(program, sig)
                process.communicate(timeout=120)
                expected = {None: 0, signal.SIGKILL: 128 + signal.SIGKILL}.get(sig, 130)
                self.assertEqual(process.returncode, expected)
                self.wait_for(lambda: self.gpu.level() == "auto", 20)
                self.wait_for(lambda: not any(os.path.exists(f"/proc/{p}") for p in ours), 20)
                if sig not in (None, signal.SIGKILL):
                    result = self.load()
                    self.assertFalse(result["complete"])
                    self.assertTrue(os.path.exists(os.path.join(self.folder.name, "result.samples.jsonl")))

    def test_a_resumed_run_names_both_sample_files(self):
        process = self.start_on("strix-halo-steady")
        program = self.program_of(process)
        self.legs_until(process, 1, 1)
        os.kill(program, signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        before = self.load()
        unwatched = self.warmleg(*[w for w in RUN if w not in ("--telemetry-device", "auto")], "--resume", self.out)
        self.assertEqual(unwatched.returncode, 2, unwatched.stderr)
        self.assertIn("telemetry.device", unwatched.stderr)
        done = subprocess.run(self.gpu.command(WARMLEG, *RUN, "--resume", self.out), cwd=ROOT,
                              env=self.environment(), text=True, capture_output=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        after = self.load()
        self.assertEqual(after["verdict"], "verified", after["reasons"])
        telemetry = after["telemetry"]
        self.assertEqual([s["file"] for s in telemetry["earlier_samples"]], [before["telemetry"]["samples_file"]])
        for name, digest in ((telemetry["samples_file"], telemetry["samples_sha256"]),
                             (telemetry["earlier_samples"][0]["file"], telemetry["earlier_samples"][0]["sha256"])):
            with open(os.path.join(self.folder.name, name), "rb") as f:
                self.assertEqual(hashlib.sha256(f.read()).hexdigest(), digest)

    def test_an_existing_samples_file_is_refused_before_any_measuring(self):
        with open(os.path.join(self.folder.name, "result.samples.jsonl"), "w", encoding="ascii") as f:
            f.write("mine")
        process = self.start_on("strix-halo-steady")
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 2)
        self.assertIn("--force", errors)
        self.assertNotIn("loaded in", errors)

    def test_the_plan_names_the_rules_that_this_board_breaks(self):
        process = self.start_on("strix-halo-stuck-600", "--plan")
        text, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn("clock_low_under_load: ", text)
        self.assertFalse(os.path.exists(self.out))


if __name__ == "__main__":
    stop_without_namespaces()
    main()

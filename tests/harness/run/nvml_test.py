"""The program with a fake libnvidia-ml.so.1 beside it: clocks, devices, and a run whose legs the card's rules judge."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from program import ProgramTest, main  # noqa: E402

PCI = "0000:1b:00.0"
LEG = ["--telemetry-device", PCI, "--set", "device=cpu", "--set", "plan.processes=1", "--set", "plan.pairs=1",
       "--set", "plan.min_leg_s=0.5", "--set", "clocks.interval_ms=10"]


class Nvml(ProgramTest):
    def setUp(self):
        super().setUp()
        self.card = os.path.join(self.folder.name, "card")
        self.say()

    def say(self, *lines):
        with open(self.card, "w", encoding="ascii") as f:
            f.writelines(line + "\n" for line in lines)

    def environment(self, **extra):
        return super().environment(LD_LIBRARY_PATH=os.environ["FAKE_NVML"], WARMLEG_FAKE_NVML=self.card, **extra)

    def run_clock_test(self):
        done = self.warmleg("run", "clock-test", *LEG, "--out", self.out, "--force")
        return done, self.load()

    def codes(self, result):
        return [r["code"] for leg in result["legs"] for r in leg["reasons"]]

    def test_clocks_tells_every_field_with_its_source(self):
        self.say("0.sm 1755", "0.power.status 3")
        done = self.warmleg("clocks", "--device", PCI, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        sample = json.loads(done.stdout)
        self.assertEqual(sample["pci"], PCI)
        self.assertEqual(sample["name"], "NVIDIA Fake")
        self.assertEqual(sample["fields"]["sclk_mhz"], {"value": 1755, "source": "nvml"})
        self.assertEqual(sample["fields"]["perf_level"], {"value": "P0", "source": "nvml"})
        self.assertEqual(sample["fields"]["power_w"], {"value": None, "reason": "unsupported", "source": "nvml"})

    def test_devices_lists_the_card_and_its_library(self):
        done = self.warmleg("devices", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        board, = [b for b in json.loads(done.stdout)["telemetry"] if b["pci"] == PCI]
        self.assertEqual(board["sources"]["sclk_mhz"], "nvml")
        self.assertEqual(board["missing"]["fclk_mhz"], "unsupported")
        self.assertEqual(board["library"]["name"], "nvml")
        self.assertTrue(board["library"]["used"])
        self.assertIn(PCI, self.warmleg("devices").stdout)

    def test_a_run_is_verified_with_the_card_watched(self):
        done, result = self.run_clock_test()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(result["verdict"], "verified", result["reasons"])
        self.assertEqual(result["telemetry"]["device"]["pci"], PCI)
        self.assertEqual(result["telemetry"]["sources"]["sclk_mhz"], "nvml")
        self.assertEqual(result["environment"]["cuda"]["driver"], "580.1")
        for leg in result["legs"]:
            self.assertEqual(leg["clocks"]["sclk_mhz"]["p50"], 1980)
            self.assertEqual(leg["clocks"]["perf_level"], "P0")

    def test_the_rules_bind(self):
        self.say("0.reasons 0x40")
        done, result = self.run_clock_test()
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("thermal_throttle", self.codes(result))
        self.say("0.sm 600")
        done, result = self.run_clock_test()
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("clock_low_under_load", self.codes(result))

    def test_without_a_driver_there_is_no_card(self):
        self.say("init.status 9")
        done = self.warmleg("clocks", "--device", PCI)
        self.assertIn(done.returncode, (2, 3))
        if not os.path.isdir("/sys/class/drm"):
            self.assertIn("nvmlInit_v2: status 9", done.stderr)


if __name__ == "__main__":
    main()

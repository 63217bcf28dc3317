"""Exit codes, streams, help and `generate` of the program as it is built."""

import json
import os
import subprocess
import tempfile
import unittest

from program import DRAFT, ROOT, TARGET, WARMLEG, ProgramTest, main

COMMANDS = ("run", "generate", "inspect", "devices", "clocks", "compare", "card", "history")


class Usage(ProgramTest):
    def test_wrong_usage_is_2_and_says_so_on_stderr(self):
        for args in ([], ["nonsense"], ["run"], ["generate"], ["devices", "--nope"],
                     ["generate", "--target", TARGET, "--max-new-tokens", "4"],
                     ["generate", "--target", TARGET, "--prompt", "a", "--prompt-ids", "1", "--max-new-tokens", "4"],
                     ["generate", "--target", TARGET, "--prompt-ids", "1,x", "--max-new-tokens", "4"],
                     ["generate", "--target", TARGET, "--prompt-ids", "1", "--max-new-tokens", "4",
                      "--precision", "fp8"],
                     ["generate", "--target", TARGET, "--prompt-ids", "", "--max-new-tokens", "4"],
                     ["generate", "--target", TARGET, "--prompt", "", "--max-new-tokens", "4"],
                     ["generate", "--target", TARGET, "--prompt-ids", "1", "--max-new-tokens", "4096"],
                     ["generate", "--target", TARGET, "--prompt-ids", "2048", "--max-new-tokens", "4"],
                     ["generate", "--target", TARGET + "/nowhere", "--prompt", "a", "--max-new-tokens", "4"],
                     ["run", "tiny-code", "--set", "generation.max_new_tokens=4096", "--out", "never.json"]):
            with self.subTest(args=args):
                done = self.warmleg(*args)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(done.stdout, "")
                self.assertNotEqual(done.stderr, "")

    def test_help_ends_with_an_example_that_parses(self):
        top = self.warmleg("--help")
        self.assertEqual(top.returncode, 0)
        self.assertNotIn("worker", top.stdout)
        for command in COMMANDS:
            with self.subTest(command=command):
                done = self.warmleg(command, "--help")
                self.assertEqual(done.returncode, 0)
                self.assertRegex(done.stdout, rf"Example:\s+warmleg {command} ")

    def test_the_examples_work(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                text = self.warmleg(command, "--help").stdout
                example = text[text.index("Example:") + len("Example:"):].strip()
                # run's writes below results/, so it runs where that is not the repository
                shell = (f"warmleg() {{ '{WARMLEG}' \"$@\"; }}; ln -s '{ROOT}/scenarios' scenarios; mkdir results; "
                         f"ln -s '{ROOT}/results/examples' results/examples; {example}")
                with tempfile.TemporaryDirectory() as folder:
                    done = subprocess.run(["bash", "-c", shell], cwd=folder, env=self.environment(),
                                          capture_output=True, text=True, timeout=300)
                # the example results show a slow-down, and a machine without a GPU has no clocks
                expected = {"compare": 1, "history": 1}.get(command, 0)
                if command == "clocks" and not os.path.exists("/sys/class/drm/card0"):
                    expected = 3
                self.assertEqual(done.returncode, expected, done.stderr)

    def test_version(self):
        done = self.warmleg("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"^warmleg \d+\.\d+\.\d+ \(git \S+\)\n$")

    def test_devices(self):
        done = self.warmleg("devices", "--json")
        self.assertEqual(done.returncode, 0)
        listed = json.loads(done.stdout)
        self.assertEqual(listed["devices"][0]["device"], "cpu")
        self.assertTrue(self.warmleg("devices").stdout.startswith("cpu "))


class Generate(ProgramTest):
    def generate(self, *args, **env):
        return self.warmleg("generate", "--target", TARGET, "--device", "cpu", *args, **env)

    def golden(self, name, n=0):
        with open(os.path.join(ROOT, "tests/data/goldens", name), encoding="utf-8") as f:
            return json.load(f)["cases"][n]

    def test_trace_equals_the_golden(self):
        case = self.golden("tiny-code.json")
        trace_file = os.path.join(self.folder.name, "out.json")
        done = self.generate("--draft", DRAFT, "--prompt", case["prompt"], "--max-new-tokens",
                             str(len(case["greedy"])), "--ignore-eos", "--trace", trace_file)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(trace_file, encoding="utf-8") as f:
            trace = json.load(f)
        self.assertEqual(list(trace), ["schema", "prompt_ids", "output_ids", "finish", "first_logits", "rounds"])
        self.assertEqual(trace["schema"], "warmleg.trace/1")
        self.assertEqual(trace["prompt_ids"], case["prompt_ids"])
        self.assertEqual(trace["output_ids"], case["dflash2"])
        self.assertEqual(trace["finish"], "length")
        self.assertEqual(trace["first_logits"]["ids"], case["first_logits_top8"]["ids"])
        for got, want in zip(trace["first_logits"]["values"], case["first_logits_top8"]["values"]):
            self.assertAlmostEqual(got, want, delta=2e-3)
        self.assertEqual([(r["anchor"], r["position"], r["drafted"], r["accepted"], r["emitted"])
                          for r in trace["rounds"]],
                         [(r["anchor"], r["position"], r["drafted"], r["accepted"], r["emitted"])
                          for r in case["steps"]])
        self.no_temporary_files()

    def test_plain_has_no_rounds_and_the_same_ids(self):
        case = self.golden("tiny-code.json")
        trace_file = os.path.join(self.folder.name, "out.json")
        ids = ",".join(map(str, case["prompt_ids"]))
        done = self.generate("--prompt-ids", ids, "--max-new-tokens", "16", "--ignore-eos", "--trace", trace_file)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(trace_file, encoding="utf-8") as f:
            trace = json.load(f)
        self.assertEqual(trace["rounds"], [])
        self.assertEqual(trace["output_ids"], case["greedy"][:16])

    def test_a_seed_decides_what_is_sampled(self):
        def rounds(*args):
            trace_file = os.path.join(self.folder.name, "out.json")
            done = self.generate("--prompt", "def main(argv):", "--max-new-tokens", "24", "--ignore-eos", "--trace",
                                 trace_file, *args)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(trace_file, encoding="utf-8") as f:
                trace = json.load(f)
            self.assertEqual(len(trace["output_ids"]), 24)
            return trace["output_ids"], trace["rounds"]

        sampled = ("--temperature", "0.8", "--top-k", "40", "--top-p", "0.95")
        for arm in ((), ("--draft", DRAFT)):
            with self.subTest(arm=arm):
                first = rounds(*arm, *sampled, "--seed", "3")
                self.assertEqual(rounds(*arm, *sampled, "--seed", "3"), first)
                self.assertNotEqual(rounds(*arm, *sampled, "--seed", "4"), first)
                greedy = rounds(*arm)
                self.assertEqual(rounds(*arm, "--temperature", "0", "--seed", "9"), greedy)
                self.assertEqual(rounds(*arm, "--temperature", "0.8", "--top-k", "1")[0], greedy[0])

    def test_prompt_ids_need_no_tokenizer(self):
        case = self.golden("flat-tied.json")
        done = self.warmleg("generate", "--target", "tests/data/flat-tied/target", "--prompt-ids",
                            ",".join(map(str, case["prompt_ids"])), "--max-new-tokens", "5", "--ignore-eos",
                            "--device", "cpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.strip(), ",".join(map(str, case["greedy"][:5])))
        text = self.warmleg("generate", "--target", "tests/data/flat-tied/target", "--prompt", "a",
                            "--max-new-tokens", "5", "--device", "cpu")
        self.assertEqual(text.returncode, 2)
        self.assertIn("--prompt-ids", text.stderr)

    def test_no_new_tokens(self):
        done = self.generate("--draft", DRAFT, "--prompt-ids", "1,2,3", "--max-new-tokens", "0")
        self.assertEqual((done.returncode, done.stdout), (0, "\n"), done.stderr)

    def test_bad_input_is_a_line_a_reason_and_2(self):
        one = ["--prompt-ids", "1", "--max-new-tokens", "4"]
        for args, word in (([*one, "--temperature", "-1"], "temperature is -1"),
                           ([*one, "--temperature", "0.0001"], "0.001..100"),
                           ([*one, "--temperature", "1", "--top-k", "-1"], "top_k is -1"),
                           ([*one, "--temperature", "1", "--top-p", "1.5"], "top_p is 1.5"),
                           ([*one, "--temperature", "1", "--seed", "-1"], "--seed -1"),
                           (["--prompt-ids", "1", "--max-new-tokens", "-1"], "max-new-tokens"),
                           (["--prompt-ids", "999999", "--max-new-tokens", "4"], "999999"),
                           (["--prompt", "", "--max-new-tokens", "4"], "empty"),
                           (["--prompt-ids", "1", "--max-new-tokens", "4", "--draft", "tests/data"], "config.json")):
            with self.subTest(args=args):
                done = self.generate(*args)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(word, done.stderr)
                self.assertEqual(done.stdout, "")
                self.assertLessEqual(done.stderr.count("\n"), 2, done.stderr)  # one line a reason

    def test_a_device_that_is_not_there_is_3(self):
        done = self.warmleg("generate", "--target", TARGET, "--device", "rocm:9", "--prompt-ids", "1",
                            "--max-new-tokens", "1")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("rocm:9", done.stderr)

    def test_a_trace_that_cannot_be_written_is_3(self):
        done = self.generate("--prompt-ids", "1,2", "--max-new-tokens", "1", "--trace",
                             os.path.join(self.folder.name, "none", "trace.json"))
        self.assertEqual(done.returncode, 3, done.stderr)


if __name__ == "__main__":
    main()

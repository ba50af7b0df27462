"""The installed wheel: the program and the module. `cargo xtask packages` runs it in an environment of its own."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import inferometer


class Package(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.runs = pathlib.Path(folder.name)

    def simulate(self, **flags):
        """In virtual time: a busy machine changes nothing."""
        return self.measure(virtual=True, **flags)

    def measure(self, **flags):
        return inferometer.run(output=self.runs, requests=12, concurrency=4, output_tokens=8, **flags)

    def test_the_program_is_that_of_this_environment(self):
        path = pathlib.Path(inferometer.program())
        self.assertEqual(path.parent, pathlib.Path(sys.executable).parent)
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
        self.assertTrue(said.startswith(f"inferometer {inferometer.__version__}\ncommit: "), said)
        module = [sys.executable, "-m", "inferometer", "-V"]
        short = subprocess.run(module, capture_output=True, text=True, check=True).stdout
        self.assertEqual(short, f"inferometer {inferometer.__version__}\n")

    def test_a_run_is_a_dictionary_and_is_stored(self):
        try:
            summary = self.measure()
        except inferometer.InferometerError as error:
            # A machine that is busy with other work may not be good enough to measure on.
            self.assertEqual(error.exit_code, 4)
            self.assertIn("the run is invalid", str(error))
            summary = error.result
        self.assertEqual(summary["schema"], "inferometer.summary/1")
        self.assertEqual(summary["outcomes"]["ok"], 12)
        self.assertEqual(summary["run"]["load"]["concurrency"], 4)
        by_id = inferometer.load(summary["run"]["id"], output=self.runs)
        by_path = inferometer.load(self.runs / summary["run"]["id"])
        for stored in (by_id, by_path):
            self.assertEqual(stored["metrics"], summary["metrics"])

    def test_lists_repeat_a_flag(self):
        summary = self.simulate(slo=["ttft<60s", "e2e<600s"])
        promises = [promise["promise"] for promise in summary["request_slos"]["promises"]]
        self.assertEqual(promises, ["ttft<60s", "e2e<600s"])

    def test_flags_that_are_false_or_none_are_left_out(self):
        summary = self.simulate(no_stream=False, rate=None)
        self.assertTrue(summary["run"]["streaming"])
        self.assertFalse(self.simulate(no_stream=True)["run"]["streaming"])

    def test_a_missed_requirement_has_its_result(self):
        with self.assertRaises(inferometer.InferometerError) as caught:
            self.simulate(require="ttft.p50<1us")
        self.assertEqual(caught.exception.exit_code, 99)
        self.assertEqual(caught.exception.result["outcomes"]["ok"], 12)

    def test_errors_say_what_is_wrong(self):
        with self.assertRaises(inferometer.InferometerError) as caught:
            inferometer.run(conkurrency=3)
        self.assertEqual(caught.exception.exit_code, 2)
        self.assertIn("--conkurrency", str(caught.exception))
        self.assertIsNone(caught.exception.result)
        with self.assertRaises(inferometer.InferometerError) as caught:
            inferometer.load("nothing", output=self.runs)
        self.assertEqual(caught.exception.exit_code, 2)
        with self.assertRaises(inferometer.InferometerError) as caught:
            inferometer.run("http://127.0.0.1:9", output=self.runs)
        self.assertEqual(caught.exception.exit_code, 3)


if __name__ == "__main__":
    os.environ.pop("INFEROMETER_RUNS", None)
    unittest.main(verbosity=2)

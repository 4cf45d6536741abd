# SPDX-License-Identifier: Apache-2.0
"""A side in a process of its own, which asleep in a read costs the others
nothing. Two runtimes of OpenMP in one process would fight."""

import os
import subprocess

import turns
from turns import Refused


class Worker:
    """`environment` is added to this process's; on `processor` (a number) the
    process stays, None: anywhere."""

    def __init__(self, name, command, environment=None, processor=None,
                 log=None, settle=turns.SETTLE):
        self.name, self.settle = name, settle
        self.command, self.log = command, log
        self.environment = dict(os.environ, **(environment or {}))
        self.processor, self.process = processor, None
        self.start()

    def keep(self):
        os.sched_setaffinity(0, {self.processor})

    def start(self):
        """Anew, where it has ended."""
        if self.process is not None:
            self.close()
        self.process = subprocess.Popen(
            self.command, env=self.environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.log, text=True,
            start_new_session=True,  # an interrupt is the driver's alone
            preexec_fn=None if self.processor is None else self.keep)

    def ask(self, request):
        """What follows "ok"; lines that are no answer are passed over."""
        try:
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
            for line in self.process.stdout:
                word, _, rest = line.rstrip("\n").partition(" ")
                if word == "ok":
                    return rest
                if word == "no":
                    raise Refused(rest)
        except BrokenPipeError:
            pass
        code = self.process.wait()
        raise Refused(f"its process ended with {code} at '{request}'")

    def alive(self):
        return self.process.poll() is None

    def prepare(self, row, seed):
        """(name, numeric class) of each of its configurations."""
        answer = self.ask(f"prepare {row} {seed}")
        return [(name, numeric or "f32") for name, _, numeric in
                (text.partition(":") for text in answer.split("\t"))]

    def output(self, index, name):
        """Seconds of a run whose result is written to the file."""
        return float(self.ask(f"output {index} {name}"))

    def turn(self, index, warm, runs):
        return float(self.ask(f"turn {index} {warm} {runs}"))

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

"""Worker processes that encode, with the order of their results kept.

A worker is a fresh interpreter behind two pipes. It ends when its pipe does, however the parent ended, and does not run
the parent's main module again: neither holds for multiprocessing's pools.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import NoReturn, Protocol

from strata_core.corpus.text.encoding import BackendRefusal, Encoded, EncodingSettings, Job, JobEncoder
from strata_core.errors import StrataError

_JOBS_AHEAD = 2


class _Worker(Protocol):
    def encode(self, job: Job) -> Encoded: ...


@contextmanager
def encoding_workers(settings: EncodingSettings, count: int) -> Iterator[list[_Worker]]:
    """As many encoders: this process where `count` is 1, else processes of their own, ended with the block.

    Raises:
        BackendRefusal: the backend of the settings does not take the tokenizer.
        StrataError: a process could not be started.
    """
    if count == 1:
        yield [JobEncoder(settings)]
        return
    processes: list[_Process] = []
    try:
        for _ in range(count):
            processes.append(_Process(settings))
        for process in processes:
            process.wait_until_ready()
        yield list(processes)
    finally:
        for process in processes:
            process.end()


def encode_in_order(workers: list[_Worker], jobs: Iterable[Job]) -> Iterator[tuple[Job, Encoded]]:
    """Jobs with their results, in the order of the jobs, of which a bounded number is drawn ahead.

    Raises:
        StrataError: a worker process died.
    """
    if len(workers) == 1:
        for job in jobs:
            yield job, workers[0].encode(job)
        return
    idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def encode(job: Job) -> Encoded:
        worker = idle.get()
        try:
            return worker.encode(job)
        finally:
            idle.put(worker)

    waiting: deque[tuple[Job, Future[Encoded]]] = deque()
    threads = ThreadPoolExecutor(len(workers), thread_name_prefix="corpus-worker")
    try:
        for job in jobs:
            waiting.append((job, threads.submit(encode, job)))
            if len(waiting) >= len(workers) + _JOBS_AHEAD:
                first, result = waiting.popleft()
                yield first, result.result()
        while waiting:
            first, result = waiting.popleft()
            yield first, result.result()
    finally:
        threads.shutdown(wait=True, cancel_futures=True)


class _Process:
    """The parent's end of one worker process."""

    def __init__(self, settings: EncodingSettings) -> None:
        start = f"import sys; sys.path[:] = {sys.path!r}; from strata_core.corpus.text.workers import serve; serve()"
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", start],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "TOKENIZERS_PARALLELISM": "false"},
                # An interrupt from the terminal is the parent's to handle.
                process_group=0,
            )
        except OSError as error:
            message = f"cannot start a worker process: {error.strerror or error}"
            raise StrataError(message, hint="--workers 1 needs none") from error
        self._send(settings)

    def wait_until_ready(self) -> None:
        refusal = self._receive()
        if refusal is not None:
            raise BackendRefusal(refusal)

    def encode(self, job: Job) -> Encoded:
        self._send(job)
        answer = self._receive()
        if isinstance(answer, str):
            raise RuntimeError(f"a worker process failed:\n{answer}")
        assert isinstance(answer, Encoded)
        return answer

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None
        try:
            pickle.dump(message, self._process.stdin, pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()
        except BrokenPipeError:
            self._died()

    def _receive(self) -> object:
        assert self._process.stdout is not None
        try:
            return pickle.load(self._process.stdout)
        except (EOFError, pickle.UnpicklingError):
            self._died()

    def _died(self) -> NoReturn:
        status = self._process.wait()
        raise StrataError(
            f"a worker process died ({f'signal {-status}' if status < 0 else f'exit status {status}'})",
            hint="out of memory is the usual cause: use fewer --workers",
        ) from None


def serve() -> None:
    """The body of a worker process: settings come first, then jobs, each answered, until standard input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    jobs = sys.stdin.buffer

    def answer(message: object) -> None:
        pickle.dump(message, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()

    try:
        encoder = JobEncoder(pickle.load(jobs))
    except BackendRefusal as refusal:
        answer(str(refusal))
        return
    answer(None)
    while True:
        try:
            job = pickle.load(jobs)
        except EOFError:
            return
        try:
            encoded: Encoded | str = encoder.encode(job)
        # Whatever it is, the parent has to hear of it.
        except Exception:
            encoded = traceback.format_exc()
        answer(encoded)

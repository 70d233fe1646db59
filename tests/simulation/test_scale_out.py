"""Rollouts over eight devices, and over two processes on the loopback address."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest


ROOT = Path(__file__).parents[2]


def start(rank: int, port: int) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.simulation.scale_out", str(rank), str(port)]
    devices = f"--xla_force_host_platform_device_count={2 if port else 8}"
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=dict(os.environ, XLA_FLAGS=devices, TF_CPP_MIN_LOG_LEVEL="3"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def gaps(process: subprocess.Popen) -> tuple[np.ndarray, str]:
    out, error = process.communicate(timeout=300)
    assert process.returncode == 0, error[-2000:]
    found = [float(x.split()[1]) for x in out.splitlines() if x.startswith("gap")]
    return np.array(found), out


@pytest.mark.slow
def test_eight_devices_do_the_work_of_one():
    found, said = gaps(start(0, 0))
    assert len(found) == 4  # kernels and their gradient, XLA, adaptive steps
    assert np.all(found < 1e-12)
    assert "a batch of 15 does not divide over 8 devices" in said


@pytest.mark.slow
def test_two_processes_do_the_work_of_one():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    both = [start(rank, port) for rank in (0, 1)]
    for process in both:
        found, _ = gaps(process)
        assert len(found) == 2
        assert np.all(found < 1e-12)

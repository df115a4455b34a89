"""Three hosts in network namespaces, a scheduler and two workers, and a fit while one of them loses its network.

Run by test_distributed.py as ``unshare --user --map-root-user --net --mount --fork python hosts.py``: everything lives
in namespaces of its own, needs no rights outside, and is gone when this process ends.
"""

import os
import subprocess
import sys
import threading
import time

import numpy as np

CONFIG = {
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "12s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "4s",
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "15s",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "5",
    "DASK_DISTRIBUTED__WORKER__HEARTBEAT_INTERVAL": "500ms",
}


def ip(command):
    subprocess.run(["ip", *command.split()], check=True)


def network():
    """A bridge at 10.77.0.1, and hosts h1 and h2 with addresses 10.77.0.11 and 10.77.0.12."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    ip("link set lo up")
    ip("link add br0 type bridge")
    ip("addr add 10.77.0.1/24 dev br0")
    ip("link set br0 up")
    for host in (1, 2):
        ip(f"netns add h{host}")
        ip(f"link add v{host} type veth peer name eth0 netns h{host}")
        ip(f"link set v{host} master br0 up")
        ip(f"-n h{host} addr add 10.77.0.1{host}/24 dev eth0")
        ip(f"-n h{host} link set eth0 up")
        ip(f"-n h{host} link set lo up")


def slow(block):
    time.sleep(0.1)
    return block


def main():
    network()
    os.environ |= CONFIG
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask = [sys.executable, "-m", "dask"]
    address = "tcp://10.77.0.1:8786"
    here = ["--host", "10.77.0.1", "--port", "8786", "--no-dashboard", "--no-show"]
    subprocess.Popen([*dask, "scheduler", *here], **quiet)
    for host in (1, 2):
        worker = [
            *dask,
            "worker",
            address,
            "--nthreads",
            "1",
            "--name",
            f"h{host}",
            "--no-dashboard",
            "--no-nanny",
        ]
        folder = [
            "--local-directory",
            f"/run/h{host}",
            "--death-timeout",
            "90",
            "--preload",
            "mercerless",
        ]
        subprocess.Popen(["ip", "netns", "exec", f"h{host}", *worker, *folder], **quiet)

    import dask.array as da
    from distributed import Client

    from mercerless import KreinRidge
    from mercerless.kernels import TL1

    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    model = KreinRidge(TL1(3.0), landmarks=30, random_state=0)
    expected = model.fit(X, y).predict(X[:50])
    with Client(address, timeout=60) as client:
        client.wait_for_workers(2, timeout=120)
        print(
            "hosts",
            *sorted(a.split("//")[1].split(":")[0] for a in client.scheduler_info()["workers"]),
            flush=True,
        )
        lazy = da.from_array(X, chunks=(100, 3)).map_blocks(slow)
        print(
            "equal",
            np.allclose(model.fit(lazy, y).predict(X[:50]), expected, rtol=1e-8),
            flush=True,
        )
        # the cable is pulled in the middle of the next fit
        threading.Timer(0.7, ip, ["link set v2 down"]).start()
        print(
            "equal",
            np.allclose(model.fit(lazy, y).predict(X[:50]), expected, rtol=1e-8),
            flush=True,
        )
        print("left", len(client.scheduler_info()["workers"]), flush=True)
    sys.stdout.flush()
    os._exit(0)  # the namespace of processes goes with it


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: services.py SOURCE COMMAND unit | cron | kubernetes

What stands in examples/services is what systemd, cron and Kubernetes read, and its command line does its work: over a server of its
own with a password, with a program in place of the report that says which lock it is under, and once more while somebody else has
the lock. Exits with 77 (skipped) where there is no server, or nothing that reads the file.
"""
import os
import pathlib
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile

PATIENCE = 20  # Seconds.


def skip(why):
    print("skipped: " + why, file=sys.stderr)
    sys.exit(77)


def expect(condition, what):
    if not condition:
        print("FAILED: " + what, file=sys.stderr)
        sys.exit(1)


class Job:
    """What starts the report: its words, its environment, and what it exits with where somebody else has the lock."""

    def __init__(self, words, environment, busy, password_place):
        self.words, self.environment, self.busy, self.password_place = words, environment, busy, password_place


def read_unit(folder, work, command):
    if shutil.which("systemd-analyze") is None:
        skip("no systemd-analyze")
    # It looks for what is to be executed.
    for name in ("nightly-report.service", "nightly-report.timer"):
        text = (folder / name).read_text()
        text = text.replace("/usr/bin/holdfast", command).replace("network-online.target", "basic.target")
        (work / name).write_text(text)
        verified = subprocess.run(["systemd-analyze", "verify", "--man=no", work / name], capture_output=True, text=True)
        ours = [line for line in verified.stderr.splitlines() if "nightly-report" in line]
        expect(not ours, "systemd-analyze verify: " + "\n".join(ours))
    # And it says so where something is wrong.
    (work / "wrong.service").write_text("[Service]\nType=oneshot\nExecStart=" + command + "\nKillMod=mixed\n")
    verified = subprocess.run(["systemd-analyze", "verify", "--man=no", work / "wrong.service"], capture_output=True, text=True)
    expect("KillMod" in verified.stderr, "systemd-analyze verify finds no mistake: " + verified.stderr)
    settings = {}
    for line in (folder / "nightly-report.service").read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            name, value = line.split("=", 1)
            settings.setdefault(name, []).append(value)
    credential, _ = settings["LoadCredential"][0].split(":")
    environment = dict(value.split("=", 1) for value in settings["Environment"])
    environment["CREDENTIALS_DIRECTORY"] = str(work)
    expect(settings["KillMode"] == ["mixed"], "the stop of the unit goes to all of its processes")
    return Job(shlex.split(settings["ExecStart"][0]), environment, int(settings["SuccessExitStatus"][0]), work / credential)


def read_cron(folder, work, command):
    environment, lines = {}, []
    for line in (folder / "nightly-report.cron").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, mark, value = line.partition("=")
        if mark and name.replace("_", "").isalnum():
            environment[name] = value
        else:
            lines.append(line)
    expect(len(lines) == 1, "there is one line for cron")
    fields = lines[0].split(None, 6)
    expect(all(set(field) <= set("0123456789*/,-") for field in fields[:5]), "the time of the line: " + lines[0])
    expect(fields[5] == "report" and "%" not in lines[0], "the user, or a percent sign, of the line: " + lines[0])
    environment["HOLDFAST_PASSWORD_FILE"] = str(work / "password")
    words = ["/bin/sh", "-c", (fields[6]).replace("sleep 60", "true")]
    return Job(words, environment, 0, work / "password")


def read_kubernetes(folder, work, command):
    try:
        import yaml
    except ImportError:
        skip("no yaml of Python")
    job = yaml.safe_load((folder / "nightly-report.yaml").read_text())
    expect((job["apiVersion"], job["kind"]) == ("batch/v1", "CronJob"), "a CronJob")
    expect(len(job["spec"]["schedule"].split()) == 5, "five fields of the schedule")
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    words = container["command"]
    expect(all(isinstance(word, str) for word in words), "words of the command that are no text")
    grace = float(words[words.index("-k") + 1])
    expect(pod["terminationGracePeriodSeconds"] > grace, "KILL comes before the grace is over")
    environment = {each["name"]: each["value"] for each in container["env"]}
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    volume = pod["volumes"][0]
    expect(environment["HOLDFAST_PASSWORD_FILE"] == mounts[volume["name"]] + "/password", "the place of the password")
    environment["HOLDFAST_PASSWORD_FILE"] = str(work / "password")
    words = list(words)
    words[words.index("-w") + 1] = "0.2"
    return Job(words, environment, 0, work / "password")


class Server:
    """A server with a user named report."""

    def __init__(self, work):
        binary = shutil.which("redis-server") or shutil.which("valkey-server")
        if binary is None:
            skip("no server")
        self.path = work / "socket"
        settings = ["--port", "0", "--unixsocket", self.path, "--dir", work, "--save", "", "--user", "report", "on", ">secret",
                    "~*", "&*", "+@all"]
        self.process = subprocess.Popen([binary] + settings, stdout=subprocess.PIPE)
        # It says when it listens, or ends.
        expect(any(b"eady to accept connections" in line for line in self.process.stdout), "the server does not start")

    def ask(self, line):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.path))
            connection.sendall(line.encode() + b"\r\n")
            return connection.recv(100)

    def stop(self):
        self.process.kill()
        self.process.wait()


def run(job, work, command, url):
    words = [word.replace("/usr/bin/holdfast", command).replace("/usr/local/bin/holdfast", command)
             .replace("/usr/local/bin/nightly-report", str(work / "report")) for word in job.words]
    expect(any(command in word for word in words), "holdfast is not called: " + " ".join(words))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    environment.update(job.environment)
    expect(environment["HOLDFAST_URL"].startswith("redis://report@"), "the URL: " + environment["HOLDFAST_URL"])
    environment["HOLDFAST_URL"] = url
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=PATIENCE)


def main():
    readers = {"unit": read_unit, "cron": read_cron, "kubernetes": read_kubernetes}
    if len(sys.argv) != 4 or sys.argv[3] not in readers:
        print(__doc__.splitlines()[0], file=sys.stderr)
        sys.exit(2)
    folder = pathlib.Path(sys.argv[1]).resolve() / "examples" / "services"
    command = str(pathlib.Path(sys.argv[2]).resolve())
    with tempfile.TemporaryDirectory(prefix="holdfast-services.") as name:
        work = pathlib.Path(name)
        job = readers[sys.argv[3]](folder, work, command)
        job.password_place.write_text("secret\n")
        report = work / "report"
        report.write_text("#!/bin/sh\necho \"under $HOLDFAST_NAME\"\nenv | grep -i -e password -e secret\nexit 0\n")
        report.chmod(0o755)
        server = Server(work)
        try:
            url = "unix://report@" + str(server.path)
            done = run(job, work, command, url)
            expect((done.returncode, done.stdout) == (0, "under nightly-report\n"), "a free lock: " + repr(done))
            expect(server.ask("EXISTS nightly-report") == b":0\r\n", "the lock was let go")
            expect(server.ask("SET nightly-report somebody PX 600000") == b"+OK\r\n", "somebody else has the lock")
            done = run(job, work, command, url)
            expect((done.returncode, done.stdout) == (job.busy, ""), "a lock that somebody has: " + repr(done))
            if sys.argv[3] == "cron":
                expect(done.stderr == "", "cron sends a mail: " + done.stderr)
        finally:
            server.stop()
    print("ok: " + sys.argv[3])


main()

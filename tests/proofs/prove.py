#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Proves what the files *.cpp beside this one claim of the library, by Clang and CBMC: `./dev prove` calls it.

    prove.py CBMC BUILD GENERATED [NAME...]

Each proof is compiled with the sources that ship, to LLVM IR, at -Os and with a trap where behaviour would be undefined. ir_to_c.py
writes that as C, and CBMC looks at all of its runs. Then the library is changed, in a copy, as each BROKEN says, and the proof must
fail. proof.hpp says how a proof is written. GENERATED is the folder of scripts.hpp. Exit code 0: all were proved.
"""
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SECONDS_MAX = 300  # For one run of CBMC.
CLANG = ['clang++', '-std=c++20', '-Os', '-fno-vectorize', '-fno-slp-vectorize', '-fno-unroll-loops', '-fno-exceptions',
         '-fno-rtti', '-fsanitize=signed-integer-overflow,shift,integer-divide-by-zero,bounds,unreachable,return,bool,enum',
         '-fsanitize-trap=all', '-S', '-emit-llvm']
CBMC = ['--no-standard-checks', '--bounds-check', '--pointer-check', '--unwinding-assertions', '--slice-formula',
        '--function', 'prove']


class Failed(Exception):
    pass


class Proof:
    def __init__(self, path):
        self.path, self.name = path, os.path.basename(path)[:-4]
        with open(path, encoding='utf-8') as file:
            head = file.read()
        self.bound, = re.findall(r'^// BOUND +(.+)$', head, re.M)
        self.enumerates = bool(re.search(r'^// WAY +enumeration$', head, re.M))
        self.unwind = [] if self.enumerates else ['--unwind', *re.findall(r'^// UNWIND +(\d+)$', head, re.M)]
        self.broken = re.findall(r'^// BROKEN +(\S+): `(.+?)`(?:\n//)? +=> `(.*?)`$', head, re.M)
        if len(self.broken) != len(re.findall('^// BROKEN', head, re.M)) or not self.broken:
            raise Failed(f'{self.name}: a BROKEN that cannot be read, or none')


def broken_copy(folder, path, text, other):
    """A copy of one source with the change, which an earlier -I shows instead of the real one."""
    with open(os.path.join(ROOT, path), encoding='utf-8') as file:
        source = file.read()
    if source.count(text) != 1:
        raise Failed(f'{path} has {source.count(text)} times: {text}')
    target = os.path.join(folder, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, 'w', encoding='utf-8') as file:
        file.write(source.replace(text, other))
    return [f'-I{folder}/include', f'-I{folder}']


def run(command, output=None):
    done = subprocess.run(command, stdout=output or subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f'{command[0]}: {done.stderr.strip()[-2000:]}')


def holds(cbmc, proof, folder, includes):
    """True: proved. False: refuted."""
    includes = [*includes, f'-I{ROOT}/include', f'-I{ROOT}', f'-I{HERE}']
    return enumerates(proof, folder, includes) if proof.enumerates else solves(cbmc, proof, folder, includes)


def enumerates(proof, folder, includes):
    """At both levels: the parser's short cuts are left out where size counts."""
    program = os.path.join(folder, proof.name)
    run(['clang', '-O2', '-c', '-o', program + '.o', os.path.join(HERE, 'enumeration.c')])
    for level in ('-O2', '-Os'):
        # What the proof does not come to need not be there.
        run(['clang++', '-std=c++20', level, '-fno-exceptions', '-fno-rtti', '-ffunction-sections', '-Wl,--gc-sections', *includes,
             '-o', program, proof.path, program + '.o', os.path.join(ROOT, 'proto', 'assert.cpp')])
        code = subprocess.run([program], timeout=SECONDS_MAX, check=False).returncode
        if code not in (0, 1):
            raise Failed(f'{program} ended with {code}')
        if code == 1:
            return False
    return True


def translate(proof, folder, includes):
    ir, source = (os.path.join(folder, proof.name + suffix) for suffix in ('.ll', '.c'))
    run([*CLANG, *includes, '-o', ir, proof.path])
    with open(source, 'w', encoding='utf-8') as output:
        run([sys.executable, os.path.join(HERE, 'ir_to_c.py'), ir], output)
    return source


def solves(cbmc, proof, folder, includes):
    source, log = translate(proof, folder, includes), os.path.join(folder, 'cbmc.log')
    command = [cbmc, source, os.path.join(HERE, 'environment.c'), *CBMC, *proof.unwind]
    with open(log, 'w', encoding='utf-8') as output:
        try:
            code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, timeout=SECONDS_MAX, check=False).returncode
        except subprocess.TimeoutExpired:
            raise Failed(f'no answer of CBMC within {SECONDS_MAX} s') from None
    with open(log, encoding='utf-8') as output:
        text = output.read()
    if missing := re.findall(r'no body for callee (\w+): FAILURE', text):  # That refutes nothing.
        raise Failed(f'no body for {", ".join(missing)}')
    if code == 0 and '\nVERIFICATION SUCCESSFUL' in text:
        return True
    # The change must break what is claimed, not how far the loops were followed.
    if code == 10 and re.search(r'^\[(?!.*\.unwind\.).*: FAILURE$', text, re.M):
        return False
    raise Failed(f'CBMC ended with {code}, see {log}')


def main():
    cbmc, build, generated, *names = sys.argv[1:]
    proved = failed = 0
    sources = sorted(name for name in os.listdir(HERE) if name.endswith('.cpp'))
    for source in sources:
        if names and source[:-4] not in names:
            continue
        begin = time.monotonic()
        folder = os.path.join(build, source[:-4])
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        try:
            proof = Proof(os.path.join(HERE, source))
            if not holds(cbmc, proof, folder, [f'-I{generated}']):
                raise Failed(f'refuted, see {folder}')
            seconds = time.monotonic() - begin
            for index, change in enumerate(proof.broken):
                copy = os.path.join(folder, f'broken-{index + 1}')
                includes = [*broken_copy(copy, *change), f'-I{generated}']
                if holds(cbmc, proof, copy, includes):
                    raise Failed(f'still proved with {change[1]} changed to {change[2]}')
            print(f'proved {proof.name}: {proof.bound} ({seconds:.1f} s; {len(proof.broken)} broken on purpose, each refuted)',
                  flush=True)
            proved += 1
        except Failed as why:
            print(f'failed {source[:-4]}: {why}', flush=True)
            failed += 1
    print(f'{proved} proved, {failed} failed')
    sys.exit(failed != 0)


if __name__ == '__main__':
    main()

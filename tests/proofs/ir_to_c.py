#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes LLVM IR, as Clang makes it of our C++ without optimisation, as C that CBMC reads: an instruction a line.

    ir_to_c.py FILE.ll >FILE.c

CBMC does not read C++20. Clang does, and what it makes of it has some thirty instructions, each with a plain meaning in C.
Nothing is left out and nothing is improved: what this script does not know ends it. Integers are unsigned here; where Clang
sees that a signed one may overflow (-fsanitize=undefined) it has put a branch to a trap, which becomes a failed assertion.
Pointers are those of C, so that CBMC knows the object of each.
"""
import re
import sys

TOKEN = re.compile(r'''\s*(?:(c"(?:[^"\\]|\\.)*")|([%@]"[^"]*"|[%@][-$._\w]+)|("[^"]*")|(-?\d+)'''
                   r'''|([A-Za-z_.][\w.]*)|(\.\.\.|<\{|\}>|[^\s]))''')
WIDTHS = (8, 16, 32, 64, 128)  # Integers of other widths stand in the next larger one, with zeros above.
PRELUDE = '''#include <stdint.h>
#include <string.h>
typedef uint8_t u8; typedef uint16_t u16; typedef uint32_t u32; typedef uint64_t u64; typedef unsigned __int128 u128;
typedef int8_t s8; typedef int16_t s16; typedef int32_t s32; typedef int64_t s64; typedef __int128 s128;
typedef u8 *ptr;
void proof_trap(void);
u8 undefined_u8(void); u16 undefined_u16(void); u32 undefined_u32(void); u64 undefined_u64(void); ptr undefined_ptr(void);
'''


class Unknown(Exception):
    pass


def tokens_of(text):
    """The tokens of a line, without its comment, metadata and attribute groups."""
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match or match.group(0).lstrip() == ';':
            break
        token = match.group(0).lstrip()
        at = match.end()
        if token == '!':  # Metadata ends what we read.
            break
        if token == '#':
            at = TOKEN.match(text, at).end()
            continue
        found.append(token)
    while found and found[-1] == ',':
        found.pop()
    return found


class Reader:
    """Tokens, one after another."""

    def __init__(self, tokens):
        self.tokens, self.at = tokens, 0

    def peek(self, ahead=0):
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ''

    def next(self):
        token = self.peek()
        self.at += 1
        return token

    def take(self, *expected):
        if self.peek() in expected:
            return self.next()
        return None

    def want(self, expected):
        if self.next() != expected:
            raise Unknown(f'{expected!r} is missing before {self.tokens[self.at - 1:]}')


class Translator:
    def __init__(self):
        self.named = {}  # The body of each named struct.
        self.typedefs = {}
        self.type_lines = []
        self.globals = {}
        self.functions = {}  # Their prototypes.
        self.aliases = []
        self.entries = {}

    # ---- Types: ('int', bits), ('ptr',), ('void',), ('array', count, element), ('struct', name), ('literal', fields, packed)

    def type(self, reader):
        token = reader.next()
        if re.fullmatch(r'i\d+', token):
            kind = ('int', int(token[1:]))
        elif token == 'ptr':
            kind = ('ptr',)
        elif token == 'void':
            kind = ('void',)
        elif token.startswith('%'):
            kind = ('struct', token)
        elif token in ('{', '<{'):
            closing, fields = ('}', []) if token == '{' else ('}>', [])
            while not reader.take(closing):
                fields.append(self.type(reader))
                reader.take(',')
            kind = ('literal', tuple(fields), token == '<{')
        elif token == '[':
            count = int(reader.next())
            reader.want('x')
            kind = ('array', count, self.type(reader))
            reader.want(']')
        else:
            raise Unknown(f'type {token}')
        while True:
            if reader.take('*'):
                kind = ('ptr',)
            elif reader.peek() == '(' and self.is_function_type(reader):
                parameters = []
                reader.want('(')
                while not reader.take(')'):
                    parameters.append('...' if reader.take('...') else self.type(reader))
                    reader.take(',')
                kind = ('function', kind, tuple(parameters))
            else:
                return kind

    @staticmethod
    def is_function_type(reader):
        depth = 0
        for ahead in range(len(reader.tokens) - reader.at):
            depth += {'(': 1, ')': -1}.get(reader.peek(ahead), 0)
            if depth == 0:
                return reader.peek(ahead + 1) == '*' or reader.peek(ahead + 1).startswith(('@', '%'))
        return False

    def c(self, kind):
        """The name of a type in C; of a composite one that is a typedef."""
        if kind[0] == 'int':
            return f'u{next(width for width in WIDTHS if kind[1] <= width)}'
        if kind[0] in ('ptr', 'void'):
            return kind[0]
        if kind not in self.typedefs:
            if kind[0] == 'struct':
                self.typedefs[kind] = 'struct_' + plain(kind[1])
                body = self.named[kind[1]]
                if body is None:
                    raise Unknown(f'{kind[1]} is opaque')
                self.declare(self.typedefs[kind], body[1], body[2])
            elif kind[0] == 'literal':
                name = self.typedefs[kind] = f'literal_{len(self.typedefs)}'
                self.declare(name, kind[1], kind[2])
            elif kind[0] == 'array':
                element = self.c(kind[2])
                name = f'array_{len(self.typedefs)}'
                self.type_lines.append(f'typedef {element} {name}[{kind[1]}];')
                self.typedefs[kind] = name
            else:
                raise Unknown(f'type {kind}')
        return self.typedefs[kind]

    def declare(self, name, fields, packed):
        members = ' '.join(f'{self.c(field)} f{index};' for index, field in enumerate(fields))
        attribute = ' __attribute__((packed))' if packed else ''
        self.type_lines.append(f'typedef struct {{ {members} }}{attribute} {name};')

    # ---- Values

    def typed_value(self, reader):
        kind = self.type(reader)
        self.skip_attributes(reader)
        return kind, self.value(reader, kind)

    def value(self, reader, kind):
        token = reader.next()
        if token.startswith('%'):
            return 'v_' + plain(token)
        if token.startswith('@'):
            return f'((ptr)&{plain(token)})' if token not in self.functions else f'((ptr){plain(token)})'
        if token in ('true', 'false'):
            return '1' if token == 'true' else '0'
        if token in ('null', 'none'):
            return '((ptr)0)'
        if re.fullmatch(r'-?\d+', token):
            return number(int(token), kind[1])
        if token in ('undef', 'poison'):
            if kind[0] in ('literal', 'struct'):
                return None
            return f'undefined_{self.c(kind)}()'  # It has no body, and CBMC fails a proof that comes here.
        if token == 'zeroinitializer':
            return f'(({self.c(kind)}){{0}})'
        if token == 'getelementptr':
            reader.take('inbounds')
            reader.want('(')
            base = self.type(reader)
            reader.want(',')
            operands = [self.typed_value(reader)]
            while reader.take(','):
                reader.take('inrange')
                operands.append(self.typed_value(reader))
            reader.want(')')
            return self.place(base, operands)
        if token in ('bitcast', 'ptrtoint', 'inttoptr'):
            reader.want('(')
            _, value = self.typed_value(reader)
            reader.want('to')
            to = self.type(reader)
            reader.want(')')
            return f'(({self.c(to)}){value})'
        raise Unknown(f'value {token}')

    def place(self, base, operands):
        text = f'(({self.c(base)}*){operands[0][1]})[(s64){operands[1][1]}]'
        kind = base
        for _, index in operands[2:]:
            if kind[0] == 'array':
                text += f'[(s64){index}]'
                kind = kind[2]
            else:
                fields = self.named[kind[1]][1] if kind[0] == 'struct' else kind[1]
                field = int(re.match(r'\d+', index).group(0))
                text += f'.f{field}'
                kind = fields[field]
        return f'((ptr)&{text})'

    def initialiser(self, reader, kind):
        token = reader.peek()
        if token.startswith('c"'):
            raw, data, at = reader.next()[2:-1], [], 0
            while at < len(raw):
                if raw[at] == '\\':
                    data.append(int(raw[at + 1:at + 3], 16))
                    at += 3
                else:
                    data.append(ord(raw[at]))
                    at += 1
            return '{' + ','.join(map(str, data)) + '}'
        if token == 'zeroinitializer':
            reader.next()
            return '{0}' if kind[0] not in ('int', 'ptr') else '0'
        if token in ('undef', 'poison'):  # Padding.
            reader.next()
            return '{0}' if kind[0] not in ('int', 'ptr') else '0'
        if token in ('[', '{', '<{'):
            closing, parts = {'[': ']', '{': '}', '<{': '}>'}[reader.next()], []
            while not reader.take(closing):
                part = self.type(reader)
                parts.append(self.initialiser(reader, part))
                reader.take(',')
            return '{' + ','.join(parts) + '}'
        return self.value(reader, kind)

    @staticmethod
    def skip_attributes(reader):
        """Attributes of a parameter or of what is returned. Returns the type of `byval`, as tokens, or None."""
        byval = None
        while re.fullmatch(r'[a-z_]+', reader.peek()) and reader.peek() not in WORDS:
            word = reader.next()
            if word == 'align':
                reader.next()
            elif reader.peek() == '(':
                depth, begin = 0, reader.at + 1
                while not byval or depth:
                    byval = True
                    depth += {'(': 1, ')': -1, '': -99}.get(reader.next(), 0)
                byval = reader.tokens[begin:reader.at - 1] if word == 'byval' else None
        return byval

    # ---- The file

    def read(self, lines):
        body, signature, functions, constants = None, None, [], []
        for line in lines:
            line = line.rstrip('\n')
            if body is not None:
                if line == '}':
                    functions.append((signature, body))
                    body = None
                else:
                    body.append(line)
                continue
            tokens = tokens_of(line)
            if line.startswith('define'):
                signature, body = self.signature(tokens), []
            elif line.startswith('declare'):
                self.signature(tokens)
            elif len(tokens) > 2 and tokens[0].startswith('%') and tokens[1:3] == ['=', 'type']:
                self.named[tokens[0]] = None if tokens[3] == 'opaque' else self.type(Reader(tokens[3:]))
            elif len(tokens) > 2 and tokens[0].startswith('@') and tokens[1] == '=':
                constants.append(tokens)
        for tokens in constants:
            if not tokens[0].startswith('@llvm.'):
                self.constant(tokens)
        bodies = [self.function(*function) for function in functions]
        prototypes = [f'{text};' for text, _ in self.functions.values() if text]
        declarations = [f'extern {kind} {name};' for name, (kind, _) in self.globals.items()]
        definitions = [f'{kind} {name}' + (f' = {value};' if value else ';')
                       for name, (kind, value) in self.globals.items() if value != 'extern']
        parts = (self.aliases, self.type_lines, declarations, prototypes, definitions, bodies)
        return '\n'.join([PRELUDE, *(line for part in parts for line in [*part, ''])])

    def constant(self, tokens):
        reader = Reader(tokens)
        name = plain(reader.next())
        words = []
        while reader.peek() not in ('global', 'constant', 'alias', ''):
            words.append(reader.next())
        if reader.take('alias'):  # Of two constructors that are the same one.
            self.aliases.append(f'#define {name} {plain(reader.tokens[-1])}')
            self.functions[tokens[0]] = ('', ('void',))
            return
        reader.next()
        kind = self.type(reader)
        value = 'extern' if 'external' in words else self.initialiser(reader, kind)
        self.globals[name] = (self.c(kind), value)

    def signature(self, tokens):
        reader = Reader(tokens[1:])
        while True:
            self.skip_attributes(reader)
            if not reader.take('local_unnamed_addr'):
                break
        kind = self.type(reader)
        name = reader.next()
        if name.startswith('@llvm.'):  # intrinsic() knows it, or not.
            self.functions[name] = ('', kind)
            return name
        reader.want('(')
        parameters, number_of = [], 0
        while not reader.take(')'):
            if reader.take('...'):
                continue
            parameter = self.type_of_parameter(reader)
            given = reader.next() if reader.peek().startswith('%') else f'%{number_of}'
            number_of += 1
            parameters.append((parameter, 'v_' + plain(given)))
            reader.take(',')
        listed = ', '.join(f'{self.c(parameter)} {given}' for parameter, given in parameters) or 'void'
        text = '' if name in LIBRARY else f'{self.c(kind)} {plain(name)}({listed})'
        self.functions[name] = (text, kind)
        self.entries[name] = number_of
        return name

    def type_of_parameter(self, reader):
        kind = self.type(reader)
        self.skip_attributes(reader)
        return kind

    def function(self, name, lines):
        self.variables, blocks, block = {}, [], None
        text, joined = [], []
        for line in lines:  # A switch stands in several lines.
            if joined and joined[-1].count('[') > joined[-1].count(']'):
                joined[-1] += ' ' + line.strip()
            else:
                joined.append(line)
        for line in joined:
            label = re.match(r'^([-$._\w]+|"[^"]*"):', line)
            if label:
                block = (plain(label.group(1)), [])
                blocks.append(block)
            elif line.strip():
                if block is None:
                    block = (str(self.entries[name]), [])  # It has the next number, and no label.
                    blocks.append(block)
                block[1].append(line.strip())
        self.phis = {}
        for label, instructions in blocks:
            for instruction in instructions:
                match = re.match(r'(%\S+|%"[^"]*") = phi ', instruction)
                if match:
                    self.phi(label, instruction)
        for label, instructions in blocks:
            text.append(f'b_{label}:;')
            for _, variable, _ in self.phis.get(label, []):
                text.append(f'  {variable} = {variable}_next;')
            for instruction in instructions:
                if ' = phi ' not in instruction:
                    self.block = label
                    try:
                        text.extend('  ' + statement for statement in self.instruction(instruction))
                    except Unknown as unknown:
                        raise Unknown(f'{unknown} in {instruction}') from None
        declarations = [f'  {kind} {variable};' for variable, kind in self.variables.items()]
        return '\n'.join([self.functions[name][0] + ' {', *declarations, *text, '}'])

    def phi(self, label, instruction):
        reader = Reader(tokens_of(instruction))
        variable = 'v_' + plain(reader.next())
        reader.want('=')
        reader.want('phi')
        kind = self.type(reader)
        incoming = {}
        while reader.take('['):
            value = self.value(reader, kind)
            reader.want(',')
            incoming[plain(reader.next())] = value
            reader.want(']')
            reader.take(',')
        self.variables[variable] = self.variables[variable + '_next'] = self.c(kind)
        self.phis.setdefault(label, []).append((kind, variable, incoming))

    def jump(self, target):
        copies = ''.join(f'{variable}_next = {incoming[self.block]}; '
                         for _, variable, incoming in self.phis.get(target, []))
        return f'{{ {copies}goto b_{target}; }}'

    def instruction(self, line):
        reader = Reader(tokens_of(line))
        result = None
        if reader.peek().startswith('%') and reader.peek(1) == '=':
            result = 'v_' + plain(reader.next())
            reader.next()
        reader.take('tail', 'musttail', 'notail')
        word = reader.next()
        method = getattr(self, 'do_' + word, None)
        if word in BINARY:
            return self.binary(word, result, reader)
        if method is None:
            raise Unknown(f'instruction {word}')
        return method(result, reader)

    def assign(self, result, kind, value):
        self.variables[result] = self.c(kind)
        return [f'{result} = {value};']

    def binary(self, word, result, reader):
        while reader.take('nuw', 'nsw', 'exact'):
            pass
        kind, left = self.typed_value(reader)
        reader.want(',')
        right = self.value(reader, kind)
        bits = kind[1]
        wide = f'u{max(int(self.c(kind)[1:]), 32)}'
        if word in ('sdiv', 'srem', 'ashr'):
            wide = f's{whole(bits)}'
        left, right = f'({wide}){left}', f'({wide}){right}'
        value = f'({left}) {BINARY[word]} ({right})'
        return self.assign(result, kind, self.low(f'({self.c(kind)})({value})', kind))

    def do_alloca(self, result, reader):
        kind = self.type(reader)
        self.variables[result + '_storage'] = self.c(kind)
        return self.assign(result, ('ptr',), f'(ptr)&{result}_storage')

    def do_load(self, result, reader):
        reader.take('volatile')
        kind = self.type(reader)
        reader.want(',')
        _, place = self.typed_value(reader)
        return self.assign(result, kind, f'*({self.c(kind)}*){place}')

    def do_store(self, _, reader):
        reader.take('volatile')
        kind, value = self.typed_value(reader)
        reader.want(',')
        _, place = self.typed_value(reader)
        return [f'*({self.c(kind)}*){place} = {value};']

    def do_getelementptr(self, result, reader):
        reader.take('inbounds')
        base = self.type(reader)
        operands = []
        while reader.take(','):
            operands.append(self.typed_value(reader))
        return self.assign(result, ('ptr',), self.place(base, operands))

    def cast(self, result, reader, signed=False):
        kind, value = self.typed_value(reader)
        reader.want('to')
        to = self.type(reader)
        if signed:
            if kind[1] == 1:
                value = f'(s8)-(s8){value}'
            value = f'(s{whole(to[1])})(s{whole(max(kind[1], 8))}){value}'
        return self.assign(result, to, self.low(f'({self.c(to)}){value}', to))

    @staticmethod
    def low(value, kind):
        """The bits that a type has, where C's type has more."""
        odd = kind[0] == 'int' and kind[1] not in WIDTHS
        return f'{value} & {(1 << kind[1]) - 1}U' + 'L' * (kind[1] > 32) if odd else value

    do_bitcast = do_ptrtoint = do_inttoptr = do_trunc = do_zext = cast

    def do_sext(self, result, reader):
        return self.cast(result, reader, signed=True)

    def do_freeze(self, result, reader):
        kind, value = self.typed_value(reader)
        return self.assign(result, kind, value)

    def do_icmp(self, result, reader):
        relation = reader.next()
        kind, left = self.typed_value(reader)
        reader.want(',')
        right = self.value(reader, kind)
        if relation[0] == 's':
            left, right = f'(s{whole(kind[1])}){left}', f'(s{whole(kind[1])}){right}'
        operator = {'eq': '==', 'ne': '!='}.get(relation) or {'lt': '<', 'le': '<=', 'gt': '>', 'ge': '>='}[relation[1:]]
        return self.assign(result, ('int', 1), f'{left} {operator} {right}')

    def do_select(self, result, reader):
        _, condition = self.typed_value(reader)
        reader.want(',')
        kind, yes = self.typed_value(reader)
        reader.want(',')
        _, no = self.typed_value(reader)
        return self.assign(result, kind, f'{condition} ? {yes} : {no}')

    def do_br(self, _, reader):
        if reader.take('label'):
            return [self.jump(plain(reader.next()))]
        _, condition = self.typed_value(reader)
        reader.want(',')
        reader.want('label')
        yes = plain(reader.next())
        reader.want(',')
        reader.want('label')
        return [f'if ({condition}) {self.jump(yes)} else {self.jump(plain(reader.next()))}']

    def do_switch(self, _, reader):
        _, value = self.typed_value(reader)
        reader.want(',')
        reader.want('label')
        otherwise = plain(reader.next())
        reader.want('[')
        cases = []
        while not reader.take(']'):
            _, case = self.typed_value(reader)
            reader.want(',')
            reader.want('label')
            cases.append(f'if ({value} == {case}) {self.jump(plain(reader.next()))}')
        return [*cases, self.jump(otherwise)]

    def do_ret(self, _, reader):
        if reader.take('void'):
            return ['return;']
        return [f'return {self.typed_value(reader)[1]};']

    def do_unreachable(self, _, __):
        return ['proof_trap();', '__builtin_unreachable();']

    def do_extractvalue(self, result, reader):
        kind, value = self.typed_value(reader)
        reader.want(',')
        field = int(reader.next())
        fields = self.named[kind[1]][1] if kind[0] == 'struct' else kind[1]
        return self.assign(result, fields[field], f'{value}.f{field}')

    def do_insertvalue(self, result, reader):
        kind, value = self.typed_value(reader)
        reader.want(',')
        _, part = self.typed_value(reader)
        reader.want(',')
        self.variables[result] = self.c(kind)
        return ([f'{result} = {value};'] if value else []) + [f'{result}.f{reader.next()} = {part};']

    def do_call(self, result, reader):
        self.skip_attributes(reader)
        kind = self.type(reader)
        if kind[0] == 'function':
            kind = kind[1]
        callee = reader.next()
        reader.want('(')
        arguments, copies = [], []
        while not reader.take(')'):
            if reader.peek() == 'metadata':
                return []
            argument = self.type(reader)
            byval = self.skip_attributes(reader)
            value = self.value(reader, argument)
            if byval:
                copied = self.type(Reader(byval))
                copy = f'copy_{len(self.variables)}'
                self.variables[copy] = self.c(copied)
                copies.append(f'{copy} = *({self.c(copied)}*){value};')
                value = f'(ptr)&{copy}'
            arguments.append((argument, value))
            reader.take(',')
        values = [value for _, value in arguments]
        if callee.startswith('@llvm.'):
            return self.intrinsic(result, kind, callee[6:], values, arguments)
        if callee.startswith('@'):
            text = f'{plain(callee)}({", ".join(values)})'
        else:
            types = ', '.join(self.c(argument) for argument, _ in arguments) or 'void'
            text = f'(({self.c(kind)} (*)({types})){"v_" + plain(callee)})({", ".join(values)})'
        if result is None:
            return [*copies, f'{text};']
        if callee in LIBRARY:
            text = f'({self.c(kind)}){text}'
        return copies + self.assign(result, kind, text)

    def intrinsic(self, result, kind, name, values, arguments):
        if name.startswith(('lifetime.', 'assume', 'dbg.', 'experimental.noalias')):
            return []
        if name.startswith(('ubsantrap', 'trap')):
            return ['proof_trap();']
        if name.startswith(('memcpy.', 'memmove.', 'memset.')):
            return [f'{name.split(".")[0]}({", ".join(values[:3])});']
        if name.startswith('expect.'):
            return self.assign(result, kind, values[0])
        overflow = re.fullmatch(r'([us])(add|sub|mul)\.with\.overflow\.i(\d+)', name)
        if overflow:
            sign, operation, bits = overflow.groups()
            other = f'{result}_{operation}'
            self.variables[result] = self.c(kind)
            self.variables[other] = f'{sign}{bits}'
            left, right = (f'({sign}{bits}){value}' for value in values)
            return [f'{result}.f1 = __builtin_{operation}_overflow({left}, {right}, &{other});',
                    f'{result}.f0 = (u{bits}){other};']
        if name.startswith('abs.'):
            bits = kind[1]
            return self.assign(result, kind, f'(s{bits}){values[0]} < 0 ? (u{bits})0 - {values[0]} : {values[0]}')
        if re.match(r'[us]m(in|ax)\.', name):
            cast = f'({name[0]}{arguments[0][0][1]})'
            relation = '<' if name[2:4] == 'in' else '>'
            return self.assign(result, kind, f'{cast}{values[0]} {relation} {cast}{values[1]} ? {values[0]} : {values[1]}')
        raise Unknown(f'intrinsic {name}')


BINARY = {'add': '+', 'sub': '-', 'mul': '*', 'udiv': '/', 'sdiv': '/', 'urem': '%', 'srem': '%', 'and': '&', 'or': '|',
          'xor': '^', 'shl': '<<', 'lshr': '>>', 'ashr': '>>'}
WORDS = {'void', 'ptr', 'null', 'true', 'false', 'undef', 'poison', 'zeroinitializer', 'getelementptr', 'bitcast', 'ptrtoint',
         'inttoptr', 'x', 'none'} | {f'i{bits}' for bits in range(1, 256)}
LIBRARY = {'@memcmp', '@memchr', '@strlen', '@memcpy', '@memmove', '@memset', '@bcmp'}


def plain(name):
    """A name of the IR as one of C. What is replaced is told by its code, so that no two become one."""
    if re.match(r'@\d', name):
        name = 'unnamed_' + name[1:]
    return re.sub(r'[^A-Za-z0-9_]', lambda match: f'_{ord(match.group(0)):x}_', name.lstrip('%@').strip('"'))


def whole(bits):
    if bits not in WIDTHS:
        raise Unknown(f'a signed integer of {bits} bits')
    return bits


def number(value, bits):
    value &= (1 << bits) - 1
    if bits == 128 and value >> 64:
        return f'((u128){value >> 64}U << 64 | {value & (1 << 64) - 1}U)'
    return f'{value}U' + ('L' if bits >= 64 else '')


def main():
    with open(sys.argv[1], encoding='utf-8') as lines:
        try:
            sys.stdout.write(Translator().read(lines))
        except Unknown as unknown:
            sys.exit(f'ir_to_c: {unknown}')


if __name__ == '__main__':
    main()

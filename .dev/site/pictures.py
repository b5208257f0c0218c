# SPDX-License-Identifier: MIT
#
# Pictures of the documents, as SVG within a page. They have the page's colours, by the classes of site.css, so that they
# follow light and dark. Three kinds of text in a Markdown page are drawn:
#
#   ```states            a machine of states, from its table in the sources: its one line names the file
#   ```dot               a graph, by Graphviz
#   ```chain             a chain of times: lanes with time running down; see Chain
import html
import pathlib
import re
import subprocess
import textwrap


class Refused(Exception):
    pass


# ---- Graphs ------------------------------------------------------------------------------------------------------


def drawn_by_graphviz(source):
    svg = subprocess.run(["dot", "-Tsvg"], input=source, capture_output=True, text=True, check=True).stdout
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<!--.*?-->|<title>.*?</title>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<polygon fill="white" stroke="(?:transparent|none)"[^>]*/>', "", svg, count=1)
    # The page has the colours: what is black is the text's, what is white is nothing.
    svg = svg.replace('fill="black"', 'class="ink"').replace('stroke="black"', 'class="line"')
    svg = re.sub(r'class="ink" class="line"', 'class="ink line"', svg)
    svg = svg.replace('fill="lightgrey"', "").replace('stroke="transparent"', 'stroke="none"')
    svg = re.sub(r'font-family="[^"]*"', "", svg)
    width, height = re.search(r'width="(\d+)pt" height="(\d+)pt"', svg).groups()
    size = "graph large" if int(width) > 540 else "graph"
    return re.sub(r'width="\d+pt" height="\d+pt"', f'class="{size}" width="{width}" height="{height}" role="img"', svg, count=1)


LINE_BREAK = r'\n'
GRAPH = 'bgcolor="transparent"; node [shape=box, style=rounded, fontsize=13, fontname="DejaVu Sans", margin="0.13,0.06"];' \
    ' edge [fontsize=11, fontname="DejaVu Sans", arrowsize=0.7]; nodesep=0.45; ranksep=0.5;'


def graph_of(source):
    """What a page says within braces, with our shapes."""
    return drawn_by_graphviz(f"digraph {{ {GRAPH} {source} }}")


# ---- Machines of states --------------------------------------------------------------------------------------------


def table_of(path):
    """The name of the enum, and the transitions: from, input, to. Every enumerator of it has to be in the table."""
    text = path.read_text(encoding="utf-8")
    table = re.search(r"_transitions\[\] = \{\n(.*?)\n\};", text, re.DOTALL)
    rows = table and re.findall(r"\{(\w+)::(\w+), \w+::(\w+), \w+::(\w+)(?:, \w+::\w+)?\}", table.group(1))
    if not rows:
        raise Refused(f"{path} has no table of transitions")
    enum = rows[0][0]
    states = states_of(path, enum)
    for state in states:
        if not any(state in (row[1], row[3]) for row in rows):
            raise Refused(f"{path}: no transition of the table has the state {state}")
    return enum, states, [row[1:] for row in rows]


def states_of(path, enum):
    """The enumerators, from the header that the table includes."""
    root = path.parent.parent.parent
    for header in re.findall(r'#include "(.*?)"', path.read_text(encoding="utf-8")):
        text = (root / "include" / header).read_text(encoding="utf-8")
        found = re.search(rf"enum class {enum} [^{{]*\{{(.*?)\}};", text, re.DOTALL)
        if found:
            return re.findall(r"^\s*(\w+),?", re.sub(r"//.*", "", found.group(1)), re.MULTILINE) or [
                word.strip() for word in found.group(1).split(",")]
    raise Refused(f"{path}: no header has the states {enum}")


def states_drawn(path):
    enum, states, rows = table_of(path)
    edges = {}
    for from_, input_, to in rows:
        # A state that waits says nothing in a picture: it stays.
        if not (from_ == to and input_ == "none"):
            edges.setdefault((from_, to), []).append(input_)
    # Nearly every state leads back to the first one. It is drawn once more at the end, so that the picture runs downwards.
    lines = [f"{state};" for state in states if any(state in edge for edge in edges if edge[1] != states[0]) or
             state != states[0]] + [f'end_ [label="{states[0]}", style="rounded,dashed"];']
    for (from_, to), inputs in edges.items():
        aim = "end_" if to == states[0] else to
        lines.append(f'{from_} -> {aim} [label="{LINE_BREAK.join(inputs)}"];')
    svg = drawn_by_graphviz(f"digraph {{ {GRAPH} {' '.join(lines)} }}")
    for state in states:
        if f">{state}</text>" not in svg:
            raise Refused(f"{path}: the picture lacks the state {state}")
    return svg


# ---- Chains of times -----------------------------------------------------------------------------------------------


class Chain:
    """Lanes side by side, and time running down. A line of the source is one thing:

    lanes: NAME, NAME[, NAME]
    AT LANE: WORDS                  something happens at an instant
    AT-END LANE -> LANE: WORDS      a message, sent and arrived; `-> lost LANE` for one that does not arrive
    AT-END LANE | WORDS             a span of time
    """

    WIDTH, STEP, TOP, LINE = 460, 24, 34, 15

    def __init__(self, source):
        self.items = []
        self.lanes = []
        for line in filter(None, map(str.strip, source.splitlines())):
            self.read(line)
        if not self.lanes:
            raise Refused("a chain has no lanes")

    def read(self, line):
        if match := re.fullmatch(r"lanes: (.+)", line):
            self.lanes = [name.strip() for name in match.group(1).split(",")]
        elif match := re.fullmatch(r"([\d.]+)-([\d.]+) (\w+) -> (lost )?(\w+): (.+)", line):
            at, end, from_, lost, to, words = match.groups()
            self.items.append(("lost" if lost else "message", float(at), float(end), self.lane(from_), self.lane(to), words))
        elif match := re.fullmatch(r"([\d.]+)-([\d.]+) (\w+) \| (.+)", line):
            at, end, lane, words = match.groups()
            self.items.append(("span", float(at), float(end), self.lane(lane), None, words))
        elif match := re.fullmatch(r"([\d.]+) (\w+): (.+)", line):
            at, lane, words = match.groups()
            self.items.append(("mark", float(at), float(at), self.lane(lane), None, words))
        else:
            raise Refused(f"a chain does not have this line: {line}")

    def lane(self, name):
        if name not in self.lanes:
            raise Refused(f"a chain has no lane {name}")
        return self.lanes.index(name)

    def x(self, lane):
        margin = 132 if len(self.lanes) == 2 else 78
        return margin + lane * (self.WIDTH - 2 * margin) / (len(self.lanes) - 1)

    def y(self, at):
        return self.TOP + 16 + at * self.STEP

    def text(self, x, y, words, anchor, room, bold=False):
        lines = textwrap.wrap(words, max(8, int(room / 6.4)))
        spans = "".join(f'<tspan x="{x:.0f}" dy="{0 if at == 0 else self.LINE}">{html.escape(line)}</tspan>'
                        for at, line in enumerate(lines))
        weight = ' font-weight="600"' if bold else ""
        return len(lines), f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{weight}>{spans}</text>'

    def beside(self, lane, y, words, gap):
        """Words on the side of a lane that has room: outside, or right of one in the middle."""
        last = len(self.lanes) - 1
        right = lane == last or 0 < lane < last
        room = (self.WIDTH - self.x(last) if lane == last else self.x(0) if lane == 0 else self.x(1) - self.x(0)) - gap - 4
        x = self.x(lane) + (gap if right else -gap)
        lines = len(textwrap.wrap(words, max(8, int(room / 6.4))))
        return self.text(x, y + 4 - (lines - 1) * self.LINE / 2, words, "start" if right else "end", room)[1]

    def drawn(self):
        height = self.y(max(item[2] for item in self.items)) + 22
        out = [f'<svg class="chain" viewBox="0 0 {self.WIDTH} {height:.0f}" role="img" font-size="13">',
               '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
               '<path d="M0,0 L8,4 L0,8 z" class="ink"/></marker></defs>']
        for lane, name in enumerate(self.lanes):
            out.append(self.text(self.x(lane), 18, name, "middle", 140, bold=True)[1])
            out.append(f'<line x1="{self.x(lane):.0f}" y1="28" x2="{self.x(lane):.0f}" y2="{height - 4:.0f}" class="lane"/>')
        for kind, at, end, lane, to, words in sorted(self.items, key=lambda item: item[0] != "span"):
            out += getattr(self, kind)(at, end, lane, to, words)
        return "\n".join(out + ["</svg>"])

    def span(self, at, end, lane, _, words):
        y = (self.y(at) + self.y(end)) / 2
        return [f'<rect x="{self.x(lane) - 5:.0f}" y="{self.y(at):.0f}" width="10" height="{self.y(end) - self.y(at):.0f}"'
                ' rx="3" class="span"/>', self.beside(lane, y, words, 12)]

    def mark(self, at, _, lane, __, words):
        return [f'<circle cx="{self.x(lane):.0f}" cy="{self.y(at):.0f}" r="4" class="mark"/>',
                self.beside(lane, self.y(at), words, 12)]

    def message(self, at, end, lane, to, words, lost=False):
        begin, aim = (self.x(lane), self.y(at)), (self.x(to), self.y(end))
        if lost:
            aim = ((begin[0] * 2 + aim[0] * 3) / 5, (begin[1] * 2 + aim[1] * 3) / 5)
        side = 6 if aim[0] > begin[0] else -6
        tip = "" if lost else ' marker-end="url(#tip)"'
        out = [f'<line x1="{begin[0] + side:.0f}" y1="{begin[1]:.0f}" x2="{aim[0] - side:.0f}" y2="{aim[1]:.0f}"'
               f' class="{"lostline" if lost else "line"}"{tip}/>']
        if lost:
            x, y = aim
            out.append(f'<path d="M{x - 5:.0f},{y - 5:.0f} l10,10 m0,-10 l-10,10" class="cross"/>')
        room = abs(self.x(to) - self.x(lane)) - 24
        lines = len(textwrap.wrap(words, max(8, int(room / 6.4))))
        # On the line, which the words interrupt.
        x, y = (begin[0] + aim[0]) / 2, (begin[1] + aim[1]) / 2
        width = max(len(line) for line in textwrap.wrap(words, max(8, int(room / 6.4)))) * 7 + 4
        out.append(f'<rect x="{x - width / 2:.0f}" y="{y - lines * self.LINE / 2:.0f}" width="{width}"'
                   f' height="{lines * self.LINE}" class="back"/>')
        out.append(self.text(x, y + 4 - (lines - 1) * self.LINE / 2, words, "middle", room)[1])
        return out

    def lost(self, at, end, lane, to, words):
        return self.message(at, end, lane, to, words, lost=True)


def picture_of(language, source, root):
    if language == "states":
        return states_drawn(pathlib.Path(root) / source.strip())
    return graph_of(source) if language == "dot" else Chain(source).drawn()

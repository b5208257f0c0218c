// SPDX-License-Identifier: MIT
//
// The parser's tree: a reply of arrays within arrays is handed out with each element in its place, whichever way its bytes come and
// wherever the reply before it ended, and what follows it is read as what it is. An element, a byte or a level too many is refused.
// Each text and number says which element it is, so that none can stand for another.
//
// BOUND   every reply of up to 7 elements, of 8 kinds and arrays; up to 6 elements in every two pieces
// WAY     enumeration
// BROKEN  proto/resp_parser.cpp: `node.text_ -= shift;` => `node.text_ -= 0;`
// BROKEN  proto/resp_parser.cpp: `for (std::uint32_t index = 0; index < nodes_used_; ++index) {`
//         => `for (std::uint32_t index = 0; index + 1 < nodes_used_; ++index) {`
// BROKEN  proto/resp_parser.cpp: `array.below_ = static_cast<std::uint16_t>(nodes_used_ - levels_[depth_].node - 1);` => ``
// BROKEN  proto/resp_parser.cpp: `needed += levels_[level].remaining;` => `needed += 0;`
// BROKEN  proto/resp_parser.cpp: `while (levels_[depth_ - 1].remaining == 0) {` => `if (levels_[depth_ - 1].remaining == 0) {`
// BROKEN  proto/resp_parser.cpp: `if (depth_ == depth_max)` => `if (depth_ == depth_max - 1)`
// BROKEN  proto/resp_parser.cpp: `levels_[0] = {static_cast<std::uint32_t>(last - element), 0};`
//         => `levels_[0] = {static_cast<std::uint32_t>(count), 0};`
#include "holdfast/proto/resp_parser.hpp"

#include <cstring>

#include "proof.hpp"
#include "proto/resp_parser.cpp"

using namespace holdfast;

namespace {

constexpr std::uint32_t elements_most = 7;
constexpr std::uint32_t every_cut_elements_most = 6;
constexpr std::size_t text_most = 128;

// One reply, element by element in the order in which they come. The kind of an array is the number of its elements.
enum Leaf : int { simple = -8, error, integer, negative, bulk, empty_bulk, null_bulk, null_array };
struct Tree {
  int kinds[elements_most];
  std::uint32_t elements = 0;
  char text[text_most];
  std::size_t size = 0;

  void add(int kind) {
    const char name = static_cast<char>('a' + elements);
    const char digit = static_cast<char>('1' + elements);
    switch (kind) {
      case simple: write({'+', name, '\r', '\n'}); break;
      case error: write({'-', name, '\r', '\n'}); break;
      case integer: write({':', digit, '\r', '\n'}); break;
      case negative: write({':', '-', digit, '\r', '\n'}); break;
      case bulk: write({'$', '1', '\r', '\n', name, '\r', '\n'}); break;
      case empty_bulk: write({'$', '0', '\r', '\n', '\r', '\n'}); break;
      case null_bulk: write({'$', '-', '1', '\r', '\n'}); break;
      case null_array: write({'*', '-', '1', '\r', '\n'}); break;
      default: write({'*', static_cast<char>('0' + kind), '\r', '\n'}); break;
    }
    kinds[elements++] = kind;
  }
  template <std::size_t count>
  void write(const char (&bytes)[count]) {
    claim(size + count <= text_most);
    std::memcpy(text + size, bytes, count);
    size += count;
  }
};

// How many arrays stand within one another at element `index` and below it; `index` becomes that of the element behind it.
std::uint32_t depth_of(const Tree& tree, std::uint32_t& index) {
  const int kind = tree.kinds[index++];
  if (kind < 0) return 0;
  std::uint32_t deepest = 0;
  for (int item = 0; item < kind; ++item) {
    const std::uint32_t depth = depth_of(tree, index);
    if (depth > deepest) deepest = depth;
  }
  return deepest + 1;
}

// The value is the tree's element `index`, and what is below it follows. Returns the index behind that.
std::uint32_t compare(const Tree& tree, std::uint32_t index, const RespValue& value) {
  const int kind = tree.kinds[index];
  const char name = static_cast<char>('a' + index);
  const auto reads = [&](RespKind expected, std::size_t size) {
    claim(value.is(expected) && value.text().size() == size && (size == 0 || value.text().data()[0] == name));
  };
  const auto number = static_cast<std::int64_t>(index) + 1;
  switch (kind) {
    case simple: reads(RespKind::simple, 1); break;
    case error: reads(RespKind::error, 1); break;
    case integer: claim(value.is_integer(number)); break;
    case negative: claim(value.is_integer(-number)); break;
    case bulk: reads(RespKind::bulk, 1); break;
    case empty_bulk: reads(RespKind::bulk, 0); break;
    case null_bulk:
    case null_array: claim(value.is_null()); break;
    default:
      claim(value.is(RespKind::array) && value.count() == static_cast<std::uint32_t>(kind));
      ++index;
      for (std::uint32_t item = 0; item < value.count(); ++item) index = compare(tree, index, value.at(item));
      return index;
  }
  return index + 1;
}

constexpr char before[] = {':', '9', '\r', '\n'};
constexpr char after[] = {'+', 'z', '\r', '\n'};

void give(RespParser& parser, const char* bytes, std::size_t size) { claim(parser.feed({bytes, size}) == size); }

// All of it has come: it is the tree, and so is what comes next.
void finish(RespParser& parser, const Tree& tree) {
  RespValue value;
  claim(parser.poll_value(value) == ParseResult::value && compare(tree, 0, value) == tree.elements && parser.idle());
  give(parser, after, sizeof after);
  claim(parser.poll_value(value) == ParseResult::value && value.is_simple("z") && parser.idle());
}

struct Room {
  char bytes[text_most];
  RespValue nodes[elements_most];
};

void read(const Tree& tree) {
  static Room room;
  const std::size_t size = tree.size < 16 ? 16 : tree.size;
  // Behind its last byte and its last node there is nothing that may be used.
  char* const buffer = room.bytes + (sizeof room.bytes - size);
  RespValue* const nodes = room.nodes + (sizeof room.nodes / sizeof *room.nodes - tree.elements);
  RespValue value;
  std::uint32_t end = 0;
  if (depth_of(tree, end) > depth_max) {
    RespParser parser({buffer, size}, nodes, tree.elements);
    give(parser, tree.text, tree.size);
    claim(parser.poll_value(value) == ParseResult::invalid);
    return;
  }
  // A byte at a time; and in two pieces, of which the first comes with the end of another reply.
  {
    RespParser parser({buffer, size}, nodes, tree.elements);
    for (std::size_t at = 0; at < tree.size; ++at) {
      give(parser, tree.text + at, 1);
      if (at + 1 != tree.size) claim(parser.poll_value(value) == ParseResult::need_more);
    }
    finish(parser, tree);
  }
  const std::size_t first = size - sizeof before < tree.size ? size - sizeof before : tree.size - 1;
  const std::size_t least = tree.elements <= every_cut_elements_most ? 0 : first;
  for (std::size_t cut = least; cut <= first; ++cut) {
    RespParser parser({buffer, size}, nodes, tree.elements);
    give(parser, before, sizeof before);
    give(parser, tree.text, cut);
    claim(parser.poll_value(value) == ParseResult::value && value.is_integer(9));
    claim(parser.poll_value(value) == ParseResult::need_more);
    give(parser, tree.text + cut, tree.size - cut);
    finish(parser, tree);
  }
  {
    RespParser parser({buffer, size}, nodes, tree.elements);
    give(parser, tree.text, tree.size);
    finish(parser, tree);
  }
  if (tree.elements > 1) {  // A node too few.
    RespParser parser({buffer, size}, nodes + 1, tree.elements - 1);
    give(parser, tree.text, tree.size);
    claim(parser.poll_value(value) == ParseResult::invalid);
  }
  if (tree.size > 16) {  // A byte too few.
    RespParser parser({buffer + 1, size - 1}, nodes, tree.elements);
    give(parser, tree.text, tree.size - 1);
    claim(parser.poll_value(value) == ParseResult::invalid);
  }
}

// `missing` elements are still to come.
void grow(const Tree& tree, std::uint32_t missing) {
  if (missing == 0) return read(tree);
  const int widest = static_cast<int>(elements_most - tree.elements - missing);
  for (int kind = simple; kind <= widest; ++kind) {
    Tree next = tree;
    next.add(kind);
    grow(next, missing - 1 + static_cast<std::uint32_t>(kind > 0 ? kind : 0));
  }
}

}  // namespace

void prove() noexcept {
  static_assert(elements_most > depth_max + 1, "some nest too deep");
  grow(Tree(), 1);
}

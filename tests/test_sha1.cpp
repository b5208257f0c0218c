// SPDX-License-Identifier: MIT
//
// SHA-1 runs at compile time only, so most of these tests are static_asserts: the runner proves that they were built.
// The digests are FIPS 180-4's examples and, at the block boundaries, what sha1sum(1) says.
#include <cstdint>
#include <string>
#include <string_view>

#include "holdfast/proto/sha1.hpp"
#include "printers.hpp"
#include "scripts.hpp"
#include "unity_style.hpp"

using namespace holdfast;

static void setUp() {}
static void tearDown() {}

namespace {

// A text of `size` times the same byte, for lengths around a block.
template <std::size_t size>
struct Repeated {
  char bytes[size + 1] = {};
  constexpr explicit Repeated(char byte) {
    for (std::size_t at = 0; at < size; ++at) bytes[at] = byte;
  }
  [[nodiscard]] constexpr ByteView view() const { return {bytes, size}; }
};
template <std::size_t size>
constexpr Repeated<size> letters_a('a');

constexpr bool is(const Sha1Hex& hex, const char (&expected)[sha1_hex_size + 1]) {
  for (std::size_t at = 0; at < sha1_hex_size; ++at)
    if (hex.digits[at] != expected[at]) return false;
  return true;
}

static_assert(is(sha1(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709"));
static_assert(is(sha1("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d"));
static_assert(is(sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
                 "84983e441c3bd26ebaae4aa1f95129e5e54670f1"));
static_assert(is(sha1("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrs"
                      "mnopqrstnopqrstu"),
                 "a49b2446a02c645bf419f995b67091253a04a259"));
static_assert(is(sha1("The quick brown fox jumps over the lazy dog"), "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12"));
// The padding fits into the last block up to 55 bytes, and needs one more from 56 on.
static_assert(is(sha1(letters_a<54>.view()), "b05d71c64979cb95fa74a33cdb31a40d258ae02e"));
static_assert(is(sha1(letters_a<55>.view()), "c1c8bbdc22796e28c0e15163d20899b65621d65a"));
static_assert(is(sha1(letters_a<56>.view()), "c2db330f6083854c99d4b5bfb6e8f29f201be699"));
static_assert(is(sha1(letters_a<57>.view()), "f08f24908d682555111be7ff6f004e78283d989a"));
static_assert(is(sha1(letters_a<63>.view()), "03f09f5b158a7a8cdad920bddc29b81c18a551f5"));
static_assert(is(sha1(letters_a<64>.view()), "0098ba824b5c16427bd7a1122a5a442a25ec644d"));
static_assert(is(sha1(letters_a<65>.view()), "11655326c708d70319be2610e8a57d9a5b959d3b"));
static_assert(is(sha1(letters_a<119>.view()), "ee971065aaa017e0632a8ca6c77bb3bf8b1dfc56"));
static_assert(is(sha1(letters_a<120>.view()), "f34c1488385346a55709ba056ddd08280dd4c6d6"));
static_assert(is(sha1(letters_a<1000>.view()), "291e9a6c66994949b57ba5e650361e98fc36b1ba"));
// Bytes above 127 are unsigned, whatever char is.
static_assert(is(sha1(ByteView("\xff\x80\x00\xfe", 4)), "b6aeab15672f45a8ba355349f51dc8eb50089d28"));
// As long as a script may be: the compilers must not give up on it.
static_assert(is(sha1(letters_a<script_size_max>.view()), "2727756cfee3fbfe24bf5650123fd7743d7b3465"));

// SHA-1 a second time and in another way, for texts that only the build knows: the whole padded message as a string,
// the 80 words of a block by recurrence in a ring of 16.
std::string sha1_at_run_time(std::string_view text) {
  std::string message(text);
  message += '\x80';
  while (message.size() % 64 != 56) message += '\0';
  for (int shift = 56; shift >= 0; shift -= 8)
    message += static_cast<char>(static_cast<std::uint64_t>(text.size()) * 8 >> shift & 0xff);
  std::uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  const auto rotated = [](std::uint32_t word, unsigned bits) { return word << bits | word >> (32U - bits); };
  for (std::size_t block = 0; block < message.size(); block += 64) {
    std::uint32_t ring[16];
    for (std::size_t at = 0; at < 64; ++at)
      ring[at / 4] = ring[at / 4] << 8 | static_cast<unsigned char>(message[block + at]);
    std::uint32_t v[5] = {h[0], h[1], h[2], h[3], h[4]};
    for (unsigned round = 0; round < 80; ++round) {
      if (round >= 16)
        ring[round % 16] =
            rotated(ring[(round + 13) % 16] ^ ring[(round + 8) % 16] ^ ring[(round + 2) % 16] ^ ring[round % 16], 1);
      std::uint32_t f = 0;
      std::uint32_t k = 0;
      switch (round / 20) {
        case 0:
          f = v[3] ^ (v[1] & (v[2] ^ v[3]));
          k = 0x5a827999;
          break;
        case 1:
          f = v[1] ^ v[2] ^ v[3];
          k = 0x6ed9eba1;
          break;
        case 2:
          f = (v[1] & v[2]) | (v[3] & (v[1] | v[2]));
          k = 0x8f1bbcdc;
          break;
        case 3:
          f = v[1] ^ v[2] ^ v[3];
          k = 0xca62c1d6;
          break;
      }
      const std::uint32_t next = rotated(v[0], 5) + f + v[4] + k + ring[round % 16];
      v[4] = v[3];
      v[3] = v[2];
      v[2] = rotated(v[1], 30);
      v[1] = v[0];
      v[0] = next;
    }
    for (int word = 0; word < 5; ++word) h[word] += v[word];
  }
  char hex[41];
  std::snprintf(hex, sizeof hex, "%08x%08x%08x%08x%08x", h[0], h[1], h[2], h[3], h[4]);
  return hex;
}

}  // namespace

TEST(test_sha1_should_agree_with_a_second_implementation_at_every_distance_from_a_block) {
  TEST_ASSERT_EQUAL(std::string("a9993e364706816aba3e25717850c26c9cd0d89d"), sha1_at_run_time("abc"));
  TEST_ASSERT_EQUAL(sha1_at_run_time(std::string(55, 'a')),
                    std::string(sha1(letters_a<55>.view()).bytes().string_view()));
  TEST_ASSERT_EQUAL(sha1_at_run_time(std::string(56, 'a')),
                    std::string(sha1(letters_a<56>.view()).bytes().string_view()));
  TEST_ASSERT_EQUAL(sha1_at_run_time(std::string(script_size_max, 'a')),
                    std::string(sha1(letters_a<script_size_max>.view()).bytes().string_view()));
}

TEST(test_embedded_scripts_should_carry_the_sha_of_the_text_that_is_sent) {
  for (const Script& script : {scripts::mutex_release, scripts::mutex_renew, scripts::server_identity}) {
    TEST_ASSERT_EQUAL(sha1_at_run_time(script.text.string_view()), std::string(script.sha.bytes().string_view()));
  }
}

TEST(test_embedded_scripts_should_be_sent_without_their_comments) {
  for (const Script& script : {scripts::mutex_release, scripts::mutex_renew, scripts::server_identity}) {
    TEST_ASSERT_FALSE(script.text.empty());
    TEST_ASSERT_EQUAL(SIZE_MAX, script.text.find("--"));
    TEST_ASSERT_EQUAL(SIZE_MAX, script.text.find("\n\n"));
    TEST_ASSERT_TRUE(script.text.find("redis.call") != SIZE_MAX);
  }
}

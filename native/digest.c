/* Two checksums that traces have: BLAKE2b with eight bytes (RFC 7693), and the CRC-32 of zlib. */
#include "swarm_check.h"

#include <stdio.h>
#include <string.h>

static const uint64_t start[8] = {
    UINT64_C(0x6a09e667f3bcc908), UINT64_C(0xbb67ae8584caa73b), UINT64_C(0x3c6ef372fe94f82b),
    UINT64_C(0xa54ff53a5f1d36f1), UINT64_C(0x510e527fade682d1), UINT64_C(0x9b05688c2b3e6c1f),
    UINT64_C(0x1f83d9abfb41bd6b), UINT64_C(0x5be0cd19137e2179)};

static const uint8_t order[12][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3}};

static uint64_t turned(uint64_t word, int bits) { return (word >> bits) | (word << (64 - bits)); }

static uint64_t word_at(const unsigned char *bytes) {
    uint64_t word = 0;
    for (int place = 7; place >= 0; place--)
        word = word << 8 | bytes[place];
    return word;
}

static void mix(uint64_t *v, int a, int b, int c, int d, uint64_t x, uint64_t y) {
    v[a] += v[b] + x;
    v[d] = turned(v[d] ^ v[a], 32);
    v[c] += v[d];
    v[b] = turned(v[b] ^ v[c], 24);
    v[a] += v[b] + y;
    v[d] = turned(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = turned(v[b] ^ v[c], 63);
}

static void compress(uint64_t *state, const unsigned char *block, uint64_t count, bool is_last) {
    uint64_t v[16], words[16];
    for (int place = 0; place < 16; place++)
        words[place] = word_at(block + 8 * place);
    memcpy(v, state, 64);
    memcpy(v + 8, start, 64);
    v[12] ^= count;
    if (is_last)
        v[14] = ~v[14];
    for (int round = 0; round < 12; round++) {
        const uint8_t *o = order[round];
        mix(v, 0, 4, 8, 12, words[o[0]], words[o[1]]);
        mix(v, 1, 5, 9, 13, words[o[2]], words[o[3]]);
        mix(v, 2, 6, 10, 14, words[o[4]], words[o[5]]);
        mix(v, 3, 7, 11, 15, words[o[6]], words[o[7]]);
        mix(v, 0, 5, 10, 15, words[o[8]], words[o[9]]);
        mix(v, 1, 6, 11, 12, words[o[10]], words[o[11]]);
        mix(v, 2, 7, 8, 13, words[o[12]], words[o[13]]);
        mix(v, 3, 4, 9, 14, words[o[14]], words[o[15]]);
    }
    for (int place = 0; place < 8; place++)
        state[place] ^= v[place] ^ v[place + 8];
}

void digest_of(char into[17], const unsigned char *data, size_t length) {
    uint64_t state[8];
    unsigned char last[128] = {0};
    memcpy(state, start, 64);
    state[0] ^= UINT64_C(0x01010000) ^ 8; /* no key, eight bytes */
    size_t done = 0;
    for (; length - done > 128; done += 128)
        compress(state, data + done, done + 128, false);
    if (length)
        memcpy(last, data + done, length - done);
    compress(state, last, length, true);
    for (int place = 0; place < 8; place++)
        snprintf(into + 2 * place, 3, "%02x", (unsigned)(state[0] >> (8 * place) & 0xff));
}

uint32_t checksum(const char *text, size_t length, bool backwards) {
    uint32_t sum = 0xffffffff;
    for (size_t place = 0; place < length; place++) {
        sum ^= (unsigned char)text[backwards ? length - 1 - place : place];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? 0xedb88320 : 0);
    }
    return ~sum;
}

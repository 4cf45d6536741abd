/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/unit/damage.h"

#include <string.h>

/* SplitMix64's way of mixing. */
static uint64_t scramble(uint64_t number)
{
    number += 0x9e3779b97f4a7c15u;
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9u;
    number = (number ^ number >> 27) * 0x94d049bb133111ebu;
    return number ^ number >> 31;
}

void damage_bytes(unsigned char *bytes, size_t size, unsigned number)
{
    static const uint64_t extremes[] = { 0,          UINT64_MAX,
                                         INT64_MAX,  (uint64_t)INT64_MIN,
                                         INT32_MAX,  UINT32_MAX,
                                         UINT16_MAX, 0x0101010101010101u };
    const uint64_t random = scramble(number);
    const size_t at = (size_t)(random % size);
    const unsigned kind = random >> 40 & 7;
    const size_t width = kind == 0 ? 2 : kind == 1 ? 4 : 8;

    if (kind < 3)
        memcpy(bytes + at, &extremes[random >> 48 & 7],
               width < size - at ? width : size - at);
    else if (kind < 5)
        bytes[at] = (unsigned char)(random >> 48);
    else
        bytes[at] ^= (unsigned char)(1u << (random >> 48 & 7));
}

/* ---- Zip ----------------------------------------------------------------- */

static uint32_t number_at(const unsigned char *bytes, size_t width)
{
    uint32_t number = 0;

    memcpy(&number, bytes, width); /* hosts are little-endian */
    return number;
}

static uint32_t checksum(const unsigned char *bytes, size_t size)
{
    uint32_t crc = 0xffffffffu;

    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* Size of a member's header, name and content; 0: there is none here. */
static size_t member_size(const unsigned char *bytes, size_t size)
{
    size_t total;

    if (size < 30 || memcmp(bytes, "PK\3\4", 4) != 0)
        return 0;
    total = (size_t)30 + number_at(bytes + 18, 4) + number_at(bytes + 26, 2) +
            number_at(bytes + 28, 2);
    return total <= size ? total : 0;
}

/* Members stand in the same order in the directory at the end. */
void damage_reseal_zip(unsigned char *bytes, size_t size)
{
    size_t member = 0, directory = 0, step;

    while ((step = member_size(bytes + directory, size - directory)) != 0)
        directory += step;
    while ((step = member_size(bytes + member, size - member)) != 0) {
        const uint32_t content = number_at(bytes + member + 18, 4);
        const uint32_t crc = checksum(bytes + member + step - content, content);

        if (size - directory < 46 ||
            memcmp(bytes + directory, "PK\1\2", 4) != 0)
            return;
        memcpy(bytes + member + 14, &crc, sizeof crc);
        memcpy(bytes + directory + 16, &crc, sizeof crc);
        member += step;
        directory += (size_t)46 + number_at(bytes + directory + 28, 2) +
                     number_at(bytes + directory + 30, 2) +
                     number_at(bytes + directory + 32, 2);
        if (directory > size)
            return;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/oracle/random.h"

random_source random_from(uint64_t seed, uint64_t stream)
{
    random_source source = { seed };
    source.state = random_bits(&source) + stream;
    source.state = random_bits(&source);
    return source;
}

uint64_t random_bits(random_source *source)
{
    uint64_t z = source->state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

double random_unit(random_source *source)
{
    return (double)(random_bits(source) >> 11) * 0x1p-53;
}

double random_between(random_source *source, double low, double high)
{
    return low + (high - low) * random_unit(source);
}

int64_t random_integer(random_source *source, int64_t low, int64_t high)
{
    uint64_t count = (uint64_t)(high - low) + 1;
    return low + (int64_t)(random_bits(source) % count);
}
